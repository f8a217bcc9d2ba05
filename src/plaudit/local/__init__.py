"""The embedded judge: a real small model, served on this machine."""

from plaudit.local.fetch import ensure_packaged_model
from plaudit.local.local_server import LocalServer

__all__ = ["LocalServer", "ensure_packaged_model"]
