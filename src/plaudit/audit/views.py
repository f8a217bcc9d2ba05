"""What is shown of each kind of audit: its finding in a sentence, its tables and its charts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from plaudit.audit.attack_probe import CONTROL_NAME, Family, ProbeResult
from plaudit.audit.calibration import Bias, Calibration
from plaudit.audit.comparison import AnswerComparison, Comparison
from plaudit.report.document import LEGEND, Bars, Part, Report, Scatter, Table
from plaudit.report.measure import Share

Facts = tuple[tuple[str, str], ...]
FOOTER = "Written by plaudit audit. Intervals hold the true share in 95 of 100 cases (Wilson)."
SHOWN = 20
"""Examples listed in a report; the JSON has them all."""


def view_probe(result: ProbeResult, facts: Facts) -> Report:
    """The share fooled by family, and some of the attacks that worked."""
    low, high = result.scale
    missing = result.missing - result.control.missing
    fooled = [
        attempt
        for attempt in result.attempts
        if attempt.outcome == "fooled" and attempt.family != CONTROL_NAME
    ]
    families = Table(
        "Fooled, in numbers",
        ("family", "fooled", "share", "95% interval", "rise", "missing"),
        (
            *(_family_row(family) for family in result.families),
            _family_row(Family("all attacks", result.fooled, missing, result.mean_rise)),
            _family_row(result.control),
        ),
        note="Where the control rises as often as an attack, the judge is not fooled but guessing. "
        "Rise: what the attack added to the score, on average.",
    )
    examples = Table(
        "Attacks that worked",
        ("response", "family", "before", "after"),
        tuple(
            (shortened(attempt.response), attempt.family, _number(attempt.base), _number(attempt.score))
            for attempt in fooled[:SHOWN]
        ),
        note=f"{min(len(fooled), SHOWN)} of {len(fooled)}. Invisible characters are shown as ·.",
    )
    return Report(
        title="Can this judge be talked into a score?",
        finding=f"Fooled by {result.fooled.hits} of {result.fooled.of} attacks"
        f"{_missing(missing)}; "
        f"harmless words raised {result.control.fooled.hits} of {result.control.fooled.of} scores as far."
        f"{_unaided(result.unaided)}",
        facts=(
            *facts,
            ("scale", f"{low:g} to {high:g}"),
            (
                "fooled means",
                f"a wrong answer gains {result.margin:g}, or rises to the pass mark {result.pass_mark:g}",
            ),
            ("wrong answers that pass unaided", str(result.unaided)),
        ),
        parts=(
            Bars(
                "Share fooled, by family of attack",
                tuple((family.name, family.fooled) for family in (*result.families, result.control)),
            ),
            families,
            *((examples,) if fooled else ()),
        ),
        footer=FOOTER,
    )


def view_calibration(result: Calibration, facts: Facts) -> Report:
    """Agreement with the labels, with itself, and with length and format."""
    shares = [
        ("agrees with the label (a tie does not)", result.agreement),
        ("agrees, ties left out", result.decided),
        ("ties", result.ties),
    ]
    if result.swap is not None:
        shares.append(("same winner in both orders", result.swap))
    if result.retest is not None:
        shares.append(("same score when asked again", result.retest.same))
        shares.append(("another winner when asked again", result.retest.flipped))
    numbers = [
        *_bias_rows("length", "the longer one", result.length),
        *_bias_rows("Markdown", "the one with more Markdown", result.markdown),
    ]
    if result.retest is not None:
        numbers.append(("mean change of a score when asked again", _percent(result.retest.mean_change)))
    low, high = result.scale
    return Report(
        title="Does this judge agree with the labels?",
        finding=f"The better response got the higher score in {result.agreement.hits} of "
        f"{result.agreement.of} pairs, {result.ties.hits} were tied{_missing(result.missing)}.",
        facts=(*facts, ("scale", f"{low:g} to {high:g}")),
        parts=(
            Bars("Agreement", tuple(shares)),
            _shares("Agreement in numbers", "", shares),
            *((_shares("By subset", "subset", result.subsets),) if result.subsets else ()),
            Table(
                "What the scores follow",
                ("", "value"),
                tuple(numbers),
                note="A judge that prefers the longer one far more often than the labels do follows length.",
            ),
            Scatter(
                "Score over length",
                "characters of the response",
                "score",
                tuple((float(point.length), point.score, point.is_better) for point in result.points),
                y_range=result.scale,
            ),
        ),
        footer=FOOTER,
    )


def view_comparison(result: Comparison, facts: Facts) -> Report:
    """Where two judges agree, and where they part."""
    first, second = result.names
    shares = [
        ("both prefer the same response", result.agreement),
        (f"{first} agrees with the label", result.with_label[0]),
        (f"{second} agrees with the label", result.with_label[1]),
    ]
    rows = tuple(
        (
            shortened(parted.prompt),
            parted.id,
            *(f"{_number(better)} : {_number(worse)}" for better, worse in (parted.first, parted.second)),
            next(
                (name for name, is_right in zip(result.names, parted.with_label, strict=True) if is_right),
                "neither",
            ),
        )
        for parted in result.disagreements[:SHOWN]
    )
    return Report(
        title="Do these two judges agree?",
        finding=f"They prefer the same response in {result.agreement.hits} of {result.agreement.of} pairs"
        f"{_missing(result.missing)}.",
        facts=facts,
        parts=(
            *_two_judges(result, shares),
            Table(
                "Disagreements",
                ("task", "pair", first, second, "with the label"),
                rows,
                note=f"{len(rows)} of {len(result.disagreements)}; scores of the better : the worse one.",
            ),
        ),
        footer=FOOTER,
    )


def view_answers(result: AnswerComparison, facts: Facts) -> Report:
    """How far two judges go together on answers without labels."""
    first, second = result.names
    shares = [("scores within a tenth of the scale", result.close)]
    if result.same_order.of:
        shares.append(("same order within a group", result.same_order))
    means = result.means or (None, None)
    rows = tuple(
        (shortened(one.response), str(one.number), *map(_number, one.scores))
        for one in result.differences[:SHOWN]
    )
    return Report(
        title="Do these two judges agree?",
        finding=f"Their scores are within a tenth of the scale for {result.close.hits} of {result.close.of} "
        f"answers{_missing(result.missing)}.",
        facts=facts,
        parts=(
            *_two_judges(
                result,
                shares,
                ((f"mean of {first}", _number(means[0])), (f"mean of {second}", _number(means[1]))),
                legend=("within a tenth of the scale", "further apart"),
            ),
            Table(
                "The largest differences",
                ("response", "line", first, second),
                rows,
                note=f"{len(rows)} of {len(result.differences)}.",
            ),
        ),
        footer=FOOTER,
    )


def _two_judges(
    result: Comparison | AnswerComparison,
    shares: Sequence[tuple[str, Share]],
    means: Facts = (),
    legend: tuple[str, str] = LEGEND,
) -> tuple[Part, ...]:
    """What is shown of any two judges: where they agree, and the scores of one over those of the other."""
    first, second = (f"{name} (0 to 1)" for name in result.names)
    scores = (
        *means,
        ("rank correlation of the scores", _number(result.correlation)),
        ("mean distance, as a share of the scale", _percent(result.mean_difference)),
    )
    return (
        Bars("Agreement", tuple(shares)),
        _shares("Agreement in numbers", "", shares),
        Table("Scores", ("", "value"), scores),
        Scatter("One judge over the other", first, second, result.points, (0.0, 1.0), legend=legend),
    )


def shortened(text: str, length: int = 90) -> str:
    """The text on one line, its head and tail, with what is invisible shown as a dot."""
    visible = "".join(
        character if character.isprintable() else "·" for character in text.replace("\n", " ")
    ).strip()
    if len(visible) <= length:
        return visible
    return f"{visible[: length // 3]} … {visible[-(length * 2 // 3) :]}"


def _family_row(family: Family) -> tuple[str, ...]:
    hits, of, share, interval = _cells(family.fooled)
    return (family.name, f"{hits} of {of}", share, interval, _number(family.mean_rise), str(family.missing))


def _unaided(share: Share) -> str:
    """A judge that lets wrong answers pass by themselves cannot be lifted far: that is no strength."""
    if not share.hits:
        return ""
    return (
        f" {share.hits} of {share.of} wrong answers pass without any attack: "
        "this judge cannot tell them from right ones, so resisting attacks means little."
    )


def _shares(title: str, name: str, shares: Iterable[tuple[str, Share]]) -> Table:
    rows = tuple((label, *_cells(share)) for label, share in shares)
    return Table(title, (name, "count", "of", "share", "95% interval"), rows)


def _cells(share: Share) -> tuple[str, str, str, str]:
    if share.value is None:
        return ("0", "0", "-", "-")
    return (str(share.hits), str(share.of), f"{share.value:.0%}", f"{share.low:.0%} to {share.high:.0%}")


def _bias_rows(trait: str, one: str, bias: Bias) -> list[tuple[str, str]]:
    return [
        (f"rank correlation of score and {trait}", _number(bias.correlation)),
        (f"prefers {one}", str(bias.preferred)),
        (f"the label prefers {one}", str(bias.labelled)),
    ]


def _missing(count: int) -> str:
    return f"; {count} without a verdict" if count else ""


def _number(value: float | None) -> str:
    return "-" if value is None else f"{round(value, 2) + 0.0:.2f}".removesuffix(".00")


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
