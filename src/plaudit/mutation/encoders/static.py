"""Static embeddings on this machine: the mean of a text's token vectors, from wordllama, without torch.

A query takes a fraction of a millisecond. Where torch is in use already and sees a GPU, the sums are done
there; that pays off from some thousands of texts at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

from plaudit.errors import ConfigError
from plaudit.mutation.encoders.base import Encoded


class StaticEncoder:
    """Static embeddings of 256 numbers. Loading them takes under a second; nothing is downloaded."""

    def __init__(self, *, device: str = "auto") -> None:
        """`device`: `cpu`, `cuda`, or `auto` for a GPU where torch is in use and sees one."""
        if device not in ("auto", "cpu", "cuda"):
            raise ConfigError(f"device={device!r} is unknown; use 'auto', 'cpu' or 'cuda'")
        raise NotImplementedError

    @property
    def dim(self) -> int:
        """Numbers in a vector."""
        raise NotImplementedError

    def encode(self, texts: Sequence[str]) -> Encoded:
        """One row for each text."""
        raise NotImplementedError

    async def aencode(self, texts: Sequence[str]) -> Encoded:
        """The same for callers with an event loop: too quick to be worth a thread."""
        return self.encode(texts)
