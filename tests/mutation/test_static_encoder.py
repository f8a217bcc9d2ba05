"""Static embeddings from wordllama's files: close texts are close, no torch, no network, no surprise."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from complaints import about

from plaudit.errors import ConfigError
from plaudit.mutation import StaticEncoder, batch_encode_queries, builtin_questions, default_encoder

pytestmark = pytest.mark.trainers

QUESTIONS = [item.question for item in builtin_questions()]


@pytest.fixture(scope="module")
def encoder() -> StaticEncoder:
    return StaticEncoder(device="cpu")


def test_a_paraphrase_is_nearer_than_another_subject(encoder: StaticEncoder) -> None:
    texts = [
        "What is the capital of France?",
        "Which city is the capital of France?",
        "How do I bake bread at home?",
    ]
    vectors = encoder.encode(texts).vectors
    assert vectors[0] @ vectors[1] > 0.7 > 0.3 > vectors[0] @ vectors[2]


def test_vectors_have_unit_length_and_one_dimension(encoder: StaticEncoder) -> None:
    encoded = encoder.encode(QUESTIONS)
    assert encoded.vectors.shape == (200, encoder.dim) == (200, 256)
    assert encoded.vectors.dtype == np.float32
    assert not encoded.is_fallback.any()
    np.testing.assert_allclose(np.linalg.norm(encoded.vectors, axis=1), 1.0, rtol=1e-5)


def test_neighbours_change_no_bit_of_a_vector(encoder: StaticEncoder) -> None:
    alone = np.stack([encoder.encode([question]).vectors[0] for question in QUESTIONS])
    np.testing.assert_array_equal(encoder.encode(QUESTIONS).vectors, alone)
    np.testing.assert_array_equal(encoder.encode(QUESTIONS[::-1]).vectors[::-1], alone)
    np.testing.assert_array_equal(asyncio.run(encoder.aencode(QUESTIONS)).vectors, alone)


def test_texts_that_cannot_be_encoded_are_flagged_and_cost_no_other(encoder: StaticEncoder) -> None:
    encoded = encoder.encode(["", "Why?", "\n", "lone \ud800 surrogate", "Why?"])
    assert encoded.errors == ("the text is empty", None, "the text is empty", None, None)
    assert not encoded.vectors[0].any()
    np.testing.assert_array_equal(encoded.vectors[1], encoded.vectors[4])
    assert encoder.encode([]).vectors.shape == (0, 256)


def test_it_is_the_encoder_of_whoever_names_none() -> None:
    assert default_encoder() is default_encoder()
    assert batch_encode_queries(["Why?"]).vectors.shape == (1, 256)


def test_neither_torch_nor_the_network_nor_the_logging_of_wordllama_is_touched() -> None:
    script = (
        "import logging, socket, sys\n"
        "socket.socket.connect = lambda *_: sys.exit('went to the network')\n"
        "from plaudit.mutation import StaticEncoder\n"
        "StaticEncoder().encode(['Why?'])\n"
        "print('torch' in sys.modules, 'wordllama' in sys.modules, logging.getLogger().handlers)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("False False []", "")


def test_a_package_without_its_files_is_told_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, check=about("", "l2_supercat_256.safetensors", "EndpointEncoder")):
        StaticEncoder(folder=tmp_path)


def test_a_device_that_is_not_there_is_told() -> None:
    with pytest.raises(ConfigError, check=about("device", "tpu")):
        StaticEncoder(device="tpu")
    if not _has_gpu():
        with pytest.raises(ConfigError, check=about("device")):
            StaticEncoder(device="cuda")


def test_a_gpu_gives_the_same_up_to_rounding(encoder: StaticEncoder) -> None:
    if not _has_gpu():
        pytest.skip("there is no GPU here")
    on_gpu = StaticEncoder(device="cuda").encode(QUESTIONS).vectors
    np.testing.assert_allclose(on_gpu, encoder.encode(QUESTIONS).vectors, atol=1e-6)


def _has_gpu() -> bool:
    if shutil.which("nvidia-smi") is None:  # spares the tests the import of torch
        return False
    import torch

    return bool(torch.cuda.is_available())
