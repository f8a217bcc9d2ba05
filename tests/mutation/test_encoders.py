"""Encoders: unit vectors in order, batched calls, and one bad text that fails alone."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest
from answering_model import EmbeddingModel, engine_over
from complaints import about
from loopback import INSTANT, loopback

from plaudit import Endpoint, Engine
from plaudit.errors import ConfigError, ModelNotFound, RequestRefused
from plaudit.mutation import EndpointEncoder, batch_encode_queries
from plaudit.types import Reply

TEXTS = [f"text number {n}" for n in range(100)]


def length_and_one(texts: tuple[str, ...]) -> Reply:
    """A vector that tells its text's length."""
    return Reply("", vectors=tuple((float(len(text)), 1.0, 0.0) for text in texts))


def unable(*words: str) -> EmbeddingModel:
    """A model that takes no call with a text that holds one of these words."""

    def embed(texts: tuple[str, ...]) -> Reply | Exception:
        if any(word in text for text in texts for word in words):
            return RequestRefused("the input is of no use")
        return length_and_one(texts)

    return EmbeddingModel(embed)


def test_texts_share_calls_and_vectors_come_in_order() -> None:
    model = EmbeddingModel(length_and_one)
    with engine_over(model) as engine:
        encoded = EndpointEncoder(engine, batch_size=40).encode(TEXTS)
    assert sorted(map(len, model.calls)) == [20, 40, 40]
    assert encoded.vectors.shape == (100, 3) and encoded.vectors.dtype == np.float32
    assert encoded.errors == (None,) * 100 and not encoded.is_fallback.any()
    np.testing.assert_allclose(np.linalg.norm(encoded.vectors, axis=1), 1.0, rtol=1e-6)
    lengths = encoded.vectors[:, 0] / encoded.vectors[:, 1]
    np.testing.assert_allclose(lengths, [len(text) for text in TEXTS], rtol=1e-5)


def test_one_bad_text_fails_alone() -> None:
    model = unable("number 42")
    with engine_over(model) as engine:
        encoded = EndpointEncoder(engine).encode(TEXTS)
    assert list(np.flatnonzero(encoded.is_fallback)) == [42]
    assert encoded.errors[42] == "the input is of no use"
    assert not encoded.vectors[42].any() and encoded.vectors[43].any()
    assert len(model.calls) <= 2 + 2 * 7  # by halves: not one call for each of its neighbours


def test_bad_texts_in_every_part_fail_alone_too() -> None:
    bad = [3, 33, 66, 99]
    with engine_over(unable(*(f"number {n}" for n in (33, 66, 99)), "number 3")) as engine:
        encoded = EndpointEncoder(engine, batch_size=100).encode(TEXTS)
    expected = [n for n in range(100) if n in bad or str(n).startswith("3")]
    assert list(np.flatnonzero(encoded.is_fallback)) == expected


def test_a_server_that_refuses_everything_is_asked_once_more_and_left_alone() -> None:
    model = EmbeddingModel(lambda _: RequestRefused("no embeddings here"))
    with engine_over(model) as engine:
        encoded = EndpointEncoder(engine).encode(TEXTS[:64])
    assert set(encoded.errors) == {"no embeddings here"}
    assert len(model.calls) == 2
    assert encoded.vectors.shape == (64, 0)


def test_what_is_known_is_not_asked_again() -> None:
    model = EmbeddingModel(length_and_one)
    with engine_over(model) as engine:
        encoder = EndpointEncoder(engine)
        first = encoder.encode(["Why?", "How?", "Why?"])
        second = encoder.encode(["How?", "Who?"])
    assert model.calls == [("Why?", "How?"), ("Who?",)]
    np.testing.assert_array_equal(first.vectors[1], second.vectors[0])


def test_empty_texts_are_flagged_without_a_call() -> None:
    model = EmbeddingModel(length_and_one)
    with engine_over(model) as engine:
        encoded = EndpointEncoder(engine).encode(["", "Why?", " \n"])
    assert model.calls == [("Why?",)]
    assert encoded.errors == ("the text is empty", None, "the text is empty")
    assert not encoded.vectors[0].any()


def test_a_text_that_cannot_be_sent_fails_alone() -> None:
    with engine_over(EmbeddingModel(length_and_one)) as engine:
        encoded = EndpointEncoder(engine).encode(["Why?", "lone \ud800 surrogate", "How?"])
    assert list(encoded.is_fallback) == [False, True, False]


def test_a_zero_vector_points_nowhere() -> None:
    with engine_over(EmbeddingModel(lambda texts: Reply("", vectors=((0.0, 0.0),) * len(texts)))) as engine:
        encoded = EndpointEncoder(engine).encode(["Why?"])
    assert encoded.errors == ("the vector is zero",)


def test_two_models_behind_one_encoder_are_noticed() -> None:
    def embed(texts: tuple[str, ...]) -> Reply:
        return Reply("", vectors=((1.0,) * (2 if "Why?" in texts else 3),) * len(texts))

    with engine_over(EmbeddingModel(embed)) as engine:
        encoder = EndpointEncoder(engine)
        assert encoder.encode(["Why?"]).errors == (None,)
        (error,) = encoder.encode(["How?"]).errors
    assert error is not None and "has 3 numbers, not 2" in error and "same embedding model" in error


def test_the_dimension_is_found_out_by_a_call() -> None:
    model = EmbeddingModel(length_and_one)
    with engine_over(model) as engine:
        encoder = EndpointEncoder(engine)
        assert (encoder.dim, encoder.dim) == (3, 3)
    assert len(model.calls) == 1


def test_an_encoder_that_cannot_work_is_told_before_training_starts() -> None:
    with engine_over(EmbeddingModel(lambda _: ModelNotFound("no model 'm'; check its name"))) as engine:
        with pytest.raises(ConfigError, check=about("", "no model 'm'")):
            _ = EndpointEncoder(engine).dim
        with pytest.raises(ConfigError, check=about("batch_size")):
            EndpointEncoder(engine, batch_size=0)


def test_the_asynchronous_twin_splits_as_well() -> None:
    with engine_over(unable("number 7 ")) as engine:
        encoded = asyncio.run(EndpointEncoder(engine).aencode(["number 7 ", "number 8", "number 9"]))
    assert list(encoded.is_fallback) == [True, False, False]


@pytest.mark.parametrize("kind", ["openai", "ollama"])
def test_both_kinds_of_server_embed_over_http(kind: str) -> None:
    with loopback(INSTANT) as server:
        url = server.url if kind == "openai" else server.url.removesuffix("/v1")
        endpoint = Endpoint(url, model="m", kind=kind)  # type: ignore[arg-type]
        with Engine(endpoints=[endpoint], cache=None) as engine:
            encoded = batch_encode_queries(TEXTS, EndpointEncoder(engine, batch_size=32))
    assert not encoded.is_fallback.any()
    assert len(np.unique(encoded.vectors, axis=0)) == 100
