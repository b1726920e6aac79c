"""Model folders of the campaign: configurations without weights (``--load-format dummy``) and a byte-level tokenizer.

``dense-8b``       Qwen3-8B's published shape.
``mla-moe-rank``   one tensor-parallel rank of eight of a Kimi-K2 shape (64 heads -> 8, expert width 2048 -> 256, dense
                   width 18432 -> 2304, vocabulary 163840 -> 20480; hidden 7168, 384 experts and top 8 stay), in BF16
                   and with 16 of 61 layers so that it fits one GPU: a step of the whole rank is 61/16 of the layers'
                   time plus the same host terms. All-reduces are missing.
``draft-tiny``, ``draft-tiny-20k``   two layers of width 512 with the vocabulary of either target.
``draft-0.6b``     Qwen3-0.6B's published shape.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

__all__ = ["BYTE_TOKENIZER", "SHAPES", "write_shapes"]

_QWEN: dict[str, Any] = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "attention_bias": False,
    "attention_dropout": 0.0,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000,
    "torch_dtype": "bfloat16",
    "use_cache": True,
    "use_sliding_window": False,
    "max_position_embeddings": 40960,
    "bos_token_id": 1,
    "eos_token_id": 2,
}


def _qwen(layers: int, hidden: int, heads: int, kv_heads: int, head_dim: int, ffn: int, vocab: int) -> dict[str, Any]:
    return _QWEN | {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "head_dim": head_dim,
        "intermediate_size": ffn,
        "vocab_size": vocab,
        "max_window_layers": layers,
        "tie_word_embeddings": False,
    }


SHAPES: dict[str, dict[str, Any]] = {
    "dense-8b": _qwen(36, 4096, 32, 8, 128, 12288, 151936),
    "draft-0.6b": _qwen(28, 1024, 16, 8, 128, 3072, 151936),
    "draft-tiny": _qwen(2, 512, 8, 4, 64, 1536, 151936),
    "draft-tiny-20k": _qwen(2, 512, 8, 4, 64, 1536, 20480),
    "mla-moe-rank": {
        "architectures": ["DeepseekV3ForCausalLM"],
        "model_type": "deepseek_v3",
        "attention_bias": False,
        "attention_dropout": 0.0,
        "hidden_act": "silu",
        "initializer_range": 0.02,
        "rms_norm_eps": 1e-6,
        "rope_theta": 50000.0,
        "rope_scaling": None,
        "torch_dtype": "bfloat16",
        "use_cache": True,
        "max_position_embeddings": 40960,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "tie_word_embeddings": False,
        "num_hidden_layers": 16,
        "first_k_dense_replace": 1,
        "moe_layer_freq": 1,
        "hidden_size": 7168,
        "num_attention_heads": 8,
        "num_key_value_heads": 8,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "intermediate_size": 2304,
        "moe_intermediate_size": 256,
        "n_routed_experts": 384,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "n_group": 1,
        "topk_group": 1,
        "norm_topk_prob": True,
        "routed_scaling_factor": 2.827,
        "scoring_func": "sigmoid",
        "topk_method": "noaux_tc",
        "ep_size": 1,
        "num_nextn_predict_layers": 0,
        "vocab_size": 20480,
    },
}


def _byte_alphabet() -> list[str]:
    """The 256 printable stand-ins of byte-level BPE, in byte order."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(other)) for byte in range(256)]


BYTE_TOKENIZER: dict[str, Any] = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [],
    "normalizer": None,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False},
    "post_processor": None,
    "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    "model": {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        "vocab": {letter: byte for byte, letter in enumerate(_byte_alphabet())},
        "merges": [],
    },
}


def write_shapes(folder: Path) -> None:
    """One folder a shape below ``folder``."""
    for name, config in SHAPES.items():
        target = folder / name
        target.mkdir(parents=True, exist_ok=True)
        (target / "config.json").write_text(json.dumps(config, indent=1))
        (target / "generation_config.json").write_text('{"do_sample": false}')
        (target / "tokenizer.json").write_text(json.dumps(BYTE_TOKENIZER, ensure_ascii=False))
        (target / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')


if __name__ == "__main__":
    write_shapes(Path(sys.argv[1]))
