"""In a real Jupyter kernel: the bar, the tables, awaiting in a cell, and interrupting one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytestmark = pytest.mark.clients

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

from loopback import HANGING, INSTANT, loopback, taking  # noqa: E402

from plaudit.simulator import Scenario  # noqa: E402

BEGIN = """
from plaudit import Engine, Rubric, Sample
engine = Engine("{url}", model="judge", cache=None, max_concurrent=4)
judge = Rubric("Is it correct?")
samples = [Sample(f"What is {{n}} + 1?", str(n + 1)) for n in range({count})]
"""


@contextmanager
def notebook(scenario: Scenario, *cells: str, count: int = 12, **options: Any) -> Iterator[Any]:
    """A notebook whose first cell opens an engine, executed; its other cells."""
    with loopback(scenario) as judge:
        code = [BEGIN.format(url=judge.url, count=count), *cells]
        found = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in code])
        patient = {"timeout": 600, "startup_timeout": 600, "iopub_timeout": 600, "coalesce_streams": True}
        nbclient.NotebookClient(found, **{**patient, **options}).execute()
        yield found.cells[1:]


def html_of(cell: Any) -> str:
    (shown,) = (one.data["text/html"] for one in cell.outputs if "data" in one)
    return str(shown)


def test_a_cell_shows_a_bar_while_it_scores_and_then_a_table() -> None:
    with notebook(INSTANT.replace(latency=taking(0.5)), "engine.score(samples, judge)") as (cell,):
        (bar,) = (output.text for output in cell.outputs if output.output_type == "stream")
        assert bar.strip().startswith("[========================] 12/12")
        assert html_of(cell).startswith("<p>12 verdicts, 12 with a score, mean score ")


def test_a_batch_in_flight_shows_how_far_it_is() -> None:
    cells = (
        "pending = engine.submit(samples, judge); verdicts = pending.result(); pending",
        "print(pending)",
    )
    with notebook(INSTANT, *cells) as (shown, printed):
        assert html_of(shown).startswith("<p>12 of 12 verdicts</p><table")
        assert printed.outputs[0].text == "<Pending: 12 of 12 verdicts>\n"


def test_a_slice_of_verdicts_is_a_table_too() -> None:
    with notebook(INSTANT, "engine.score(samples, judge)[:3]") as (cell,):
        assert html_of(cell).startswith("<p>3 verdicts, 3 with a score")


def test_a_cell_may_await() -> None:
    with notebook(INSTANT, "print(len(await engine.ascore(samples, judge)))") as (cell,):
        assert cell.outputs[0].text == "12\n"


def test_an_interrupted_cell_ends_and_the_kernel_goes_on() -> None:
    cells = ("engine.score(samples, judge)", "print('alive')")

    def seconds(cell: Any) -> float:
        return 2 if cell.source == cells[0] else 600

    limits = {"interrupt_on_timeout": True, "allow_errors": True}
    with notebook(HANGING, *cells, timeout_func=seconds, **limits) as (stuck, after):
        assert [one.ename for one in stuck.outputs if one.output_type == "error"] == ["KeyboardInterrupt"]
        assert after.outputs[0].text == "alive\n"
