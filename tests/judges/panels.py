"""A panel without an engine: its questions asked of a function, its verdicts combined."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence

from plaudit.errors import Declined, JudgeError, PlauditError
from plaudit.judges.base import Panel, Question
from plaudit.types import ChatRequest, Reply, Sample, Status, Usage, Verdict

Server = Callable[[ChatRequest], Reply | PlauditError]

BLOCK = re.compile(r"^<([a-z]+)-([A-Z-]+)(?: note=\"[^\"]*\")?>\n(.*?)\n</\1-\2>$", re.DOTALL | re.MULTILINE)


def decide(panel: Panel, samples: Sequence[Sample], server: Server) -> list[Verdict]:
    """The panel's verdict on every sample."""
    heard: list[list[Verdict]] = [[] for _ in samples]
    for question in panel.split(samples):
        verdict = ask(question, server)
        for index in question.serves:
            heard[index].append(verdict)
    return [panel.combine(index, sample, heard[index]) for index, sample in enumerate(samples)]


def ask(question: Question, server: Server) -> Verdict:
    """The verdict on one question, as the engine would hand it over."""
    request = question.judge.render(question.sample)
    if isinstance(request, Verdict):
        return request
    assert isinstance(request, ChatRequest)
    reply = server(request)
    if isinstance(reply, PlauditError):
        return Verdict(None, Status.FAILED, error=str(reply))
    try:
        return question.judge.parse(reply, question.sample)
    except JudgeError as error:
        status = Status.REFUSED if isinstance(error, Declined) else Status.UNREADABLE
        return Verdict(None, status, error=str(error))


def requests_of(panel: Panel, samples: Sequence[Sample]) -> list[ChatRequest]:
    """Everything that the panel would send."""
    rendered = [question.judge.render(question.sample) for question in panel.split(samples)]
    return [request for request in rendered if isinstance(request, ChatRequest)]


def blocks(request: ChatRequest) -> dict[str, str]:
    """The fenced blocks of a request: from a response's id, or a label, to what stands inside."""
    found = {}
    for label, code, text in BLOCK.findall(request.messages[-1]["content"]):
        name = code.partition("-")[0] if label == "response" and "-" in code else label
        assert name not in found
        found[name] = text
    return found


def responses(request: ChatRequest) -> dict[str, str]:
    """The responses that a group's request shows, by id, in order."""
    return {name: text for name, text in blocks(request).items() if name.isupper()}


def listed(scores: Mapping[str, object], **odd: object) -> Reply:
    """A reply that scores by id."""
    rows = [{"id": name, "reason": f"because of {name}", "score": score} for name, score in scores.items()]
    return Reply(json.dumps({"verdicts": rows, **odd}), model="m", usage=Usage(100, 10))


def scores(verdicts: Sequence[Verdict]) -> list[float | None]:
    return [verdict.score for verdict in verdicts]
