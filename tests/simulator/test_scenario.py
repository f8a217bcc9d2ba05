"""Scenarios as plain data: written in Python, TOML or JSON, and wrong ones named."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

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
    ("data", "message"),
    [
        ({"capacity": {"kind": "queue", "slots": 0}}, r"slots=0 is too small; use 1 or more.*capacity"),
        ({"capacity": {"kind": "bucket"}}, r"Invalid value 'bucket'.*capacity.kind"),
        ({"capacity": {"kind": "reject", "slot": 3}}, r"unknown field `slot`"),
        ({"capacity": {"kind": "reject", "slots": 3, "status": 200}}, r"status=200 is no error"),
        ({"capacity": {"kind": "rate", "per_second": 0}}, r"per_second=0.0 lets no request through"),
        ({"capacity": {"kind": "rate", "per_second": 0.1, "window": 5}}, r"lets none through; widen it"),
        ({"faults": [{"kind": "explode"}]}, r"Invalid enum value 'explode'.*faults"),
        ({"faults": [{"kind": "slow", "probability": 2}]}, r"probability=2.0 is none"),
        ({"faults": [{"kind": "error", "every": 5}]}, r"every=5.0 is the period of no span; give during"),
        (
            {"faults": [{"kind": "error", "during": [4, 6], "every": 5}]},
            r"give during=\(from, to\) within it",
        ),
        ({"faults": [{"kind": "hang", "before_limits": True}]}, r"'hang' needs service, so it cannot come"),
        ({"tenants": [{"load": 1, "on": 2}]}, r"has no period"),
        ({"schedule": [[1, 2]]}, r"this one is unlimited"),
        ({"capacity": {"kind": "knee", "knee": 2}, "schedule": [[2, 2], [1, 1]]}, r"goes back in time"),
        ({"preset": "nowhere"}, r"no scenario 'nowhere'; use .* rejecting"),
        ([], r"a table of settings, not a list"),
    ],
)
def test_what_is_wrong_is_named_with_its_place_and_remedy(data: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        scenario_from(data)


def test_python_gets_the_same_errors_as_files() -> None:
    with pytest.raises(ConfigError, match="slots=0"):
        Queue(slots=0)
    with pytest.raises(ConfigError, match="'explode' is unknown; use one of error"):
        Fault("explode")  # type: ignore[arg-type]


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.toml cannot be read: No such file"):
        load_scenario(tmp_path / "gone.toml")
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(ConfigError, match=r"broken\.json is not JSON"):
        load_scenario(broken)
    wrong = tmp_path / "wrong.toml"
    wrong.write_text("speed = 3")
    with pytest.raises(ConfigError, match=r"wrong\.toml: .*unknown field `speed`"):
        load_scenario(wrong)


def test_capacity_means_slots_rate_or_knee() -> None:
    assert PRESETS["queue"].with_capacity(3).capacity == Queue(slots=3)
    assert PRESETS["rate-headers"].with_capacity(2.5).capacity == Rate(per_second=2.5, burst=40)
    assert PRESETS["knee"].with_capacity(9).capacity == Knee(knee=9)
    with pytest.raises(ConfigError, match="no capacity to change"):
        PRESETS["instant"].with_capacity(3)


@pytest.mark.parametrize("latency", [Latency(), PRESETS["instant"].latency])
def test_latency_scales_to_the_mean_asked_for(latency: Latency) -> None:
    scaled = latency.scaled_to(2.0)
    assert scaled.round_trip + scaled.work(round(scaled.mean_tokens)) == pytest.approx(2.0)
