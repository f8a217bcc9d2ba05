"""overlap(GRPOTrainer): a trainer whose completions are judged while it computes log-probs.

A step of TRL is: generate, old and reference log-probs, rewards. What this adds is one submission as soon as
the completions are there. The reward function finds it under way, and waits for what is left of it.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from plaudit.errors import ConfigError
from plaudit.integrations.trl.batch_reward import BatchReward
from plaudit.integrations.trl.trainer_facts import version_of_trl

log = logging.getLogger("plaudit")

KNOWN = "1.6 to 1.16"
"""The versions of TRL in which the places below were looked up."""
PLACES = {3: (1, 2), 8: (1, 3), 9: (1, 3)}
"""How many things `_generate` gives, and which of them are completion ids and completions.
RLOO gives 3; GRPO gives 8, up to TRL 1.8 it gave 9."""
METHODS = {
    "_generate": ("prompts",),
    "_generate_and_score_completions": ("inputs",),
    "_calculate_rewards": ("inputs", "prompts", "completions", "completion_ids_list"),
}
"""What a trainer must have to be overlapped, with the arguments."""
NO_COLUMNS = ("prompt", "completion", "completion_ids")
"""What TRL does not pass on as a column."""

T = TypeVar("T")


def overlap(trainer_class: type[T]) -> type[T]:
    """The trainer class with judging submitted at the end of generation, for GRPOTrainer and RLOOTrainer.

    Rewards are the same as without. A trainer that is built differently from those of TRL 1.6 to 1.16 is
    given back as it is, with a warning.

    Raises:
        ConfigError: it is not a class.
    """
    if not isinstance(trainer_class, type):
        raise ConfigError(
            f"{trainer_class!r:.60} is not a trainer class; write overlap(GRPOTrainer)(model=..., ...)"
        )
    if complaint := _complaint(trainer_class):
        _warn(complaint)
        return trainer_class
    return type(
        trainer_class.__name__, (_Overlapping, trainer_class), {"__module__": trainer_class.__module__}
    )


class _Overlapping:
    """What goes before the trainer's own methods."""

    reward_funcs: Sequence[Any]
    _plaudit_inputs: Sequence[Mapping[str, Any]] = ()
    _plaudit_has_begun = False
    _plaudit_is_lost = False

    def _generate_and_score_completions(self, inputs: Sequence[Mapping[str, Any]]) -> Any:
        if not self._plaudit_has_begun:
            self._plaudit_has_begun = True
            _warn_if_in_vain(self)
            for judged in _judged(self):
                judged.check_judge()
        self._plaudit_inputs = inputs
        try:
            return super()._generate_and_score_completions(inputs)  # type: ignore[misc]
        finally:
            self._plaudit_inputs = ()
            for judged in _judged(self):
                judged.call_off()  # where log-probs failed, nothing will collect it

    def _generate(self, prompts: Sequence[Any]) -> Any:
        generated = super()._generate(prompts)  # type: ignore[misc]
        completions = _completions(generated, len(prompts))
        if completions is None and not self._plaudit_is_lost:
            self._plaudit_is_lost = True
            _warn(f"{type(self).__name__}._generate gives other things")
        if completions is not None and len(self._plaudit_inputs) == len(prompts):
            columns = _columns(self._plaudit_inputs, generated)
            for judged in _judged(self):
                judged.submit(prompts, completions, columns, self)
        return generated


def _judged(trainer: Any) -> list[BatchReward]:
    owners = (getattr(function, "__self__", None) for function in trainer.reward_funcs)
    return [owner for owner in owners if isinstance(owner, BatchReward)]


def _completions(generated: Any, rows: int) -> Sequence[Any] | None:
    """The completions among what `_generate` gave, if they are where they should be."""
    if not isinstance(generated, tuple) or len(generated) not in PLACES:
        return None
    ids, completions = (generated[place] for place in PLACES[len(generated)])
    is_whole = all(isinstance(values, list) and len(values) == rows for values in (ids, completions))
    is_text = is_whole and all(isinstance(completion, str | list) for completion in completions)
    return completions if is_text else None


def _columns(inputs: Sequence[Mapping[str, Any]], generated: tuple[Any, ...]) -> dict[str, Any]:
    """The columns as the reward function will get them, with what a rollout function adds to each row."""
    columns = {name: [row[name] for row in inputs] for name in inputs[0] if name not in NO_COLUMNS}
    for fields in generated:
        if isinstance(fields, dict):
            columns |= {name: values for name, values in fields.items() if isinstance(values, list)}
    return columns


def _complaint(trainer_class: Any) -> str:
    """What keeps a class from being overlapped, or nothing."""
    for name, arguments in METHODS.items():
        method = getattr(trainer_class, name, None)
        if method is None:
            return f"{trainer_class.__name__} has no method {name}"
        parameters = list(inspect.signature(method).parameters.values())[1:]
        names = tuple(parameter.name for parameter in parameters)
        is_open = any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters)
        if not is_open and names[: len(arguments)] != arguments:
            return f"{trainer_class.__name__}.{name} takes {', '.join(names) or 'nothing'}"
    return ""


def _warn(complaint: str) -> None:
    log.warning(
        "overlap() knows TRL %s, and in TRL %s %s: training goes on without overlap, and waits for the "
        "judge; run: pip install 'trl>=1.6,<1.17'",
        KNOWN,
        version_of_trl() or "(not installed)",
        complaint,
    )


def _warn_if_in_vain(trainer: Any) -> None:
    """Say so where there is nothing to submit, or nothing to hide it behind."""
    if not _judged(trainer):
        log.warning(
            "overlap() finds no judge among reward_funcs; make one with plaudit's reward_function(...)"
        )
    args = getattr(trainer, "args", None)
    steps = (getattr(args, "steps_per_generation", None) or 1) * (
        getattr(trainer, "num_iterations", None) or 1
    )
    is_bare = (
        hasattr(trainer, "loss_type")  # GRPO: RLOO always computes old log-probs
        and getattr(trainer, "beta", None) == 0.0
        and (getattr(args, "gradient_accumulation_steps", None) or 1) % steps == 0
        and not getattr(trainer, "use_vllm", False)
    )
    if is_bare:
        log.warning(
            "overlap() has nothing to overlap with: with beta=0 and an update after each "
            "generation, GRPO computes no log-probs before the rewards. It does with beta > 0, with "
            "num_iterations > 1, and with vLLM"
        )
