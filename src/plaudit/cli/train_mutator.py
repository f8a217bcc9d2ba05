"""`plaudit train-mutator`: learn how to rewrite questions so that a target model answers them better."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from plaudit.cli.console import Console, Stop
from plaudit.cli.mutation_models import ModelOptions, open_models
from plaudit.cli.options import JUDGE, LIMITS, Given, command
from plaudit.errors import BatchFailed, ConfigError
from plaudit.install_command import install_command
from plaudit.mutation.episode import Rules
from plaudit.mutation.operators import load_operators
from plaudit.mutation.questions import Item, builtin_questions, load_questions
from plaudit.mutation.training import Pace, Training
from plaudit.observers.progress import StatusLine, bar
from plaudit.settings import Settings, option
from plaudit.setup.engines import check_cache

if TYPE_CHECKING:
    from plaudit.mutation.history import History, Point

SERVERS_LOST = 3


@dataclass(frozen=True, kw_only=True)
class MutatorOptions(ModelOptions):
    output: Path = option(Path("mutator"), "Folder of the training.", "", "FOLDER", flags=("-o", "--output"))
    resume: bool = option(False, "Continue from the checkpoint in the folder.")
    questions: Path | None = option(
        None, "JSON lines with question and reference (default: 200 built-in questions)", "Task", "FILE"
    )
    patience: float = option(300.0, "Maximum duration of an outage, in seconds.", "Models")
    use_batching: bool = option(
        True,
        "Run all environments at once, or one call after another.",
        "PPO",
        flags=("--use-batching/--no-batching",),
    )
    no_barrier: bool = option(False, "Environments do not wait for each other within a rollout.", "PPO")

    @property
    def pace(self) -> Pace:
        """How environments wait for each other."""
        if self.no_barrier and not self.use_batching:
            raise ConfigError("--no-barrier and --no-batching exclude each other; leave one out")
        return "one-by-one" if not self.use_batching else "free" if self.no_barrier else "together"


@command(
    MutatorOptions,
    Rules,
    Training,
    settings=(*(name for name in JUDGE if name != "base_url"), *LIMITS, "cache"),
    epilog="Example:  plaudit train-mutator --servers http://localhost:11434 --model llama3.2 "
    "--num-env-steps 20000 -o mutator\n\n"
    "Exit status:  0 trained to the end, 2 bad usage or input, 3 the servers were lost, 130 stopped by "
    "Ctrl-C (after 3 and 130, continue with --resume).",
)
def train_mutator(options: MutatorOptions, rules: Rules, training: Training, given: Given) -> int:
    """Train a policy that rewrites questions so that a target model answers them better.

    At each step the policy picks an operator (clarify, simplify, ...); one model rewrites the question, the
    target answers, and a judge scores the answer. The reward is the quality gained, minus the drift from the
    original meaning, minus the cost. Failed calls give no reward and are counted; training goes on.

    The folder gets a checkpoint after every rollout, TensorBoard files and, at the end, report.html. Without
    a server, a small model on this machine does everything.
    """
    training = replace(training, pace=options.pace)
    settings = options.settings(given)
    check_cache(settings)
    questions = load_questions(options.questions) if options.questions else builtin_questions()
    if options.operators:
        load_operators(options.operators)  # says at once what is wrong with it
    require("gymnasium", "stable_baselines3", "tensorboard")
    try:
        return _run(settings, options, training, rules, questions)
    except BatchFailed as lost:
        Console().print(f"plaudit: {lost}")
        return SERVERS_LOST


def main() -> None:
    """`python train_query_mutator.py`, with the same flags."""
    from plaudit.cli import app

    app(["train-mutator", *sys.argv[1:]], prog_name="plaudit")


def _run(
    settings: Settings, options: MutatorOptions, training: Training, rules: Rules, questions: Sequence[Item]
) -> int:
    from plaudit.mutation.mutation_trainer import train
    from plaudit.mutation.outage import OutageWatch

    outage = OutageWatch(options.patience)
    with (
        open_models(settings, options, observer=outage.observer) as models,
        Stop() as stop,  # from here on, Ctrl-C ends the training and keeps what there is
        _Shown(training.steps, stop, is_quiet=options.quiet) as shown,
    ):
        writers = (models.rewriter, models.target, models.grader)
        history = train(
            options.task(models, questions, rules),
            training,
            options.output,
            resume=options.resume,
            on_progress=shown,
            outage=outage,
            facts=(
                ("models", ", ".join(dict.fromkeys(engine.model for engine in writers))),
                ("questions", f"{len(questions):,}"),
                ("seed", str(training.seed)),
            ),
        )
    _conclude(history, options.output)
    if stop.signal is None:
        return 0
    has_checkpoint = (options.output / "checkpoint.zip").exists()
    again = "--resume" if has_checkpoint else "a new start: no rollout was complete"
    Console().print(f"stopped; go on with the same command and {again}")
    return stop.exit_status


class _Shown(StatusLine):
    """Progress for people: a live line on a terminal, elsewhere a line for each rollout; and when to stop."""

    def __init__(self, total: int, stop: Stop, *, is_quiet: bool) -> None:
        super().__init__(self._text, is_shown=False if is_quiet else None)
        self._total = total
        self._stop = stop
        self._is_quiet = is_quiet
        self._began = time.monotonic()
        self._first: int | None = None
        self._steps = 0
        self._last = ""

    def __call__(self, steps: int, point: Point | None) -> bool:
        """Show where the training is; False once a signal came."""
        if self._first is None:
            self._first = steps
        self._steps = steps
        if point is not None:
            reward = "no episode ended" if point.reward is None else f"reward {point.reward:+.3f}"
            self._last = f", {reward}, {point.failed:.0%} failed" if point.failed else f", {reward}"
            if not (self.is_shown or self._is_quiet):
                Console().print(self._numbers())
        return self._stop.signal is None

    def _text(self) -> str:
        return f"{bar(self._steps, self._total)} {self._numbers()}"

    def _numbers(self) -> str:
        rate = (self._steps - (self._first or 0)) / max(1e-9, time.monotonic() - self._began)
        return f"{self._steps:,}/{self._total:,} steps{self._last}, {rate:.1f} steps/s"


def _conclude(history: History, folder: Path) -> None:
    from plaudit.mutation.training_report import finding, nothing

    out = Console(sys.stdout)
    out.print(finding(history.points))
    for one in history.top(5):
        out.print(f"  {one.quality_before:.2f} -> {one.quality_after:.2f}  {one.before}")
        out.print(f"{'':14}  {' '.join(one.after.split())}")
    if history.failures:
        out.print(f"of {history.steps:,} steps, these failed: {nothing(history)}")
    out.print(f"wrote {folder / 'report.html'}")


def require(*packages: str) -> None:
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"train-mutator needs {', '.join(missing).replace('_', '-')}; "
            f"run: {install_command('plaudit[mutation]')}"
        )
