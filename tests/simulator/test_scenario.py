"""Scenarios as plain data: written in Python, TOML or JSON, and wrong ones named."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from complaints import about

from plaudit.errors import ConfigError
from plaudit.simulator import (
    PRESETS,
    Fault,
    Knee,
    Latency,
    Queue,
    Rate,
    Reject,
    Scenario,
    Tenant,
    WrongHeaders,
    load_scenario,
)
from plaudit.simulator.presets import scenario_from


def test_a_toml_file_holds_everything_a_scenario_has(tmp_path: Path) -> None:
    file = tmp_path / "busy.toml"
    file.write_text(
        """
        seed = 7
        schedule = [[8.0, 48]]
        models = ["judge"]
        [latency]
        seconds_per_token = 0.01
        [capacity]
        kind = "reject"
        slots = 64
        retry_after = 2.0
        [[tenants]]
        load = 8
        on = 5.0
        off = 3.0
        [[faults]]
        kind = "error"
        status = 503
        during = [5.0, 10.0]
        every = 60.0
        before_limits = true
        """
    )
    assert load_scenario(file) == Scenario(
        seed=7,
        latency=Latency(seconds_per_token=0.01),
        capacity=Reject(slots=64, retry_after=2.0),
        schedule=((8.0, 48.0),),
        tenants=(Tenant(load=8, on=5.0, off=3.0),),
        faults=(Fault("error", status=503, during=(5.0, 10.0), every=60.0, before_limits=True),),
        models=("judge",),
    )


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_survives_a_json_file(name: str, tmp_path: Path) -> None:
    file = tmp_path / "scenario.json"
    file.write_bytes(msgspec.json.encode(PRESETS[name]))
    assert load_scenario(str(file)) == load_scenario(name) == PRESETS[name]


def test_a_rate_may_tell_untruths() -> None:
    told = {
        "kind": "rate",
        "per_second": 5,
        "retry_after": 3600,
        "wrong": {"limit_factor": 2, "remaining": 0},
    }
    wrong = WrongHeaders(limit_factor=2.0, remaining=0)
    assert scenario_from({"capacity": told}).capacity == Rate(5.0, retry_after=3600.0, wrong=wrong)


def test_a_scenario_may_start_from_a_preset() -> None:
    changed = scenario_from({"preset": "rejecting", "seed": 3})
    assert changed == PRESETS["rejecting"].replace(seed=3)


@pytest.mark.parametrize(
    ("data", "setting"),
    [
        ({"capacity": {"kind": "queue", "slots": 0}}, "capacity.slots"),
        ({"capacity": {"kind": "bucket"}}, "capacity.kind"),
        ({"capacity": {"kind": "reject", "slot": 3}}, "capacity"),
        ({"capacity": {"kind": "reject", "slots": 3, "status": 200}}, "capacity.status"),
        ({"capacity": {"kind": "rate", "per_second": 0}}, "capacity.per_second"),
        ({"capacity": {"kind": "rate", "per_second": 0.1, "window": 5}}, "capacity.per_second"),
        ({"faults": [{"kind": "explode"}]}, "faults[0].kind"),
        ({"faults": [{"kind": "slow", "probability": 2}]}, "faults[0].probability"),
        ({"faults": [{"kind": "error", "every": 5}]}, "faults[0].every"),
        ({"faults": [{"kind": "error", "during": [4, 6], "every": 5}]}, "faults[0].every"),
        ({"faults": [{"kind": "hang", "before_limits": True}]}, "faults[0].before_limits"),
        ({"tenants": [{"load": 1, "on": 2}]}, "tenants[0].on"),
        ({"schedule": [[1, 2]]}, "schedule"),
        ({"capacity": {"kind": "knee", "knee": 2}, "schedule": [[2, 2], [1, 1]]}, "schedule"),
        ({"preset": "nowhere"}, "scenario"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(data: object, setting: str) -> None:
    with pytest.raises(ConfigError, check=about(setting)):
        scenario_from(data)


def test_a_scenario_is_a_table() -> None:
    with pytest.raises(ConfigError, check=about("", "list")):
        scenario_from([])


def test_python_gets_the_same_errors_as_files() -> None:
    with pytest.raises(ConfigError, check=about("slots")):
        Queue(slots=0)
    with pytest.raises(ConfigError, check=about("kind", "explode")):
        Fault("explode")  # type: ignore[arg-type]


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, check=about("scenario", "gone.toml", "No such file")):
        load_scenario(tmp_path / "gone.toml")
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(ConfigError, check=about("scenario", "broken.json")):
        load_scenario(broken)
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("speed = 3")
    with pytest.raises(ConfigError, check=about("scenario", "wrong.toml: ", "speed")):
        load_scenario(wrong)


def test_capacity_means_slots_rate_or_knee() -> None:
    assert PRESETS["queue"].with_capacity(3).capacity == Queue(slots=3)
    assert PRESETS["rate-headers"].with_capacity(2.5).capacity == Rate(per_second=2.5, burst=40)
    assert PRESETS["knee"].with_capacity(9).capacity == Knee(knee=9)
    with pytest.raises(ConfigError, check=about("", "queue")):
        PRESETS["instant"].with_capacity(3)


@pytest.mark.parametrize("latency", [Latency(), PRESETS["instant"].latency])
def test_latency_scales_to_the_mean_asked_for(latency: Latency) -> None:
    scaled = latency.scaled_to(2.0)
    assert scaled.round_trip + scaled.work(round(scaled.mean_tokens)) == pytest.approx(2.0)
