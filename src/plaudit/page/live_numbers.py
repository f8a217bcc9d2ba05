"""What is going on: what waits, what each endpoint takes, from a journal's moments of activity."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from plaudit.journal.activity import Activity
from plaudit.journal.index import JournalIndex

MOMENTS = 240
"""Points of a curve."""
LIVE_WITHIN = 5.0
"""Seconds after its last sign within which an engine counts as running; its clock may be another one."""
RECENT = 600.0
"""Seconds that curves show of a run under way; of one that is over they show all."""
COUNTS = ("ok", "rate_limited", "failed")


def news(index: JournalIndex, *, now: float) -> dict[str, Any]:
    """What the page is told once a second."""
    moments = sorted(index.activity, key=lambda moment: moment.at)  # of several journals, perhaps
    last = {moment.session: moment for moment in moments}
    is_live = index.quiet_s < LIVE_WITHIN or any(abs(now - one.at) < LIVE_WITHIN for one in last.values())
    since = moments[-1].at - RECENT if is_live else 0.0
    columns = _columns(moments, since=since)
    names = dict.fromkeys(name for column in columns[-1:] for one in column.ever for name in one.endpoints)
    return {
        "records": len(index),
        "damage": index.damage,
        "live": {
            "is_live": is_live,
            "last_at": max((moment.at for moment in last.values()), default=None),
            **_waiting(moments, list(last.values()) if is_live else []),
            "series": {
                "at": [column.at for column in columns],
                "waiting": [sum(one.waiting for one in column.running) for column in columns],
            },
        },
        "endpoints": [_endpoint(name, columns) for name in names],
        "budget": _budget(moments),
        "sessions": [
            {"run": one.run, "started": one.started, "settings": one.settings}
            for one in sorted(index.sessions.values(), key=lambda one: one.started)
        ][-20:],
    }


class _Column(NamedTuple):
    """All engines at one point of the curves."""

    at: float
    running: list[Activity]
    """The last moment of each engine that goes on."""
    ever: list[Activity]
    """The same, with the end of each that is over: what it did still counts."""


def _columns(moments: Sequence[Activity], *, since: float) -> list[_Column]:
    """Moments of several engines, brought together: each writes one only when something has changed."""
    ends = {moment.session: moment.at for moment in moments}
    first = next((moment.at for moment in moments if moment.at >= since), 0.0)
    width = max((moments[-1].at - first) / MOMENTS, 1e-3) if moments else 1.0
    known: dict[str, Activity] = {}
    found: dict[int, _Column] = {}
    for moment in moments:
        known[moment.session] = moment
        if moment.at >= since:
            ever = list(known.values())
            running = [one for one in ever if ends[one.session] >= moment.at]
            found[int((moment.at - first) / width)] = _Column(moment.at, running, ever)
    return list(found.values())


def _budget(moments: Sequence[Activity]) -> dict[str, float] | None:
    """What the last engine with a budget may spend, and what is left of it."""
    last = next((moment for moment in reversed(moments) if moment.budget is not None), None)
    if last is None or last.budget is None:
        return None
    left = max(last.budget - last.spent, 0.0)
    return {"limit": last.budget, "left": left, "assumed": last.assumed}


def _waiting(moments: Sequence[Activity], last: Sequence[Activity]) -> dict[str, Any]:
    newest = max((moment.at for moment in last), default=0.0)
    current = [moment for moment in last if newest - moment.at < LIVE_WITHIN]
    waiting = sum(moment.waiting for moment in current)
    per_s = sum(_rate(moments, moment) for moment in current)
    return {
        "waiting": waiting,
        "oldest_s": max((moment.oldest_s for moment in current), default=0.0),
        "per_s": per_s,
        "eta_s": waiting / per_s if per_s else None,
    }


def _rate(moments: Sequence[Activity], last: Activity) -> float:
    """Verdicts a second over the last ten seconds of a session."""
    first = last
    for one in reversed(moments):
        if last.at - one.at > 10.0:
            break
        if one.session == last.session:
            first = one
    seconds = last.at - first.at
    return (last.verdicts - first.verdicts) / seconds if seconds else 0.0


def _endpoint(name: str, columns: Sequence[_Column]) -> dict[str, Any]:
    now = [[one.endpoints[name] for one in column.running if name in one.endpoints] for column in columns]
    ever = [[one.endpoints[name] for one in column.ever if name in one.endpoints] for column in columns]
    sums = {count: [sum(getattr(one, count) for one in ones) for ones in ever] for count in COUNTS}
    at = [column.at for column in columns]
    return {
        "name": name,
        "state": now[-1][-1].state if now[-1] else "closed",
        "at": at,
        "in_flight": [sum(one.in_flight for one in ones) for ones in now],
        "limit": [sum(one.limit for one in ones if one.pace is None) or None for ones in now],
        "pace": [sum(one.pace or 0.0 for one in ones) or None for ones in now],
        "answered_per_s": _per_second(at, sums["ok"]),
        "rate_limited_per_s": _per_second(at, sums["rate_limited"]),
        **{count: values[-1] for count, values in sums.items()},
    }


def _per_second(at: Sequence[float], sums: Sequence[int]) -> list[float]:
    """How fast a count grew up to each point of its curve."""
    pairs = zip(pairwise(at), pairwise(sums), strict=True)
    return [0.0, *(max(b - a, 0) / max(t - s, 1e-3) for (s, t), (a, b) in pairs)]
