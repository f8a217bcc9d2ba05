"""Encoders: queries to vectors of length 1, by a server or by static embeddings on this machine."""

from __future__ import annotations

import base64
import functools
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from plaudit.engine import Engine
from plaudit.errors import ConfigError, UnreadableVerdict
from plaudit.install_command import install_command
from plaudit.judges.base import Judge
from plaudit.judges.content import has_content
from plaudit.mutation.completion import Completion, blocking, complete
from plaudit.types import EmbedRequest, Reply, Sample, Verdict
from plaudit.value_check import check_number

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

    def encode(self, texts: Sequence[str]) -> Encoded:
        """One row for each text. What fails is flagged; nothing raises."""

    async def aencode(self, texts: Sequence[str]) -> Encoded:
        """The same for callers with an event loop."""


def gathered(
    texts: Sequence[str], found: Mapping[str, Vectors], errors: Mapping[str, str], *, dim: int
) -> Encoded:
    """The rows of some texts, in order, from the vector of each different one, or the error."""
    vectors = {text: vector for text, raw in found.items() if (vector := unit(raw)) is not None}
    errors = {**dict.fromkeys(found, "the vector is zero"), **errors}
    zero = np.zeros(dim, dtype=np.float32)
    rows = [vectors.get(text, zero) for text in texts]
    stacked = np.stack(rows) if rows else np.zeros((0, dim), dtype=np.float32)  # (texts, dim)
    return Encoded(stacked, tuple(None if text in vectors else errors[text] for text in texts))


def unit(vector: Vectors) -> Vectors | None:
    """The vector at length 1, so that a dot product is a cosine; None where it has no direction."""
    length = float(np.linalg.norm(vector))
    return (vector / np.float32(length)).astype(np.float32) if length > 1e-12 else None


# -- by a server -------------------------------------------------------------------------------------------


KNOWN = 10_000
"""Vectors kept in memory: the questions of a training come back again and again."""

Chunk = tuple[str, ...]
"""Texts that share a call."""


@dataclass(frozen=True, slots=True)
class EmbeddingJudge(Judge):
    """Asks for the vectors of a sample's texts, all in one call."""

    version: ClassVar[str] = "embedding-1"
    """The request says everything but how its reply is read."""
    scale: ClassVar[tuple[float, float]] = (0.0, 1.0)
    """1 where there are vectors."""

    @staticmethod
    def of(texts: tuple[str, ...]) -> Sample:
        """The sample that asks for these texts' vectors."""
        return Sample("", "", extra={"texts": texts})

    def render(self, sample: Sample) -> EmbedRequest:
        return EmbedRequest(sample.extra["texts"])

    def parse(self, reply: Reply, sample: Sample) -> Verdict:
        """The vectors, packed. Raises UnreadableVerdict where a text has no usable one."""
        expected = len(sample.extra["texts"])
        if len({len(vector) for vector in reply.vectors}) != 1 or len(reply.vectors) != expected:
            raise UnreadableVerdict("the vectors are missing, or of different lengths")
        vectors = np.asarray(reply.vectors, dtype=np.float32)
        if not vectors.size or not np.isfinite(vectors).all():
            raise UnreadableVerdict("a vector is empty, or contains NaN")
        packed = base64.b64encode(vectors.tobytes()).decode()
        return Verdict.of(reply, 1.0, f"{expected}:{packed}")


def vectors_in(verdict: Verdict) -> Vectors:
    """The vectors of a good verdict: (texts, dim)."""
    count, _, packed = verdict.reason.partition(":")
    return np.frombuffer(base64.b64decode(packed), dtype=np.float32).reshape(int(count), -1)


class EndpointEncoder:
    """Embeddings by the engine's endpoints, whose model must be an embedding model.

    Many texts share a call. Where a call fails although the server is well, its texts are asked about again
    by halves, so that one text which the server cannot take fails alone.
    """

    def __init__(self, engine: Engine, *, batch_size: int = 64, deadline: float | None = 120.0) -> None:
        """`batch_size` texts go in one call; `deadline` is for one round of calls, in seconds."""
        check_number("batch_size", batch_size, low=1)
        self._engine = engine
        self._size = batch_size
        self._deadline = deadline
        self._dim: int | None = None
        self._known: dict[str, Vectors] = {}

    @property
    def dim(self) -> int:
        """Numbers in a vector; the first call tells. ConfigError where that fails, with the cause."""
        if self._dim is None:
            encoded = self.encode(["How many numbers does a vector have?"])
            if self._dim is None:
                raise ConfigError(f"the encoder gives no embeddings: {encoded.errors[0]}")
        return self._dim

    async def aencode(self, texts: Sequence[str]) -> Encoded:
        if len(self._known) > KNOWN:
            self._known.clear()
        different = dict.fromkeys(texts)
        errors = {text: "the text is empty" for text in different if not has_content(text)}
        vectors = {text: self._known[text] for text in different if text in self._known}
        wanted = [text for text in different if text not in vectors and text not in errors]
        chunks = [tuple(wanted[start : start + self._size]) for start in range(0, len(wanted), self._size)]
        while chunks:
            failed: list[tuple[Chunk, str]] = []
            for chunk, (verdict, error) in zip(chunks, await self._ask(chunks), strict=True):
                if error is not None:
                    failed.append((chunk, error))
                    continue
                for text, vector in zip(chunk, vectors_in(verdict), strict=True):
                    self._dim = self._dim or len(vector)
                    if len(vector) == self._dim:
                        vectors[text] = vector
                    else:
                        errors[text] = (
                            f"the vector has {len(vector)} numbers, not {self._dim} as others before it; "
                            "have all servers serve the same embedding model"
                        )
            errors |= {chunk[0]: error for chunk, error in failed if len(chunk) == 1}
            failed = [(chunk, error) for chunk, error in failed if len(chunk) > 1]
            if failed and len(failed) == len(chunks):
                ((_, refused),) = await self._ask([_probe(failed)])
                if refused is not None:  # it refuses every text, and would refuse every half as well
                    errors |= {text: error for chunk, error in failed for text in chunk}
                    break
            middles = [(chunk, len(chunk) // 2) for chunk, _ in failed]
            chunks = [half for chunk, middle in middles for half in (chunk[:middle], chunk[middle:])]
        self._known |= vectors
        return gathered(texts, vectors, errors, dim=self._dim or 0)

    encode = blocking(aencode)

    async def _ask(self, chunks: Sequence[Chunk]) -> list[Completion]:
        samples = [EmbeddingJudge.of(chunk) for chunk in chunks]
        return await complete(self._engine, samples, EmbeddingJudge(), self._deadline)


def _probe(failed: list[tuple[Chunk, str]]) -> Chunk:
    """A text that every server takes. Another one for other failures: a cache must not vouch for a server."""
    mark = sha256("\n".join(text for chunk, _ in failed for text in chunk).encode("utf-8", "replace"))
    return (f"Are you there? {mark.hexdigest()[:12]}",)


# -- on this machine ---------------------------------------------------------------------------------------


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
        """Load the vectors and the tokenizer.

        Args:
            folder: Where wordllama's files are; None for the installed package.
            device: `cpu`, `cuda`, or `auto` for a GPU where torch is loaded and sees one.
        """
        if device not in DEVICES:
            raise ConfigError(f"is unknown; use one of {', '.join(DEVICES)}", setting="device", value=device)
        torch = sys.modules.get("torch")
        if device == "cuda" and not (torch and torch.cuda.is_available()):
            raise ConfigError(
                "needs torch imported and a GPU it can see; use device='auto'", setting="device", value="cuda"
            )
        if folder is None:
            spec = find_spec("wordllama")  # does not import it
            if spec is None or not spec.submodule_search_locations:
                raise ConfigError(
                    "static embeddings need the package wordllama; run: "
                    f"{install_command('plaudit[mutation]')}, or use an EndpointEncoder"
                )
            folder = Path(spec.submodule_search_locations[0])
        self._tokenizer, matrix = _load(folder)
        self.dim = int(matrix.shape[1])
        self._means = functools.partial(_means, matrix)
        if torch and device != "cpu" and torch.cuda.is_available():
            self._means = functools.partial(_means_by_gpu, torch.from_numpy(matrix).cuda())

    def encode(self, texts: Sequence[str]) -> Encoded:
        errors = {text: "the text is empty" for text in texts if not has_content(text)}
        wanted = [text for text in dict.fromkeys(texts) if text not in errors]
        sendable = [text.encode("utf-8", "replace").decode() for text in wanted]  # no lone surrogates
        tokens = [found.ids for found in self._tokenizer.encode_batch(sendable, add_special_tokens=False)]
        vectors = dict(zip(wanted, self._means(tokens), strict=True))
        return gathered(texts, vectors, errors, dim=self.dim)

    async def aencode(self, texts: Sequence[str]) -> Encoded:
        return self.encode(texts)


def _means(matrix: Any, tokens: list[list[int]]) -> list[Vectors]:
    """Means of token vectors by numpy: each text by itself, so that its neighbours change no bit of it."""
    return [matrix[ids].mean(axis=0) if ids else matrix[0] * 0 for ids in tokens]


def _means_by_gpu(matrix: Any, tokens: list[list[int]]) -> list[Vectors]:
    """The same by torch on a GPU, all texts in one go."""
    import torch

    if not tokens:
        return []
    lengths = np.array([0, *map(len, tokens)])
    flat = torch.tensor([number for ids in tokens for number in ids], dtype=torch.int64)
    offsets = torch.from_numpy(lengths.cumsum()[:-1])  # where each text begins
    found = torch.nn.functional.embedding_bag(flat.cuda(), matrix, offsets.cuda(), mode="mean")
    return list(found.cpu().numpy())  # (texts, dim)


def _load(folder: Path) -> tuple[Any, Vectors]:
    """The tokenizer, and the vectors of its tokens: (tokens, dim)."""
    for name in (WEIGHTS, TOKENIZER):
        if not (folder / name).is_file():
            raise ConfigError(
                f"there is no {name} in {folder}; install wordllama 0.3.9 to 0.4, which contains it, "
                "or use an EndpointEncoder"
            )
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    matrix = np.ascontiguousarray(load_file(folder / WEIGHTS)[TENSOR], dtype=np.float32)
    return tokenizer, matrix


@functools.cache
def default_encoder() -> Encoder:
    """The encoder where none is named: static embeddings, loaded once."""
    return StaticEncoder()
