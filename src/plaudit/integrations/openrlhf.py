"""OpenRLHF: the reward function that `--reward.remote_url` names (`--remote_rm_url` in older versions).

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

from plaudit.errors import PlauditError
from plaudit.integrations.scored import Scored, asked_when_loaded, one_by_one, sample_of
from plaudit.judges.base import Judge, Panel
from plaudit.rows import response_of

log = logging.getLogger("plaudit")


def reward_function(judge: Judge | Panel | None = None, **options: Any) -> Callable[..., dict[str, Any]]:
    """A `reward_func` with this judge; `options` are those of plaudit.Engine."""
    scored = Scored.checked(one_by_one(judge, "OpenRLHF"), **options)

    def reward_func(
        queries: Sequence[str], prompts: Sequence[str], labels: Sequence[Any], **_: Any
    ) -> dict[str, Any]:
        import torch

        samples = [
            sample_of(prompt, _response(query, prompt), label)
            for query, prompt, label in zip(queries, prompts, labels, strict=True)
        ]
        try:
            scores = scored.rewards(samples)
        except PlauditError as error:
            log.error("%s", error)  # OpenRLHF only mentions it, at INFO, and breaks later for another reason
            raise
        rewards = torch.tensor(scores, dtype=torch.float32)
        valid = torch.tensor([score.valid for score in scores], dtype=torch.float32)
        return {"rewards": rewards, "scores": rewards, "extra_logs": {"judge_valid": valid}}

    return reward_func


def _response(query: str, prompt: str) -> str:
    response = response_of(query, prompt)
    if response == query and prompt:
        _warn_of_prompt()
    return response


@functools.cache  # once is enough
def _warn_of_prompt() -> None:
    log.warning(
        "a query does not begin with its prompt (the tokenizer does not give back what it was given), so the "
        "judge sees the prompt as a part of the response too"
    )


reward_func: Callable[..., dict[str, Any]]
__getattr__ = asked_when_loaded(__name__, "reward_func", reward_function())
