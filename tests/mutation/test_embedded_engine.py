"""Without a server: a real llama.cpp server on this machine rewrites and answers."""

from __future__ import annotations

from pathlib import Path

import pytest
from complaints import about
from tiny_model import write_tiny_model

from plaudit.errors import ConfigError
from plaudit.mutation import (
    batch_mutate_queries,
    batch_query_target_model,
    builtin_operators,
    embedded_engine,
)

QUERIES = ["What is 2 + 2?", "Who wrote Hamlet?", "What is an island?"]


@pytest.mark.local
def test_a_model_on_this_machine_rewrites_and_answers(tmp_path: Path) -> None:
    tiny = write_tiny_model(tmp_path / "tiny.gguf")
    with embedded_engine(tiny, slots=2, cache=None) as engine:
        rewrites = batch_mutate_queries(QUERIES, builtin_operators()[1], engine, max_tokens=16)
        answers = batch_query_target_model(QUERIES, engine, max_tokens=16)
    # Its weights are random, so what it says means nothing: every rewrite must have been caught as that.
    assert all(rewrite.usage.completion_tokens > 0 for rewrite in rewrites)
    assert [rewrite.query for rewrite in rewrites] == QUERIES
    assert all(rewrite.is_fallback and rewrite.error for rewrite in rewrites)
    assert any(not answer.is_fallback and answer.text for answer in answers)


def test_a_model_that_is_not_here_is_told_before_anything_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAUDIT_FETCH", "no")
    with pytest.raises(ConfigError, check=about("", "PLAUDIT_FETCH=yes")):
        batch_query_target_model(QUERIES)
