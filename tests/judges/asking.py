"""Short ways to ask a judge in tests."""

from __future__ import annotations

import json
import math

from plaudit.judges import Judge
from plaudit.types import ChatRequest, Reply, Sample, TokenChoice, Usage


def asked(judge: Judge, sample: Sample) -> ChatRequest:
    """The request about a sample that needs one."""
    request = judge.render(sample)
    assert isinstance(request, ChatRequest)
    return request


def said(**values: object) -> Reply:
    """A reply that is one JSON object."""
    return Reply(json.dumps(values), model="m", usage=Usage(100, 10))


def considered(probabilities: dict[str, float], *, before: tuple[str, ...] = (), after: str = "") -> Reply:
    """A reply whose first word had these alternatives, the likeliest of them chosen."""
    top = tuple((token, math.log(p)) for token, p in sorted(probabilities.items(), key=lambda item: -item[1]))
    leading = tuple(TokenChoice(token, -0.1, ((token, -0.1),)) for token in before)
    word = TokenChoice(top[0][0], top[0][1], top)
    trailing = (TokenChoice(after, -0.1, ((after, -0.1),)),) if after else ()
    text = "".join(before) + word.token + after
    return Reply(text, model="m", usage=Usage(100, 1), tokens=(*leading, word, *trailing))
