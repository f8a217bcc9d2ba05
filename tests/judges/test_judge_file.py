"""Judges from files: the same judge as in Python, or a message with the file, the line and the remedy."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from complaints import about

from plaudit.errors import ConfigError
from plaudit.judges import (
    Cascade,
    Checklist,
    Criterion,
    Expected,
    Group,
    Judge,
    Jury,
    Monitor,
    Pairwise,
    Panel,
    Reference,
    Rubric,
    SplitChecklist,
    Yes,
)
from plaudit.judges.file import load_judge, read_judge
from plaudit.judges.registry import kinds, options_of, register
from plaudit.types import ChatRequest, Reply, Sample, Status, Verdict

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "judges").iterdir())

CRITERIA = [Criterion("correct", "The answer is right.", 3), Criterion("brief", "It is short.")]
CHECKLIST_TOML = """
[[criteria]]
name = "correct"
text = "The answer is right."
weight = 3

[[criteria]]
name = "brief"
text = "It is short."
"""

SAME: dict[str, Judge | Panel] = {
    'criteria = "Is it right?"': Rubric("Is it right?"),
    'criteria = "Right?"\nscale = [0, 1]\ninteger = false\necho = true\non_attack = "flag"': Rubric(
        "Right?", (0, 1), integer=False, echo=True, on_attack="flag"
    ),
    'criteria = "Right?"\nscale = [0, 0.5]': Rubric("Right?", (0, 0.5), integer=False),
    'criteria = "Right?"\n[anchors]\n0 = "wrong"\n"10" = "right"': Rubric(
        "Right?", anchors={0: "wrong", 10: "right"}
    ),
    'kind = "yes"': Yes(),
    'kind = "reference"': Reference(),
    'kind = "checklist"' + CHECKLIST_TOML: Checklist(CRITERIA),
    'kind = "checklist"\ncalls = "one"' + CHECKLIST_TOML: Checklist(CRITERIA),
    'kind = "checklist"\ncalls = "each"' + CHECKLIST_TOML: SplitChecklist(CRITERIA),
    'kind = "checklist"\ncalls = 5\ncolumn = "checks"\nlevels = 2': SplitChecklist(
        per_call=5, column="checks", levels=2
    ),
    'kind = "checklist"\ntotal = "points"\nclip = true': Checklist(total="points", clip=True),
    'kind = "monitor"\nbehaviour = "It flatters."\nuse = "screen"\nthreshold = 1': Monitor(
        "It flatters.", use="screen", threshold=1
    ),
    'kind = "expected"\ncriteria = "Right?"\nscale = [0, 9]': Expected("Right?", (0, 9)),
    'kind = "group"\ncriteria = "Right?"\nscale = [0, 1]': Group("Right?", (0, 1)),
    'kind = "pairwise"\ncriteria = "Which is right?"\nagainst = "group"\nopponents = 2': Pairwise(
        "Which is right?", against="group", opponents=2
    ),
    'kind = "jury"\ncombine = "median"\n[[members]]\ncriteria = "Right?"\n[[members]]\nkind = "yes"': Jury(
        [Rubric("Right?"), Yes()], combine="median"
    ),
    'kind = "jury"\nquorum = 1\n[members.a]\ncriteria = "Right?"\n[members.b]\nkind = "yes"': Jury(
        {"a": Rubric("Right?"), "b": Yes()}, quorum=1
    ),
    'kind = "cascade"\nrule = "exact_match"\n[judge]\nkind = "reference"': Cascade(
        "exact_match", Reference()
    ),
}


def written(tmp_path: Path, text: str, name: str = "judge.toml") -> Path:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(("text", "judge"), SAME.items())
def test_a_file_makes_the_judge_that_python_would(tmp_path: Path, text: str, judge: Judge | Panel) -> None:
    loaded = load_judge(written(tmp_path, text))
    assert loaded == judge
    assert loaded.version == judge.version


def test_yaml_says_the_same_in_another_way(tmp_path: Path) -> None:
    text = """\
kind: checklist
criteria:
  - {name: correct, text: The answer is right., weight: 3}
  - name: brief
    text: It is short.
"""
    assert load_judge(written(tmp_path, text, "judge.yaml")) == Checklist(CRITERIA)
    text = "criteria: Right?\nanchors:\n  0: wrong\n  10: right\n"
    expected = Rubric("Right?", anchors={0: "wrong", 10: "right"})
    assert load_judge(written(tmp_path, text, "judge.yml")) == expected
    assert load_judge(written(tmp_path, "kind: yes\n", "judge.yaml")) == Yes(), "YAML takes yes for true"


@pytest.mark.parametrize(
    ("text", "line", "setting"),
    [
        ("", 1, "criteria"),
        ('criteria = "..."', 1, "criteria"),
        ('# a rubric\n\ncriteria = "x"\nscale = [10, 0]', 4, "scale"),
        ('criteria = "x"\nscale = 3', 2, "scale"),
        ('criteria = "x"\nscale = [0, "ten"]', 2, "scale[1]"),
        ('criteria = "x"\nanchors = 3', 2, "anchors"),
        ('criteria = "x"\n[anchors]\n11 = "y"', 2, "anchors"),
        ('criteria = "x"\nmax_tokens = "many"', 2, "max_tokens"),
        ('criteria = "x"\necho = 1', 2, "echo"),
        ('criteria = "x"\non_attack = "run"', 2, "on_attack"),
        ('\ncritera = "x"', 2, "critera"),
        ("zzz = 1", 1, "zzz"),
        ('# one\nkind = "rubrik"', 2, "kind"),
        ("kind = 3", 1, "kind"),
        ('kind = "monitor"', 1, "behaviour"),
        ('kind = "expected"\ncriteria = "x"\nscale = [0, 10]', 3, "scale"),
        ('kind = "checklist"\ncriteria = []', 2, "criteria"),
        ('kind = "checklist"\ncriteria = "x"', 2, "criteria"),
        ('kind = "checklist"\ncalls = "two"' + CHECKLIST_TOML, 2, "calls"),
        ('kind = "checklist"' + CHECKLIST_TOML + "weight = nan", 10, "criteria[1].weight"),
        ('kind = "checklist"' + CHECKLIST_TOML + 'weight = "big"', 10, "criteria[1].weight"),
        ('kind = "checklist"' + CHECKLIST_TOML + "wieght = 2", 10, "criteria[1].wieght"),
        ('kind = "checklist"\n[[criteria]]\nname = "a"', 2, "criteria[0]"),
        ('kind = "checklist"' + CHECKLIST_TOML.replace("brief", "correct"), 7, "criteria[1]"),
        ('kind = "cascade"\nrule = "guess"\n[judge]\nkind = "reference"', 2, "rule"),
        ('kind = "cascade"\nrule = "exact_match"', 1, "judge"),
        ('kind = "cascade"\nrule = "final_line"\n[judge]\ncriteria = "x"\nscale = [1, 0]', 5, "judge.scale"),
        (
            'kind = "jury"\n[members.a]\ncriteria = "x"\n[members.b]\nkind = "yes"\nmin_mass = 2',
            6,
            "members.b.min_mass",
        ),
        (
            'kind = "jury"\n[members."gpt-4.1"]\ncriteria = "x"\n[members."4"]\nkind = "yes"\nmin_mass = 2',
            6,
            "members.4.min_mass",
        ),
        (
            'kind = "jury"\n[members."gpt-4.1"]\ncriteria = "x"\nscale = [1, 0]\n[members.b]\nkind = "yes"',
            4,
            "members.gpt-4.1.scale",
        ),
        ('kind = "jury"\nmembers = 3', 2, "members"),
        ('kind = "jury"\nmembers = ["rubric"]', 2, "members[0]"),
        ('kind = "jury"', 1, "members"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, line: int, setting: str) -> None:
    with pytest.raises(ConfigError, check=about(setting, f"judge.toml:{line}: {setting}")):
        load_judge(written(tmp_path, text))


@pytest.mark.parametrize(("text", "hint"), [('kind = "rubrik"', "rubric?"), ('critera = "x"', "criteria?")])
def test_a_slip_of_the_pen_gets_the_closest_name(tmp_path: Path, text: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_judge(written(tmp_path, text))
    assert str(caught.value).endswith(hint)


@pytest.mark.parametrize(
    ("text", "place", "setting"),
    [
        ("criteria: Right?\nscale: [10, 0]\n", "judge.yaml:2", "scale"),
        ("critera: Right?\n", "judge.yaml:1", "critera"),
        ("- a\n- b\n", "judge.yaml:1", ""),
        ("criteria: [\n", "judge.yaml", "judge"),
        ("criteria: a\ncriteria: b\n", "line 2: 'criteria'", "judge"),
        (
            "kind: checklist\ncriteria:\n- name: a\n  text: A.\n  weight: .nan\n",
            "judge.yaml:5",
            "criteria[0].weight",
        ),
    ],
)
def test_a_mistake_in_yaml_is_named_as_well(tmp_path: Path, text: str, place: str, setting: str) -> None:
    with pytest.raises(ConfigError, check=about(setting, place)):
        load_judge(written(tmp_path, text, "judge.yaml"))


def test_a_file_that_is_not_there_or_no_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, check=about("judge", "nowhere.toml")):
        load_judge(tmp_path / "nowhere.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, check=about("judge", "binary.toml")):
        load_judge(binary)


def test_without_a_yaml_reader_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ConfigError, check=about("judge", "plaudit[yaml]")):
        load_judge(written(tmp_path, "kind: yes\n", "judge.yaml"))


def test_options_from_elsewhere_come_before_the_file_and_are_not_blamed_on_it(tmp_path: Path) -> None:
    described = read_judge(written(tmp_path, 'criteria = "Right?"\nscale = [0, 5]'))
    assert described.judge(criteria="Kind?") == Rubric("Kind?", (0, 5))
    with pytest.raises(ConfigError, check=about("scale")) as caught:
        described.judge(scale=[5, 0])
    assert "judge.toml" not in str(caught.value)


@dataclass(frozen=True)
class Longest(Judge):
    """A judge of a user's own."""

    target: int = 100
    version: str = "longest"
    scale: tuple[float, float] = (0.0, 1.0)

    def render(self, sample: Sample) -> ChatRequest | Verdict:
        return Verdict(min(len(sample.response) / self.target, 1.0), Status.OK)

    def parse(self, reply: Reply, sample: Sample) -> Verdict:
        raise AssertionError("it never asks")


def test_a_judge_of_one_s_own_may_be_made_from_files_too(tmp_path: Path) -> None:
    register("longest", Longest)
    assert "longest" in kinds()
    assert options_of("longest") == ("target", "version", "scale")
    assert load_judge(written(tmp_path, 'kind = "longest"\ntarget = 5')) == Longest(5)
    with pytest.raises(ConfigError, check=about("taget", "judge.toml:2: ", "target?")):
        load_judge(written(tmp_path, 'kind = "longest"\ntaget = 5'))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_a_judge(path: Path) -> None:
    judge = load_judge(path)
    assert judge.version
