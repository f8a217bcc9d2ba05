"""A tiny model file with random weights: real enough for llama.cpp, small enough for every test.

Its answers mean nothing, but it leans towards "yes" and "no", so that a yes-or-no judge reads real verdicts.
Needs the `gguf` package.
"""

from __future__ import annotations

from pathlib import Path

WIDTH = 64
HEADS = 4
LAYERS = 2
CONTEXT = 4096
SPECIAL = ["<unk>", "<s>", "</s>", "<|turn|>"]
WORDS = ["yes", "no", "Yes", "No", "▁yes", "▁no", "▁", "\n"]
TEMPLATE = (
    "{% for message in messages %}<|turn|>{{ message['role'] }}: {{ message['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant:{% endif %}"
)


def write_tiny_model(path: Path, seed: int = 0) -> Path:
    """Write a half-megabyte GGUF that llama.cpp loads in 0.1 s; the same seed gives the same file."""
    import gguf
    import numpy as np

    random = np.random.default_rng(seed)

    def weights(rows: int, columns: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        return random.normal(0.0, columns**-0.5, (rows, columns)).astype(np.float32)

    tokens = SPECIAL + [f"<0x{byte:02X}>" for byte in range(256)] + WORDS
    kinds = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 3]
    kinds += [gguf.TokenType.BYTE] * 256 + [gguf.TokenType.NORMAL] * len(WORDS)

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(2 * WIDTH)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_space_prefix(False)
    writer.add_chat_template(TEMPLATE)

    embedding, output = weights(len(tokens), WIDTH), weights(len(tokens), WIDTH)
    embedding[:, 0] = 4.0  # every state shares this dimension, and the lean towards yes and no hangs on it
    output[[tokens.index(word) for word in WORDS[:4]], 0] = 3.0
    writer.add_tensor("token_embd.weight", embedding)
    writer.add_tensor("output.weight", output)
    writer.add_tensor("output_norm.weight", np.ones(WIDTH, np.float32))
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        for name in ("attn_norm", "ffn_norm"):
            writer.add_tensor(f"{block}.{name}.weight", np.ones(WIDTH, np.float32))
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            writer.add_tensor(f"{block}.{name}.weight", weights(WIDTH, WIDTH))
        for name in ("ffn_gate", "ffn_up"):
            writer.add_tensor(f"{block}.{name}.weight", weights(2 * WIDTH, WIDTH))
        writer.add_tensor(f"{block}.ffn_down.weight", weights(WIDTH, 2 * WIDTH))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
