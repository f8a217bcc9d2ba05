"""OpenRLHF: the reward function that `--reward.remote_url` names (`--remote_rm_url` in older versions).

    # reward.py
    from plaudit.integrations.openrlhf import reward_func

    # or, with a judge of your own
    reward_func = reward_function(Rubric("Is it correct and brief?"), url="http://localhost:8000/v1")

OpenRLHF calls it once for each response, in a thread; all responses to a prompt come to the same process.
It takes no gap: a reward that is None, or an exception, breaks the whole step. So a missing verdict becomes
the mean of the prompt's other responses, for which it waits, and `judge_valid` in the logs says which share
was judged.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any

from plaudit.integrations.scored import Scored, sample_of
from plaudit.judges.base import Judge, Panel

log = logging.getLogger("plaudit")
HEAD = 64
"""Characters by which a prompt that lost its beginning is recognised."""


def reward_function(judge: Judge | Panel | None = None, **options: Any) -> Callable[..., dict[str, Any]]:
    """A `reward_func` with this judge; `options` are those of plaudit.Engine."""
    scored = Scored(judge, **options)

    def reward_func(
        queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any], **_: Any
    ) -> dict[str, Any]:
        import torch

        samples = [
            sample_of(prompt, response_of(query, prompt), label)
            for query, prompt, label in zip(queries, prompts, labels, strict=True)
        ]
        scores = scored.rewards(samples)
        rewards = torch.tensor(scores, dtype=torch.float32)
        valid = torch.tensor([score.valid for score in scores], dtype=torch.float32)
        return {"rewards": rewards, "scores": rewards, "extra_logs": {"judge_valid": valid}}

    return reward_func


def response_of(query: str, prompt: str) -> str:
    """What the model added to its prompt. A prompt that was too long has lost its head in the query."""
    _, found, response = query.partition(prompt)
    if found:
        return response
    cut = prompt.find(query[:HEAD])
    while cut >= 0:
        if query.startswith(prompt[cut:]):
            return query[len(prompt) - cut :]
        cut = prompt.find(query[:HEAD], cut + 1)
    _warn_of_prompt()
    return query


@functools.cache  # once is enough
def _warn_of_prompt() -> None:
    log.warning(
        "a query does not begin with its prompt (the tokenizer does not give back what it was given), so the "
        "judge sees the prompt as a part of the response too"
    )


reward_func = reward_function()
