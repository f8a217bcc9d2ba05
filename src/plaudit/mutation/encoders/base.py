"""What an encoder is: texts in, one vector for each out, and an error where there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """Vectors of unit length, one for each text; zeros, with an error, where encoding failed."""

    vectors: Vectors
    errors: tuple[str | None, ...]

    @property
    def is_fallback(self) -> NDArray[np.bool_]:
        """Which rows are no embedding."""
        return np.array([error is not None for error in self.errors], dtype=np.bool_)  # (texts,)


class Encoder(Protocol):
    """Turns texts into vectors. A text's vector does not depend on its neighbours."""

    @property
    def dim(self) -> int:
        """Numbers in a vector. May cost a call; raises ConfigError where the encoder cannot work at all."""
        ...

    def encode(self, texts: Sequence[str]) -> Encoded:
        """One row for each text. What fails is flagged; nothing raises."""
        ...

    async def aencode(self, texts: Sequence[str]) -> Encoded:
        """The same for callers with an event loop."""
        ...


def gathered(
    texts: Sequence[str], vectors: Mapping[str, Vectors], errors: Mapping[str, str], *, dim: int
) -> Encoded:
    """The rows of some texts, in order, from what was found for each different one."""
    zero = np.zeros(dim, dtype=np.float32)
    rows = [vectors.get(text, zero) for text in texts]
    stacked = np.stack(rows) if rows else np.zeros((0, dim), dtype=np.float32)  # (texts, dim)
    return Encoded(stacked, tuple(None if text in vectors else errors[text] for text in texts))


def unit(vector: Vectors) -> Vectors | None:
    """The vector at length 1, so that a dot product is a cosine; None where it has no direction."""
    length = float(np.linalg.norm(vector))
    return (vector / np.float32(length)).astype(np.float32) if length > 1e-12 else None
