"""Seconds of each part of a step on one GPU system, from kernel tables where they reach and from the data sheet beyond.

One :class:`KernelCosts` belongs to a system, a model, a weight format and a framework. Every function takes and returns
arrays; curves over tokens are built once for each parallel layout and interpolated. Why tables first: a roofline with
one efficiency is off by up to 28 % on a system it was not fitted to, the tables by 8 to 10 %.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from planner.domain import (
    AttentionKind,
    DrafterProfile,
    HardwareProfile,
    ModelProfile,
    Provenance,
    WeightDtype,
    bytes_per_param,
)
from planner.estimate.step_cost.kernels import FloatArray, Grid, KernelTable, interpolate_log, monotone

__all__ = ["KernelCosts", "captured_batch"]

_TOKENS = np.array(
    [1, 2, 4, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096, 8192, 16384], float
)
_DISTRIBUTIONS = ("balanced", "power_law_1.01", "power_law_1.2")

_ROOFLINE_BANDWIDTH_FRAC = 0.75
"""Share of the data sheet's bandwidth that a kernel without a table is assumed to reach (large GEMMs of the B200, H100
and L40S tables reach 0.7 to 0.85)."""
_ROOFLINE_FLOP_FRAC = 0.65
_KERNEL_FLOOR_S = 3e-6
"""Shortest kernel in a CUDA graph: the smallest entries of the GEMM tables are 2 to 4 us."""

_ATTENTION_FLOOR_S = 5e-6
"""Shortest decode attention beside the kernel floor: the smallest entries of the attention tables are 8 to 10 us."""

_TABLE_DTYPE = {
    WeightDtype.BF16: "bfloat16",
    WeightDtype.FP8: "fp8",
    WeightDtype.FP8_BLOCK: "fp8_block",
    WeightDtype.INT4_G32: "int4_wo",
    WeightDtype.INT4_G128: "int4_wo",
    WeightDtype.NVFP4: "nvfp4",
    WeightDtype.MXFP4: "w4a16_mxfp4",
}

_OFF = np.array([1, 2, 4, 8, 12, *range(16, 257, 8), *range(272, 513, 16), *range(544, 8193, 32)], float)
_SPEC = np.array([*range(1, 9), *range(10, 33, 2), *range(40, 65, 4), *range(72, 257, 8), *range(272, 8193, 16)], float)


def captured_batch(running: FloatArray, speculative: NDArray[np.bool_], graph_max_bs: FloatArray) -> FloatArray:
    """Batch size that a CUDA graph replays for ``running`` requests of one rank: the next captured size.

    The lists are those that SGLang 0.5 generates (``ServerArgs``, generation of cuda_graph_bs): every size up to 8 and then in steps
    of 2, 4, 8, 16 for speculation; 1, 2, 4, 8, 12, then steps of 8, 16, 32 without. The largest captured size is
    ``graph_max_bs`` itself.
    """
    batch = np.maximum(running, 1.0)
    padded = np.where(
        speculative,
        _SPEC[np.minimum(np.searchsorted(_SPEC, batch - 1e-9), _SPEC.size - 1)],
        _OFF[np.minimum(np.searchsorted(_OFF, batch - 1e-9), _OFF.size - 1)],
    )
    return np.maximum(batch, np.minimum(padded, graph_max_bs))


class KernelCosts:
    """Costs of one (system, model, framework). ``table`` None: data sheet only."""

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
        self._curves: dict[tuple[object, ...], tuple[FloatArray, FloatArray, FloatArray]] = {}
        self.provenance: dict[str, Provenance] = {}

    # ---- single kernels -------------------------------------------------------------------------------------------

    def _roofline(self, n_bytes: FloatArray | float, flop: FloatArray | float, flop_per_s: float) -> FloatArray:
        memory = np.asarray(n_bytes) / (_ROOFLINE_BANDWIDTH_FRAC * self.hardware.hbm_bandwidth_bytes_per_s)
        compute = np.asarray(flop) / (_ROOFLINE_FLOP_FRAC * flop_per_s)
        return np.asarray(np.maximum(memory, compute) + _KERNEL_FLOOR_S)

    def _flop_per_s(self, dtype: WeightDtype) -> float:
        hardware = self.hardware
        if dtype in (WeightDtype.FP8, WeightDtype.FP8_BLOCK) and hardware.fp8_flop_per_s:
            return hardware.fp8_flop_per_s
        if dtype is WeightDtype.NVFP4 and hardware.fp4_flop_per_s:
            return hardware.fp4_flop_per_s
        return hardware.bf16_flop_per_s

    def _gemm(self, n: float, k: float, dtype: WeightDtype) -> FloatArray:
        """Seconds of one product (m x k) (k x n) over :data:`_TOKENS` as m."""
        grid = self.table.get("gemm", _TABLE_DTYPE[dtype]) if self.table is not None else None
        if grid is None:
            n_bytes = n * k * bytes_per_param(dtype) + _TOKENS * (n + k) * 2
            return self._roofline(n_bytes, 2.0 * _TOKENS * n * k, self._flop_per_s(dtype))
        m_axis, n_axis, k_axis = grid.axes
        columns = np.exp(_bilinear(np.log(grid.latency_s), np.log(n_axis), np.log(k_axis), math.log(n), math.log(k)))
        return interpolate_log(m_axis, monotone(columns), _TOKENS)

    def _comm_table(self, op: str, gpus: int, *, graph: bool = True) -> tuple[FloatArray, FloatArray]:
        """Bytes and seconds of a collective; the engine takes the custom kernel or NCCL, whichever is faster."""
        curves = []
        if self.table is not None:
            names = [f"{self.framework}_{'graph' if graph else 'eager'}"] if op == "all_reduce" else []
            for backend in (*names, "nccl"):
                curve = self.table.curve("comm", op, backend, gpus)
                if curve is not None:
                    curves.append(curve)
        axis = 2.0 ** np.arange(8, 30)
        if curves:
            return axis, monotone(np.min([interpolate_log(x, y, axis) for x, y in curves], axis=0))
        # Ring: 2 (g - 1) / g of the bytes cross a link in an all-reduce, half of it in the other collectives.
        share = (2.0 if op == "all_reduce" else 1.0) * (gpus - 1) / gpus
        floor = 30e-6 if self.hardware.link_kind.value == "pcie" else 10e-6
        return axis, floor + share * axis / (0.7 * self.hardware.link_bandwidth_bytes_per_s)

    def _comm_curve(self, op: str, gpus: int, *, graph: bool) -> tuple[FloatArray, FloatArray]:
        """The collective on this host: the table's, plus what this host's all-reduce takes beyond the table's at 16 KB."""
        axis, seconds = self._comm_table(op, gpus, graph=graph)
        return axis, seconds + self._host_latency_s()

    def _host_latency_s(self) -> float:
        measured = self.hardware.allreduce_latency_s
        if measured is None or self.hardware.n_gpus == 1:
            return 0.0
        axis, seconds = self._comm_table("all_reduce", self.hardware.n_gpus)
        return float(max(measured - interpolate_log(axis, seconds, 16384.0), 0.0))

    @property
    def table_attention_is_not_triton(self) -> bool:
        """The MLA tables of sm_100 and sm_103 hold TensorRT-LLM's kernel, the others Triton's or FlashInfer's."""
        return self.hardware.sm in (100, 103) and self.model.attention_kind is AttentionKind.MLA

    @property
    def links_unmeasured(self) -> bool:
        """PCIe without a measured all-reduce: the host decides, and no data sheet knows it."""
        return self.hardware.link_kind.value == "pcie" and self.hardware.allreduce_latency_s is None

    # ---- curves over tokens, one for each layout -------------------------------------------------------------------

    def _moe_curve(self, tp: int, ep: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Tokens, seconds of one layer, and the relative disagreement between routings (standard deviation of the log)."""
        key = ("moe", tp, ep)
        if key not in self._curves:
            self._curves[key] = self._table_moe(max(tp // ep, 1), ep) or self._roofline_moe(max(tp // ep, 1), ep)
        return self._curves[key]

    def _table_moe(self, moe_tp: int, moe_ep: int) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        if self.table is None:
            return None
        model = self.model
        shape = (model.hidden_dim, model.expert_ffn_dim, model.n_experts_per_tok, model.n_experts)
        frameworks = (self.framework, *(f for f in ("sglang", "vllm") if f != self.framework))
        dtypes = [_TABLE_DTYPE[model.expert_dtype]]
        for framework in frameworks:
            for dtype in dtypes:
                found = [
                    curve
                    for name in _DISTRIBUTIONS
                    if (curve := self.table.curve("moe", *shape, framework, dtype, moe_tp, moe_ep, name)) is not None
                ]
                if found:
                    axis = found[0][0]
                    logs = np.array([np.log(interpolate_log(x, y, axis)) for x, y in found])
                    spread = logs.std(axis=0) if len(found) > 1 else np.full(axis.shape, 0.10)
                    spread = np.maximum(spread, 0.03 if framework == self.framework else 0.15)
                    self.provenance["moe"] = Provenance.TABLE
                    return axis, np.exp(logs.mean(axis=0)), spread
        return None

    def _roofline_moe(self, moe_tp: int, moe_ep: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Experts touched by T tokens under a mildly skewed load, E (1 - (1 - p)^T) summed over a Zipf law (MoESD,
        arXiv:2505.19645, with exponent 0.37 fitted on the B300 table)."""
        model = self.model
        ranks = np.arange(1, model.n_experts + 1, dtype=float)
        share = ranks**-0.37
        share = np.minimum(share / share.sum() * model.n_experts_per_tok, 1.0)
        touched = (1.0 - (1.0 - share[None, :]) ** _TOKENS[:, None]).sum(axis=1)
        n_bytes = touched * model.expert_bytes / (moe_tp * moe_ep)
        flop = 6.0 * _TOKENS * model.n_experts_per_tok * model.hidden_dim * model.expert_ffn_dim / (moe_tp * moe_ep)
        seconds = self._roofline(n_bytes, flop, self._flop_per_s(model.expert_dtype)) + 20e-6
        self.provenance["moe"] = Provenance.DATASHEET
        return _TOKENS, seconds, np.full(_TOKENS.shape, 0.20)

    def _layer_products(self, tp: int, attention_tp: int) -> Iterable[tuple[float, float, float, WeightDtype]]:
        """(count in the model, n, k, dtype) of the dense products of one rank."""
        m = self.model
        heads = max(m.n_heads / attention_tp, 1.0)
        dtype = m.dense_dtype
        layers = float(m.n_layers)
        if m.attention_kind is AttentionKind.MLA:
            width = m.qk_nope_head_dim + m.qk_rope_head_dim
            latent = m.kv_lora_rank + m.qk_rope_head_dim
            if m.q_lora_rank:
                yield layers, m.q_lora_rank + latent, m.hidden_dim, dtype
                yield layers, heads * width, m.q_lora_rank, dtype
            else:
                yield layers, heads * width + latent, m.hidden_dim, dtype
        else:
            kv_heads = max(m.n_kv_heads / attention_tp, 1.0)
            yield layers, (heads + 2 * kv_heads) * m.head_dim, m.hidden_dim, dtype
        yield layers, m.hidden_dim, heads * m.v_head_dim, dtype
        if m.n_dense_layers:
            yield m.n_dense_layers, 2 * m.dense_ffn_dim / tp, m.hidden_dim, dtype
            yield m.n_dense_layers, m.hidden_dim, m.dense_ffn_dim / tp, dtype
        if m.n_moe_layers:
            yield m.n_moe_layers, m.n_experts, m.hidden_dim, WeightDtype.BF16
            if m.n_shared_experts:
                shared = m.n_shared_experts * m.expert_ffn_dim
                yield m.n_moe_layers, 2 * shared / tp, m.hidden_dim, dtype
                yield m.n_moe_layers, m.hidden_dim, shared / tp, dtype
        yield 1.0, m.vocab_size / tp, m.hidden_dim, WeightDtype.BF16

    def _dense_curve(self, tp: int, attention_dp: int) -> tuple[FloatArray, FloatArray]:
        """Tokens of a rank and seconds of all dense products of the model."""
        key = ("dense", tp, attention_dp)
        if key not in self._curves:
            attention_tp = max(tp // attention_dp, 1)
            total = np.zeros(_TOKENS.shape)
            for count, n, k, dtype in self._layer_products(tp, attention_tp):
                total += count * self._gemm(n, k, dtype)
            total += self.model.n_layers * self._absorb(max(self.model.n_heads // attention_tp, 1))
            has_table = self.table is not None and self.table.get("gemm", "bfloat16") is not None
            self.provenance["dense"] = Provenance.TABLE if has_table else Provenance.DATASHEET
            self._curves[key] = (_TOKENS, monotone(total), np.zeros(_TOKENS.shape))
        axis, seconds, _ = self._curves[key]
        return axis, seconds

    def _absorb(self, heads: int) -> FloatArray:
        """The two batched products that absorb the up-projections of MLA, seconds a layer over :data:`_TOKENS`."""
        if self.model.attention_kind is not AttentionKind.MLA:
            return np.zeros(_TOKENS.shape)
        if self.table is not None:
            curves = [self.table.curve("bmm", op, heads) for op in ("mla_gen_pre", "mla_gen_post")]
            if all(curve is not None for curve in curves):
                return np.sum([interpolate_log(*curve, _TOKENS) for curve in curves if curve is not None], axis=0)
        m = self.model
        params = heads * m.kv_lora_rank * (m.qk_nope_head_dim + m.v_head_dim)
        return self._roofline(2.0 * params, 2.0 * _TOKENS * params, self.hardware.bf16_flop_per_s) + _KERNEL_FLOOR_S

    # ---- parts of a step, vectorised ------------------------------------------------------------------------------

    def moe_s(self, tokens: FloatArray, tp: int, ep: int) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        """Routed experts of all layers, relative disagreement between routings, and which rows leave the table."""
        if not self.model.n_moe_layers:
            return np.zeros(tokens.shape), np.zeros(tokens.shape), np.zeros(tokens.shape, dtype=bool)
        axis, seconds, spread = self._moe_curve(tp, ep)
        relative = np.interp(np.log(tokens), np.log(axis), spread)
        return self.model.n_moe_layers * interpolate_log(axis, seconds, tokens), relative, tokens > axis[-1]

    def dense_s(self, tokens: FloatArray, tp: int, attention_dp: int) -> FloatArray:
        """All dense products, tokens of one rank."""
        axis, seconds = self._dense_curve(tp, attention_dp)
        return interpolate_log(axis, seconds, tokens)

    def comm_s(self, tokens: FloatArray, tp: int, attention_dp: int, *, graph: bool) -> FloatArray:
        """Collectives of all layers: two all-reduces a layer; with attention DP the block around the experts gathers
        and scatters tokens instead, and the attention reduces inside its own group."""
        if tp == 1:
            return np.zeros(tokens.shape)
        width = 2.0 * self.model.hidden_dim
        layers = self.model.n_layers
        self.provenance["comm"] = Provenance.TABLE if self._has_comm(tp) else Provenance.DATASHEET
        if attention_dp == 1:
            axis, seconds = self._cached_comm("all_reduce", tp, graph=graph)
            return 2.0 * layers * interpolate_log(axis, seconds, tokens * width)
        total = np.zeros(tokens.shape)
        for op in ("all_gather", "reduce_scatter"):
            axis, seconds = self._cached_comm(op, tp, graph=graph)
            total += layers * interpolate_log(axis, seconds, tokens * width)
        if attention_dp < tp:
            axis, seconds = self._cached_comm("all_reduce", tp // attention_dp, graph=graph)
            total += layers * interpolate_log(axis, seconds, tokens / attention_dp * width)
        return total

    def _has_comm(self, gpus: int) -> bool:
        return self.table is not None and self.table.get("comm", "all_reduce", "nccl", gpus) is not None

    def _cached_comm(self, op: str, gpus: int, *, graph: bool) -> tuple[FloatArray, FloatArray]:
        key = ("comm", op, gpus, graph)
        if key not in self._curves:
            axis, seconds = self._comm_curve(op, gpus, graph=graph)
            self._curves[key] = (axis, seconds, np.zeros(axis.shape))
        axis, seconds, _ = self._curves[key]
        return axis, seconds

    def _kv_elements(self, attention_tp: int) -> float:
        """Cached elements of one token and layer on one rank: replicated for MLA, split by KV heads otherwise."""
        elements = float(self.model.kv_elements_per_tok_per_layer)
        if self.model.attention_kind is AttentionKind.MLA:
            return elements
        return elements / min(attention_tp, self.model.n_kv_heads)

    def kv_read_s(
        self, batch: FloatArray, context_tok: FloatArray, tp: int, attention_dp: int, kv_bytes: float
    ) -> FloatArray:
        """Reading the KV cache of all layers once: the unit of work that further query tokens may repeat."""
        n_bytes = batch * context_tok * self._kv_elements(max(tp // attention_dp, 1)) * kv_bytes
        bandwidth = _ROOFLINE_BANDWIDTH_FRAC * self.hardware.hbm_bandwidth_bytes_per_s
        return np.asarray(self.model.n_attention_layers * n_bytes / bandwidth)

    def attention_s(
        self, batch: FloatArray, context_tok: FloatArray, tp: int, attention_dp: int, kv_bytes: float
    ) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Decode attention of all layers at q_len 1, and which rows leave the table."""
        m = self.model
        attention_tp = max(tp // attention_dp, 1)
        heads = max(m.n_heads // attention_tp, 1)
        dtype = "fp8" if kv_bytes < 1.5 else "bfloat16"
        grid: Grid | None = None
        if self.table is not None:
            if m.attention_kind is AttentionKind.MLA:
                grid = self.table.get("mla", heads, dtype)
            else:
                grid = self.table.get("gqa", heads, max(m.n_kv_heads // attention_tp, 1), m.head_dim, dtype)
        layers = m.n_attention_layers
        if grid is None:
            self.provenance["attention"] = Provenance.DATASHEET
            flop = 4.0 * batch * context_tok * heads * (m.kv_lora_rank + m.qk_rope_head_dim or m.head_dim)
            n_bytes = batch * context_tok * self._kv_elements(attention_tp) * kv_bytes
            seconds = self._roofline(n_bytes, flop, self.hardware.bf16_flop_per_s) + _ATTENTION_FLOOR_S
            return layers * seconds, np.zeros(batch.shape, dtype=bool)
        self.provenance["attention"] = Provenance.TABLE
        logs = np.log(monotone(grid.latency_s))
        log_batch, log_context = np.log(np.maximum(batch, 1.0)), np.log(np.maximum(context_tok, 1.0))
        axes = [np.log(axis) for axis in grid.axes]
        value = np.exp(_bilinear(logs, axes[0], axes[1], log_batch, log_context))
        # Beyond the table the work is in proportion to the KV that is read.
        over = np.maximum(log_batch - axes[0][-1], 0.0) + np.maximum(log_context - axes[1][-1], 0.0)
        return layers * value * np.exp(over), over > 0

    def prefill_s(self, prompt_tok: FloatArray, tp: int, ep: int, attention_dp: int) -> FloatArray:
        """Prefill of one prompt, as a whole or in chunks of 8192 tokens (the engine's default on large GPUs)."""
        tokens = np.maximum(prompt_tok, 1.0)
        chunk = np.minimum(tokens, 8192.0)
        n_chunks = tokens / chunk
        moe, _, _ = self.moe_s(chunk, tp, ep)
        seconds = n_chunks * (
            moe + self.dense_s(chunk, tp, attention_dp) + self.comm_s(chunk, tp, attention_dp, graph=False)
        )
        return np.where(prompt_tok > 0, seconds + self._prefill_attention_s(tokens, tp, attention_dp), 0.0)

    def _prefill_attention_s(self, tokens: FloatArray, tp: int, attention_dp: int) -> FloatArray:
        m = self.model
        attention_tp = max(tp // attention_dp, 1)
        heads = max(m.n_heads // attention_tp, 1)
        curve = None
        if self.table is not None:
            if m.attention_kind is AttentionKind.MLA:
                curve = self.table.curve("ctx_mla", heads)
            else:
                curve = self.table.curve("ctx_gqa", heads, max(m.n_kv_heads // attention_tp, 1), m.head_dim)
        if curve is not None:
            beyond = np.maximum(np.log(tokens / curve[0][-1]), 0.0)
            return m.n_attention_layers * interpolate_log(*curve, np.minimum(tokens, curve[0][-1])) * np.exp(2 * beyond)
        flop = 2.0 * tokens**2 * heads * (m.head_dim + m.v_head_dim) / 2
        return m.n_attention_layers * self._roofline(0.0, flop, self.hardware.bf16_flop_per_s)

    def draft_s(self, running: FloatArray, tp: int) -> FloatArray:
        """One forward of the block drafter over block_size tokens of each request, with the target's head on them."""
        d = self.drafter
        if d is None:
            return np.zeros(running.shape)
        key = ("draft", tp)
        if key not in self._curves:
            total = np.zeros(_TOKENS.shape)
            heads, kv_heads = max(d.n_heads / tp, 1.0), max(d.n_kv_heads / tp, 1.0)
            for n, k in (
                ((heads + 2 * kv_heads) * d.head_dim, d.hidden_dim),
                (d.hidden_dim, heads * d.head_dim),
                (2 * d.ffn_dim / tp, d.hidden_dim),
                (d.hidden_dim, d.ffn_dim / tp),
            ):
                total += d.n_layers * self._gemm(n, k, d.weight_dtype)
            total += d.n_layers * 15e-6 + self._gemm(d.vocab_size / tp, d.hidden_dim, WeightDtype.BF16)
            if tp > 1:
                axis, seconds = self._cached_comm("all_reduce", tp, graph=True)
                total += 2.0 * d.n_layers * interpolate_log(axis, seconds, _TOKENS * 2.0 * d.hidden_dim)
            self._curves[key] = (_TOKENS, monotone(total), np.zeros(_TOKENS.shape))
        axis, seconds, _ = self._curves[key]
        return interpolate_log(axis, seconds, running * d.block_size)


def _bilinear(
    values: FloatArray, x_axis: FloatArray, y_axis: FloatArray, x: FloatArray | float, y: FloatArray | float
) -> FloatArray:
    """Linear interpolation over the last two axes of ``values``, clipped to the axes."""
    x_array, y_array = np.asarray(x, float), np.asarray(y, float)
    i = np.clip(np.searchsorted(x_axis, x_array, side="right") - 1, 0, max(x_axis.size - 2, 0))
    j = np.clip(np.searchsorted(y_axis, y_array, side="right") - 1, 0, max(y_axis.size - 2, 0))
    i_next, j_next = np.minimum(i + 1, x_axis.size - 1), np.minimum(j + 1, y_axis.size - 1)
    u = np.clip((x_array - x_axis[i]) / np.where(i_next > i, x_axis[i_next] - x_axis[i], 1.0), 0.0, 1.0)
    v = np.clip((y_array - y_axis[j]) / np.where(j_next > j, y_axis[j_next] - y_axis[j], 1.0), 0.0, 1.0)
    low = values[..., i, j] * (1 - v) + values[..., i, j_next] * v
    high = values[..., i_next, j] * (1 - v) + values[..., i_next, j_next] * v
    return np.asarray(low * (1 - u) + high * u)
