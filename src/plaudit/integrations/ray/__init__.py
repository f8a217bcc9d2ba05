"""Ray: one engine that every worker of a cluster shares. Only `cluster_engine` and `actor` import Ray."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plaudit.install_command import install_command

if TYPE_CHECKING:
    from plaudit.integrations.ray.cluster_engine import SharedEngine as SharedEngine

__all__ = ["SharedEngine"]


def __getattr__(name: str) -> Any:
    if name != "SharedEngine":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from plaudit.integrations.ray.cluster_engine import SharedEngine
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "ray":
            raise
        raise ImportError(f"SharedEngine needs Ray; run: {install_command('plaudit[ray]')}") from error
    return SharedEngine
