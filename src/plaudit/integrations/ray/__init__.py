"""Ray: one engine that every worker of a cluster shares.

shared   SharedEngine, what callers use;  terms: the settings that all who share an engine agree on
client   a process's side;  courier: gathers errands into few calls, and outlives the actor
desk     the actor's side: many processes, one engine, one place for groups to meet
parcel   what travels between the two;  wire, actor: its way, and its end
ledger   what outlives an engine that dies: what it spent, and when it last called

Only `shared`, `wire` and `actor` import Ray.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plaudit.integrations.ray.shared import SharedEngine as SharedEngine

__all__ = ["SharedEngine"]


def __getattr__(name: str) -> Any:
    if name != "SharedEngine":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from plaudit.integrations.ray.shared import SharedEngine
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "ray":
            raise
        raise ImportError('SharedEngine needs Ray; run: pip install "plaudit[ray]"') from error
    return SharedEngine
