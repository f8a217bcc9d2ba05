"""What there is to know about a TRL trainer from outside: its version, its groups, its reward functions."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

from plaudit.errors import ConfigError

log = logging.getLogger("plaudit")

OLDEST_AWAITING = (1, 0)
"""From this TRL on `async def` reward functions are awaited."""
OLDEST_MASKING = (1, 6)
"""From this TRL on a row for which all functions gave None is left out; before, it counted as 0."""


def version_of_trl() -> str | None:
    try:
        return metadata.version("trl")
    except metadata.PackageNotFoundError:
        return None


def check_version(on_failure: object, version: str | None = None) -> None:
    """Raise ConfigError where a TRL is too old for what the reward function gives."""
    version = version or version_of_trl()
    found = re.match(r"(\d+)\.(\d+)", version or "")
    if found is None:
        return
    number, newer = (int(found[1]), int(found[2])), ".".join(map(str, OLDEST_MASKING))
    if number < OLDEST_AWAITING:
        raise ConfigError(f"TRL {version} does not await reward functions; run: pip install 'trl>={newer}'")
    if number < OLDEST_MASKING and on_failure in ("mask", "raise"):
        raise ConfigError(
            f"TRL {version} counts a row without a reward as 0.0; run: pip install "
            f"'trl>={newer}', or set on_failure='group_mean', which gives no advantage"
        )


def trainer_of(columns: Mapping[str, Any]) -> Any:
    """The trainer that calls: the owner of the `log_metric` it passes; None where it passes none."""
    return getattr(columns.get("log_metric"), "__self__", None)


def generations_of(trainer: Any) -> int | None:
    """How many completions each prompt has, in training or in evaluation, if the trainer tells."""
    is_training = getattr(getattr(trainer, "model", None), "training", True)
    size = getattr(trainer, "num_generations" if is_training else "num_generations_eval", None)
    return size if isinstance(size, int) and size > 0 else None


def warn_of_others(trainer: Any, judged: object) -> None:
    """Say what becomes of a failed verdict when there are other reward functions beside a judge."""
    functions = getattr(trainer, "reward_funcs", None) or []
    others = [function for function in functions if getattr(function, "__self__", None) is not judged]
    if not others:
        return
    names = ", ".join(getattr(other, "__name__", type(other).__name__) for other in others)
    log.warning(
        "TRL adds this judge to %s, and counts a verdict that is missing as 0 beside them. Four equal "
        "answers to a prompt, 1 from each of two functions, one verdict missing: sums 2, 2, 2, 1, advantages "
        "+0.5, +0.5, +0.5, -1.5. The answer is penalised for the judge's failure. Pass the others to "
        "reward_function as rules=[...] (and rule_weights=[...]) instead of reward_funcs; then "
        "such a row has advantage 0",
        names,
    )


def warn_of_split(groups: Sequence[str], generations: int | None) -> bool:
    """Say so, and True, where a group is not whole here: a median or a comparison sees a part of it."""
    sizes = Counter(groups)
    small = [size for size in sizes.values() if generations is not None and size < generations]
    if small:
        log.warning(
            "a group of %s completions has only %d of them in this process, and the length penalty or the "
            "judge compares within groups; let per_device_train_batch_size x steps_per_generation "
            "be a multiple of num_generations",
            generations,
            small[0],
        )
    return bool(small)
