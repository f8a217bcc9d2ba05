"""`plaudit mutate`: rewrite questions with a policy that `plaudit train-mutator` has trained."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from plaudit.cli.console import Console
from plaudit.cli.mutation_models import ModelOptions, open_models
from plaudit.cli.options import JUDGE, LIMITS, Given, argument, command, output_option
from plaudit.cli.output import written
from plaudit.cli.train_mutator import require
from plaudit.mutation.questions import load_questions
from plaudit.settings import REQUIRED
from plaudit.setup.engines import check_cache
from plaudit.setup.json_lines import encode

SOME_FAILED = 3


@dataclass(frozen=True, kw_only=True)
class MutateOptions(ModelOptions):
    folder: Path = argument("FOLDER", "Folder of a training.")
    questions: Path = argument("QUESTIONS", "JSON lines with question and, if the judge needs it, reference.")
    output: str = output_option(REQUIRED, "File to write; - for stdout.")


@command(
    MutateOptions,
    settings=(*(name for name in JUDGE if name != "base_url"), *LIMITS, "cache"),
    epilog="Example:  plaudit mutate mutator questions.jsonl -o rewritten.jsonl --servers "
    "http://localhost:11434 --model llama3.2\n\n"
    "Exit status:  0 success, 3 calls failed for some questions, 2 bad usage or input.",
)
def mutate(options: MutateOptions, given: Given) -> int:
    """Rewrite questions with a trained policy.

    FOLDER is the output folder of plaudit train-mutator; give the same models and operators as in training.
    OUT gets one JSON object per line: the question, the best query that the policy found for it, the quality
    of the answer to each (from 0 to 1), the operators applied, and an error if a call failed.
    """
    settings = options.settings(given)
    check_cache(settings)
    questions = load_questions(options.questions)
    require("gymnasium", "stable_baselines3", "tensorboard")
    from plaudit.mutation.trained_policy import apply_policy, load_policy, trained_rules

    rules = trained_rules(options.folder)
    with (
        written(options.output, str(options.questions)) as sink,
        open_models(settings, options) as models,
    ):
        task = options.task(models, questions, rules)
        rewritten = apply_policy(task, load_policy(task, options.folder))
        sink.write(b"".join(encode(asdict(one)) + b"\n" for one in rewritten))
    gains = [
        one.quality - one.quality_before
        for one in rewritten
        if one.quality is not None and one.quality_before is not None
    ]
    changed = sum(one.query != one.question for one in rewritten)
    if not options.quiet:
        mean = f", quality {sum(gains) / len(gains):+.3f} on average" if gains else ""
        Console().print(f"{changed:,} of {len(rewritten):,} questions rewritten{mean} -> {options.output}")
    return SOME_FAILED if len(gains) < len(rewritten) else 0
