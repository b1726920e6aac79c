"""Seconds of one engine step for many candidates at once, with intervals and joint samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from planner._record import record
from planner.domain import Provenance
from planner.estimate.step_cost.batch import StepBatch, StepColumns
from planner.estimate.step_cost.costs import KernelCosts
from planner.estimate.step_cost.features import GPU_COLUMNS, Features, build_features
from planner.estimate.step_cost.kernels import FloatArray
from planner.estimate.step_cost.parameters import PARAMETER_NAMES, ParameterPosterior

__all__ = ["PARTS", "Layout", "StepCostModel", "StepDomain"]

_I = {name: i for i, name in enumerate(PARAMETER_NAMES)}
_GPU = np.array([_I[name] for name in GPU_COLUMNS])
_HOST = np.array([i for name, i in _I.items() if name not in (*GPU_COLUMNS, "layer_launch_s", "nvls_gain_frac")])
_LAUNCH, _NVLS = _I["layer_launch_s"], _I["nvls_gain_frac"]

PARTS = {
    "moe": ("moe_scale",),
    "all_reduce": ("comm_scale",),
    "dense": ("dense_scale", "layer_overhead_s"),
    "attention": ("attention_scale", "triton_attention_scale", "verify_attention_frac", "verify_wave_s"),
    "draft": ("draft_scale", "draft_row_s"),
    "host": (
        "step_host_s",
        "request_host_s",
        "spec_step_s",
        "spec_serial_s",
        "spec_request_s",
        "spec_serial_request_s",
        "spec_row_s",
    ),
    "prefill": ("prefill_scale",),
}
"""Parts of a step and the parameters that make them; ``hidden`` and ``saved`` are added by the model."""

Layout = tuple[int, int, int]
"""tp_size, ep_size, attention_dp_size."""

_Z90 = 1.6448536269514722
_VERIFY_CONTEXT_TOK = 4096.0
_EXTRAPOLATED_FRAC = 0.15
_LONG_VERIFY_FRAC = 0.10
_UNMEASURED_KIND_FRAC = 0.10
"""Assumed: what tells a chain from a tree beside the terms that are priced (building the tree, other kernels): a kind
that the calibration did not measure keeps this doubt."""
_UNMEASURED_LAYOUT_FRAC = 0.10
"""Assumed: host terms were fitted in one layout (whether a second replica halves them was never measured)."""
_PER_DOUBLING_FRAC = 0.05
"""Assumed: for each doubling beyond the range of the observations."""
_UNMEASURED_LINK_LOG = 1.1
"""Standard deviation of the log of all-reduce time on PCIe hosts that were not measured: community hosts with the same
GPUs stand at 32 to 101 tok/s (rtx6kpro, Kimi K2.5), which their all-reduce alone must explain."""


@record()
class StepDomain:
    """What the observations behind a calibration span."""

    running: tuple[float, float]
    """Lowest and highest number of running requests."""
    q_len: tuple[float, float]
    context_tok: tuple[float, float]
    kinds: frozenset[int]
    """Kinds of steps measured: 0 off, 1 chain, 2 tree."""
    layouts: frozenset[Layout]
    """Parallel layouts measured: (tp_size, ep_size, attention_dp_size)."""

    @classmethod
    def of(cls, batches: Sequence[StepBatch]) -> StepDomain:
        """The span of some batches."""

        def column(name: str) -> FloatArray:
            return np.concatenate([np.asarray(getattr(batch, name), dtype=float) for batch in batches])

        def span(name: str) -> tuple[float, float]:
            return float(column(name).min()), float(column(name).max())

        sizes = [column(name).astype(int).tolist() for name in ("tp_size", "ep_size", "attention_dp_size")]
        return cls(
            running=span("running"),
            q_len=span("q_len"),
            context_tok=span("context_tok"),
            kinds=frozenset(column("speculation").astype(int).tolist()),
            layouts=frozenset(zip(*sizes, strict=True)),
        )

    def joined(self, other: StepDomain) -> StepDomain:
        """The span of both."""

        def span(name: str) -> tuple[float, float]:
            mine, theirs = getattr(self, name), getattr(other, name)
            return min(mine[0], theirs[0]), max(mine[1], theirs[1])

        return StepDomain(
            running=span("running"),
            q_len=span("q_len"),
            context_tok=span("context_tok"),
            kinds=self.kinds | other.kinds,
            layouts=self.layouts | other.layouts,
        )

    def new_kind(self, batch: StepBatch) -> NDArray[np.bool_]:
        """Rows whose kind of step was not measured, (n,)."""
        return ~np.isin(batch.speculation, sorted(self.kinds))

    def new_layout(self, batch: StepBatch) -> NDArray[np.bool_]:
        """Rows whose parallel layout was not measured, (n,)."""
        known = np.zeros(batch.n_rows, dtype=bool)
        for tp, ep, dp in self.layouts:
            known |= (batch.tp_size == tp) & (batch.ep_size == ep) & (batch.attention_dp_size == dp)
        return ~known

    def outside(self, batch: StepBatch) -> FloatArray:
        """How far each row lies outside, in doublings summed over the three axes; 0 inside; (n,)."""
        total = np.zeros(batch.n_rows)
        for name in ("running", "q_len", "context_tok"):
            low, high = getattr(self, name)
            value = np.maximum(getattr(batch, name), 1.0)
            total += np.maximum(np.log2(value / max(high, 1.0)), 0.0) + np.maximum(np.log2(max(low, 1.0) / value), 0.0)
        return total


@record(eq=False)
class StepCostModel:
    """Step cost of one system, model, weight format and framework. Pure: the same batch gives the same figures."""

    costs: KernelCosts
    posterior: ParameterPosterior
    domain: StepDomain | None = None
    """Range of the calibration; None: nothing was calibrated."""
    moe_doubt: float = 1.0
    """What is left of the doubt about the experts' curve: 1 before a fit (:func:`.default.moe_doubt_after`)."""
    extra_frac: float = 0.0
    """Further relative standard deviation of every row (a system whose links or host were not measured)."""
    notes: tuple[str, ...] = ()

    def predict_columns(self, batch: StepBatch) -> StepColumns:
        """Step seconds (n,) with a 90 % interval, by part. At least 300,000 rows a second on one core."""
        features = build_features(self.costs, batch)
        return self._columns(features, batch)

    def with_notes(self, *notes: str) -> StepCostModel:
        """The same model with further notes."""
        return replace(self, notes=(*self.notes, *notes))

    def sample(self, batch: StepBatch, n_samples: int, seed: int) -> NDArray[np.float64]:
        """Joint draws of step seconds (n_samples, n).

        Parameters, routing and the model's own error are drawn once for each sample and shared by all rows, so that
        the share of samples in which A beats B is the probability that A is better. A row's draws depend on the row
        and the seed alone, not on its neighbours.
        """
        features = build_features(self.costs, batch)
        rng = np.random.default_rng(seed)
        theta = self.posterior.draw(n_samples, rng)
        shared = rng.standard_normal((n_samples, 7))
        waves = rng.standard_normal((n_samples, 8))
        x = features.columns
        step = _step(x, features.eager, theta)
        moe = theta[:, [_I["moe_scale"]]] * (x[:, _I["moe_scale"]] * features.moe_spread_frac * self.moe_doubt)
        attention = theta[:, [_I["attention_scale"]]] * (x[:, _I["attention_scale"]] * features.attention_doubt_frac)
        step = step + np.where(features.eager, 0.0, moe * shared[:, [0]] + attention * shared[:, [4]])
        if self.costs.links_unmeasured:
            links = np.exp(_UNMEASURED_LINK_LOG * rng.standard_normal((n_samples, 1))) - 1.0
            step = step + theta[:, [_I["comm_scale"]]] * x[:, _I["comm_scale"]] * links
        common, kind_doubt, layout_doubt = self._doubts_frac(features, batch)
        kind = np.where(batch.speculation > 0, shared[:, [2]], shared[:, [3]])
        tokens = np.log2(np.maximum(batch.running * batch.q_len, 1.0))
        smooth = _smooth(tokens, waves)
        log_error = self.posterior.residual_frac * (
            np.sqrt(0.4) * shared[:, [1]] + np.sqrt(0.3) * kind + np.sqrt(0.3) * smooth
        )
        log_error = log_error + common * (np.sqrt(0.5) * shared[:, [1]] + np.sqrt(0.5) * kind)
        log_error = log_error + kind_doubt * shared[:, [5]] + layout_doubt * shared[:, [6]]
        gain = 1.0 + theta[:, [_NVLS]] * features.nvls
        return np.asarray(np.maximum(step, 1e-6) * np.exp(log_error) / gain)

    def _doubts_frac(self, features: Features, batch: StepBatch) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Relative standard deviations beside the residual, (n,) each: extrapolation and long verify contexts; a kind
        of step that the calibration did not measure; a parallel layout that it did not measure."""
        variance = np.full(batch.n_rows, self.extra_frac**2)
        variance += np.where(features.extrapolated, _EXTRAPOLATED_FRAC**2, 0.0)
        doublings = np.log2(np.maximum(features.verify_context_tok, _VERIFY_CONTEXT_TOK) / _VERIFY_CONTEXT_TOK)
        variance += (_LONG_VERIFY_FRAC * doublings) ** 2
        if self.domain is None:
            return np.sqrt(variance), np.zeros(batch.n_rows), np.zeros(batch.n_rows)
        variance += (_PER_DOUBLING_FRAC * self.domain.outside(batch)) ** 2
        kind = np.where(self.domain.new_kind(batch), _UNMEASURED_KIND_FRAC, 0.0)
        return np.sqrt(variance), kind, np.where(self.domain.new_layout(batch), _UNMEASURED_LAYOUT_FRAC, 0.0)

    def _columns(self, features: Features, batch: StepBatch) -> StepColumns:
        theta = self.posterior.mean
        x = features.columns
        total = _step(x, features.eager, theta[None, :])[0]
        effective = features.effective(theta)
        gain = 1.0 + theta[_NVLS] * features.nvls
        variance = np.einsum("ij,ij->i", effective @ self.posterior.covariance, effective)
        moe = np.where(features.eager, 0.0, x[:, _I["moe_scale"]] * theta[_I["moe_scale"]])
        attention = np.where(features.eager, 0.0, x[:, _I["attention_scale"]] * theta[_I["attention_scale"]])
        variance += (moe * features.moe_spread_frac * self.moe_doubt) ** 2 + (
            attention * features.attention_doubt_frac
        ) ** 2
        if self.costs.links_unmeasured:
            # Standard deviation of a log-normal factor about its median.
            factor_sd = np.sqrt(np.expm1(_UNMEASURED_LINK_LOG**2)) * np.exp(_UNMEASURED_LINK_LOG**2 / 2)
            variance += (factor_sd * theta[_I["comm_scale"]] * x[:, _I["comm_scale"]]) ** 2
        relative = np.sqrt(variance) / total
        nvls_sd = np.where(features.nvls, self.posterior.sd("nvls_gain_frac"), 0.0)
        more = (np.full(batch.n_rows, self.posterior.residual_frac), nvls_sd, *self._doubts_frac(features, batch))
        relative = np.sqrt(relative**2 + sum(sd**2 for sd in more))
        value = total / gain
        width = np.exp(_Z90 * relative)
        parts = {name: np.zeros(batch.n_rows) for name in PARTS}
        for name, members in PARTS.items():
            for member in members:
                parts[name] = parts[name] + x[:, _I[member]] * theta[_I[member]]
        parts["hidden"] = total - np.sum(list(parts.values()), axis=0)
        parts["saved"] = value - total
        outside = self.domain.outside(batch) > 1.0 if self.domain is not None else np.zeros(batch.n_rows, dtype=bool)
        columns = StepColumns(
            value_s=value,
            low_s=value / width,
            high_s=value * width,
            parts=parts,
            provenance=self._provenance(features),
            extrapolated=features.extrapolated | outside,
            notes=self.notes,
        )
        for array in (columns.value_s, columns.low_s, columns.high_s, columns.extrapolated, *parts.values()):
            array.setflags(write=False)
        return columns

    def _provenance(self, features: Features) -> dict[str, Provenance]:
        return {
            **features.grounds,
            "draft": Provenance.DERIVED,
            "host": Provenance.FITTED if self.domain is not None else Provenance.ASSUMED,
            "prefill": Provenance.DERIVED,
            "hidden": Provenance.DERIVED,
            "saved": Provenance.MEASURED,
        }


def _step(x: FloatArray, eager: NDArray[np.bool_], theta: FloatArray) -> FloatArray:
    """Seconds (n_samples, n) before NVLS: host terms plus the GPU, or in eager rows the slower of GPU and launches."""
    host = theta[:, _HOST] @ x[:, _HOST].T
    gpu = theta[:, _GPU] @ x[:, _GPU].T
    if eager.any():
        launch = theta[:, [_LAUNCH]] * x[:, _LAUNCH]
        gpu = np.where(eager, np.maximum(gpu, launch), gpu)
    return np.asarray(host + gpu)


def _smooth(tokens_log2: FloatArray, weights: FloatArray) -> FloatArray:
    """A smooth random function of log2 tokens with unit variance: (n_samples, n) from weights (n_samples, 8)."""
    centres = np.arange(8) * 2.0
    basis = np.exp(-0.5 * ((tokens_log2[:, None] - centres) / 2.0) ** 2)
    basis /= np.sqrt((basis**2).sum(axis=1, keepdims=True)) + 1e-12
    return np.asarray(weights @ basis.T)
