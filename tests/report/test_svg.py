"""Charts: well formed, and legible."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from plaudit.report.document import Baseline, Curve, Curves
from plaudit.report.svg import curves


def test_the_picture_is_well_formed_and_names_its_lines() -> None:
    lines = [Curve("one & two", [(0.0, 0.0), (10.0, 1.0)]), Curve("flat", [(0.0, 0.5), (10.0, 0.5)])]
    picture = curves(Curves("", "steps", "reward", lines, [Baseline("optimum", 1.1)]))
    root = ET.fromstring(picture)
    texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"■one & two■flat", "optimum", "steps", "reward"} <= set(texts)


def test_names_of_levels_close_together_do_not_cover_one_another() -> None:
    levels = [Baseline(name, 0.5) for name in ("a", "b", "c")]
    line = Curve("line", [(0.0, 0.0), (1.0, 1.0)])
    root = ET.fromstring(curves(Curves("", "x", "y", [line], levels)))
    at = [
        float(node.attrib["y"])
        for node in root.iter("{http://www.w3.org/2000/svg}text")
        if node.text in ("a", "b", "c")
    ]
    assert min(abs(one - other) for one in at for other in at if one != other) >= 15
