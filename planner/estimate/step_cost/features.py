"""From a batch to the design matrix of the step: seconds of each part for a parameter of 1.

A step is linear in its parameters: ``step_s = X @ theta``, one column for each parameter of
:data:`planner.estimate.step_cost.parameters.PARAMETER_NAMES`; two are not columns: ``nvls_gain_frac`` divides the step
and ``layer_launch_s`` is a column only where the host is slower than the GPU (eager: max(GPU, launches x host cost)).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from planner._record import record
from planner.domain import Provenance
from planner.estimate.step_cost.batch import StepBatch, attention_backend_code
from planner.estimate.step_cost.costs import KernelCosts, captured_batch
from planner.estimate.step_cost.kernels import FloatArray
from planner.estimate.step_cost.parameters import PARAMETER_NAMES

__all__ = ["GPU_COLUMNS", "Features", "build_features"]

GPU_COLUMNS = (
    "moe_scale",
    "dense_scale",
    "attention_scale",
    "triton_attention_scale",
    "verify_attention_frac",
    "verify_wave_s",
    "comm_scale",
    "layer_overhead_s",
    "draft_scale",
)
"""Columns of work on the GPU: without graphs the launches of the host hide them, or they hide the launches."""

_OTHER_KERNEL_FRAC = 0.5
"""Assumed: Triton's MLA decode against TensorRT-LLM's on one GPU is not in any public table."""

_I = {name: i for i, name in enumerate(PARAMETER_NAMES)}


@record(eq=False)
class Features:
    """Design matrix of n rows (before it is decided who hides whom in eager rows)."""

    columns: FloatArray
    """(n, p); seconds for a parameter of 1."""
    eager: NDArray[np.bool_]
    """Rows that run without CUDA graphs (as asked for, or because the batch is larger than the captured ones)."""
    n_layers: FloatArray
    """Layers launched by the host in one step, draft included."""
    moe_spread_frac: FloatArray
    """Disagreement between routings, relative to the experts' time."""
    attention_doubt_frac: FloatArray
    """Doubt about decode attention where another kernel runs than the table's, relative to its time."""
    verify_context_tok: FloatArray
    """Context of a verify step (0 without speculation): no table holds q_len above 1."""
    extrapolated: NDArray[np.bool_]
    grounds: Mapping[str, Provenance]
    """Weakest ground of each part over the rows."""
    nvls: NDArray[np.bool_]

    def effective(self, theta: FloatArray) -> FloatArray:
        """(n, p) columns with the hidden side of eager rows set to zero, at parameters ``theta`` (p,)."""
        if not self.eager.any():
            return self.columns
        gpu_ids = [_I[name] for name in GPU_COLUMNS]
        gpu = self.columns[:, gpu_ids] @ theta[gpu_ids]
        launch = self.columns[:, _I["layer_launch_s"]] * theta[_I["layer_launch_s"]]
        columns = self.columns.copy()
        host_bound = self.eager & (launch >= gpu)
        columns[np.ix_(host_bound, gpu_ids)] = 0.0
        columns[~host_bound, _I["layer_launch_s"]] = 0.0
        return columns


def build_features(costs: KernelCosts, batch: StepBatch) -> Features:
    """Design matrix of a batch for one system, model and framework."""
    n = batch.n_rows
    columns = np.zeros((n, len(PARAMETER_NAMES)))
    extrapolated = np.zeros(n, dtype=bool)
    spread = np.zeros(n)
    speculative = batch.speculation > 0
    per_rank = np.maximum(batch.running / batch.attention_dp_size, 1.0)
    eager = ~batch.cuda_graph | (per_rank > batch.cuda_graph_max_bs)
    captured = np.where(eager, per_rank, captured_batch(per_rank, speculative, batch.cuda_graph_max_bs))
    code = (batch.tp_size * 64 + batch.ep_size) * 64 + batch.attention_dp_size
    code = code * 4 + np.round(batch.kv_bytes_per_element)
    triton = batch.attention_backend == attention_backend_code("triton")
    # Measured on sm_90 alone (docs/h200.md): elsewhere the prior of verify_attention_frac stands.
    walking = triton & (costs.hardware.sm == 90)
    steps = np.where(speculative, costs.draft_steps(batch.q_len, batch.draft_steps), 0.0)
    grounds: dict[str, Provenance] = {}
    for value in sorted(set(code.tolist())):
        rows = np.flatnonzero(code == value)
        first = rows[0]
        tp, ep, dp = (int(column[first]) for column in (batch.tp_size, batch.ep_size, batch.attention_dp_size))
        kv_bytes = float(batch.kv_bytes_per_element[first])
        tokens = captured[rows] * batch.q_len[rows] * dp
        moe, spread[rows], beyond = costs.moe_s(tokens, tp, ep)
        columns[rows, _I["moe_scale"]] = moe
        columns[rows, _I["dense_scale"]] = costs.dense_s(tokens, tp, dp)
        for graph in (True, False):
            where = eager[rows] != graph
            columns[rows[where], _I["comm_scale"]] = costs.comm_s(tokens[where], tp, dp, graph=graph)
        attention, far = costs.attention_s(captured[rows], batch.context_tok[rows], tp, dp, kv_bytes)
        # Triton's verify attention is another kernel: each block walks the whole cache of its request.
        walks = walking[rows] & (batch.q_len[rows] > 1)
        waves = costs.verify_wave_tok(captured[rows], batch.context_tok[rows], tp, dp)
        columns[rows, _I["verify_wave_s"]] = np.where(walks, waves, 0.0)
        own = costs.triton_decode_s(captured[rows], batch.context_tok[rows], tp, dp, kv_bytes)
        decodes = walking[rows] & (batch.q_len[rows] == 1)
        columns[rows, _I["triton_attention_scale"]] = np.where(decodes, own, 0.0)
        columns[rows, _I["attention_scale"]] = np.where(walking[rows], 0.0, attention)
        read = costs.kv_read_s(captured[rows], batch.context_tok[rows], tp, dp, kv_bytes)
        columns[rows, _I["verify_attention_frac"]] = np.where(walks, 0.0, (batch.q_len[rows] - 1) * read)
        extrapolated[rows] = beyond | far
        ends_per_step = batch.running[rows] * batch.accept_len[rows] / batch.output_tok[rows]
        columns[rows, _I["prefill_scale"]] = ends_per_step * costs.prefill_s(batch.prompt_tok[rows], tp, ep, dp)
        drafts = costs.draft_s(
            captured[rows],
            max(tp // dp, 1),
            q_len=batch.q_len[rows],
            topk=batch.topk[rows],
            steps=steps[rows],
            context_tok=batch.context_tok[rows],
            walks=walking[rows],
        )
        columns[rows, _I["draft_scale"]] = np.where(speculative[rows], drafts, 0.0)
        for part, ground in costs.grounds(tp, ep, dp, kv_bytes).items():
            weak = Provenance.DATASHEET in (ground, grounds.get(part))
            grounds[part] = Provenance.DATASHEET if weak else ground
    draft_layers = float(costs.drafter.n_layers) if costs.drafter is not None else 0.0
    n_layers = costs.model.n_layers + steps * draft_layers
    columns[:, _I["layer_overhead_s"]] = costs.model.n_layers
    columns[:, _I["step_host_s"]] = 1.0
    columns[:, _I["request_host_s"]] = batch.running
    columns[:, _I["spec_step_s"]] = speculative
    columns[:, _I["spec_request_s"]] = np.where(speculative, batch.running, 0.0)
    columns[:, _I["spec_row_s"]] = np.where(speculative, batch.running * batch.q_len, 0.0)
    serial = np.where(speculative, 1.0 - batch.overlap, 0.0)
    columns[:, _I["spec_serial_s"]] = serial
    columns[:, _I["spec_serial_request_s"]] = serial * batch.running
    words = costs.drafter.vocab_size / 1e5 if costs.drafter is not None else 0.0
    columns[:, _I["draft_row_s"]] = batch.running * batch.topk * np.maximum(steps - 1.0, 0.0) * words
    columns[:, _I["layer_launch_s"]] = np.where(eager, n_layers, 0.0)
    other_kernel = triton & costs.table_attention_is_not_triton
    doubt = np.where(other_kernel, _OTHER_KERNEL_FRAC, 0.0)
    verify_context = np.where(batch.q_len > 1, batch.context_tok, 0.0)
    # NVLS was measured with graphs (FN-13); an eager step waits for launches, which NVLS does not shorten.
    nvls = batch.nvls & ~eager
    return Features(columns, eager, n_layers, spread, doubt, verify_context, extrapolated, grounds, nvls)
