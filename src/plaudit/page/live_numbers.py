"""What is going on: what waits, what each endpoint takes, from a journal's moments of activity."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import msgspec

from plaudit.journal.activity import Activity
from plaudit.journal.index import JournalIndex

MOMENTS = 240
"""Points of a curve."""
LIVE_WITHIN = 5.0
"""Seconds after its last sign within which an engine counts as running."""


def news(index: JournalIndex, *, now: float) -> dict[str, Any]:
    """What the page is told once a second."""
    moments = index.activity[-4 * MOMENTS :]
    last = {moment.session: moment for moment in index.activity}
    is_live = any(now - moment.at < LIVE_WITHIN for moment in last.values())
    return {
        "records": len(index),
        "damage": index.damage,
        "live": {"is_live": is_live, **_waiting(moments, list(last.values()) if is_live else [])},
        "endpoints": _endpoints(moments),
        "budget": _budget(index.activity),
        "sessions": [
            {"run": one.run, "started": one.started, "settings": one.settings}
            for one in sorted(index.sessions.values(), key=lambda one: one.started)
        ][-20:],
    }


def _budget(moments: Sequence[Activity]) -> dict[str, float] | None:
    """What the last engine with a budget may spend, and what is left of it."""
    last = next((moment for moment in reversed(moments) if moment.budget is not None), None)
    if last is None or last.budget is None:
        return None
    return {"limit": last.budget, "left": max(last.budget - last.spent, 0.0)}


def _waiting(moments: Sequence[Activity], last: Sequence[Activity]) -> dict[str, Any]:
    newest = max((moment.at for moment in last), default=0.0)
    current = [moment for moment in last if newest - moment.at < LIVE_WITHIN]
    waiting = sum(moment.waiting for moment in current)
    per_s = sum(_rate(moments, moment) for moment in current)
    thin = _thinned(moments)
    return {
        "waiting": waiting,
        "oldest_s": max((moment.oldest_s for moment in current), default=0.0),
        "per_s": per_s,
        "eta_s": waiting / per_s if per_s else None,
        "series": {"at": [one.at for one in thin], "waiting": [one.waiting for one in thin]},
    }


def _rate(moments: Sequence[Activity], last: Activity) -> float:
    """Verdicts a second over the last ten seconds of a session."""
    own = [one for one in moments if one.session == last.session and last.at - one.at <= 10.0]
    seconds = last.at - own[0].at if own else 0.0
    return (last.verdicts - own[0].verdicts) / seconds if seconds else 0.0


def _endpoints(moments: Sequence[Activity]) -> list[dict[str, Any]]:
    names = dict.fromkeys(name for moment in moments for name in moment.endpoints)
    return [_endpoint(name, [one for one in moments if name in one.endpoints]) for name in names]


def _endpoint(name: str, moments: Sequence[Activity]) -> dict[str, Any]:
    thin = _thinned(moments)
    limited = [0.0] + [
        max(after.endpoints[name].rate_limited - before.endpoints[name].rate_limited, 0)
        / max(after.at - before.at, 1e-3)
        if before.session == after.session
        else 0.0
        for before, after in pairwise(thin)
    ]
    ends = {moment.session: moment.endpoints[name] for moment in moments}
    return {
        "name": name,
        "state": moments[-1].endpoints[name].state,
        "at": [moment.at for moment in thin],
        "in_flight": [moment.endpoints[name].in_flight for moment in thin],
        "limit": [moment.endpoints[name].limit or None for moment in thin],
        "rate_limited_per_s": limited,
        **{
            count: sum(msgspec.structs.asdict(end)[count] for end in ends.values())
            for count in ("ok", "rate_limited", "failed")
        },
    }


def _thinned(moments: Sequence[Activity]) -> Sequence[Activity]:
    return moments[:: max(1, len(moments) // MOMENTS)]
