"""Rubrics that come with a row: the public shapes, the two published sums, and what a wrong one is told."""

from __future__ import annotations

import json
from typing import Any

import pytest
from complaints import about
from hypothesis import given
from hypothesis import strategies as st

from plaudit.errors import ConfigError
from plaudit.judges.criteria import Criterion, Total, read_criteria, summed

HEALTHBENCH = [
    {"criterion": "Advises to call an ambulance", "points": 7, "tags": ["axis:accuracy"]},
    {"criterion": "Asks how long it has been going on", "points": 5, "tags": []},
    {"criterion": "Explains how to check for breathing", "points": 10, "tags": []},
    {"criterion": "Recommends waiting a day", "points": -6, "tags": []},
]
RAR = [
    {"title": "Right Diagnosis", "description": "Essential: names iron deficiency.", "weight": 5},
    {"title": "Pitfall", "description": "Pitfall: blames the thyroid.", "weight": -1},
]
OPEN_INSTRUCT = {
    "query": "What is the capital of France?",
    "rubrics": [
        {"description": "Names Paris", "weight": 1.0},
        {"description": "Says where in France it lies", "weight": 0.5},
    ],
}
PAPERBENCH = {
    "id": "root",
    "requirements": "The paper is reproduced.",
    "weight": 1,
    "sub_tasks": [
        {
            "id": "code",
            "requirements": "The code is there.",
            "weight": 2,
            "sub_tasks": [
                {"id": "a", "requirements": "The model is there.", "weight": 3, "sub_tasks": []},
                {"id": "b", "requirements": "The training loop is there.", "weight": 1, "sub_tasks": []},
            ],
        },
        {"id": "c", "requirements": "Table 1 matches.", "weight": 1, "sub_tasks": []},
    ],
}


def read(rubric: object, *, levels: int = 1, total: Total = "share") -> tuple[Criterion, ...]:
    return read_criteria(rubric, levels=levels, total=total, setting="rubric")


def values(criteria: tuple[Criterion, ...], *met: float) -> dict[str, float]:
    return dict(zip([point.name for point in criteria], met, strict=True))


# --- shapes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rubric", "read_as"),
    [
        (["Is kind.", "Is short."], [("c1", "Is kind.", 1.0), ("c2", "Is short.", 1.0)]),
        (
            HEALTHBENCH[2:],
            [("c1", "Explains how to check for breathing", 10.0), ("c2", "Recommends waiting a day", -6.0)],
        ),
        (
            RAR,
            [
                ("Right_Diagnosis", "Essential: names iron deficiency.", 5.0),
                ("Pitfall", "Pitfall: blames the thyroid.", -1.0),
            ],
        ),
        (OPEN_INSTRUCT, [("c1", "Names Paris", 1.0), ("c2", "Says where in France it lies", 0.5)]),
        (
            PAPERBENCH,
            [
                ("c1", "The model is there.", 2 / 3 * 3 / 4),
                ("c2", "The training loop is there.", 2 / 3 * 1 / 4),
                ("c3", "Table 1 matches.", 1 / 3),
            ],
        ),
    ],
    ids=["strings", "healthbench", "rubrics-as-rewards", "open-instruct", "paperbench"],
)
def test_every_public_shape_is_read_as_data_or_as_its_json(
    rubric: Any, read_as: list[tuple[str, str, float]]
) -> None:
    for given_as in (rubric, json.dumps(rubric)):
        found = read(given_as)
        assert [(point.name, point.text) for point in found] == [(name, text) for name, text, _ in read_as]
        assert [point.weight for point in found] == pytest.approx([weight for *_, weight in read_as])


def test_names_are_told_apart_and_fit_a_json_key() -> None:
    titles = ["Correct Answer", "Correct Answer", "正しい", "reason_x", 'quo"ted']
    found = read([{"title": title, "description": "It is so."} for title in titles])
    assert [point.name for point in found] == ["Correct_Answer", "Correct_Answer_2", "c3", "c4", "quo_ted"]


def test_levels_are_the_judge_s_unless_the_entry_has_its_own() -> None:
    found = read([{"criterion": "Is kind."}, {"criterion": "Is short.", "levels": 1}], levels=2)
    assert [point.levels for point in found] == [2, 1]


# --- sums ---------------------------------------------------------------------------------------------------


def test_healthbench_counts_points_met_over_points_above_0() -> None:
    criteria = read(HEALTHBENCH, total="points")
    met = values(criteria, 1, 0, 1, 1)
    assert summed(criteria, met, total="points", clip=False) == 11 / 22


def test_points_fall_below_0_unless_they_are_clipped() -> None:
    criteria = read(HEALTHBENCH, total="points")
    met = values(criteria, 0, 0, 0, 1)
    assert summed(criteria, met, total="points", clip=False) == -6 / 22
    assert summed(criteria, met, total="points", clip=True) == 0.0


def test_a_fault_earns_its_share_where_it_is_avoided() -> None:
    criteria = read(RAR)
    shares = [summed(criteria, values(criteria, *met), total="share", clip=False)
              for met in ((1, 0), (1, 1), (0, 0), (0, 1))]  # fmt: skip
    assert shares == pytest.approx([1.0, 5 / 6, 1 / 6, 0.0])


def test_a_level_in_between_earns_its_part() -> None:
    criteria = read(OPEN_INSTRUCT, levels=2)
    assert summed(criteria, values(criteria, 1.0, 0.5), total="share", clip=False) == pytest.approx(
        1.25 / 1.5
    )


def test_a_tree_is_graded_as_paperbench_grades_it() -> None:
    """Each inner node is the weighted mean of its children."""
    criteria = read(PAPERBENCH)
    code = (3 * 1.0 + 1 * 0.0) / 4
    assert summed(criteria, values(criteria, 1, 0, 1), total="share", clip=False) == pytest.approx(
        (2 * code + 1 * 1.0) / 3
    )


@given(
    st.lists(st.tuples(st.floats(-100, 100), st.booleans()), min_size=1, max_size=30).filter(
        lambda points: any(abs(weight) > 1e-6 for weight, _ in points)
    )
)
def test_a_share_lies_between_0_and_1_and_meeting_a_fault_never_pays(
    points: list[tuple[float, bool]],
) -> None:
    criteria = tuple(Criterion(f"c{n}", "It is so.", weight) for n, (weight, _) in enumerate(points))
    met = values(criteria, *(float(is_met) for _, is_met in points))
    share = summed(criteria, met, total="share", clip=False)
    assert 0.0 <= share <= 1.0
    for point in criteria:
        better = {**met, point.name: 1.0 if point.weight > 0 else 0.0}
        assert summed(criteria, better, total="share", clip=False) >= share - 1e-9


# --- what cannot be read ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rubric", "setting"),
    [
        ([], "rubric"),
        ({}, "rubric"),
        (7, "rubric"),
        ("Is it kind?", "rubric"),
        (object(), "rubric"),
        ({"query": "?", "rubrics": []}, "rubric.rubrics"),
        ({"query": "?", "rubrics": "Is kind."}, "rubric.rubrics"),
        ([7], "rubric[0]"),
        (["Is kind.", " "], "rubric[1].criterion"),
        ([{"points": 3}], "rubric[0]"),
        ([{"criterion": 3}], "rubric[0].criterion"),
        ([{"criterion": "Is kind.", "points": "many"}], "rubric[0].points"),
        ([{"criterion": "Is kind.", "weight": True}], "rubric[0].weight"),
        ([{"criterion": "Is kind.", "levels": 0}], "rubric[0].levels"),
        ([{"criterion": "Is kind.", "weight": 0}], "rubric"),
        ({"requirements": "All.", "sub_tasks": "none"}, "rubric.sub_tasks"),
        ({"requirements": "All.", "sub_tasks": [{"weight": 1}]}, "rubric.sub_tasks[0]"),
        ({"requirements": "All.", "sub_tasks": [{"requirements": "A", "weight": 0}]}, "rubric.sub_tasks"),
    ],
)
def test_a_rubric_of_the_wrong_shape_is_told_its_entry_and_field(rubric: object, setting: str) -> None:
    with pytest.raises(ConfigError, check=about(setting)):
        read(rubric)


def test_points_need_some_that_can_be_earned() -> None:
    with pytest.raises(ConfigError, check=about("rubric")):
        read([{"criterion": "Is rude.", "points": -3}], total="points")


def test_a_tree_too_deep_to_be_a_rubric_is_refused() -> None:
    node: dict[str, Any] = {"requirements": "A leaf.", "weight": 1, "sub_tasks": []}
    for _ in range(100):
        node = {"requirements": "A node.", "weight": 1, "sub_tasks": [node]}
    with pytest.raises(ConfigError):
        read(node)
