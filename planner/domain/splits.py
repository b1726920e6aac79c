"""How Triton's decode attention splits a cache among thread blocks (SGLang srt/layers/attention/triton_backend.py)."""

from __future__ import annotations

__all__ = ["DEFAULT_N_SMS", "KV_SPLITS", "mla_splits"]

KV_SPLITS = 8
"""SGLang 0.5 ``--triton-attention-num-kv-splits``: 8 by default."""
DEFAULT_N_SMS = 132
"""Processors of a profile that does not say: Hopper's; Blackwell's 148 to 188 round up to the same 256 splits."""
_MIN_BLOCK_TOK = 32
"""Cached tokens of a split at least (_MLA_DECODE_MIN_BLOCK_KV, 0.5.15.post1:60)."""


def mla_splits(n_sms: int, context_tok: int | None, *, asked: int = KV_SPLITS) -> int:
    """Splits that an MLA model's buffers have room for, from SGLang 0.5.12 on (_mla_decode_kv_splits_cap).

    The next power of two of the processors, at most that of the context over the shortest split, never fewer than asked
    for.

    Args:
        n_sms: processors of the GPU.
        context_tok: context length of the server; None: long enough.
        asked: ``--triton-attention-num-kv-splits``.
    """
    most = _power_of_two(n_sms)
    if context_tok is not None:
        most = min(most, _power_of_two(-(-context_tok // _MIN_BLOCK_TOK)))
    return max(asked, most)


def _power_of_two(value: int) -> int:
    return 1 << max(value - 1, 0).bit_length()
