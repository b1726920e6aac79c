"""Latency of kernels on one GPU system as curves over tokens or bytes.

Measured tables speak where they reach, the data sheet (roofline with an assumed efficiency) beyond. A curve is built
once for each parallel layout and kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property

import numpy as np

from planner.domain import (
    AttentionKind,
    DrafterProfile,
    HardwareProfile,
    LinkKind,
    ModelProfile,
    Provenance,
    WeightDtype,
    bytes_per_param,
)
from planner.estimate.step_cost.kernels import FloatArray, KernelTable, at_point, interpolate_log, monotone

__all__ = ["BANDWIDTH_FRAC", "KERNEL_FLOOR_S", "TOKENS", "KernelCurves", "MoeCurve"]

MoeCurve = tuple[FloatArray, FloatArray, FloatArray, Provenance]
"""Tokens, seconds of one layer, disagreement between routings (standard deviation of the log), ground."""

TOKENS = np.array(
    [1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096, 8192, 16384], dtype=np.float64
)
"""Tokens at which curves are built."""

BANDWIDTH_FRAC = 0.75
"""Share of the data sheet's bandwidth that a kernel reaches. BF16 products of 65536 x 8192 weights and one token reach
0.85 (H100), 0.81 (B200), 0.87 (L40S) in the tables, smaller ones less."""
_FLOP_FRAC = 0.65
"""Share of the data sheet's FLOP/s. BF16 products of 8192 x 8192 x 8192 reach 0.66 (H100), 0.70 (B200), 0.57 (L40S)."""
KERNEL_FLOOR_S = 3e-6
"""Shortest kernel in a CUDA graph: the smallest entries of the GEMM tables are 2 to 4 us."""
_BYTES: FloatArray = np.asarray(2.0 ** np.arange(8, 30), dtype=np.float64)

_DISTRIBUTIONS = ("balanced", "power_law_1.01", "power_law_1.2")
_OWN_ROUTING_FRAC = 0.03
_OTHER_TABLE_FRAC = 0.15
"""Doubt when the curve is of another framework's kernel or another split of the experts."""
_NO_TABLE_FRAC = (0.28, 0.50)
"""Doubt about a roofline of the experts up to 2048 tokens, and above. Against the tables of six systems (SGLang, up to
8 ranks) the one below has a bias under 0.06 and a standard deviation of 0.21 to 0.31 in the log, 0.48 above."""
_MOE_FLOP_FRAC = 0.30
"""Share of the data sheet's FLOP/s that grouped expert products reach, added to the time of the weights: best of
0.2 to 0.4 over the same tables."""

_TABLE_DTYPE = {
    WeightDtype.BF16: "bfloat16",
    WeightDtype.FP8: "fp8",
    WeightDtype.FP8_BLOCK: "fp8_block",
    WeightDtype.INT4_G32: "int4_wo",
    WeightDtype.INT4_G128: "int4_wo",
    WeightDtype.NVFP4: "nvfp4",
    WeightDtype.MXFP4: "w4a16_mxfp4",
}


class KernelCurves:
    """Curves of one (system, model, framework). ``table`` None: data sheet only."""

    def __init__(
        self,
        hardware: HardwareProfile,
        model: ModelProfile,
        *,
        table: KernelTable | None,
        framework: str = "sglang",
        drafter: DrafterProfile | None = None,
    ) -> None:
        self.hardware = hardware
        self.model = model
        self.table = table
        self.framework = framework
        self.drafter = drafter
        self._products: dict[tuple[float, float, WeightDtype], FloatArray] = {}
        self._log_grids: dict[WeightDtype, tuple[FloatArray, FloatArray, FloatArray]] = {}
        self._moe: dict[tuple[int, int], MoeCurve] = {}
        self._dense: dict[tuple[int, int], tuple[FloatArray, FloatArray]] = {}
        self._comm: dict[tuple[str, int, bool], FloatArray] = {}
        self._draft: dict[int, FloatArray] = {}

    # ---- single kernels ----

    def roofline(self, n_bytes: FloatArray | float, flop: FloatArray | float, flop_per_s: float) -> FloatArray:
        """The slower of moving the bytes and doing the work, and never below a kernel's floor."""
        memory = np.asarray(n_bytes) / (BANDWIDTH_FRAC * self.hardware.hbm_bandwidth_bytes_per_s)
        return np.asarray(np.maximum(memory, np.asarray(flop) / (_FLOP_FRAC * flop_per_s)) + KERNEL_FLOOR_S)

    def _flop_per_s(self, dtype: WeightDtype) -> float:
        hardware = self.hardware
        if dtype in (WeightDtype.FP8, WeightDtype.FP8_BLOCK) and hardware.fp8_flop_per_s:
            return hardware.fp8_flop_per_s
        if dtype is WeightDtype.NVFP4 and hardware.fp4_flop_per_s:
            return hardware.fp4_flop_per_s
        return hardware.bf16_flop_per_s

    @property
    def has_gemm_table(self) -> bool:
        """Whether dense products come from a table."""
        return self.table is not None and self.table.get("gemm", "bfloat16") is not None

    def _gemm(self, n: float, k: float, dtype: WeightDtype) -> FloatArray:
        """Seconds of one product (m x k) (k x n) over :data:`TOKENS` as m. Layouts share most of their products."""
        key = (n, k, dtype)
        if key not in self._products:
            self._products[key] = self._product(n, k, dtype)
        return self._products[key]

    def _product(self, n: float, k: float, dtype: WeightDtype) -> FloatArray:
        grid = self.table.get("gemm", _TABLE_DTYPE[dtype]) if self.table is not None else None
        if grid is None:
            n_bytes = n * k * bytes_per_param(dtype) + TOKENS * (n + k) * 2
            return self.roofline(n_bytes, 2.0 * TOKENS * n * k, self._flop_per_s(dtype))
        if dtype not in self._log_grids:
            self._log_grids[dtype] = (np.log(grid.latency_s), np.log(grid.axes[1]), np.log(grid.axes[2]))
        m_axis, n_axis, k_axis = grid.axes
        logs = at_point(*self._log_grids[dtype], math.log(n), math.log(k))
        # Beyond the table the work is in proportion to the weights.
        beyond = max(n / n_axis[-1], 1.0) * max(k / k_axis[-1], 1.0)
        return np.asarray(beyond * interpolate_log(m_axis, monotone(np.exp(logs)), TOKENS))

    def comm_table(self, op: str, gpus: int, *, graph: bool = True) -> FloatArray:
        """Seconds of a collective over :data:`_BYTES`: the custom kernel or NCCL, whichever is faster."""
        curves = []
        if self.table is not None:
            names = [f"{self.framework}_{'graph' if graph else 'eager'}"] if op == "all_reduce" else []
            curves = [c for name in (*names, "nccl") if (c := self.table.curve("comm", op, name, gpus)) is not None]
        if curves:
            return monotone(np.min([interpolate_log(x, y, _BYTES) for x, y in curves], axis=0))
        # Ring: 2 (g - 1) / g of the bytes cross a link in an all-reduce, half of it in the other collectives.
        share = (2.0 if op == "all_reduce" else 1.0) * (gpus - 1) / gpus
        floor = 30e-6 if self.hardware.link_kind is LinkKind.PCIE else 10e-6
        return np.asarray(floor + share * _BYTES / (0.7 * self.hardware.link_bandwidth_bytes_per_s))

    def collective_s(self, op: str, gpus: int, n_bytes: FloatArray, *, graph: bool) -> FloatArray:
        """Seconds of one collective on this host: the table's, plus what the host's all-reduce takes beyond it."""
        key = (op, gpus, graph)
        if key not in self._comm:
            self._comm[key] = self.comm_table(op, gpus, graph=graph) + self._host_latency_s
        return interpolate_log(_BYTES, self._comm[key], n_bytes)

    @cached_property
    def _host_latency_s(self) -> float:
        """Measured all-reduce of 16 KB on this host beyond the table's (0 where nothing was measured)."""
        measured = self.hardware.allreduce_latency_s
        if measured is None or self.hardware.n_gpus == 1:
            return 0.0
        table_s = float(interpolate_log(_BYTES, self.comm_table("all_reduce", self.hardware.n_gpus), 16384.0))
        return max(measured - table_s, 0.0)

    def has_comm_table(self, gpus: int) -> bool:
        """Whether collectives among ``gpus`` come from a table."""
        return self.table is not None and self.table.get("comm", "all_reduce", "nccl", gpus) is not None

    @property
    def links_unmeasured(self) -> bool:
        """PCIe without a measured all-reduce: the host decides, and no data sheet knows it."""
        return self.hardware.link_kind is LinkKind.PCIE and self.hardware.allreduce_latency_s is None

    # ---- curves over tokens, one for each layout ----

    def moe_curve(self, tp: int, ep: int) -> MoeCurve:
        """Routed experts of one layer when ``tp`` ranks share them, in ``ep`` groups."""
        key = (tp, ep)
        if key not in self._moe:
            splits = [(max(tp // ep, 1), ep), (1, max(tp, ep)), (tp, 1)]
            found = None
            for doubt, (moe_tp, moe_ep) in zip((0.0, _OTHER_TABLE_FRAC, _OTHER_TABLE_FRAC), splits, strict=True):
                found = found or self._table_moe(moe_tp, moe_ep, doubt)
            self._moe[key] = found or self._roofline_moe(*splits[0])
        return self._moe[key]

    def _table_moe(self, moe_tp: int, moe_ep: int, doubt_frac: float) -> MoeCurve | None:
        if self.table is None:
            return None
        m = self.model
        shape = (m.hidden_dim, m.expert_ffn_dim, m.n_experts_per_tok, m.n_experts)
        dtype = _TABLE_DTYPE[m.expert_dtype]
        for framework in (self.framework, *(name for name in ("sglang", "vllm") if name != self.framework)):
            curves = [
                curve
                for name in _DISTRIBUTIONS
                if (curve := self.table.curve("moe", *shape, framework, dtype, moe_tp, moe_ep, name)) is not None
            ]
            if curves:
                axis = curves[0][0]
                logs = np.array([np.log(interpolate_log(x, y, axis)) for x, y in curves])
                spread = logs.std(axis=0) if len(curves) > 1 else np.full(axis.shape, _OTHER_TABLE_FRAC)
                least = _OWN_ROUTING_FRAC if framework == self.framework else _OTHER_TABLE_FRAC
                return axis, np.exp(logs.mean(axis=0)), np.maximum(spread, max(least, doubt_frac)), Provenance.TABLE
        return None

    def _roofline_moe(self, moe_tp: int, moe_ep: int) -> MoeCurve:
        """Experts touched by T tokens under a Zipf load, sum over e of 1 - (1 - p_e)^T (MoESD, arXiv:2505.19645; the
        exponent 0.7 and 20 us of a layer are the best of a small grid over the same tables)."""
        m = self.model
        share = np.arange(1, m.n_experts + 1, dtype=float) ** -0.7
        share = np.minimum(share / share.sum() * m.n_experts_per_tok, 1.0)
        touched = (1.0 - (1.0 - share[None, :]) ** TOKENS[:, None]).sum(axis=1)
        ranks = moe_tp * moe_ep
        flop = 6.0 * TOKENS * m.n_experts_per_tok * m.hidden_dim * m.expert_ffn_dim / ranks
        weights_s = touched * m.expert_bytes / ranks / (BANDWIDTH_FRAC * self.hardware.hbm_bandwidth_bytes_per_s)
        seconds = weights_s + flop / (_MOE_FLOP_FRAC * self._flop_per_s(m.expert_dtype)) + 20e-6
        return TOKENS, seconds, np.where(TOKENS <= 2048, *_NO_TABLE_FRAC), Provenance.DATASHEET

    def _attention_products(self, attention_tp: int) -> Iterable[tuple[float, float]]:
        """(n, k) of the projections of one attention block on one rank."""
        m = self.model
        heads = max(m.n_heads / attention_tp, 1.0)
        if m.attention_kind is AttentionKind.MLA:
            width, latent = m.qk_nope_head_dim + m.qk_rope_head_dim, m.kv_lora_rank + m.qk_rope_head_dim
            if m.q_lora_rank:
                yield m.q_lora_rank + latent, m.hidden_dim
                yield heads * width, m.q_lora_rank
            else:
                yield heads * width + latent, m.hidden_dim
        else:
            yield (heads + 2 * max(m.n_kv_heads / attention_tp, 1.0)) * m.head_dim, m.hidden_dim
        yield m.hidden_dim, heads * m.v_head_dim

    def dense_curves(self, tp: int, attention_dp: int) -> tuple[FloatArray, FloatArray]:
        """Seconds over :data:`TOKENS` of all dense products of the model: those of attention (tokens of one
        attention-DP rank) and all others (tokens of all ranks)."""
        key = (tp, attention_dp)
        if key not in self._dense:
            m = self.model
            attention_tp = max(tp // attention_dp, 1)
            attention = m.n_layers * self._absorb(max(m.n_heads // attention_tp, 1))
            for n, k in self._attention_products(attention_tp):
                attention = attention + m.n_layers * self._gemm(n, k, m.dense_dtype)
            other = self._gemm(m.vocab_size / tp, m.hidden_dim, WeightDtype.BF16)
            blocks = [(m.n_dense_layers, m.dense_ffn_dim), (m.n_moe_layers, m.n_shared_experts * m.expert_ffn_dim)]
            for count, width in blocks:
                if count and width:
                    other = other + count * self._gemm(2 * width / tp, m.hidden_dim, m.dense_dtype)
                    other = other + count * self._gemm(m.hidden_dim, width / tp, m.dense_dtype)
            if m.n_moe_layers:
                other = other + m.n_moe_layers * self._gemm(m.n_experts, m.hidden_dim, WeightDtype.BF16)
            self._dense[key] = (monotone(attention), monotone(other))
        return self._dense[key]

    def _absorb(self, heads: int) -> FloatArray:
        """The two batched products that absorb the up-projections of MLA, seconds a layer over :data:`TOKENS`."""
        m = self.model
        if m.attention_kind is not AttentionKind.MLA:
            return np.zeros(TOKENS.shape)
        pre = self.table.curve("bmm", "mla_gen_pre", heads) if self.table is not None else None
        post = self.table.curve("bmm", "mla_gen_post", heads) if self.table is not None else None
        if pre is not None and post is not None:
            return interpolate_log(*pre, TOKENS) + interpolate_log(*post, TOKENS)
        params = heads * m.kv_lora_rank * (m.qk_nope_head_dim + m.v_head_dim)
        return self.roofline(2.0 * params, 2.0 * TOKENS * params, self.hardware.bf16_flop_per_s) + KERNEL_FLOOR_S

    def draft_curve(self, tp: int) -> FloatArray:
        """One forward of the drafter over :data:`TOKENS`, with the target's head on them."""
        d = self.drafter
        if d is None:
            return np.zeros(TOKENS.shape)
        if tp not in self._draft:
            heads, kv_heads = max(d.n_heads / tp, 1.0), max(d.n_kv_heads / tp, 1.0)
            total = self._gemm(d.vocab_size / tp, d.hidden_dim, WeightDtype.BF16)
            for n, k in (
                ((heads + 2 * kv_heads) * d.head_dim, d.hidden_dim),
                (d.hidden_dim, heads * d.head_dim),
                (2 * d.ffn_dim / tp, d.hidden_dim),
                (d.hidden_dim, d.ffn_dim / tp),
            ):
                total = total + d.n_layers * self._gemm(n, k, d.weight_dtype)
            if tp > 1:
                per_layer = self.collective_s("all_reduce", tp, TOKENS * 2.0 * d.hidden_dim, graph=True)
                total = total + 2.0 * d.n_layers * per_layer
            self._draft[tp] = monotone(total + d.n_layers * _DRAFT_LAYER_S)
        return self._draft[tp]


_DRAFT_LAYER_S = 15e-6
"""Attention and small kernels of a draft layer: one attention kernel (8 to 10 us in the tables) and small ones."""
