"""`plaudit train-mutator`: learn how to rewrite questions so that a target model answers them better."""

from __future__ import annotations

import functools
import importlib.util
import logging
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from plaudit.cli import options
from plaudit.cli.console import ConsoleHandler, stderr
from plaudit.cli.crew import Crew, Roles, muster
from plaudit.cli.stop import Stop
from plaudit.errors import BatchFailed, ConfigError
from plaudit.judges.check import check_samples
from plaudit.settings import Settings, load
from plaudit.setup.engines import check_cache
from plaudit.types import Sample

if TYPE_CHECKING:
    from plaudit.mutation.history import History, Point
    from plaudit.mutation.task import MutationTask
    from plaudit.mutation.training import Training

HELP = (
    "Train a policy that rewrites questions so that a target model answers them better.\n\n"
    "At each step the policy picks an operator (clarify, simplify, ...); one model rewrites the question, "
    "the target answers, and a judge scores the answer. The reward is the quality gained, minus the drift "
    "from the original meaning, minus the cost. A call that fails earns nothing, is counted, and stops "
    "nothing.\n\n"
    "The folder gets a checkpoint after every rollout, TensorBoard's files and, at the end, report.html. "
    "With no server, a small model on this machine does everything."
)
EPILOG = (
    "Example:  plaudit train-mutator --servers http://localhost:11434 --model llama3.2 --num-env-steps 20000 "
    "-o mutator\n\n"
    "Exit status:  0 trained to the end, 2 bad usage or input, 3 the servers were lost, 130 stopped by "
    "Ctrl-C (after 3 and 130, go on with --resume)."
)
SERVERS_LOST = 3
_task, _models, _ppo, _output = "Task", "Models", "PPO", "Output"


def _number(help_: str, panel: str, *names: str) -> Any:
    return typer.Option(*names, help=help_, rich_help_panel=panel)


def train_mutator(
    context: typer.Context,
    *,
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", metavar="FOLDER", help="Where the training lives.", rich_help_panel=_output
        ),
    ] = Path("mutator"),
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on from the folder's checkpoint.", rich_help_panel=_output)
    ] = False,
    questions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="JSON lines with question and reference (default: 200 of ours)",
            rich_help_panel=_task,
        ),
    ] = None,
    operators: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Operators of your own, in TOML or JSON.", rich_help_panel=_task),
    ] = None,
    max_steps: Annotated[int, _number("Rewrites of a question, at most.", _task)] = 3,
    drift_weight: Annotated[float, _number("Taken off for losing the meaning.", _task)] = 0.1,
    cost_weight: Annotated[float, _number("Taken off per 1,000 characters.", _task)] = 0.01,
    num_processes: Annotated[int, _number("Environments.", _ppo)] = 16,
    num_steps: Annotated[int, _number("Steps of each in a rollout.", _ppo)] = 32,
    num_env_steps: Annotated[int, _number("Steps of all together.", _ppo)] = 10_000,
    ppo_epoch: Annotated[int, _number("Passes over a rollout.", _ppo)] = 4,
    num_mini_batch: Annotated[int, _number("Mini-batches of a rollout.", _ppo)] = 4,
    use_batching: Annotated[
        bool,
        _number("All environments at once, or one call after another.", _ppo, "--use-batching/--no-batching"),
    ] = True,
    no_barrier: Annotated[
        bool, _number("No environment waits for another within a rollout.", _ppo, "--no-barrier")
    ] = False,
    seed: Annotated[int, _number("The same seed gives the same training.", _ppo)] = 0,
    lr: Annotated[float, _number("Learning rate.", _ppo)] = 1e-3,
    gamma: Annotated[float, _number("Discount.", _ppo)] = 0.99,
    gae_lambda: Annotated[float, _number("Of the advantages.", _ppo)] = 0.95,
    clip_param: Annotated[float, _number("Of the policy's ratio.", _ppo)] = 0.2,
    entropy_coef: Annotated[float, _number("Weight of the entropy.", _ppo)] = 0.01,
    value_loss_coef: Annotated[float, _number("Weight of the value loss.", _ppo)] = 0.5,
    max_grad_norm: Annotated[float, _number("Longest gradient.", _ppo)] = 0.5,
    servers: Annotated[
        list[str] | None,
        typer.Option(
            "--servers",
            "--base-url",
            metavar="URL",
            help="Ollama or OpenAI-compatible; again, or with commas, for more (default: a model here)",
            rich_help_panel=_models,
        ),
    ] = None,
    model: options.Model = None,
    mutate_model: Annotated[str, _number("Model that rewrites (default: --model)", _models)] = "",
    target_model: Annotated[str, _number("Model that answers (default: --model)", _models)] = "",
    judge_model: Annotated[str, _number("Model that judges (default: --model)", _models)] = "",
    embed_model: Annotated[str, _number("Model that embeds (default: on this machine)", _models)] = "",
    rewrite_tokens: Annotated[int, _number("Tokens that a rewrite may have.", _models)] = 256,
    answer_tokens: Annotated[int, _number("Tokens that an answer may have.", _models)] = 512,
    api_key_env: options.ApiKeyEnv = None,
    judge: options.Judge = None,
    rubric: options.Rubric = None,
    scale: options.Scale = None,
    patience: Annotated[float, _number("Seconds that an outage may last.", _models)] = 300.0,
    local_model: options.LocalModel = None,
    yes: options.Yes = False,
    max_concurrent: options.MaxConcurrent = None,
    rpm: options.Rpm = None,
    tpm: options.Tpm = None,
    budget: options.Budget = None,
    price: options.Price = None,
    timeout: options.Timeout = None,
    cache: options.Cache = None,
    quiet: options.Quiet = False,
    debug: options.Debug = False,
) -> None:
    context.meta["debug"] = debug
    given = dict(locals())
    _require("numpy")
    from plaudit.mutation.training import Pace, Training

    if no_barrier and not use_batching:
        raise ConfigError("--no-barrier and --no-batching exclude each other; leave one out")
    pace: Pace = "one-by-one" if not use_batching else "free" if no_barrier else "together"
    names = [name for name in Training.__dataclass_fields__ if name != "pace"]
    training = Training(**{name: given[name] for name in names}, pace=pace)
    urls = [url.strip() for value in servers or () for url in value.split(",") if url.strip()]
    settings = load({name: given[name] or None for name in SETTINGS} | {"base_url": urls or None})
    check_cache(settings)
    task_options = _TaskOptions.of(
        questions=questions,
        operators=operators,
        max_steps=max_steps,
        drift_weight=drift_weight,
        cost_weight=cost_weight,
        tokens=(rewrite_tokens, answer_tokens),
    )
    roles = Roles(mutate_model, target_model, judge_model, embed_model)
    _require("gymnasium", "stable_baselines3", "tensorboard")
    run = functools.partial(_run, settings, roles, task_options, training, output)
    try:
        status = run(resume=resume, patience=patience, yes=yes, quiet=quiet)
    except BatchFailed as lost:
        stderr().print(f"plaudit: {lost}")
        status = SERVERS_LOST
    raise typer.Exit(status)


SETTINGS = (
    *("model", "api_key_env", "judge", "rubric", "scale", "local_model"),
    *("max_concurrent", "rpm", "tpm", "budget", "price", "timeout", "cache"),
)


def main() -> None:
    """`python train_query_mutator.py`, with the same flags."""
    from plaudit.cli import app

    app(["train-mutator", *sys.argv[1:]], prog_name="plaudit")


@dataclass(frozen=True, slots=True)
class _TaskOptions:
    """What is to be rewritten, how, and what counts."""

    questions: Sequence[Any]
    operators: Sequence[Any]
    rules: Any
    tokens: tuple[int, int]
    """Of a rewrite and of an answer, at most."""

    @staticmethod
    def of(
        *,
        questions: Path | None,
        operators: Path | None,
        max_steps: int,
        drift_weight: float,
        cost_weight: float,
        tokens: tuple[int, int],
    ) -> _TaskOptions:
        from plaudit.mutation.episode import Rules
        from plaudit.mutation.operators import builtin_operators, load_operators
        from plaudit.mutation.questions import builtin_questions, load_questions

        return _TaskOptions(
            load_questions(questions) if questions else builtin_questions(),
            load_operators(operators) if operators else builtin_operators(),
            Rules(max_steps, drift_weight, cost_weight),
            tokens,
        )

    def build(self, crew: Crew, deadline: float) -> MutationTask:
        """The task with its models. ConfigError where the judge cannot judge it."""
        from plaudit.mutation.encoders import EndpointEncoder, StaticEncoder
        from plaudit.mutation.task import Models, MutationTask

        samples = [Sample(item.question, "-", reference=item.reference) for item in self.questions]
        check_samples(crew.judge, enumerate(samples))
        encoder = EndpointEncoder(crew.embedder) if crew.embedder else StaticEncoder()
        models = Models(
            crew.rewriter,
            crew.target,
            crew.grader,
            crew.judge,
            encoder,
            *self.tokens,
            deadline=deadline,
        )
        return MutationTask(models, self.questions, self.operators, self.rules)


def _run(
    settings: Settings,
    roles: Roles,
    task_options: _TaskOptions,
    training: Training,
    folder: Path,
    *,
    resume: bool,
    patience: float,
    yes: bool,
    quiet: bool,
) -> int:
    from plaudit.mutation.mutation_trainer import train
    from plaudit.mutation.outage import OutageWatch

    outage = OutageWatch(patience)
    with (
        muster(settings, roles, is_agreed=yes, observer=outage.observer) as crew,
        Stop() as stop,  # from here on, Ctrl-C ends the training and keeps what there is
        _Shown(training.steps, stop, is_shown=not quiet) as shown,
    ):
        if crew.notice:
            shown.say(crew.notice)
        task = task_options.build(crew, deadline=max(300.0, 2 * settings.timeout))
        facts = (
            (
                "models",
                ", ".join(
                    dict.fromkeys(engine.model for engine in (crew.rewriter, crew.target, crew.grader))
                ),
            ),
            ("questions", f"{len(task.questions):,}"),
            ("seed", str(training.seed)),
        )
        history = train(task, training, folder, resume=resume, outage=outage, on_progress=shown, facts=facts)
    _conclude(history, folder)
    if stop.signal is not None:
        again = "--resume" if (folder / "checkpoint.zip").exists() else "a new start: no rollout was complete"
        stderr().print(f"stopped; go on with the same command and {again}")
        return stop.exit_status
    return 0


@dataclass(slots=True)
class _Shown:
    """Progress for people: a bar on a terminal, a line for each rollout elsewhere; and the way to stop."""

    total: int
    stop: Stop
    is_shown: bool = True
    _console: Console = field(default_factory=stderr)
    _bar: Progress | None = None
    _handler: ConsoleHandler | None = None
    _began: float = 0.0
    _first: int | None = None

    def __enter__(self) -> _Shown:
        self._handler = ConsoleHandler(self._console)
        logging.getLogger("plaudit").addHandler(self._handler)
        self._began = time.monotonic()
        if self.is_shown and self._console.is_terminal:
            words = TextColumn("{task.fields[said]}")
            self._bar = Progress(
                BarColumn(), MofNCompleteColumn(), words, TimeRemainingColumn(), console=self._console
            )
            self._bar.add_task("steps", total=self.total, said="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._handler is not None:
            logging.getLogger("plaudit").removeHandler(self._handler)

    def __call__(self, steps: int, point: Point | None) -> bool:
        """Show where the training is; False once a signal came."""
        if self._first is None:
            self._first = steps
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=steps)
            if point is not None:
                self._bar.update(self._bar.task_ids[0], said=self._words(point))
        elif point is not None and self.is_shown:
            rate = (steps - self._first) / max(1e-9, time.monotonic() - self._began)
            self.say(f"{steps:,}/{self.total:,} steps, {self._words(point)}, {rate:.1f} steps/s")
        return self.stop.signal is None

    def say(self, text: str) -> None:
        """A line, unless nothing is to be said."""
        if self.is_shown:
            self._console.print(text)

    @staticmethod
    def _words(point: Point) -> str:
        reward = "no episode ended" if point.reward is None else f"reward {point.reward:+.3f}"
        return f"{reward}, {point.failed:.0%} failed" if point.failed else reward


def _conclude(history: History, folder: Path) -> None:
    from plaudit.mutation.training_report import finding, nothing

    out = Console(file=sys.stdout, highlight=False, markup=False, soft_wrap=True)
    out.print(finding(history.points))
    for one in history.top(5):
        out.print(f"  {one.quality_before:.2f} -> {one.quality_after:.2f}  {one.before}")
        out.print(f"{'':14}  {' '.join(one.after.split())}")
    if history.failures:
        out.print(f"of {history.steps:,} steps, these came to nothing: {nothing(history)}")
    out.print(f"wrote {folder / 'report.html'}")


def _require(*packages: str) -> None:
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise ConfigError(
            f"train-mutator needs {', '.join(missing).replace('_', '-')}; "
            'run: pip install "plaudit[mutation]"'
        )
