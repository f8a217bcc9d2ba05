"""How the source tree is built, in numbers: sizes, names, wiring. With a commit, before and after.

python benchmarks/house.py                     the tree as it stands
python benchmarks/house.py --against COMMIT    beside how it stood at that commit, as a whole and by package

"Behind" a module lies everything that it imports, directly or through others, also within functions; what is
imported for type checkers alone does not count. So these rows compare the same capability in both trees,
whatever else either can do.
"""

from __future__ import annotations

import argparse
import ast
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

from table import show

ROOT = Path(__file__).parent.parent
SMALL = 80
"""Lines; a module below this with a single importer is a splinter of that importer."""
MOST_PARAMETERS = 8
WAYS_IN = {
    "plaudit score": "plaudit.cli.score",
    "verl's reward loop": "plaudit.integrations.verl.reward_loop",
    "TRL's reward function": "plaudit.integrations.trl.reward",
}
FORMERLY = {"core": "policy", "scheduler": "scheduling"}
"""Packages that have another name now."""
SHARED_STEMS = {"__init__", "__main__", "base"}
"""Module names that say their place, not their subject."""
EMPTY_TOKENS = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
}  # fmt: skip
SLEEP = "sleep"
VIRTUAL = {"plaudit.testing.run", "plaudit.testing.VirtualLoop"}
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

COUNTING = """
import sys
import plaudit.settings as settings
count, resolve = [0], settings.resolve
def counted(*args, **kwargs):
    count[0] += 1
    return resolve(*args, **kwargs)
settings.resolve = counted
from plaudit.cli import main
sys.argv = ["plaudit", "score", sys.argv[1], "-o", sys.argv[2], "--base-url", "http://127.0.0.1:9/v1",
            "--model", "m", "--deadline", "0.5", "--cache", "off"]
try:
    main()
except SystemExit:
    pass
print("resolved", count[0])
"""


@dataclass(frozen=True)
class Module:
    """One file of the source, parsed."""

    path: Path
    name: str
    lines: int
    tree: ast.Module


class House:
    """A checkout of the project."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.modules = [self._module(path) for path in sorted((root / "src").rglob("*.py"))]
        self.tests = [self._module(path) for path in sorted((root / "tests").rglob("*.py"))]

    def _module(self, path: Path) -> Module:
        text = path.read_text(encoding="utf-8")
        parts = path.relative_to(self.root).with_suffix("").parts[1:]
        return Module(path, ".".join(parts), text.count("\n"), ast.parse(text))

    def functions(self) -> Iterator[FunctionNode]:
        for module in self.modules:
            yield from (node for node in ast.walk(module.tree) if isinstance(node, FunctionNode))

    def shared_module_names(self) -> list[str]:
        """Names of more than one module. A command's module may be called like what it commands."""
        stems = Counter(
            module.path.stem
            for module in self.modules
            if module.path.stem not in SHARED_STEMS and module.path.parent.name != "cli"
        )
        return sorted(f"{stem} x{count}" for stem, count in stems.items() if count > 1)

    def shared_class_names(self) -> list[str]:
        names = Counter(
            node.name
            for module in self.modules
            for node in module.tree.body
            if isinstance(node, ast.ClassDef)
        )
        return sorted(f"{name} x{count}" for name, count in names.items() if count > 1)

    def splinters(self) -> list[str]:
        importers: Counter[str] = Counter()
        known = {module.name for module in self.modules}
        for module in self.modules:
            importers.update(set(_imported(module.tree, known)) - {module.name})
        return sorted(
            module.name
            for module in self.modules
            if importers[module.name] == 1 and module.lines < SMALL and module.path.stem != "__init__"
        )

    def wide_functions(self) -> list[str]:
        return sorted(
            f"{node.name} ({_parameters(node)})"
            for node in self.functions()
            if _parameters(node) > MOST_PARAMETERS
        )

    def judge_checks(self) -> list[str]:
        """`isinstance` of a concrete judge outside `judges/`."""
        concrete = {
            node.name
            for module in self.modules
            if ".judges." in module.name
            for node in module.tree.body
            if isinstance(node, ast.ClassDef) and _is_concrete_judge(node)
        }
        return [
            f"{module.path.name}:{node.lineno}"
            for module in self.modules
            if ".judges" not in module.name
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Call) and _calls(node) == "isinstance"
            if concrete & {name.id for name in ast.walk(node.args[1]) if isinstance(name, ast.Name)}
        ]

    def real_sleeps(self) -> list[str]:
        """`time.sleep` in the tests, and `asyncio.sleep` of more than nothing on a loop of real time."""
        virtual = self._on_virtual_time()
        return [
            f"{module.path.relative_to(self.root / 'tests')}:{node.lineno}"
            for module in self.tests
            for part in module.tree.body
            for node in ast.walk(part)
            if isinstance(node, ast.Call)
            and _is_real_sleep(node, is_virtual=module.path.stem in virtual and not _has_real_loop(part))
        ]

    def _on_virtual_time(self) -> set[str]:
        """Test modules that run on the virtual loop, or lend their doubles to one that does."""
        imports = {module.path.stem: set(_imported(module.tree, set())) for module in self.tests}
        virtual = {stem for stem, names in imports.items() if names & VIRTUAL}
        while True:
            lent = {name for stem in virtual for name in imports[stem] if name in imports}
            users = {stem for stem, names in imports.items() if names & virtual}
            if lent | users <= virtual:
                return virtual
            virtual |= lent | users

    def behind(self, start: str) -> list[Module]:
        """A module and everything that it imports, directly or through others."""
        known = {module.name.removesuffix(".__init__"): module for module in self.modules}
        found: dict[str, Module] = {}
        names = [start]
        while names:
            name = names.pop()
            if name in known and name not in found:
                found[name] = known[name]
                names += [name.rpartition(".")[0], *_imported(_at_run_time(known[name].tree), set())]
        return list(found.values())

    def packages(self) -> Counter[str]:
        """Source lines by package, and of the modules that are in none."""
        lines: Counter[str] = Counter()
        for module in self.modules:
            _, *inside = module.name.split(".")
            package = inside[0] if len(inside) > 1 else "(modules)"
            lines[FORMERLY.get(package, package)] += module.lines
        return lines

    def code_lines(self) -> int:
        """Lines with code on them."""
        return sum(len(_code_lines(module)) for module in self.modules)

    def settings_resolutions(self) -> str:
        """How often one `plaudit score` resolves its settings."""
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "in.jsonl"
            source.write_text('{"prompt": "p", "response": "r"}\n', encoding="utf-8")
            done = subprocess.run(
                [sys.executable, "-c", COUNTING, str(source), f"{folder}/out.jsonl"],
                env={
                    "PATH": os.environ["PATH"],
                    "PLAUDIT_HOME": folder,
                    "PYTHONPATH": str(self.root / "src"),
                },
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
                timeout=120,
            )
        said = [line for line in done.stdout.splitlines() if line.startswith("resolved ")]
        return said[-1].split()[1] if said else "cannot run here"

    def report(self) -> dict[str, str]:
        lines = [module.lines for module in self.modules]
        lengths = [(node.end_lineno or 0) - node.lineno + 1 for node in self.functions()]
        return {
            "source files": str(len(self.modules)),
            "source lines": f"{sum(lines):,}",
            "of these, code (no docstring, comment or blank line)": f"{self.code_lines():,}",
            **{
                f"modules / lines behind {way}": f"{len(found)} / {sum(module.lines for module in found):,}"
                for way, start in WAYS_IN.items()
                for found in [self.behind(start)]
            },
            "lines of a file, median / p95 / max": _spread(lines),
            "lines of a function, median / p95 / max": _spread(lengths),
            "module names used more than once": str(len(self.shared_module_names())),
            "class names used more than once": str(len(self.shared_class_names())),
            f"modules under {SMALL} lines with one importer": str(len(self.splinters())),
            f"functions with more than {MOST_PARAMETERS} parameters": str(len(self.wide_functions())),
            "settings resolutions in `plaudit score`": self.settings_resolutions(),
            "isinstance of a concrete judge outside judges/": str(len(self.judge_checks())),
            "real sleeps in tests": str(len(self.real_sleeps())),
        }

    def details(self) -> dict[str, list[str]]:
        return {
            "module names used more than once": self.shared_module_names(),
            "class names used more than once": self.shared_class_names(),
            "modules with one importer": self.splinters(),
            "functions with many parameters": self.wide_functions(),
            "isinstance of a concrete judge": self.judge_checks(),
            "real sleeps": self.real_sleeps(),
        }


def _code_lines(module: Module) -> set[int]:
    """The numbers of a file's lines that hold code."""
    found: set[int] = set()
    with module.path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type not in EMPTY_TOKENS:
                found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(module.tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            found -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def _at_run_time(tree: ast.Module) -> ast.Module:
    """A module without what only type checkers read."""
    body = [
        node
        for node in tree.body
        if not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    ]
    return ast.Module(body, [])


def _imported(tree: ast.Module, known: set[str]) -> Iterator[str]:
    """The modules that a file imports, also those named as `from package import module`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (
                f"{node.module}.{alias.name}"
                for alias in node.names
                if not known or f"{node.module}.{alias.name}" in known
            )


def _parameters(node: FunctionNode) -> int:
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return sum(argument.arg not in ("self", "cls") for argument in every)


def _is_concrete_judge(node: ast.ClassDef) -> bool:
    is_protocol = any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)
    methods = {child.name for child in node.body if isinstance(child, ast.FunctionDef)}
    return not is_protocol and bool(methods & {"render", "split"})


def _calls(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _has_real_loop(part: ast.stmt) -> bool:
    """Whether a test starts a loop of real time itself, or gets one as `run`."""
    return any(
        (isinstance(node, ast.Call) and ast.unparse(node.func) == "asyncio.run")
        or (isinstance(node, ast.arg) and node.arg == "run")
        for node in ast.walk(part)
    )


def _is_real_sleep(node: ast.Call, *, is_virtual: bool) -> bool:
    call = node.func
    if not (isinstance(call, ast.Attribute) and call.attr == SLEEP and isinstance(call.value, ast.Name)):
        return False
    if call.value.id == "time":
        return True
    is_nothing = bool(node.args) and isinstance(node.args[0], ast.Constant) and not node.args[0].value
    return call.value.id == "asyncio" and not is_nothing and not is_virtual


def _spread(numbers: list[int]) -> str:
    ordered = sorted(numbers)
    return f"{statistics.median(ordered):.0f} / {ordered[int(len(ordered) * 0.95)]} / {ordered[-1]}"


def _count(lines: int) -> str:
    return f"{lines:,}" if lines else "-"


def checkout(commit: str, folder: Path) -> Path:
    """The tree as of a commit, unpacked into a folder."""
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def main() -> int:
    """Print the table; with --list, also what stands behind each count."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", metavar="COMMIT")
    parser.add_argument("--list", action="store_true", help="name what was counted")
    options = parser.parse_args()
    now = House(ROOT)
    report = now.report()
    if options.against:
        with tempfile.TemporaryDirectory() as folder:
            then = House(checkout(options.against, Path(folder)))
            before, packages_then = then.report(), then.packages()
        rows = [[what, before[what], value] for what, value in report.items()]
        show("The source tree", ["", options.against, "now"], rows)
        packages = now.packages()
        names = sorted({*packages, *packages_then})
        rows = [[name, _count(packages_then[name]), _count(packages[name])] for name in names]
        show("Source lines by package", ["", options.against, "now"], rows)
    else:
        show("The source tree", ["", "now"], [list(row) for row in report.items()])
    if options.list:
        for what, names in now.details().items():
            print(f"{what}: {', '.join(names) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
