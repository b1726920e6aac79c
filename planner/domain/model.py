"""Target models and drafters: the shapes from which memory and step cost follow."""

# Annotations are evaluated here, not kept as text: pydantic would compile each of them when the module is imported.

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, Strict, model_validator

from planner.domain.base import Source, Sourced, Value

__all__ = [
    "BLOCK_ALGORITHMS",
    "AcceptPoint",
    "AttentionKind",
    "DrafterProfile",
    "ModelProfile",
    "WeightDtype",
    "bytes_per_param",
]

_Count = Annotated[int, Strict(), Field(gt=0)]
_CountOrZero = Annotated[int, Strict(), Field(ge=0)]


class AttentionKind(StrEnum):
    """How keys and values are stored."""

    MLA = "mla"
    """Multi-head latent attention: one compressed vector per token, the same on every tensor-parallel rank."""
    GQA = "gqa"
    """Grouped-query attention (multi-head and multi-query attention are its ends)."""
    HYBRID = "hybrid"
    """Some layers have no growing cache (linear attention, state space)."""


class WeightDtype(StrEnum):
    """Storage of a weight matrix, scales included (see :func:`bytes_per_param`)."""

    BF16 = "bf16"
    FP8 = "fp8"
    FP8_BLOCK = "fp8_block"
    INT4_G32 = "int4_g32"
    INT4_G128 = "int4_g128"
    NVFP4 = "nvfp4"
    MXFP4 = "mxfp4"


_BYTES_PER_PARAM = {
    WeightDtype.BF16: 2.0,
    WeightDtype.FP8: 1.0,
    WeightDtype.FP8_BLOCK: 1.0 + 4.0 / (128 * 128),
    WeightDtype.INT4_G32: 0.5 + 2.0 / 32,
    WeightDtype.INT4_G128: 0.5 + 2.0 / 128,
    WeightDtype.NVFP4: 0.5 + 1.0 / 16,
    WeightDtype.MXFP4: 0.5 + 1.0 / 32,
}


def bytes_per_param(dtype: WeightDtype) -> float:
    """Bytes of one parameter with its share of the scales (BF16 scale per 32 or 128 for INT4, FP8 per 16 for NVFP4,
    E8M0 per 32 for MXFP4, FP32 per 128 x 128 block for block FP8)."""
    return _BYTES_PER_PARAM[dtype]


class ModelProfile(Sourced):
    """Shape of a target model. ``id`` is what ``--model`` takes."""

    schema_version: Annotated[int, Field(ge=1, le=1)] = 1
    id: Annotated[str, Field(min_length=1)]
    name: str
    aliases: tuple[str, ...] = ()
    model_path: str
    """What ``--model-path`` gets: a Hugging Face id or a folder."""
    architecture: str
    """First entry of ``architectures`` in config.json: the engine's defaults depend on it."""
    attention_kind: AttentionKind
    n_layers: _Count
    hidden_dim: _Count
    n_heads: _Count
    n_kv_heads: _Count
    head_dim: _Count
    """Of a query or key head; for MLA nope + rope."""
    kv_lora_rank: _CountOrZero = 0
    q_lora_rank: _CountOrZero = 0
    qk_nope_head_dim: _CountOrZero = 0
    qk_rope_head_dim: _CountOrZero = 0
    v_head_dim: _Count
    n_attention_layers: _Count
    """Layers whose cache grows with context (fewer than n_layers in hybrid models)."""
    dense_ffn_dim: _CountOrZero
    n_dense_layers: _CountOrZero
    """Layers with a dense feed-forward block; the rest are mixture of experts."""
    n_experts: _CountOrZero = 0
    n_experts_per_tok: _CountOrZero = 0
    n_shared_experts: _CountOrZero = 0
    expert_ffn_dim: _CountOrZero = 0
    vocab_size: _Count
    max_context_tok: _Count
    tied_embeddings: bool = False
    expert_dtype: WeightDtype = WeightDtype.BF16
    """Storage of routed experts."""
    dense_dtype: WeightDtype = WeightDtype.BF16
    """Storage of attention, shared experts and dense blocks; embeddings and head stay in BF16."""
    quantization: str | None = None
    """The engine's name of the checkpoint's quantisation (``compressed-tensors``, ``modelopt_fp4``, ``fp8``)."""
    other_weight_bytes: _CountOrZero = 0
    """Weights not covered by the shape: vision tower, router, norms."""
    multimodal: bool = False
    n_nextn_layers: _CountOrZero = 0
    """Built-in multi-token-prediction layers."""
    tool_call_parser: str | None = None
    reasoning_parser: str | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        faults = []
        if self.attention_kind is AttentionKind.MLA and not (self.kv_lora_rank and self.qk_rope_head_dim):
            faults.append("attention_kind mla needs kv_lora_rank and qk_rope_head_dim")
        if self.n_dense_layers > self.n_layers:
            faults.append(f"n_dense_layers {self.n_dense_layers} exceeds n_layers {self.n_layers}")
        if self.n_attention_layers > self.n_layers:
            faults.append(f"n_attention_layers {self.n_attention_layers} exceeds n_layers {self.n_layers}")
        if self.n_experts_per_tok > self.n_experts:
            faults.append(f"n_experts_per_tok {self.n_experts_per_tok} exceeds n_experts {self.n_experts}")
        if self.n_experts and not self.expert_ffn_dim:
            faults.append("n_experts needs expert_ffn_dim")
        if not self.n_experts and self.n_dense_layers != self.n_layers:
            faults.append("a model without experts has n_dense_layers = n_layers")
        if self.n_kv_heads > self.n_heads:
            faults.append(f"n_kv_heads {self.n_kv_heads} exceeds n_heads {self.n_heads}")
        if faults:
            raise ValueError("; ".join(faults))
        return self

    @property
    def n_moe_layers(self) -> int:
        """Layers with routed experts."""
        return self.n_layers - self.n_dense_layers

    @property
    def expert_bytes(self) -> float:
        """Weights of one routed expert of one layer (gate, up, down)."""
        return 3 * self.hidden_dim * self.expert_ffn_dim * bytes_per_param(self.expert_dtype)

    @property
    def routed_bytes(self) -> float:
        """Weights of all routed experts of all layers."""
        return self.n_moe_layers * self.n_experts * self.expert_bytes

    @property
    def attention_params(self) -> int:
        """Parameters of one attention block (projections)."""
        if self.attention_kind is AttentionKind.MLA:
            query_width = self.n_heads * (self.qk_nope_head_dim + self.qk_rope_head_dim)
            query = (
                self.hidden_dim * self.q_lora_rank + self.q_lora_rank * query_width
                if self.q_lora_rank
                else self.hidden_dim * query_width
            )
            down = self.hidden_dim * (self.kv_lora_rank + self.qk_rope_head_dim)
            up = self.kv_lora_rank * self.n_heads * (self.qk_nope_head_dim + self.v_head_dim)
            return query + down + up + self.n_heads * self.v_head_dim * self.hidden_dim
        qkv = self.hidden_dim * self.head_dim * (self.n_heads + 2 * self.n_kv_heads)
        return qkv + self.n_heads * self.v_head_dim * self.hidden_dim

    @property
    def dense_bytes(self) -> float:
        """Weights read by every step whatever the routing: attention, shared experts, dense blocks, head."""
        shared = self.n_moe_layers * self.n_shared_experts * 3 * self.hidden_dim * self.expert_ffn_dim
        dense = self.n_dense_layers * 3 * self.hidden_dim * self.dense_ffn_dim
        params = self.n_layers * self.attention_params + shared + dense
        return params * bytes_per_param(self.dense_dtype) + self.head_bytes

    @property
    def head_bytes(self) -> float:
        """Output projection in BF16."""
        return 2.0 * self.vocab_size * self.hidden_dim

    @property
    def weight_bytes(self) -> float:
        """Whole checkpoint: routed + dense + head + embeddings + the rest."""
        embedding = 0.0 if self.tied_embeddings else 2.0 * self.vocab_size * self.hidden_dim
        return self.routed_bytes + self.dense_bytes + embedding + self.other_weight_bytes

    @property
    def kv_elements_per_tok_per_layer(self) -> int:
        """Cached elements of one token in one attention layer, whole model (before tensor parallelism)."""
        if self.attention_kind is AttentionKind.MLA:
            return self.kv_lora_rank + self.qk_rope_head_dim
        return self.n_kv_heads * (self.head_dim + self.v_head_dim)


class AcceptPoint(Value):
    """One measured accept length of a drafter on a target (tokens per verify step, bonus token included)."""

    target: str
    """Id of the target model profile."""
    kind: str
    """``tree`` or ``chain``."""
    budget: Annotated[int, Field(ge=1)]
    """Draft nodes without the root (a chain of n drafted tokens has budget n)."""
    topk: int | None = None
    accept_len: Annotated[float, Field(ge=1)]
    domain: str
    """Traffic it was measured on: ``code``, ``chat``, ``math`` or ``unknown``."""
    context_tok: int | None = None
    temperature: Annotated[float, Field(ge=0)] = 0.0
    rounds: int | None = None
    bonus_counted: bool | None = None
    """Whether the source says that the bonus token is counted; None: the source does not say."""
    source: Source


BLOCK_ALGORITHMS = ("DFLASH", "DSPARK")
"""SGLang's algorithms whose drafter drafts a whole block in one forward."""


class DrafterProfile(Sourced):
    """A draft model. ``id`` is what ``--drafter`` takes."""

    schema_version: Annotated[int, Field(ge=1, le=1)] = 1
    id: Annotated[str, Field(min_length=1)]
    name: str
    aliases: tuple[str, ...] = ()
    model_path: str
    algorithm: str
    """SGLang's algorithm for a chain (``DFLASH``, ``EAGLE3``, ``NEXTN``, ``STANDALONE``)."""
    targets: tuple[str, ...] = ()
    """Ids of target profiles it was trained for."""
    block_size: Annotated[int, Strict(), Field(ge=2)]
    """Tokens of one draft block with the bonus token; a path is at most block_size - 1 deep."""
    n_layers: _Count
    hidden_dim: _Count
    n_heads: _Count
    n_kv_heads: _Count
    head_dim: _Count
    ffn_dim: _Count
    vocab_size: _Count
    weight_dtype: WeightDtype = WeightDtype.BF16
    shares_embeddings: bool = True
    """Embeddings and head are the target's."""
    train_context_tok: int | None = None
    """Longest context seen in training: accept length falls beyond it."""
    points: tuple[AcceptPoint, ...] = ()

    @model_validator(mode="after")
    def _points_within_the_block(self) -> Self:
        high = [point for point in self.points if point.accept_len > self.block_size]
        if high:
            shown = ", ".join(f"{point.accept_len:g} at budget {point.budget}" for point in high)
            raise ValueError(f"accept length above block_size {self.block_size}: {shown}")
        return self

    @property
    def drafts_blocks(self) -> bool:
        """Whether one forward drafts a whole block; else each drafted token takes one."""
        return self.algorithm in BLOCK_ALGORITHMS

    @property
    def max_accept_len(self) -> int:
        """Largest accept length: a path of block_size - 1 drafted tokens and the bonus token."""
        return self.block_size

    @property
    def weight_bytes(self) -> float:
        """Draft weights, embeddings and head only where they are its own."""
        attention = self.hidden_dim * self.head_dim * (2 * self.n_heads + 2 * self.n_kv_heads)
        params = self.n_layers * (attention + 3 * self.hidden_dim * self.ffn_dim)
        own = 0 if self.shares_embeddings else 2 * self.vocab_size * self.hidden_dim
        return params * bytes_per_param(self.weight_dtype) + 2.0 * own

    @property
    def kv_elements_per_tok(self) -> int:
        """Cached elements of one token in all draft layers, before tensor parallelism."""
        return self.n_layers * 2 * self.n_kv_heads * self.head_dim
