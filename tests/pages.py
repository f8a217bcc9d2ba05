"""The code blocks of the README and of docs/, and how the tests run them.

Every block is fenced and has a language. `bash`, `python`, `diff`, `toml` and `yaml` are run; `text` is no
code. A comment in the line above a block may say `<!-- not run: why -->`, or `<!-- with: trainers -->` where
it needs more packages than the rest of its page.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from loopback import INSTANT, loopback, reserved_port
from page_preludes import PRELUDES

ROOT = Path(__file__).parent.parent
PAGES = [
    *(
        ROOT / name
        for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "SECURITY.md", "CHANGELOG.md")
    ),
    *sorted((ROOT / "docs").glob("*.md")),
]
TRAINERS = (
    "trl.md",
    "verl.md",
    "verl-legacy.md",
    "ray.md",
    "mutation.md",
    "mutation-operators.md",
    "overlap.md",
)
"""Pages that need torch, verl, TRL, Ray or the encoder of query mutation."""
APART = ("frameworks.md",)
"""Pages whose blocks belong to different programs."""
_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>[^\n]*?) -->\n)?^(?P<pad> *)```(?P<language>\w*)\n(?P<code>.*?)^(?P=pad)```$",
    re.M | re.S,
)
_SHOWN = {
    "https://api.openai.com/v1": "{judge}",
    "http://localhost:11434": "{judge}",
    "http://localhost:8000/v1": "{judge}",
    "http://judge:8000/v1": "{judge}",
    "--port 8000": "--port {free}",
    "llama3.2": "simulated",
    "RAY_ADDRESS=auto ": "",
    "8400": "{server}",
    "--num-env-steps 20000": "--num-env-steps 32 --num-processes 4 --num-steps 8",
    "Training(num_env_steps=20_000)": "Training(num_env_steps=32, num_processes=4, num_steps=8)",
    "/shared/verdicts.sqlite": "verdicts.sqlite",
    "Qwen/Qwen2.5-0.5B-Instruct": "policy",
    '"trl-lib/DeepMath-103K"': '"json", data_files="questions.json"',
    "examples/grpo.py": "examples/grpo.py --steps 2",
    'output_dir="judged"': 'output_dir="judged", use_cpu=True, bf16=False, max_steps=1, report_to=[], '
    "max_completion_length=8, per_device_train_batch_size=8",
}
"""What a page shows, and what stands in its place when it is run: addresses above all, and sizes."""


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: str
    line: int
    language: str
    code: str
    mark: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def group(self) -> str:
        """The packages that it needs; empty where it is not run."""
        if self.mark.startswith("not run: "):
            return ""
        return self.mark.removeprefix("with: ") or ("trainers" if self.page in TRAINERS else "light")


def blocks() -> list[Block]:
    """All of them."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in _BLOCK.finditer(text):
            line = text[: match.start("language")].count("\n") + 1
            code = textwrap.dedent(match["code"])
            found.append(Block(page.name, line, match["language"], code, match["mark"] or ""))
    return found


def programs(group: str) -> list[list[Block]]:
    """What runs as one: the blocks of a page, or each by itself where the page is about several programs."""
    ours = [block for block in blocks() if block.group == group and _is_program(block)]
    if group == "trainers":
        ours = [
            block for block in ours if "verl.trainer.main_ppo" not in block.code
        ]  # test_hydra_commands.py
    pages = dict.fromkeys(block.page for block in ours)
    found = [[block for block in ours if block.page == page] for page in pages]
    return [
        part for whole in found for part in ([[one] for one in whole] if whole[0].page in APART else [whole])
    ]


def name_of(program: list[Block]) -> str:
    return program[0].place if len(program) == 1 else program[0].page


def added(diff: str) -> str:
    """A diff's text after the change."""
    lines = [line[1:] for line in diff.splitlines() if not line.startswith("-")]
    return textwrap.dedent("\n".join(lines)) + "\n"


def _is_program(block: Block) -> bool:
    is_code = block.language == "diff" and not added(block.code).lstrip().startswith(
        ("--", "environment.", "python3")
    )
    return block.language in ("bash", "python") or is_code


def run(program: list[Block], folder: Path) -> None:
    """Run a program in a folder that has what it names: its commands, and where it begins, its Python."""
    page = program[0].page
    with (
        loopback(INSTANT) as judge,
        reserved_port() as free,
        reserved_port() as server,
        _world(folder) as environment,
    ):
        ports = {"judge": judge.url, "free": str(free), "server": str(server)}

        def real(code: str) -> str:
            for shown, put in _SHOWN.items():
                code = code.replace(shown, put.format(**ports))
            return code

        if page in ("frameworks.md", "rewards.md", "verl-legacy.md"):
            environment |= {"OPENAI_BASE_URL": judge.url, "PLAUDIT_MODEL": "simulated"}
        by_page = {
            one.page: one.code for one in blocks() if one.language == "yaml" or "GRPOTrainer" in one.code
        }
        (folder / "config.yaml").write_text(real(by_page["verl.md"]), encoding="utf-8")
        train = "print('trained')\n" if page == "cookbook.md" else real(by_page["trl.md"])
        (folder / "train.py").write_text(train, encoding="utf-8")
        environment |= {"JUDGE_URL": judge.url, "JUDGE_MODEL": "simulated", "SIMULATED": judge.url}
        script = folder / "page.py"
        python = [block for block in program if block.language != "bash"]
        code = "\n".join(added(one.code) if one.language == "diff" else one.code for one in python)
        script.write_text(real(PRELUDES.get(page, "") + code), encoding="utf-8")
        lines = [
            f"{sys.executable} -W ignore -c '{_AWAITING}' page.py" if block in python else real(block.code)
            for block in program
            if block not in python[1:]
        ]
        text = re.sub(r" &$", "", "\n".join(lines), flags=re.M)
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=folder,
            env=environment | {"PORT": ports["server"]},
            text=True,
            capture_output=True,
        )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr


_AWAITING = """
import ast, asyncio, atexit, inspect, os, sys
text = open(sys.argv[1], encoding="utf-8").read()
code = compile(text, sys.argv[1], "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
ended = eval(code, {"__name__": "__main__"})
if inspect.iscoroutine(ended):
    asyncio.run(ended)
if {"ray", "torch"} & set(sys.modules):
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
"""
"""Runs a file that may await at its top, as a notebook does, and ends before threads of Ray can crash."""


_COMMANDS = {
    "plaudit": """case "$1" in
    serve|view|simulate)  # stays, in place of the one before: the next line may use it
        if [ -e server.pid ]; then
            kill $(cat server.pid)
            while kill -0 $(cat server.pid) 2> /dev/null; do sleep 0.05; done
        fi
        case "$*" in simulate*|*--port*) port=;; *) port="--port $PORT";; esac
        {python} -m plaudit "$@" $port > server.log 2>&1 &
        echo $! > server.pid
        until grep -q listening server.log; do
            kill -0 $! || {{ cat server.log >&2; exit 1; }}
            sleep 0.05
        done;;
    *) {python} -m plaudit "$@";;
esac""",
    "python": 'if [ "$1 $2" = "-m pip" ]; then shift 2; pip "$@"; else {python} "$@"; fi',
    "make": 'make() {{ {make} -n -C {root} "$@"; }}; make "$@" > /dev/null',
    "srun": '"$@"',
    "pip": '{python} {tests}/checked_install.py "$@"',
    "pipx": '{python} {tests}/checked_install.py "$@"',
    "uv": 'shift; {python} {tests}/checked_install.py "$@"',
}
"""Commands of the pages: servers stay until the end; what installs or builds for minutes is only checked."""


@contextmanager
def _world(folder: Path) -> Iterator[dict[str, str]]:
    """Put into a folder what the pages name, and end the servers that they start."""
    places = {"python": sys.executable, "make": shutil.which("make"), "root": ROOT, "tests": ROOT / "tests"}
    (folder / ".venv" / "bin").mkdir(parents=True)
    for name, body in _COMMANDS.items():
        command = folder / ".venv" / "bin" / name
        command.write_text("#!/bin/bash\n" + body.format(**places) + "\n", encoding="utf-8")
        command.chmod(0o755)
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "tests").symlink_to(ROOT / "tests")
    (folder / "docs").symlink_to(ROOT / "docs")
    answers = [
        {
            "prompt": f"What is {n} + 1?",
            "response": str(n + 1 + n % 2),
            "reference": str(n + 1),
            "group": str(n // 4),
        }
        for n in range(16)
    ]
    rows = {
        "answers.jsonl": answers,
        "questions.jsonl": [{"question": "What is 7 times 8?", "reference": "56"}],
        "questions.json": [{"prompt": row["prompt"], "solution": row["reference"]} for row in answers],
        "pairs.jsonl": [
            {"prompt": row["prompt"], "chosen": row["reference"], "rejected": "99"} for row in answers
        ],
    }
    for name, found in rows.items():
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in found), encoding="utf-8")
    (folder / "answers.csv").write_text("question,answer\n1 + 1?,2\n", encoding="utf-8")
    for name in ("strict", "lenient"):
        (folder / f"{name}.toml").write_text(f'kind = "rubric"\ncriteria = "Be {name}."\n', encoding="utf-8")
    _write_parquet(folder / "data.parquet", answers)
    shown = {name: ROOT / "tests" / name for name in ("", "integrations", "integrations/verl")}
    paths = [str(ROOT / "src"), *map(str, shown.values())]
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OPENAI_", "PLAUDIT_", "BASH_ENV"))
    } | {
        "PATH": f"{folder / '.venv' / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(paths),
        "HOME": str(folder),
        "PLAUDIT_HOME": str(folder / "home"),
        "BROWSER": "true",
        "HF_HUB_OFFLINE": "1",
    }
    try:
        yield environment
    finally:
        if (started := folder / "server.pid").exists():
            with suppress(ProcessLookupError):
                os.kill(int(started.read_text()), signal.SIGTERM)


def _write_parquet(path: Path, answers: list[dict[str, str]]) -> None:
    import pyarrow
    import pyarrow.parquet

    names = {"task": "prompt", "text": "response", "gold": "reference", "uid": "group"}
    table = {shown: [row[name] for row in answers] for shown, name in names.items()}
    pyarrow.parquet.write_table(pyarrow.table(table), path)
