"""Scenarios by name."""

from __future__ import annotations

import pytest

from plaudit.simulator import PRESETS, Fault
from plaudit.simulator.presets import DESCRIPTIONS


def test_every_scenario_is_described_in_a_sentence() -> None:
    assert list(DESCRIPTIONS) == list(PRESETS)
    assert [text for text in DESCRIPTIONS.values() if not text.endswith(".")] == []


@pytest.mark.parametrize(("name", "share"), [("straggler", 0.015), ("flaky", 0.13)])
def test_so_many_calls_meet_a_fault(name: str, share: float) -> None:
    assert sum(fault.probability for fault in PRESETS[name].faults) == pytest.approx(share)


def test_an_outage_has_a_beginning_and_an_end() -> None:
    assert PRESETS["outage"].faults == (Fault("error", status=503, during=(5.0, 10.0)),)
