"""The jury: how several judges' scores become one, and when they do not."""

from __future__ import annotations

import math
import pickle
from statistics import median
from typing import Any

import pytest
from complaints import about
from hypothesis import given, settings
from hypothesis import strategies as st

from plaudit import Endpoint, Engine
from plaudit.errors import ConfigError
from plaudit.judges import Group, Judge, Jury, Pairwise, Reference, Rubric
from plaudit.simulator import Fault, Latency, Scenario, SimulatedTransport
from plaudit.types import ChatRequest, Reply, Sample, Source, Status, Verdict

SAMPLE = Sample("6 x 7?", "42")
QUICK = settings(max_examples=100, deadline=None)


class Plain(Judge):
    """A judge with a scale and a version, for combining by hand."""

    def __init__(self, version: str, scale: tuple[float, float] = (0, 10)) -> None:
        self._version = version
        self._scale = scale

    @property
    def version(self) -> str:
        return self._version

    @property
    def scale(self) -> tuple[float, float]:
        return self._scale

    def render(self, sample: Sample) -> ChatRequest | Verdict:
        return ChatRequest(({"role": "user", "content": sample.text},))

    def parse(self, reply: Reply, sample: Sample) -> Verdict:
        return Verdict(float(reply.text), Status.OK)


def jury(*scales: tuple[float, float], **options: Any) -> Jury:
    return Jury({f"m{n}": Plain(f"v{n}", scale) for n, scale in enumerate(scales)}, **options)


def of_three(**options: Any) -> Jury:
    return jury((0, 10), (0, 10), (0, 10), **options)


def said(score: float | None, status: Status = Status.OK) -> Verdict:
    if score is None:
        return Verdict(None, Status.FAILED if status is Status.OK else status, error="reset")
    return Verdict(score, status, f"it is {score:g}")


def verdict(panel: Jury, *scores: float | None) -> Verdict:
    return panel.combine(0, SAMPLE, [said(score) for score in scores])


# -- combination -------------------------------------------------------------------------------------------


def test_every_member_is_asked_about_every_sample() -> None:
    panel = of_three()
    questions = list(panel.split([SAMPLE, Sample("q", "a")]))
    assert [question.serves for question in questions] == [(0,)] * 3 + [(1,)] * 3
    assert [question.judge for question in questions[:3]] == list(panel.members.values())
    assert questions[0].sample is SAMPLE


@pytest.mark.parametrize(
    ("rule", "score", "disagreement"),
    [("mean", 0.6, math.sqrt(0.08)), ("median", 0.8, math.sqrt(0.08)), ("vote", 1.0, 1 / 3)],
)
def test_mean_median_and_vote(rule: str, score: float, disagreement: float) -> None:
    found = verdict(of_three(combine=rule), 2, 8, 8)
    assert found.score == pytest.approx(score)
    assert found.parts["disagreement"] == pytest.approx(disagreement)


def test_each_score_counts_by_the_scale_of_its_own_judge() -> None:
    found = verdict(jury((0, 10), (1, 5), (-1, 1), scale=(0, 100)), 5, 5, -1)
    assert found.score == pytest.approx(50.0)
    assert {name: found.parts[name] for name in ("m0", "m1", "m2")} == {"m0": 0.5, "m1": 1.0, "m2": 0.0}


def test_the_reason_says_who_said_what() -> None:
    assert verdict(of_three(), 1, None, 3).reason == "m0: it is 1; m2: it is 3"


def test_a_vote_is_decided_by_the_majority_and_a_draw_is_the_middle() -> None:
    panel = of_three(combine="vote", quorum=1)
    assert verdict(panel, 6, 7, 0).score == 1.0
    assert verdict(panel, 4, 0, 10).score == 0.0
    assert verdict(panel, 0, 10, None).score == 0.5
    assert verdict(panel, 5, 5, 10).score == 1.0
    assert verdict(panel, 5, 5, None).score == 0.5


SCALES = st.tuples(st.integers(-5, 5), st.integers(1, 9)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@QUICK
@given(st.lists(st.tuples(SCALES, st.floats(0, 1)), min_size=2, max_size=6), SCALES, st.randoms())
def test_whatever_the_scales_the_score_is_on_the_jurys_own(
    members: list[tuple[tuple[int, int], float]], scale: tuple[int, int], random: Any
) -> None:
    scores = [min(low + share * (high - low), high) for (low, high), share in members]
    shares = [(score - low) / (high - low) for score, ((low, high), _) in zip(scores, members, strict=True)]
    for rule in ("mean", "median", "vote"):
        found = verdict(jury(*(ends for ends, _ in members), combine=rule, scale=scale), *scores)
        assert found.score is not None
        assert scale[0] <= found.score <= scale[1]
        assert 0.0 <= found.parts["disagreement"] <= 0.5
        share = (found.score - scale[0]) / (scale[1] - scale[0])
        if rule != "vote":
            assert min(shares) - 1e-9 <= share <= max(shares) + 1e-9
        if rule == "median":
            assert share == pytest.approx(median(shares), abs=1e-9)
        order = random.sample(range(len(members)), len(members))
        swapped = jury(*(members[n][0] for n in order), combine=rule, scale=scale)
        assert verdict(swapped, *(scores[n] for n in order)).score == pytest.approx(found.score)


@QUICK
@given(st.floats(0, 10), st.sampled_from(["mean", "median"]))
def test_a_unanimous_jury_says_what_its_members_say(score: float, rule: str) -> None:
    found = verdict(of_three(combine=rule, scale=(0, 10)), score, score, score)
    assert found.score == pytest.approx(score)
    assert found.parts["disagreement"] == pytest.approx(0.0)


# -- failure is data ---------------------------------------------------------------------------------------


def test_a_member_without_a_verdict_does_not_count() -> None:
    found = verdict(of_three(), None, 4, 8)
    assert found.score == pytest.approx(0.6)
    assert set(found.parts) == {"m1", "m2", "disagreement"}


def test_without_a_majority_there_is_no_score() -> None:
    found = verdict(of_three(), None, None, 8)
    assert (found.score, found.status) == (None, Status.FAILED)
    assert found.error == "1 of 3 members have a verdict, 2 must; m0: reset; m1: reset"


@QUICK
@given(st.lists(st.none() | st.floats(0, 10), min_size=2, max_size=6), st.integers(1, 6))
def test_there_is_a_score_exactly_when_the_quorum_is_reached(scores: list[float | None], quorum: int) -> None:
    quorum = min(quorum, len(scores))
    found = verdict(jury(*[(0, 10)] * len(scores), quorum=quorum), *scores)
    heard = [score for score in scores if score is not None]
    assert found.is_valid == (len(heard) >= quorum)
    assert (found.error is None) == found.is_valid
    assert len(found.parts) == (len(heard) + 1 if found.is_valid else 0)


@pytest.mark.parametrize("members", [2, 3, 4, 5])
def test_the_quorum_is_a_majority_unless_given(members: int) -> None:
    assert jury(*[(0, 1)] * members).quorum == members // 2 + 1


def test_the_status_of_a_failed_jury_is_that_of_its_first_failed_member() -> None:
    heard = [said(3), said(None, Status.REFUSED), said(None, Status.DEADLINE)]
    assert of_three().combine(0, SAMPLE, heard).status is Status.REFUSED


def test_a_score_off_its_judges_scale_is_no_score() -> None:
    found = verdict(of_three(), 11, 4, 8)
    assert found.score == pytest.approx(0.6)
    lost = verdict(of_three(quorum=3), math.nan, 4, 8)
    assert (lost.score, lost.status) == (None, Status.FAILED)
    assert "off the member's scale" in (lost.error or "")


def test_where_all_found_nothing_to_judge_the_jury_says_so() -> None:
    heard = [said(0, Status.EMPTY)] * 3
    found = of_three().combine(0, SAMPLE, heard)
    assert (found.score, found.status) == (0.0, Status.EMPTY)
    assert of_three().combine(0, SAMPLE, [*heard[:2], said(5)]).status is Status.OK


# -- what is refused before the first call -----------------------------------------------------------------


class Scaleless:
    version = "1"

    def render(self, sample: Sample) -> ChatRequest | Verdict:
        raise NotImplementedError

    def parse(self, reply: Reply, sample: Sample) -> Verdict:
        raise NotImplementedError


RUBRIC = Rubric("Is it right?")


@pytest.mark.parametrize(
    ("members", "options", "setting"),
    [
        ([], {}, "members"),
        ([RUBRIC], {}, "members"),
        (RUBRIC, {}, "members"),
        ([RUBRIC, "yes"], {}, "members.str_2"),
        ([RUBRIC, RUBRIC], {}, "members.rubric_2"),
        ([RUBRIC, Group("Is it right?")], {}, "members.group_2"),
        ([RUBRIC, Pairwise("Is it right?")], {}, "members.pairwise_2"),
        ([RUBRIC, Jury([RUBRIC, Rubric("Is it brief?")])], {}, "members.jury_2"),
        ([RUBRIC, Scaleless()], {}, "members.scaleless_2"),
        ({"a": RUBRIC, "disagreement": Rubric("Is it brief?")}, {}, "members"),
        ([RUBRIC, Plain("p", (5, 1))], {}, "members.plain_2"),
        ([RUBRIC, Plain("p")], {"combine": "max"}, "combine"),
        ([RUBRIC, Plain("p")], {"quorum": 0}, "quorum"),
        ([RUBRIC, Plain("p")], {"quorum": 3}, "quorum"),
        ([RUBRIC, Plain("p")], {"quorum": True}, "quorum"),
        ([RUBRIC, Plain("p")], {"scale": (1, 0)}, "scale"),
        ([RUBRIC, Plain("p")], {"scale": 1}, "scale"),
    ],
)
def test_a_jury_that_cannot_judge_is_refused(members: Any, options: dict[str, Any], setting: str) -> None:
    with pytest.raises(ConfigError, check=about(setting)):
        Jury(members, **options)


def test_the_version_changes_with_members_rule_quorum_and_scale_and_survives_a_pickle() -> None:
    members: list[Judge] = [RUBRIC, Rubric("Is it brief?")]
    variants = [
        Jury(members),
        Jury(members[::-1]),
        Jury(members, combine="vote"),
        Jury(members, quorum=1),
        Jury(members, scale=(0, 10)),
    ]
    assert len({panel.version for panel in variants}) == len(variants)
    copy = pickle.loads(pickle.dumps(variants[2]))
    assert (copy, copy.version, copy.rule) == (variants[2], variants[2].version, "vote")


# -- over an engine ----------------------------------------------------------------------------------------

INSTANT = Latency(seconds_per_token=0.0, first_token=0.0, round_trip=0.0)
PANEL = Jury({"right": RUBRIC, "brief": Rubric("Is it brief?", (1, 5)), "kind": Rubric("Is it kind?")})


def engine(scenario: Scenario) -> Engine:
    return Engine(
        endpoints=[Endpoint("http://simulated/v1", model="m")],
        transport=lambda _: SimulatedTransport(scenario),
        cache="memory",
        hedge=False,
    )


def test_over_an_engine_the_jury_says_what_its_members_would_say_alone() -> None:
    samples = [Sample("6 x 7?", f"It is {n}.") for n in range(40)]
    with engine(Scenario(latency=INSTANT)) as judges:
        alone = [judges.score(samples, judge) for judge in PANEL.members.values()]
        pending = judges.submit(samples, PANEL)
        verdicts = pending.result()
        assert pending.summary.calls == 0, "the members have been asked all of it before"
    for found, *heard in zip(verdicts, *alone, strict=True):
        right, brief, kind = (one.score for one in heard)
        assert right is not None and brief is not None and kind is not None
        assert found.score == pytest.approx((right / 10 + (brief - 1) / 4 + kind / 10) / 3)
        assert found.source is Source.CACHE


def test_under_faults_a_score_has_its_quorum_and_a_failure_its_reasons() -> None:
    faults = (Fault("refusal", probability=0.3), Fault("babble", probability=0.2))
    samples = [Sample("6 x 7?", f"It is {n}.") for n in range(100)]
    with engine(Scenario(latency=INSTANT, faults=faults)) as judges:
        verdicts = judges.score(samples, PANEL)
    for found in verdicts:
        heard = len(set(found.parts) - {"disagreement"})
        assert heard >= 2 if found.is_valid else (heard == 0 and found.error)
    assert {True, False} == {found.is_valid for found in verdicts}
    assert any(len(found.parts) == 3 for found in verdicts), "some came about without one member"


def test_what_a_member_demands_of_a_sample_is_asked_before_the_first_call() -> None:
    with (
        engine(Scenario(latency=INSTANT)) as judges,
        pytest.raises(ConfigError, check=about("reference", "sample 1: ")),
    ):
        judges.submit([Sample("q", "a", reference="a"), Sample("q", "b")], Jury([RUBRIC, Reference()]))
