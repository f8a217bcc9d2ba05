"""Encoders: queries to vectors, by a server or by static embeddings on this machine."""

from __future__ import annotations

from functools import cache

from plaudit.mutation.encoders.base import Encoded, Encoder
from plaudit.mutation.encoders.endpoint import EndpointEncoder
from plaudit.mutation.encoders.static import StaticEncoder

__all__ = ["Encoded", "Encoder", "EndpointEncoder", "StaticEncoder", "default_encoder"]


@cache
def default_encoder() -> Encoder:
    """The encoder of whoever names none: static embeddings, loaded once."""
    return StaticEncoder()
