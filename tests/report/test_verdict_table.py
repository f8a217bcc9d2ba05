"""Verdicts as a table."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from journals import GOOD as REPLY
from journals import JUDGE, engine

from plaudit.errors import ConfigError
from plaudit.policy.fingerprint import sample_id
from plaudit.report.verdict_table import SHOWN, rows, verdicts_html, verdicts_to_pandas
from plaudit.types import Cause, Sample, Status, Usage, Verdict

GOOD = Verdict(7.0, Status.OK, "right", model="m", usage=Usage(10, 2, 0.5), parts={"tone": 1.0})
BAD = Verdict.failed(Cause.UNREADABLE, "no <score>")


def test_a_row_has_the_verdict_its_parts_and_its_sample() -> None:
    first, second = rows([GOOD, BAD], [Sample("q", "a", group="g"), Sample("q", "b")])
    assert (first["score"], first["part.tone"], first["response"], first["group"]) == (7.0, 1.0, "a", "g")
    assert (second["score"], second["cause"]) == (None, "unreadable")
    assert first["record"] == sample_id(Sample("q", "a")) != second["record"]


def test_pandas_gets_them_with_none_where_there_is_no_score() -> None:
    pytest.importorskip("pandas")
    frame = verdicts_to_pandas([GOOD, BAD], [Sample("q", "a"), Sample("q", "b")])
    assert list(frame["status"]) == ["ok", "unreadable"]
    assert frame["score"].isna().tolist() == [False, True] and frame["cost"].sum() == 0.5


def test_samples_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError):
        rows([GOOD], [])


def test_what_an_engine_gives_is_a_list_that_a_notebook_shows_as_a_table(tmp_path: Path) -> None:
    with engine(tmp_path / "j", [REPLY]) as one:
        verdicts = one.score([Sample("q", "a"), Sample("q", "a")], JUDGE)
    assert isinstance(verdicts, list) and pickle.loads(pickle.dumps(verdicts)) == verdicts == list(verdicts)
    shown = verdicts._repr_html_()  # type: ignore[attr-defined]
    assert "2 verdicts, 2 with a score, mean score 8" in shown and ">right</td>" in shown


def test_a_notebook_shows_the_first_ones_as_text() -> None:
    shown = verdicts_html([BAD, None, *[GOOD] * 30])
    assert "no &lt;score&gt;" in shown and "waiting" in shown
    assert shown.count("<tr>") == SHOWN + 1


def test_no_verdicts_have_the_columns_of_some() -> None:
    pytest.importorskip("pandas")
    assert list(verdicts_to_pandas([])["score"]) == []
    assert list(verdicts_to_pandas([], [])["record"]) == []
