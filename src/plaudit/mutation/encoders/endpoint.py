"""Embeddings by a server, `/v1/embeddings` or Ollama's `/api/embed`: in batches, split where one fails."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from hashlib import sha256

from plaudit.engine import Engine
from plaudit.errors import ConfigError
from plaudit.judges.content import has_content
from plaudit.mutation.ask import Asked, aask, ask
from plaudit.mutation.encoders.base import Encoded, Vectors, gathered, unit
from plaudit.mutation.encoders.embedding import Embedding, vectors_in

KNOWN = 10_000
"""Vectors kept in memory: the questions of a training come back again and again."""

Chunk = tuple[str, ...]
"""Texts that share a call."""
Work = Generator[list[Chunk], list[Asked], Encoded]
"""Asks for chunks, takes what came of them, ends with the result: the part that does not wait."""


class EndpointEncoder:
    """Embeddings by the engine's endpoints, whose model must be an embedding model.

    Many texts share a call. Where a call fails although the server is well, its texts are asked about again
    by halves, so that one text which the server cannot take fails alone.
    """

    def __init__(self, engine: Engine, *, batch_size: int = 64, deadline: float | None = 120.0) -> None:
        """`batch_size` texts go in one call; `deadline` is for one round of calls, in seconds."""
        if batch_size < 1:
            raise ConfigError("sends nothing; use 1 or more", setting="batch_size", value=batch_size)
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

    def encode(self, texts: Sequence[str]) -> Encoded:
        """One row for each text. What fails is flagged; nothing raises."""
        work = self._work(texts)
        try:
            chunks = next(work)
            while True:
                samples = [Embedding.of(chunk) for chunk in chunks]
                chunks = work.send(ask(self._engine, samples, Embedding(), self._deadline))
        except StopIteration as done:
            return _result(done)

    async def aencode(self, texts: Sequence[str]) -> Encoded:
        """The same for callers with an event loop."""
        work = self._work(texts)
        try:
            chunks = next(work)
            while True:
                samples = [Embedding.of(chunk) for chunk in chunks]
                chunks = work.send(await aask(self._engine, samples, Embedding(), self._deadline))
        except StopIteration as done:
            return _result(done)

    def _work(self, texts: Sequence[str]) -> Work:
        if len(self._known) > KNOWN:
            self._known.clear()
        different = dict.fromkeys(texts)
        errors = {text: "the text is empty" for text in different if not has_content(text)}
        vectors = {text: self._known[text] for text in different if text in self._known}
        wanted = [text for text in different if text not in vectors and text not in errors]
        chunks = [tuple(wanted[start : start + self._size]) for start in range(0, len(wanted), self._size)]
        while chunks:
            outcomes = yield chunks
            failed: list[tuple[Chunk, str]] = []
            for chunk, (verdict, error) in zip(chunks, outcomes, strict=True):
                if error is None:
                    self._learn(chunk, vectors_in(verdict), vectors, errors)
                else:
                    failed.append((chunk, error))
            errors |= {chunk[0]: error for chunk, error in failed if len(chunk) == 1}
            failed = [(chunk, error) for chunk, error in failed if len(chunk) > 1]
            if failed and len(failed) == len(chunks):
                (probed,) = yield [_probe(failed)]
                if probed.error is not None:  # whoever refuses every text would refuse every half as well
                    errors |= {text: error for chunk, error in failed for text in chunk}
                    break
            chunks = [half for chunk, _ in failed for half in _halves(chunk)]
        self._known |= vectors
        return gathered(texts, vectors, errors, dim=self._dim or 0)

    def _learn(
        self, chunk: Chunk, found: Vectors, vectors: dict[str, Vectors], errors: dict[str, str]
    ) -> None:
        """Enter a chunk's vectors, (texts, dim), among those that are known."""
        self._dim = self._dim or found.shape[1]
        for text, raw in zip(chunk, found, strict=True):
            vector = unit(raw)
            if len(raw) != self._dim:
                errors[text] = (
                    f"the vector has {len(raw)} numbers, not {self._dim} as others before it; "
                    "have all servers serve the same embedding model"
                )
            elif vector is None:
                errors[text] = "the vector is zero, and points nowhere"
            else:
                vectors[text] = vector


def _halves(chunk: Chunk) -> tuple[Chunk, Chunk]:
    middle = len(chunk) // 2
    return chunk[:middle], chunk[middle:]


def _probe(failed: list[tuple[Chunk, str]]) -> Chunk:
    """A text that every server takes. Another one for other failures: a cache must not vouch for a server."""
    mark = sha256("\n".join(text for chunk, _ in failed for text in chunk).encode("utf-8", "replace"))
    return (f"Are you there? {mark.hexdigest()[:12]}",)


def _result(done: StopIteration) -> Encoded:
    assert isinstance(done.value, Encoded)
    return done.value
