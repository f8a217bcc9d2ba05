"""A reward for every row, however a framework calls: one engine a process, and a number whatever failed.

Rewards lie between 0 and 1, whatever the judge's scale. A row whose verdict is missing gets a stand-in, as
docs/rewards.md describes, and its score says so: `score.valid` is False. Frameworks that can leave such a row
out do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from plaudit.config import EngineConfig
from plaudit.engine import Engine, configure, shared_engine
from plaudit.errors import ConfigError, NoVerdict
from plaudit.judges.base import Judge, Panel, compares
from plaudit.rows import SOURCE, made_sample, read_prompt, read_response
from plaudit.scoring import Score, Scoring, current
from plaudit.settings import Settings, load
from plaudit.types import Sample
from plaudit.value_check import check_value

ENDS_OF_TEXT = (
    *("<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<|end_of_text|>", "<|end|>", "<|return|>"),
    *("<｜end▁of▁sentence｜>", "</s>", "<eos>", "<end_of_turn>"),
)
"""What tokenizers leave behind a response when they are not told to skip it."""

Given = tuple[Judge | Panel | None, Settings, EngineConfig | None, dict[str, Any]]
"""A judge and what opens its engine, which go to other processes; None as configuration: the settings'."""


class Scored:
    """Scores rows, from any thread and event loop. Opens nothing early; can be pickled.

    Args:
        judge: By default what the settings name: PLAUDIT_JUDGE, PLAUDIT_RUBRIC, plaudit.toml.
        max_failure_rate: Share of the last 200 rows without a verdict past which BatchFailed is raised; 0.2.
        options: As `plaudit.Engine` takes them: url, model, rpm, observers, ...; by default the settings'.
    """

    def __init__(
        self, judge: Judge | Panel | None = None, *, max_failure_rate: float | None = None, **options: Any
    ) -> None:
        check_value("max_failure_rate", max_failure_rate, float | None)
        given = None
        if judge is not None or options:
            settings = load({})
            has_engine = bool(options.keys() - {"observers"})  # which any engine can have
            given = judge, settings, *(configure(settings, **options) if has_engine else (None, options))
        self.__setstate__((max_failure_rate, given))

    @classmethod
    def checked(cls, judge: Judge | Panel | None, **options: Any) -> Scored:
        """The same, with `check` at once where a judge or options are given; the settings may change yet."""
        scored = cls(judge, **options)
        if scored._own is not None:
            scored.check()
        return scored

    def __getstate__(self) -> tuple[float | None, Given | None]:
        return self._limit, self._given

    def __setstate__(self, state: tuple[float | None, Given | None]) -> None:
        self._limit, self._given = state
        self._own = None if self._given is None else _scoring_of(self._given)

    @property
    def _scoring(self) -> Scoring:
        return self._own or current()

    def check(self) -> None:
        """Raise BatchFailed where the judge will never answer: a refused key, no such model or route.

        For the moment before a framework generates. At most one call of a few tokens for each engine; none
        where the server's list of models tells enough, no server is named, or it is not up yet.
        """
        self._scoring.check_judge()

    def rewards(self, samples: Sequence[Sample]) -> list[Score]:
        """A score for each row, in order. Blocks the thread, not the engine."""
        return self._scoring.scores(samples, max_failure_rate=self._limit)

    async def arewards(self, samples: Sequence[Sample]) -> list[Score]:
        """The same, with the caller's event loop left free. It may be another one at every call."""
        return await self._scoring.ascores(samples, max_failure_rate=self._limit)

    async def agroup(self, samples: Sequence[Sample]) -> list[Score]:
        """The scores of a group that is complete, whatever the prompts of its rows."""
        rows = [replace(sample, group=samples[0].group) for sample in samples]
        return await self._scoring.ascores(rows, max_failure_rate=self._limit, is_whole=True)

    async def areward(self, sample: Sample) -> float:
        """The score of one row. Raises NoVerdict where it would only be a stand-in."""
        (score,) = await self._scoring.ascores([sample], max_failure_rate=self._limit, is_whole=True)
        if not score.valid:
            raise NoVerdict(f"the judge gave no verdict ({score.status}); plaudit's log says why")
        return float(score)


def asked_when_loaded(module: str, name: str, made: Any) -> Callable[[str], Any]:
    """A `__getattr__` for a module with a reward of the settings' judge, which is asked when it is loaded.

    Args:
        module: The module's name.
        name: What a framework loads by its path before it generates, and would only log a failure of later.
        made: The reward.
    """

    def find(wanted: str) -> Any:
        if wanted != name:
            raise AttributeError(f"module {module!r} has no attribute {wanted!r}")
        Scored().check()
        return made

    return find


def one_by_one(
    judge: Judge | Panel | None,
    framework: str,
    remedy: str = "use a judge of single responses, like Rubric(...)",
) -> Judge | Panel | None:
    """The judge, for a framework that brings its rows one at a time. ConfigError where it compares rows."""
    if compares(judge):
        raise ConfigError(
            f"compares the responses to a prompt, and {framework} brings them one at a time; {remedy}",
            setting="judge",
            value=type(judge).__name__,
        )
    return judge


def sample_of(
    prompt: Any,
    response: Any,
    label: Any = None,
    *,
    group: Any = None,
    source: Any = None,
    extra: Mapping[str, Any] | None = None,
) -> Sample:
    """A row as judges read it; rows with equal prompts are a group where the framework names none.

    Args:
        prompt: Text or a conversation.
        response: Text or a conversation; tokens that end it are removed.
        label: The ground truth.
        group: What the responses to one prompt have in common.
        source: The data set, by which rules are chosen.
        extra: The other columns of the row.
    """
    others = {**(extra or {}), **({} if source is None else {SOURCE: str(source)})}
    read = read_response(response)
    read = without_end(read) if isinstance(read, str) else read
    sample = made_sample(read_prompt(prompt), read, label, group=group, extra=others)
    if sample.group is not None:
        return sample
    digest = hashlib.sha256(repr(sample.prompt).encode("utf-8", "surrogatepass")).hexdigest()
    return replace(sample, group=digest[:16])


def without_end(response: str) -> str:
    """The response without the tokens that end it. Linear, whatever it ends with."""
    end = len(response)
    while True:
        bare = end
        while bare and response[bare - 1].isspace():
            bare -= 1
        token = next((token for token in ENDS_OF_TEXT if response.endswith(token, 0, bare)), None)
        if token is None:
            return response[:end]
        end = bare - len(token)


def _scoring_of(given: Given) -> Scoring:
    """One for equal judges and options: environments and pickled copies share an engine and its limits."""
    if (known := next((scoring for other, scoring in _kept if other == given), None)) is not None:
        return known
    judge, settings, config, live = given
    engine = (
        None if config is None else shared_engine((config, live), lambda: Engine.from_config(config, **live))
    )
    scoring = Scoring(settings, engine=engine, judge=judge, observers=live.get("observers", ()))
    _kept.append((given, scoring))
    return scoring


_kept: list[tuple[Given, Scoring]] = []
