"""Judges from files: the same judge as in Python, or a message with the file, the line and the remedy."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

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
    ("text", "complaint"),
    [
        ("", "judge.toml:1: the judge 'rubric' has no criteria; add a line like: criteria ="),
        ('criteria = "..."', "judge.toml:1: criteria='...' says nothing; write what makes a response good"),
        (
            '# a rubric\n\ncriteria = "x"\nscale = [10, 0]',
            "judge.toml:4: scale=(10, 0) is upside down; write",
        ),
        ('criteria = "x"\nscale = 3', "judge.toml:2: scale = 3 should be two numbers, like [0, 10]"),
        ('criteria = "x"\nscale = [0, "ten"]', "judge.toml:2: scale[1]: expected a number, got text"),
        ('criteria = "x"\nanchors = 3', "judge.toml:2: anchors = 3 should be like"),
        (
            'criteria = "x"\n[anchors]\n11 = "y"',
            "judge.toml:2: anchors: 11.0 is not on the scale from 0 to 10",
        ),
        (
            'criteria = "x"\nmax_tokens = "many"',
            "judge.toml:2: max_tokens = 'many' does not do: expected a whole",
        ),
        ('criteria = "x"\necho = 1', "judge.toml:2: echo = 1 does not do: expected true or false"),
        ('criteria = "x"\non_attack = "run"', "judge.toml:2: on_attack = 'run' does not do"),
        ('\ncritera = "x"', "judge.toml:2: the judge 'rubric' has no 'critera'; did you mean criteria?"),
        ("zzz = 1", "judge.toml:1: the judge 'rubric' has no 'zzz'; it has criteria, scale"),
        (
            '# one\nkind = "rubrik"',
            "judge.toml:2: there is no kind of judge 'rubrik'; there are rubric, yes,",
        ),
        ('kind = "rubrik"', "did you mean rubric?"),
        ("kind = 3", "judge.toml:1: there is no kind of judge 3"),
        (
            'kind = "monitor"',
            "judge.toml:1: the judge 'monitor' has no behaviour; add a line like: behaviour",
        ),
        (
            'kind = "expected"\ncriteria = "x"\nscale = [0, 10]',
            "judge.toml:3: scale=(0, 10) has scores of more",
        ),
        ('kind = "checklist"', "judge.toml:1: the judge 'checklist' has no criteria"),
        (
            'kind = "checklist"\ncriteria = []',
            "judge.toml:2: criteria=[] is no list of criteria; give at least",
        ),
        ('kind = "checklist"\ncriteria = "x"', "judge.toml:2: criteria = 'x' does not do: expected a list"),
        ('kind = "checklist"\ncalls = "two"' + CHECKLIST_TOML, "judge.toml:2: calls = 'two' does not do"),
        (
            'kind = "checklist"' + CHECKLIST_TOML + "weight = nan",
            "judge.toml:7: criteria[1]: weight=nan of 'brief' is no weight; use a number, 0 or more",
        ),
        (
            'kind = "checklist"' + CHECKLIST_TOML + 'weight = "big"',
            "judge.toml:10: criteria[1]: expected a number, got text",
        ),
        (
            'kind = "checklist"' + CHECKLIST_TOML + "wieght = 2",
            "judge.toml:10: a criterion has no 'wieght'; did you mean weight?",
        ),
        (
            'kind = "checklist"\n[[criteria]]\nname = "a"',
            "judge.toml:2: criteria[0]: object missing required",
        ),
        (
            'kind = "checklist"' + CHECKLIST_TOML.replace("brief", "correct"),
            "judge.toml:7: criteria[1]: there are two named 'correct'; give each its own name",
        ),
        (
            'kind = "cascade"\nrule = "guess"\n[judge]\nkind = "reference"',
            "judge.toml:2: rule='guess' is no rule; name one of exact_match",
        ),
        (
            'kind = "cascade"\nrule = "exact_match"',
            "judge.toml:1: the judge 'cascade' has no judge; add a table",
        ),
        (
            'kind = "cascade"\nrule = "final_line"\n[judge]\nkind = "rubric"\ncriteria = "x"\nscale = [1, 0]',
            "judge.toml:6: scale=(1, 0) is upside down",
        ),
        (
            'kind = "jury"\n[members.a]\ncriteria = "x"\n[members.b]\nkind = "yes"\nmin_mass = 2',
            "judge.toml:6: min_mass=2",
        ),
        (
            'kind = "jury"\nmembers = 3',
            "judge.toml:2: members = 3 does not do: expected a table or a list, got",
        ),
        (
            'kind = "jury"\nmembers = ["rubric"]',
            "judge.toml:2: 'rubric' is no judge; describe one in a table",
        ),
        ('kind = "jury"', "judge.toml:1: the judge 'jury' has no members; add a table [[members]] for each"),
        ("criteria = Is it right?", "judge.toml cannot be read as TOML: "),
    ],
)
def test_a_mistake_is_named_with_its_line_and_the_remedy(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_judge(written(tmp_path, text))
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("criteria: Right?\nscale: [10, 0]\n", "judge.yaml:2: scale=(10, 0) is upside down"),
        ("critera: Right?\n", "judge.yaml:1: the judge 'rubric' has no 'critera'; did you mean criteria?"),
        ("- a\n- b\n", "judge.yaml:1: this is no table of settings"),
        ("criteria: [\n", "judge.yaml cannot be read as YAML"),
        ("criteria: a\ncriteria: b\n", "line 2: 'criteria' stands there twice"),
        (
            "kind: checklist\ncriteria:\n- name: a\n  text: A.\n  weight: .nan\n",
            "judge.yaml:3: criteria[0]: weight=nan of 'a' is no weight",
        ),
    ],
)
def test_a_mistake_in_yaml_is_named_as_well(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_judge(written(tmp_path, text, "judge.yaml"))
    assert complaint in str(caught.value)


def test_a_file_that_is_not_there_or_no_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.toml cannot be read"):
        load_judge(tmp_path / "nowhere.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"binary\.toml cannot be read"):
        load_judge(binary)


def test_without_a_yaml_reader_the_remedy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(ConfigError, match=r"needs PyYAML; pip install plaudit\[yaml\], or write it as TOML"):
        load_judge(written(tmp_path, "kind: yes\n", "judge.yaml"))


def test_options_from_elsewhere_come_before_the_file_and_are_not_blamed_on_it(tmp_path: Path) -> None:
    described = read_judge(written(tmp_path, 'criteria = "Right?"\nscale = [0, 5]'))
    assert described.judge(criteria="Kind?") == Rubric("Kind?", (0, 5))
    with pytest.raises(ConfigError) as caught:
        described.judge(scale=[5, 0])
    assert str(caught.value).startswith("scale=(5, 0) is upside down")


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
    with pytest.raises(ConfigError, match=r":2: the judge 'longest' has no 'taget'; did you mean target\?"):
        load_judge(written(tmp_path, 'kind = "longest"\ntaget = 5'))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_a_judge(path: Path) -> None:
    judge = load_judge(path)
    assert judge.version
