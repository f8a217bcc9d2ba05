"""Scenarios by name: the servers a judge's client meets, ready to be simulated."""

from __future__ import annotations

from pathlib import Path

import msgspec

from plaudit.errors import ConfigError
from plaudit.files import decoded, read_text
from plaudit.simulator.scenario import (
    Fault,
    Knee,
    Latency,
    Queue,
    Rate,
    Reject,
    Scenario,
    Tenant,
)
from plaudit.value_check import reworded

PRESETS: dict[str, Scenario] = {  # what each does: DESCRIPTIONS
    "instant": Scenario(latency=Latency(seconds_per_token=0.0, first_token=0.0, round_trip=0.0)),
    "rejecting": Scenario(capacity=Reject(slots=64)),
    "queue": Scenario(capacity=Queue(slots=16)),
    "rate-headers": Scenario(capacity=Rate(per_second=20.0, burst=40)),
    "rate-bare": Scenario(capacity=Rate(per_second=20.0, burst=40, hints="none")),
    "rpm": Scenario(capacity=Rate(per_second=10.0, window=60.0, hints="retry-after")),
    "knee": Scenario(capacity=Knee(knee=128)),
    "vllm": Scenario(capacity=Knee(knee=256, exponent=0.0)),
    "falling": Scenario(capacity=Reject(slots=128), schedule=((8.0, 48.0),)),
    "shared": Scenario(capacity=Reject(slots=128), tenants=(Tenant(load=64.0, on=10.0, off=10.0),)),
    "straggler": Scenario(capacity=Queue(slots=64), faults=(Fault("slow", probability=0.015, factor=25.0),)),
    "outage": Scenario(capacity=Queue(slots=64), faults=(Fault("error", status=503, during=(5.0, 10.0)),)),
    "flaky": Scenario(
        capacity=Queue(slots=64),
        faults=(
            Fault("error", probability=0.03, status=500),
            Fault("error", probability=0.03, status=503, retry_after=1.0),
            Fault("reset", probability=0.02),
            Fault("cut", probability=0.02),
            Fault("bad_json", probability=0.01),
            Fault("html", probability=0.01),
            Fault("slow", probability=0.01, factor=8.0),
        ),
    ),
    "reasoning": Scenario(reasoning_tokens=900),
    "ollama": Scenario(capacity=Queue(slots=1, max_queue=512)),
}


DESCRIPTIONS: dict[str, str] = {
    "instant": "Answers immediately, however many calls arrive; for tests.",
    "rejecting": "Accepts 64 calls at once, and answers 429 to the rest.",
    "queue": "Processes 16 calls at once, and silently queues the rest.",
    "rate-headers": "Accepts 20 requests per second, and says so in its headers.",
    "rate-bare": "Accepts 20 requests per second, without saying so.",
    "rpm": "Accepts 600 requests per minute, then answers 429 with Retry-After until the minute is over.",
    "knee": "Gets slower for all calls when more than 128 run at once.",
    "vllm": "Gets neither faster nor slower with more than 256 calls at once.",
    "falling": "Accepts 128 calls at once, but only 48 after 8 seconds.",
    "shared": "Accepts 128 calls at once; other users take half of them for ten seconds out of every twenty.",
    "straggler": "Occasionally a call takes 25 times as long as the others.",
    "outage": "Answers 503 from the 5th to the 10th second.",
    "flaky": "One call in eight fails: 500, 503, a reset, a truncated reply, HTML.",
    "reasoning": "Reasons for 900 tokens before each answer; they are counted, but not part of the reply.",
    "ollama": "Processes one call at a time and queues up to 512, like Ollama with its default settings.",
}
"""What each preset does, in a sentence."""


def load_scenario(source: str | Path) -> Scenario:
    """The preset of this name, or the scenario in this .toml or .json file."""
    path = Path(source)
    if path.suffix not in (".toml", ".json"):
        return _preset(source)
    data = decoded(read_text(path, setting="scenario"), path, setting="scenario")
    try:
        return scenario_from(data)
    except ConfigError as error:
        raise error.at(str(path)) from None


def scenario_from(data: object) -> Scenario:
    """A scenario from what a TOML or JSON file holds; its `preset`, if any, says where to start from."""
    if not isinstance(data, dict):
        raise ConfigError(f"a scenario is a table of settings, not a {type(data).__name__}")
    settings = dict(data)
    preset = settings.pop("preset", None)
    if preset is not None:
        settings = msgspec.to_builtins(_preset(preset)) | settings
    try:
        return msgspec.convert(settings, Scenario)
    except msgspec.ValidationError as error:
        said, place = reworded(error)
        place = place.strip(".")
        if isinstance(own := error.__cause__, ConfigError):
            setting = f"{place}.{own.setting}".removeprefix(".")
            raise ConfigError(own.message, setting=setting, value=own.value) from None
        raise ConfigError(f"does not do: {said}", setting=place or "scenario") from None


def _preset(name: object) -> Scenario:
    if isinstance(name, str) and name in PRESETS:
        return PRESETS[name]
    names = ", ".join(PRESETS)
    raise ConfigError(
        f"is not a scenario; use a .toml or .json file, or one of {names}",
        setting="scenario",
        value=str(name),
    )
