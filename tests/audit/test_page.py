"""The HTML report: whole, harmless, and with every number of the tables in it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from plaudit import Rubric, Status, Verdict
from plaudit.audit import Contender, Pair, Probe, calibrate, compare
from plaudit.audit.views import shortened, view_calibration, view_comparison, view_probe
from plaudit.report.document import Report, Table
from plaudit.report.html import page
from plaudit.report.svg import ticks

HOSTILE = '<script>alert("1")</script>'
PAIRS = [Pair(HOSTILE, HOSTILE, "right " * n, f"{HOSTILE} wrong", subset=str(n % 2)) for n in range(1, 6)]
ONES = [Verdict(float(n % 7), Status.OK) for n in range(10)]
OTHERS = [Verdict(float(n % 3) if n != 4 else None, Status.OK) for n in range(10)]


def reports() -> list[Report]:
    probe = Probe(Rubric("Is it right?"))
    probed = probe.read([Verdict(float(n % 9), Status.OK) for n, _ in enumerate(probe.samples)])
    calibrated = calibrate(PAIRS, OTHERS, scale=(0.0, 10.0), again=ONES)
    compared = compare(PAIRS, Contender(HOSTILE, (0, 10), ONES), Contender("b", (0, 10), OTHERS))
    facts = (("judge", HOSTILE),)
    return [view_probe(probed, facts), view_calibration(calibrated, facts), view_comparison(compared, facts)]


class Wellformed(HTMLParser):
    """Fails where tags do not close in order; collects tags and text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("report", reports(), ids=["probe", "calibration", "comparison"])
def test_a_page_is_well_formed_self_contained_and_runs_nothing(report: Report) -> None:
    html = page(report)
    parser = Wellformed()
    parser.feed(html)
    assert parser.open == []
    assert not parser.tags & {"script", "link", "img", "iframe", "object"}
    assert not re.search(r"https?://|url\(|@import|\bsrc=|\bhref=", html)
    assert "svg" in parser.tags
    assert "nan" not in re.sub(r"[^ -~]", "", " ".join(re.findall(r'="([^"]*)"', html))).split()
    assert "prefers-color-scheme: dark" in html
    assert 'name="viewport"' in html


@pytest.mark.parametrize("report", reports(), ids=["probe", "calibration", "comparison"])
def test_a_page_shows_every_cell_of_every_table(report: Report) -> None:
    parser = Wellformed()
    parser.feed(page(report))
    tables = [part for part in report.parts if isinstance(part, Table)]
    assert tables
    for table in tables:
        for row in table.rows:
            for cell in row:
                assert cell in parser.text


def test_a_report_without_any_score_can_still_be_drawn() -> None:
    nothing = calibrate(PAIRS, [Verdict(None, Status.FAILED)] * 10, scale=(0.0, 1.0))
    html = page(view_calibration(nothing, ()))
    assert "none counted" in html
    assert "5 without a verdict" in html


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (0, 10, [0, 2, 4, 6, 8, 10]),
        (1, 5, [1, 2, 3, 4, 5]),
        (3, 137, [0, 50, 100, 150]),
        (5, 5, [5, 5.2]),
        (-1, 1, [-1, -0.5, 0, 0.5, 1]),
    ],
)
def test_ticks_are_round_and_cover_the_range(low: float, high: float, expected: list[float]) -> None:
    assert ticks(low, high) == expected


def test_long_and_invisible_texts_are_shortened_to_what_can_be_seen() -> None:
    assert shortened("a\u200bb\nc") == "a·b c"
    assert len(shortened("word " * 100)) <= 95
