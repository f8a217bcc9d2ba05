"""What makes two requests the same: the whole request as sent, the model, and the judge's version.

Samples have a shorter name, by which journals and trainers' tables call them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import msgspec

from plaudit.types import ChatRequest, Message, RawRequest, Request, Sample

_NO_MORE: tuple[object, ...] = (None, None, None, {})
_encoder = msgspec.json.Encoder(order="deterministic")


class Fingerprinter:
    """Fingerprints of requests to one model by one judge: 32 bytes each.

    The requests of a batch differ in their last message alone, as a rule. What they share (instructions,
    schema, sampling options) is encoded and hashed once, and again whenever it changes.
    """

    __slots__ = ("_frame", "_hash_of_frame", "_start")

    def __init__(self, *, model: str, version: str) -> None:
        lengths = b"plaudit/2|%d|%d|" % (len(model), len(version))  # or fields could run into each other
        self._start = hashlib.sha256(lengths + f"{model}{version}".encode(errors="surrogatepass"))
        self._frame: object = None
        self._hash_of_frame = self._start

    def __call__(self, request: Request) -> bytes:
        """What identifies this request. Raises UnicodeEncodeError for text that cannot be sent."""
        if isinstance(request, RawRequest):
            return self._after((request.route, request.identity)).digest()
        if not isinstance(request, ChatRequest) or not request.messages or len(request.messages[-1]) != 2:
            return self._after(request).digest()
        last = request.messages[-1]
        options: tuple[object, ...] = (
            request.max_tokens,
            request.temperature,
            request.schema,
            request.top_logprobs,
        )
        more = (request.top_p, request.seed, request.reasoning_effort, request.extra)
        if more != _NO_MORE:
            options += more
        if request.images:  # by their digests: a frame is compared with the next one
            options += tuple(hashlib.sha256(image.encode()).hexdigest() for image in request.images)
        frame = (last["role"], options, *request.messages[:-1])
        if frame != self._frame:
            self._hash_of_frame = self._after(frame)
            self._frame = frame
        digest = self._hash_of_frame.copy()
        digest.update(last["content"].encode())
        return digest.digest()

    def _after(self, thing: object) -> hashlib._Hash:
        digest = self._start.copy()
        encoded = _encoder.encode(thing)
        digest.update(b"%d|" % len(encoded))
        digest.update(encoded)
        return digest


def get_request_hash(request: Request, *, model: str = "", version: str = "") -> str:
    """The cache key of a request, in hexadecimal: identical requests are sent once."""
    return Fingerprinter(model=model, version=version)(request).hex()


def jitter(key: bytes, attempt: int) -> float:
    """A number in 0..1 derived from the request and the attempt, never drawn: runs repeat exactly."""
    digest = hashlib.blake2b(key, digest_size=8, salt=attempt.to_bytes(8, "little")).digest()
    return int.from_bytes(digest, "little") / 2**64


# -- samples ----------------------------------------------------------------------------------------------


def sample_id(sample: Sample) -> str:
    """How a journal names a sample: the same for the same prompt and response, in every process and run."""
    return f"{int.from_bytes(response_digest(prompt_digest(sample.prompt), sample.text), 'little'):016x}"


def prompt_digest(prompt: str | Sequence[Message]) -> bytes:
    """64 bits for a prompt."""
    return response_digest(b"", prompt if isinstance(prompt, str) else "\n".join(map(_turn_text, prompt)))


def _turn_text(turn: Message) -> str:
    text = f"{turn.get('role')}: {turn.get('content')}"
    beside = turn.get("images"), turn.get("tool_calls")  # two pictures may be asked about in the same words
    return text + "".join(
        f" {response_digest(b'', json.dumps(one, default=str)).hex()}" for one in beside if one
    )


EMPTY_DIGEST = hashlib.blake2b(digest_size=8)


def response_digest(prompt: bytes, response: str) -> bytes:
    """64 bits for a response to the prompt of this digest, in every process the same; little-endian."""
    found = EMPTY_DIGEST.copy()  # in half the time that a new one takes
    found.update(prompt + response.encode(errors="replace"))  # a lone surrogate has no bytes
    return found.digest()
