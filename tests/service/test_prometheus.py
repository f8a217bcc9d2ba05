"""Numbers for Prometheus, and the Grafana dashboard that draws them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from plaudit.events import BreakerChanged, CallFinished, CallStarted, LimitChanged, VerdictsReady
from plaudit.service.prometheus import Prometheus
from plaudit.types import Source, Status, Usage, Verdict

DASHBOARD = Path(__file__).parents[2] / "dashboards" / "grafana.json"


def counted() -> str:
    numbers = Prometheus()
    used = Usage(100, 20, 0.5)
    numbers(CallStarted(0.0, "here", 1, False))
    numbers(CallStarted(0.0, "here", 2, False))
    numbers(CallFinished(0.4, "here", 1, "ok", 0.4, used))
    numbers(LimitChanged(0.4, "here", 48, "probe"))
    numbers(BreakerChanged(0.4, "here", "open", "no connection", None))
    numbers(VerdictsReady(0.4, 1, (Verdict(7.0, Status.OK, usage=used, source=Source.CALL),)))
    numbers.on_request("/v1/chat/completions", 200, 0.5)
    numbers.on_score(0.7)
    return numbers.text()


def test_every_number_is_there_with_its_labels() -> None:
    lines = counted().splitlines()
    assert 'plaudit_in_flight{endpoint="here"} 1' in lines
    assert 'plaudit_calls_total{endpoint="here",outcome="ok"} 1' in lines
    assert 'plaudit_concurrency_limit{endpoint="here"} 48' in lines
    assert 'plaudit_endpoint_down{endpoint="here"} 1' in lines
    assert 'plaudit_answers_total{source="call"} 1' in lines
    assert 'plaudit_tokens_total{kind="prompt"} 100' in lines
    assert "plaudit_cost_dollars_total 0.5" in lines
    assert 'plaudit_call_duration_seconds_bucket{le="0.5"} 1' in lines
    assert 'plaudit_call_duration_seconds_bucket{le="0.25"} 0' in lines
    assert 'plaudit_score_bucket{le="+Inf"} 1' in lines


def test_a_count_of_millions_is_shown_to_the_last_one() -> None:
    numbers = Prometheus()
    used = Usage(12_345_678, 20)
    numbers(VerdictsReady(0.4, 1, (Verdict(7.0, Status.OK, usage=used, source=Source.CALL),)))
    assert 'plaudit_tokens_total{kind="prompt"} 12345678' in numbers.text().splitlines()


def test_every_line_has_the_form_that_prometheus_reads() -> None:
    for line in counted().splitlines():
        assert re.fullmatch(
            r'# (HELP|TYPE) plaudit_\w+ .+|plaudit_\w+({\w+="[^"]*"(,\w+="[^"]*")*})? \S+', line
        )


def test_every_metric_of_the_dashboard_exists_and_every_family_is_drawn() -> None:
    names = set(re.findall(r"^(plaudit_\w+)", counted(), re.MULTILINE))
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    drawn = {
        name for panel in panels for t in panel["targets"] for name in re.findall(r"plaudit_\w+", t["expr"])
    }
    assert drawn <= names
    families = set(re.findall(r"^# TYPE (\w+)", counted(), re.MULTILINE))
    assert families == {name.removesuffix("_bucket") for name in drawn}


def test_a_name_with_quotes_breaks_no_line() -> None:
    numbers = Prometheus()
    numbers(CallStarted(0.0, 'a "quoted"\nname\\', 1, False))
    assert 'plaudit_in_flight{endpoint="a \\"quoted\\" name\\\\"} 1' in numbers.text()
