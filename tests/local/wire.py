"""Asking a local server straight over the wire, and watching its process."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import psutil
from until import PATIENCE_S, until

from plaudit.config import Endpoint


def chat(endpoint: Endpoint, text: str, **options: Any) -> Any:
    """One chat completion, straight from the wire."""
    body = {
        "model": endpoint.model,
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 8,
    } | options
    request = urllib.request.Request(
        f"{endpoint.url}/chat/completions",
        data=json.dumps(body).encode(),
        headers={"content-type": "application/json", "authorization": f"Bearer {endpoint.key}"},
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=PATIENCE_S) as reply:
        return json.load(reply)


def is_running(pid: int) -> bool:
    """Whether the process still does anything; a zombie that init has yet to collect does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def ends_within(pid: int, seconds: float) -> bool:
    """Whether the process ends in that time."""
    try:
        until(lambda: not is_running(pid), within=seconds)
    except AssertionError:
        return False
    return True
