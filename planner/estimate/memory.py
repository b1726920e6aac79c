"""Device memory of one rank: weights, draft, CUDA graphs, tree mask, KV pool. The only place where these are computed.

All functions are pure; where they take arrays, shapes broadcast and the result is in bytes or tokens of **one GPU**.

Formulas
    weights     routed experts divide by tp_size (expert parallelism moves them, it does not shrink them); dense layers
                divide by tp_size / attention_dp_size for attention, by tp_size for the rest; norms, router and vision
                tower are kept whole on every rank.
    KV          MLA caches one latent vector per token, the same on every tensor-parallel rank: replicated over
                tp_size / attention_dp_size, divided by attention_dp_size (models.md figure: 70.3 KB a token in BF16).
                GQA divides by the ranks of an attention group down to one KV head.
                SGLang counts each layer of a draft as one of the target (0.5.15.post1
                srt/model_executor/pool_configurator.py:140-173, up to 0.5.16); 0.5.23 sizes that of a block drafter by
                its own shape.
    graphs      activations of the captured batch, for trees the mask buffer of max_bs x q_len x context bytes (field
                notes: about 37 MB at 1152 rows x 32768), and with Triton the partial results of split decode attention:
                rows x heads x splits x width x 4 bytes. With MLA there are up to 256 splits of 512 values from SGLang
                0.5.12 on (srt/layers/attention/triton_backend.py, init_cuda_graph_state): 64 GiB were asked for at
                16380 rows and 8 heads (docs/h200.md).
    pool        SGLang gives mem_fraction_static x the memory that is free before weights to weights and KV; the rest is
                for graphs and activations (sglang.md rule 42).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner._record import record
from planner.domain import AttentionKind, DrafterProfile, HardwareProfile, ModelProfile, bytes_per_param
from planner.domain.splits import DEFAULT_N_SMS, KV_SPLITS, mla_splits
from planner.units import GIB

__all__ = [
    "CONTEXT_BYTES",
    "KV_BYTES_PER_ELEMENT",
    "MemoryParts",
    "draft_bytes_per_rank",
    "graph_bytes_per_rank",
    "kv_bytes_per_tok_per_rank",
    "kv_capacity_tok",
    "memory_parts",
    "reserve_bytes_per_rank",
    "triton_split_bytes_per_rank",
    "weight_bytes_per_rank",
]

Floats = NDArray[np.float64]

KV_BYTES_PER_ELEMENT = {"bf16": 2.0, "auto": 2.0, "fp8_e4m3": 1.0, "fp8_e5m2": 1.0}

CONTEXT_BYTES = 1.3 * GIB
"""CUDA context and libraries on one rank before weights are loaded: 139.09 of 140.40 GiB were free on an H200
(docs/h200.md)."""


ACTIVATION_BYTES_PER_TOK_PER_HIDDEN = 1.5e6 / 7168
"""SGLang reserves 1.5 MB of activations for each token of a prefill chunk (memory_hook.py:276-350), scaled by hidden
size from its 7168-wide reference."""

GRAPH_BYTES_PER_ROW_PER_HIDDEN = 2.0e6 / 7168
"""SGLang reserves 2 MB for each captured decode row (memory_hook.py:276-350), scaled likewise."""


def weight_bytes_per_rank(model: ModelProfile, *, tp_size: ArrayLike, attention_dp_size: ArrayLike = 1) -> Floats:
    """Target weights on one rank. Shapes broadcast."""
    tp = np.asarray(tp_size, dtype=np.float64)
    attention_group = tp / np.asarray(attention_dp_size, dtype=np.float64)
    attention = model.n_layers * model.attention_params * bytes_per_param(model.dense_dtype)
    embedding = 0.0 if model.tied_embeddings else model.head_bytes
    rest = model.dense_bytes - attention + embedding
    return model.routed_bytes / tp + attention / attention_group + rest / tp + model.other_weight_bytes


def draft_bytes_per_rank(drafter: DrafterProfile, *, tp_size: ArrayLike) -> Floats:
    """Draft weights on one rank."""
    return drafter.weight_bytes / np.asarray(tp_size, dtype=np.float64)


def kv_bytes_per_tok_per_rank(
    model: ModelProfile,
    *,
    tp_size: ArrayLike,
    attention_dp_size: ArrayLike = 1,
    kv_bytes_per_element: ArrayLike = 2.0,
    drafter: DrafterProfile | None = None,
    draft_as_target: bool = False,
) -> Floats:
    """KV bytes of one token on a rank that serves it, the draft's cache included: each layer of an autoregressive
    drafter, and with ``draft_as_target`` of any, counts as one of the target; else it is the draft's own, in BF16."""
    tp = np.asarray(tp_size, dtype=np.float64)
    group = tp / np.asarray(attention_dp_size, dtype=np.float64)
    if model.attention_kind is AttentionKind.MLA:
        elements: ArrayLike = float(model.kv_elements_per_tok_per_layer)
    else:
        heads = np.ceil(model.n_kv_heads / group)
        elements = heads * (model.head_dim + model.v_head_dim)
    target = model.n_attention_layers * np.asarray(elements) * np.asarray(kv_bytes_per_element, dtype=np.float64)
    if drafter is None:
        return np.asarray(target * np.ones_like(group))
    if draft_as_target or not drafter.drafts_blocks:
        return np.asarray(target * (1.0 + drafter.n_layers / model.n_attention_layers) * np.ones_like(group))
    draft_heads = np.ceil(drafter.n_kv_heads / group)
    return np.asarray(target + drafter.n_layers * 2 * draft_heads * drafter.head_dim * 2.0)


def graph_bytes_per_rank(
    model: ModelProfile,
    *,
    cuda_graph_max_bs: ArrayLike,
    q_len: ArrayLike,
    is_tree: ArrayLike = False,
    context_length_tok: float = 0.0,
) -> Floats:
    """Memory that captured graphs keep: activations of the largest batch and the tree-mask buffer."""
    rows = np.asarray(cuda_graph_max_bs, dtype=np.float64) * np.asarray(q_len, dtype=np.float64)
    mask = rows * context_length_tok * np.asarray(is_tree, dtype=np.float64)
    return np.asarray(rows * GRAPH_BYTES_PER_ROW_PER_HIDDEN * model.hidden_dim + mask)


def triton_split_bytes_per_rank(
    hardware: HardwareProfile,
    model: ModelProfile,
    *,
    rows: ArrayLike,
    tp_size: ArrayLike,
    attention_dp_size: ArrayLike = 1,
    context_length_tok: float = 0.0,
) -> Floats:
    """Buffer of Triton's attention for captured graphs: partial results of each row, head and split, in FP32."""
    group = np.asarray(tp_size, dtype=np.float64) / np.asarray(attention_dp_size, dtype=np.float64)
    heads = np.maximum(model.n_heads / group, 1.0)
    splits, width = KV_SPLITS, model.v_head_dim
    if model.attention_kind is AttentionKind.MLA:
        splits = mla_splits(hardware.n_sms or DEFAULT_N_SMS, int(np.ceil(context_length_tok)))
        width = model.kv_lora_rank
    return np.asarray(np.asarray(rows, dtype=np.float64) * heads * splits * width * 4.0)


def reserve_bytes_per_rank(model: ModelProfile, *, chunked_prefill_tok: float = 8192.0) -> float:
    """Context, communication buffers and activations of one prefill chunk."""
    return CONTEXT_BYTES + chunked_prefill_tok * ACTIVATION_BYTES_PER_TOK_PER_HIDDEN * model.hidden_dim


def kv_capacity_tok(
    hardware: HardwareProfile,
    *,
    mem_fraction_static: ArrayLike,
    weight_bytes: ArrayLike,
    outside_bytes: ArrayLike,
    kv_bytes_per_tok: ArrayLike,
) -> Floats:
    """Tokens that the KV pool of one rank holds; 0 where the weights alone do not fit.

    Args:
        mem_fraction_static: share of device memory for weights and KV.
        weight_bytes: weights inside that share (target and draft).
        outside_bytes: what must fit in the rest of the device (graphs, activations, context); the pool shrinks when
            the rest is too small for it.
        kv_bytes_per_tok: of one token on this rank.
    """
    memory = float(hardware.memory_bytes)
    fraction = np.asarray(mem_fraction_static, dtype=np.float64)
    free = memory - CONTEXT_BYTES
    static = np.minimum(fraction * free, memory - np.asarray(outside_bytes, dtype=np.float64))
    pool = static - np.asarray(weight_bytes, dtype=np.float64)
    return np.maximum(0.0, np.floor(pool / np.asarray(kv_bytes_per_tok, dtype=np.float64)))


@record()
class MemoryParts:
    """Bytes of one rank by part."""

    weights_bytes: float
    draft_bytes: float
    graph_bytes: float
    reserve_bytes: float
    kv_bytes: float

    def items(self) -> tuple[tuple[str, float], ...]:
        """``(name, bytes)`` in a fixed order."""
        return (
            ("weights", self.weights_bytes),
            ("draft", self.draft_bytes),
            ("graphs", self.graph_bytes),
            ("reserve", self.reserve_bytes),
            ("kv", self.kv_bytes),
        )


def memory_parts(
    hardware: HardwareProfile,
    model: ModelProfile,
    drafter: DrafterProfile | None,
    *,
    tp_size: int,
    attention_dp_size: int,
    kv_dtype: str,
    mem_fraction_static: float,
    cuda_graph_max_bs: int,
    q_len: int,
    is_tree: bool,
    context_length_tok: float,
    attention_backend: str = "default",
    draft_as_target: bool = False,
    chunked_prefill_tok: float = 8192.0,
) -> tuple[MemoryParts, float]:
    """Parts of one rank and the KV capacity in tokens, for one configuration (``drafter`` None: no speculation)."""
    weights = float(weight_bytes_per_rank(model, tp_size=tp_size, attention_dp_size=attention_dp_size))
    draft = float(draft_bytes_per_rank(drafter, tp_size=tp_size)) if drafter is not None else 0.0
    per_tok = float(
        kv_bytes_per_tok_per_rank(
            model,
            tp_size=tp_size,
            attention_dp_size=attention_dp_size,
            kv_bytes_per_element=KV_BYTES_PER_ELEMENT[kv_dtype],
            drafter=drafter,
            draft_as_target=draft_as_target,
        )
    )
    graphs = float(
        graph_bytes_per_rank(
            model,
            cuda_graph_max_bs=cuda_graph_max_bs,
            q_len=q_len,
            is_tree=is_tree,
            context_length_tok=context_length_tok,
        )
    )
    if attention_backend == "triton":
        graphs += float(
            triton_split_bytes_per_rank(
                hardware,
                model,
                rows=cuda_graph_max_bs * q_len,
                tp_size=tp_size,
                attention_dp_size=attention_dp_size,
                context_length_tok=context_length_tok,
            )
        )
    reserve = reserve_bytes_per_rank(model, chunked_prefill_tok=chunked_prefill_tok)
    capacity = float(
        kv_capacity_tok(
            hardware,
            mem_fraction_static=mem_fraction_static,
            weight_bytes=weights + draft,
            outside_bytes=graphs + reserve,
            kv_bytes_per_tok=per_tok,
        )
    )
    return MemoryParts(weights, draft, graphs, reserve, capacity * per_tok), capacity
