"""A batch as TRL hands it over, as samples: lists of prompts and completions, plain or conversational.

Pure. Completions of one prompt lie side by side, `num_generations` of them: so groups are told apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from plaudit.errors import ConfigError
from plaudit.journal.base import STEP_KEY
from plaudit.rows import made_sample, read_prompt, read_response
from plaudit.types import Sample
from plaudit.value_check import check_length

NO_COLUMNS = frozenset({"trainer_state", "log_extra", "log_metric", "environments"})
"""What TRL passes beside the columns of the data set."""


def samples_of(
    prompts: Sequence[Any],
    completions: Sequence[Any],
    columns: Mapping[str, Any],
    *,
    reference: str | None = None,
    num_generations: int | None = None,
) -> list[Sample]:
    """One sample for each completion, in order; `reference` names the column with the right answers."""
    check_length("completions", completions, len(prompts), "prompts")
    others = {
        name: values
        for name, values in columns.items()
        if name not in NO_COLUMNS and isinstance(values, list | tuple) and len(values) == len(prompts)
    }
    references: Sequence[Any] = [None] * len(prompts)
    if reference is not None:
        if reference in columns:
            check_length(reference, columns[reference], len(prompts), "prompts")
        if reference not in others:
            raise ConfigError(
                f"is not a column of the dataset, which has {', '.join(others) or 'none'} "
                "beside the prompt; name the column with the right answers",
                setting="reference",
                value=reference,
            )
        references = others.pop(reference)
    groups = groups_of(prompts, num_generations)
    step = getattr(columns.get("trainer_state"), "global_step", None)
    training = {STEP_KEY: step} if isinstance(step, int) else {}
    samples: list[Sample] = []
    for row, (prompt, completion) in enumerate(zip(prompts, completions, strict=True)):
        if not row or groups[row] != groups[row - 1]:
            task = read_prompt(prompt)  # one text for the whole group
        extra = training | {name: values[row] for name, values in others.items()}
        response = read_response(completion, "completion")
        samples.append(made_sample(task, response, references[row], group=groups[row], extra=extra))
    return samples


def groups_of(prompts: Sequence[Any], num_generations: int | None = None) -> list[str]:
    """A name for each row's group: equal prompts side by side, cut where a group is complete."""
    groups: list[str] = []
    number = size = 0
    for row, prompt in enumerate(prompts):
        is_full = num_generations is not None and size >= num_generations
        if row and (is_full or prompt != prompts[row - 1]):
            number, size = number + 1, 0
        size += 1
        groups.append(str(number))
    return groups
