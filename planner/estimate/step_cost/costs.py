"""Seconds of each part of a step on one GPU system, vectorised over candidates.

One :class:`KernelCosts` belongs to a system, a model, a weight format and a framework. Every function takes and returns
arrays for one parallel layout. Why tables first: what a roofline with one efficiency misses differs from kernel to
kernel and from system to system (docs/step_cost.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from planner.domain import AttentionKind, Provenance
from planner.domain.splits import DEFAULT_N_SMS, KV_SPLITS
from planner.estimate.step_cost.curves import BANDWIDTH_FRAC, TOKENS, KernelCurves
from planner.estimate.step_cost.kernels import FloatArray, Grid, bilinear, interpolate_log, monotone

__all__ = ["KernelCosts", "captured_batch"]

Bools = NDArray[np.bool_]

_ATTENTION_FLOOR_S = 5e-6
"""Shortest decode attention beside the kernel floor: the smallest entries of the attention tables are 8 to 10 us."""
_WALK_S = 60e-9
"""docs/h200.md: as verify_wave_s, of the same tile loop."""
_TRITON_BANDWIDTH_FRAC = 0.53
_TRITON_MLA_BANDWIDTH_FRAC = 0.24
"""Share of the data sheet's bandwidth that Triton's decode attention reaches with 16 requests and more on sm_90:
docs/h200.md, 'What a cached token costs' (4096 bytes in 1.6 ns, 1152 bytes of MLA in 1.0 ns)."""
_MLA_WAVE_FRAC = 0.75
"""docs/h200.md: with MLA a cached token costs 200 to 222 ns where each block has a processor (C = 1 and 16, 8 heads),
302 to 312 ns where two share one (C = 32); with GQA 65 ns for each wave."""
_PREFILL_CHUNK_TOK = 8192.0
"""Chunk of a prefill: the engine's default on GPUs with 80 GB and more."""

_OFF = np.array([1, 2, 4, 8, 12, *range(16, 257, 8), *range(272, 513, 16), *range(544, 8193, 32)], dtype=np.float64)
_SPEC = np.array(
    [*range(1, 9), *range(10, 33, 2), *range(40, 65, 4), *range(72, 257, 8), *range(272, 8193, 16)], dtype=np.float64
)


def captured_batch(running: FloatArray, speculative: Bools, graph_max_bs: FloatArray) -> FloatArray:
    """Batch size that a CUDA graph replays for ``running`` requests of one rank: the next captured size.

    The captured sizes are those of SGLang 0.5 (default list of ``cuda_graph_bs``): for speculation every size up to 8,
    then steps of 2, 4, 8, 16; without it 1, 2, 4, 8, 12, then steps of 8, 16, 32. The largest captured size is
    ``graph_max_bs`` itself.
    """
    batch = np.maximum(running, 1.0)
    spec = _SPEC[np.minimum(np.searchsorted(_SPEC, batch - 1e-9), _SPEC.size - 1)]
    off = _OFF[np.minimum(np.searchsorted(_OFF, batch - 1e-9), _OFF.size - 1)]
    return np.asarray(np.maximum(batch, np.minimum(np.where(speculative, spec, off), graph_max_bs)))


class KernelCosts(KernelCurves):
    """Seconds of the parts of a step."""

    def moe_s(self, tokens: FloatArray, tp: int, ep: int) -> tuple[FloatArray, FloatArray, Bools]:
        """Routed experts of all layers, relative disagreement between routings, and which rows leave the table."""
        if not self.model.n_moe_layers:
            return np.zeros(tokens.shape), np.zeros(tokens.shape), np.zeros(tokens.shape, dtype=bool)
        axis, seconds, spread, _ = self.moe_curve(tp, ep)
        relative = np.interp(np.log(tokens), np.log(axis), spread)
        return self.model.n_moe_layers * interpolate_log(axis, seconds, tokens), relative, tokens > axis[-1]

    def dense_s(self, tokens: FloatArray, tp: int, attention_dp: int) -> FloatArray:
        """All dense products; ``tokens`` are those of all attention-DP ranks."""
        attention, other = self.dense_curves(tp, attention_dp)
        return interpolate_log(TOKENS, attention, tokens / attention_dp) + interpolate_log(TOKENS, other, tokens)

    def comm_s(self, tokens: FloatArray, tp: int, attention_dp: int, *, graph: bool) -> FloatArray:
        """Collectives of all layers: two all-reduces a layer; with attention DP the tokens of all ranks are gathered
        before the experts and scattered after them, and attention reduces inside its own group."""
        if tp == 1:
            return np.zeros(tokens.shape)
        n_bytes, layers = tokens * 2.0 * self.model.hidden_dim, self.model.n_layers
        if attention_dp == 1:
            return 2.0 * layers * self.collective_s("all_reduce", tp, n_bytes, graph=graph)
        total = layers * self.collective_s("all_gather", tp, n_bytes, graph=graph)
        total = total + layers * self.collective_s("reduce_scatter", tp, n_bytes, graph=graph)
        if attention_dp < tp:
            group = tp // attention_dp
            total = total + layers * self.collective_s("all_reduce", group, n_bytes / attention_dp, graph=graph)
        return total

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
        bandwidth = BANDWIDTH_FRAC * self.hardware.hbm_bandwidth_bytes_per_s
        return np.asarray(self.model.n_attention_layers * n_bytes / bandwidth)

    def _waves(self, blocks: FloatArray) -> FloatArray:
        """Turns that thread blocks take, one a processor at a time; a lone one takes a whole turn."""
        return np.asarray(np.maximum(blocks / (self.hardware.n_sms or DEFAULT_N_SMS), 1.0))

    def verify_wave_tok(self, batch: FloatArray, context_tok: FloatArray, tp: int, attention_dp: int) -> FloatArray:
        """Cached tokens that one block of Triton's verify attention walks, times waves of blocks, layers and width.

        One block for each request and query head (up to 64 query tokens share it); blocks beyond the processors of the
        GPU wait for the next wave, or share a processor at less than twice the time (MLA). The width of a cached token
        counts in units of 256 elements.
        """
        m = self.model
        heads = max(m.n_heads // max(tp // attention_dp, 1), 1)
        latent = m.attention_kind is AttentionKind.MLA
        width = (m.kv_elements_per_tok_per_layer if latent else m.head_dim + m.v_head_dim) / 256.0
        share = _MLA_WAVE_FRAC if latent else 1.0
        waves = self._waves(share * batch * heads)
        return np.asarray(m.n_attention_layers * context_tok * width * waves)

    def triton_decode_s(
        self, batch: FloatArray, context_tok: FloatArray, tp: int, attention_dp: int, kv_bytes: float
    ) -> FloatArray:
        """Shortest decode attention of Triton on sm_90: the cache read at the share of the bandwidth that it reaches,
        and for GQA a block's walk along its share of the cache, whatever the batch (docs/h200.md; MLA showed no such
        floor)."""
        m = self.model
        read = self.kv_read_s(batch, context_tok, tp, attention_dp, kv_bytes) * BANDWIDTH_FRAC
        if m.attention_kind is AttentionKind.MLA:
            return np.asarray(read / _TRITON_MLA_BANDWIDTH_FRAC)
        read = read / _TRITON_BANDWIDTH_FRAC
        width = (m.head_dim + m.v_head_dim) / 256.0
        return np.maximum(read, m.n_attention_layers * context_tok * width * _WALK_S / KV_SPLITS)

    def _attention_grid(self, tp: int, attention_dp: int, kv_bytes: float) -> Grid | None:
        if self.table is None:
            return None
        m, attention_tp = self.model, max(tp // attention_dp, 1)
        heads, dtype = max(m.n_heads // attention_tp, 1), "fp8" if kv_bytes < 1.5 else "bfloat16"
        if m.attention_kind is AttentionKind.MLA:
            return self.table.get("mla", heads, dtype)
        return self.table.get("gqa", heads, max(m.n_kv_heads // attention_tp, 1), m.head_dim, dtype)

    def attention_s(
        self, batch: FloatArray, context_tok: FloatArray, tp: int, attention_dp: int, kv_bytes: float
    ) -> tuple[FloatArray, Bools]:
        """Decode attention of all layers at q_len 1, and which rows leave the table."""
        m = self.model
        grid = self._attention_grid(tp, attention_dp, kv_bytes)
        if grid is None:
            attention_tp = max(tp // attention_dp, 1)
            heads = max(m.n_heads / attention_tp, 1.0)
            flop = 4.0 * batch * context_tok * heads * (m.kv_lora_rank + m.qk_rope_head_dim or m.head_dim)
            n_bytes = batch * context_tok * self._kv_elements(attention_tp) * kv_bytes
            seconds = self.roofline(n_bytes, flop, self.hardware.bf16_flop_per_s) + _ATTENTION_FLOOR_S
            return m.n_attention_layers * seconds, np.zeros(batch.shape, dtype=bool)
        log_batch, log_context = np.log(np.maximum(batch, 1.0)), np.log(np.maximum(context_tok, 1.0))
        axes = [np.log(axis) for axis in grid.axes]
        value = np.exp(bilinear(np.log(monotone(grid.latency_s)), axes[0], axes[1], log_batch, log_context))
        # Beyond the table the work is in proportion to the KV that is read.
        over = np.maximum(log_batch - axes[0][-1], 0.0) + np.maximum(log_context - axes[1][-1], 0.0)
        return m.n_attention_layers * value * np.exp(over), over > 0

    @property
    def table_attention_is_not_triton(self) -> bool:
        """The MLA tables of sm_100 and sm_103 hold TensorRT-LLM's kernel."""
        return self.hardware.sm in (100, 103) and self.model.attention_kind is AttentionKind.MLA

    def prefill_s(self, prompt_tok: FloatArray, tp: int, ep: int, attention_dp: int) -> FloatArray:
        """Prefill of one prompt, in chunks; 0 where ``prompt_tok`` is 0."""
        tokens = np.maximum(prompt_tok, 1.0)
        chunk = np.minimum(tokens, _PREFILL_CHUNK_TOK)
        moe, _, _ = self.moe_s(chunk, tp, ep)
        # One prompt lives on one attention-DP rank: its attention projections are not split further.
        seconds = moe + self.dense_s(chunk, tp, attention_dp) + self.comm_s(chunk, tp, attention_dp, graph=False)
        total = tokens / chunk * seconds + self._prefill_attention_s(tokens, tp, attention_dp)
        return np.where(prompt_tok > 0, total, 0.0)

    def _prefill_attention_s(self, tokens: FloatArray, tp: int, attention_dp: int) -> FloatArray:
        m, attention_tp = self.model, max(tp // attention_dp, 1)
        heads = max(m.n_heads // attention_tp, 1)
        curve = None
        if self.table is not None and m.attention_kind is AttentionKind.MLA:
            curve = self.table.curve("ctx_mla", heads)
        elif self.table is not None:
            curve = self.table.curve("ctx_gqa", heads, max(m.n_kv_heads // attention_tp, 1), m.head_dim)
        if curve is None:
            flop = 2.0 * tokens**2 * heads * (m.head_dim + m.v_head_dim) / 2
            return m.n_attention_layers * self.roofline(0.0, flop, self.hardware.bf16_flop_per_s)
        # Beyond the table the work grows with the square of the length.
        beyond = np.maximum(tokens / curve[0][-1], 1.0) ** 2
        seconds = interpolate_log(*curve, np.minimum(tokens, curve[0][-1])) * beyond
        return np.asarray(m.n_attention_layers * seconds)

    def draft_steps(self, q_len: FloatArray, asked: FloatArray) -> FloatArray:
        """Forwards of the drafter in one step: one for a block drafter, else as many as are asked for (0: as deep as
        ``q_len`` lets a path be, within the block)."""
        if self.drafter is None:
            return np.zeros(q_len.shape)
        if self.drafter.drafts_blocks:
            return np.ones(q_len.shape)
        return np.where(asked > 0, asked, np.clip(q_len - 1, 1, self.drafter.block_size - 1))

    def draft_s(
        self,
        running: FloatArray,
        tp: int,
        *,
        q_len: FloatArray,
        topk: FloatArray,
        steps: FloatArray,
        context_tok: FloatArray,
        walks: Bools,
    ) -> FloatArray:
        """Forwards of the drafter; 0 without one.

        A block drafter runs once, over block_size tokens of each request. An autoregressive one runs over the verified
        tokens once, then ``steps`` - 1 times over ``topk`` branches of each request (SGLang 0.5
        srt/speculative/eagle_worker.py: draft extend, draft), and each forward reads its own KV cache: with Triton on
        sm_90 (``walks``) as the target's verify and decode attention, each branch for itself; else once for all.
        """
        d = self.drafter
        if d is None:
            return np.zeros(running.shape)
        curve = self.draft_curve(tp)
        if d.drafts_blocks:
            return interpolate_log(TOKENS, curve, running * d.block_size)
        first = interpolate_log(TOKENS, curve, running * q_len)
        products = first + (steps - 1) * interpolate_log(TOKENS, curve, running * topk)
        heads, width = max(d.n_heads / tp, 1.0), 2.0 * d.head_dim / 256.0
        cached = d.n_layers * context_tok * 2.0 * max(d.n_kv_heads / tp, 1.0) * d.head_dim * 2.0
        bandwidth = self.hardware.hbm_bandwidth_bytes_per_s
        walk = d.n_layers * context_tok * width * _WALK_S
        waves = self._waves(running * heads)
        read = running * topk * cached / (_TRITON_BANDWIDTH_FRAC * bandwidth)
        slow = walk * waves + (steps - 1) * np.maximum(read, walk / KV_SPLITS)
        return products + np.where(walks, slow, steps * running * cached / (BANDWIDTH_FRAC * bandwidth))

    def grounds(self, tp: int, ep: int, attention_dp: int, kv_bytes: float) -> dict[str, Provenance]:
        """What each part rests on in one layout: a table or the data sheet."""

        def ground(tabled: bool) -> Provenance:
            return Provenance.TABLE if tabled else Provenance.DATASHEET

        return {
            "moe": self.moe_curve(tp, ep)[3] if self.model.n_moe_layers else Provenance.TABLE,
            "dense": ground(self.has_gemm_table),
            "all_reduce": ground(tp == 1 or self.has_comm_table(tp)),
            "attention": ground(self._attention_grid(tp, attention_dp, kv_bytes) is not None),
        }
