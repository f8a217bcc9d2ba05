"""What goes to TensorBoard can be read back by it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from test_trackers import finished, ready

from plaudit.observers.trackers import tensorboard_scalars

pytestmark = pytest.mark.trainers


def test_tensorboard_reads_them_back(tmp_path: Path) -> None:
    observer = tensorboard_scalars(tmp_path)
    observer(ready(0.5, 4.0, 6.0))
    observer(finished(1.0, 5.0))
    observer(finished(2.0, 6.0))
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [(event.step, event.value) for event in events.Scalars("judge/score_mean")] == [(1, 5.0), (2, 6.0)]
    (histogram,) = events.Histograms("judge/scores")
    assert (histogram.step, histogram.histogram_value.num, histogram.histogram_value.sum) == (1, 2, 10.0)
