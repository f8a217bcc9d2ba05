"""The report: self-contained, and safe whatever the models wrote."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from plaudit.mutation.history import History, Point, Rewrite
from plaudit.mutation.plot import Curve, Level, curves
from plaudit.mutation.report import finding, report

POINTS = [Point(512 * (number + 1), 0.1 * number, 0.12 * number, 0.0) for number in range(6)]
HOSTILE = '<script>alert("x")</script>'


def test_it_shows_the_curve_the_rewrites_and_the_failures() -> None:
    history = History(POINTS, {"why?": Rewrite("why?", "why so?", 0.4, 0.9, 0.48)}, 700, 3072)
    history.failures, history.errors = {"judge": 2}, {"judge: no verdict": 2}
    page = report(history, [("seed", "7")])
    for words in (
        "3,072 in 700 episodes",
        "2, which earned nothing; by stage: judge 2",
        "why so?",
        "0.40",
        "0.90",
        "no verdict",
        "<dt>seed</dt><dd>7</dd>",
    ):
        assert words in page
    assert page.count("<svg") == 1
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_what_models_wrote_stays_text() -> None:
    history = History(POINTS, {HOSTILE: Rewrite(HOSTILE, HOSTILE, 0.0, 1.0, 1.0)}, 1, 1)
    history.errors = {HOSTILE: 1}
    assert "<script" not in report(history, [(HOSTILE, HOSTILE)])


def test_the_finding_compares_the_beginning_with_the_end() -> None:
    assert finding(POINTS) == "Reward per episode: +0.100 at the beginning, +0.400 at the end."
    assert "nothing to report" in finding([])
    assert "nothing to report" in finding([Point(1, None, None, 1.0)])


def test_an_empty_history_makes_a_page_too() -> None:
    assert "No rewrite was answered better" in report(History(), [])


def test_the_picture_is_well_formed_and_names_its_lines() -> None:
    lines = [Curve("one & two", [(0.0, 0.0), (10.0, 1.0)]), Curve("flat", [(0.0, 0.5), (10.0, 0.5)])]
    picture = curves(lines, x_label="steps", y_label="reward", levels=[Level("optimum", 1.1)])
    root = ET.fromstring(picture)
    texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"■one & two■flat", "optimum", "steps", "reward"} <= set(texts)


def test_names_of_levels_close_together_do_not_cover_one_another() -> None:
    levels = [Level(name, 0.5) for name in ("a", "b", "c")]
    line = Curve("line", [(0.0, 0.0), (1.0, 1.0)])
    root = ET.fromstring(curves([line], x_label="x", y_label="y", levels=levels))
    at = [
        float(node.attrib["y"])
        for node in root.iter("{http://www.w3.org/2000/svg}text")
        if node.text in ("a", "b", "c")
    ]
    assert min(abs(one - other) for one in at for other in at if one != other) >= 15
