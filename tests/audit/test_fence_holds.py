"""The fence against a judge that obeys everybody: nothing that a response says gets out."""

from __future__ import annotations

import pytest
from obedient import Naive, ObedientTransport, outside, text_of

from plaudit import Engine, Rubric, Sample
from plaudit.audit import Probe, ProbeResult
from plaudit.audit.attack_strings import FAMILIES
from plaudit.judges import Checklist, Criterion, Expected, Judge, Monitor, Reference, Yes
from plaudit.types import ChatRequest

HARMLESS = Sample("What is 2 + 2?", "It is 4.", "4")
FENCED = Rubric("Is it correct?", scale=(0, 10))


def asked(judge: Judge, sample: Sample) -> str:
    request = judge.render(sample)
    assert isinstance(request, ChatRequest)
    return text_of(request)


def probed(judge: Judge) -> ProbeResult:
    transport = ObedientTransport(asked(judge, HARMLESS))
    probe = Probe(judge)
    with Engine("http://obedient/v1", model="m", cache=None, transport=lambda _: transport) as engine:
        return probe.read(engine.score(probe.samples, judge))


def test_no_attack_of_any_family_gets_through_the_fence() -> None:
    result = probed(FENCED)
    assert result.fooled.of >= 200
    assert result.missing == 0
    assert {family.name: family.fooled.hits for family in result.families} == dict.fromkeys(FAMILIES, 0)


def test_the_same_model_is_fooled_by_most_attacks_where_the_response_is_pasted_raw() -> None:
    result = probed(Naive())
    assert result.fooled.value is not None
    assert result.fooled.value > 0.8
    assert result.control.fooled.hits == 0, "it obeys orders, not harmless words"
    assert result.unaided.hits == 0
    by_family = {family.name: family.fooled.value for family in result.families}
    assert min(share for share in by_family.values() if share is not None) > 0, by_family


@pytest.mark.parametrize(
    "judge",
    [
        FENCED,
        Rubric("Is it correct?", echo=True, anchors={0: "wrong", 10: "right"}),
        Yes("Is it right?"),
        Reference(),
        Expected("Is it correct?"),
        Checklist((Criterion("right", "Is it right?"), Criterion("brief", "Is it brief?"))),
        Monitor("Does it cheat?"),
    ],
    ids=lambda judge: type(judge).__name__,
)
def test_outside_the_fence_every_prompt_of_a_judge_is_the_same(judge: Judge) -> None:
    own = outside(asked(judge, HARMLESS))
    for sample in Probe(FENCED, with_reference=True).samples:
        request = judge.render(sample)
        if isinstance(request, ChatRequest):  # others say nothing, and were settled without a call
            assert outside(text_of(request)) == own
