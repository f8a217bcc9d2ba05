"""Static embeddings on this machine: the mean of a text's token vectors, without torch, server or download.

The vectors and the tokenizer are two files that the package wordllama carries. They are read from where it is
installed, and its code is left alone: importing that would set up logging for the whole process, and it looks
for its own tokenizer in a folder that is not there, and then on the network.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from plaudit.errors import ConfigError
from plaudit.judges.content import has_content
from plaudit.mutation.encoders.base import Encoded, Vectors, gathered, unit

WEIGHTS = Path("weights") / "l2_supercat_256.safetensors"
TOKENIZER = Path("tokenizers") / "l2_supercat_tokenizer_config.json"
TENSOR = "embedding.weight"
DEVICES = ("auto", "cpu", "cuda")


class StaticEncoder:
    """Embeddings of 256 numbers, from 32,000 token vectors that are loaded once, in a tenth of a second.

    A query takes well under a millisecond, most of it in the tokenizer, so a GPU has little to add. One is
    used where torch is loaded anyway and sees it; the sums are then the same up to rounding.
    """

    def __init__(self, *, folder: Path | None = None, device: str = "auto") -> None:
        """
        folder  where wordllama's files are; None for the installed package
        device  `cpu`, `cuda`, or `auto` for a GPU where torch is loaded and sees one
        """
        if device not in DEVICES:
            raise ConfigError(f"is unknown; use one of {', '.join(DEVICES)}", setting="device", value=device)
        torch = sys.modules.get("torch")
        if device == "cuda" and not (torch and torch.cuda.is_available()):
            raise ConfigError("device='cuda' needs torch imported and a GPU it can see; use device='auto'")
        self._tokenizer, matrix = _load(folder or _installed())
        self._dim = int(matrix.shape[1])
        self._sums: _CpuSums | _GpuSums = _CpuSums(matrix)
        if torch and device != "cpu" and torch.cuda.is_available():
            self._sums = _GpuSums(matrix, torch)

    @property
    def dim(self) -> int:
        """Numbers in a vector."""
        return self._dim

    def encode(self, texts: Sequence[str]) -> Encoded:
        """One row for each text. What fails is flagged; nothing raises."""
        errors = {text: "the text is empty" for text in texts if not has_content(text)}
        wanted = [text for text in dict.fromkeys(texts) if text not in errors]
        sendable = [text.encode("utf-8", "replace").decode() for text in wanted]  # no lone surrogates
        tokens = [found.ids for found in self._tokenizer.encode_batch(sendable, add_special_tokens=False)]
        vectors: dict[str, Vectors] = {}
        for text, raw in zip(wanted, self._sums.means(tokens), strict=True):
            if (vector := unit(raw)) is None:
                errors[text] = "the vector is zero, and points nowhere"
            else:
                vectors[text] = vector
        return gathered(texts, vectors, errors, dim=self._dim)

    async def aencode(self, texts: Sequence[str]) -> Encoded:
        """The same for callers with an event loop: too quick to be worth a thread."""
        return self.encode(texts)


class _CpuSums:
    """Means of token vectors by numpy: each text by itself, so that its neighbours change no bit of it."""

    def __init__(self, matrix: Vectors) -> None:
        self._matrix = matrix

    def means(self, tokens: list[list[int]]) -> list[Vectors]:
        return [self._matrix[ids].mean(axis=0) if ids else self._matrix[0] * 0 for ids in tokens]


class _GpuSums:
    """The same by torch on a GPU, all texts in one go."""

    def __init__(self, matrix: Vectors, torch: Any) -> None:
        self._torch = torch
        self._matrix = torch.from_numpy(matrix).cuda()  # (tokens, dim)

    def means(self, tokens: list[list[int]]) -> list[Vectors]:
        if not tokens:
            return []
        lengths = np.array([0, *map(len, tokens)])
        flat = self._torch.tensor([number for ids in tokens for number in ids], dtype=self._torch.int64)
        offsets = self._torch.from_numpy(lengths.cumsum()[:-1])  # where each text begins
        found = self._torch.nn.functional.embedding_bag(
            flat.cuda(), self._matrix, offsets.cuda(), mode="mean"
        )
        return list(found.cpu().numpy())  # (texts, dim)


def _installed() -> Path:
    spec = find_spec("wordllama")  # does not import it
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(
            "static embeddings need the package wordllama; run: pip install 'plaudit[mutation]', "
            "or use an EndpointEncoder"
        )
    return Path(spec.submodule_search_locations[0])


def _load(folder: Path) -> tuple[Any, Vectors]:
    """The tokenizer, and the vectors of its tokens: (tokens, dim)."""
    for name in (WEIGHTS, TOKENIZER):
        if not (folder / name).is_file():
            raise ConfigError(
                f"there is no {name} in {folder}; install wordllama 0.3.9 to 0.4, which carries it, "
                "or use an EndpointEncoder"
            )
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    matrix = np.ascontiguousarray(load_file(folder / WEIGHTS)[TENSOR], dtype=np.float32)
    return tokenizer, matrix
