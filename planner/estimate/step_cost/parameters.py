"""The parameters of the step-cost model: few, named, bounded, in physical units, each with a source for its prior."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from planner._record import record

__all__ = ["PARAMETERS", "PARAMETER_NAMES", "Parameter", "ParameterPosterior", "prior"]


@record()
class Parameter:
    """One parameter with its prior (mean, standard deviation) and hard bounds."""

    name: str
    unit: str
    mean: float
    sd: float
    low: float
    high: float
    what: str
    source: str


PARAMETERS: tuple[Parameter, ...] = (
    Parameter(
        "moe_scale",
        "1",
        1.0,
        0.10,
        0.5,
        2.0,
        "time of the routed experts over the table's",
        "kernel tables are right up to the expert load of real traffic",
    ),
    Parameter(
        "dense_scale",
        "1",
        1.0,
        0.10,
        0.5,
        2.0,
        "time of the dense matrix products over the table's",
        "kernel tables",
    ),
    Parameter(
        "attention_scale",
        "1",
        1.3,
        0.3,
        0.5,
        3.0,
        "time of decode attention over the table's (another backend, ragged lengths)",
        "another backend than the table's and ragged lengths: assumed, corrected by the shipped calibration",
    ),
    Parameter(
        "triton_attention_scale",
        "1",
        1.0,
        0.2,
        0.3,
        3.0,
        "time of Triton's decode attention on sm_90 over what a share of the bandwidth and a block's walk say",
        "docs/h200.md, two models on one H200",
    ),
    Parameter(
        "verify_attention_frac",
        "1",
        0.12,
        0.13,
        0.0,
        1.0,
        "part of reading the KV cache that every further query token of a request repeats (0: none, 1: all of it)",
        "no public table has q_len above 1: the two ends are known, the place between is not",
    ),
    Parameter(
        "verify_wave_s",
        "s",
        60e-9,
        45e-9,
        0.0,
        500e-9,
        "time of Triton's verify attention for one cached token of 256 elements, in one layer and one wave of blocks",
        "docs/h200.md: 65 ns (GQA) and 88 ns (MLA) on one H200; a block walks the whole cache of its request",
    ),
    Parameter(
        "comm_scale",
        "1",
        1.0,
        0.15,
        0.5,
        3.0,
        "time of collectives over the table's",
        "kernel tables",
    ),
    Parameter(
        "layer_overhead_s",
        "s",
        22e-6,
        8e-6,
        0.0,
        80e-6,
        "small kernels of a layer that no table holds (norms, rope, cache write, routing, gaps)",
        "shipped calibration of InferenceX rows",
    ),
    Parameter(
        "step_host_s",
        "s",
        1.6e-3,
        0.5e-3,
        0.0,
        8e-3,
        "host time of a step that the GPU waits for (scheduling, sampling)",
        "shipped calibration of InferenceX rows",
    ),
    Parameter(
        "request_host_s",
        "s",
        30e-6,
        40e-6,
        0.0,
        1e-3,
        "host time of a step for each running request",
        "shipped calibration of InferenceX rows",
    ),
    Parameter(
        "prefill_scale",
        "1",
        0.8,
        0.25,
        0.1,
        2.0,
        "time that prefills of other requests add to a step, over the table's",
        "shipped calibration of InferenceX rows",
    ),
    Parameter(
        "draft_scale",
        "1",
        1.0,
        0.3,
        0.3,
        4.0,
        "time of the draft forward over the table's",
        "kernel tables",
    ),
    Parameter(
        "spec_step_s",
        "s",
        1.6e-3,
        0.8e-3,
        0.0,
        20e-3,
        "host time of a speculative step beside step_host_s (draft launch, tree build, accept), overlap scheduling on",
        "step at C = 1 minus kernels and step_host_s: 1.9 and 2.4 ms (DFlash Table 3, Qwen3-4B and 8B on B200), 1.2 ms "
        "(DFLASH on one H100: diffusion-sparked-tree, concurrency/REPORT.md), 0.4 and 0.6 ms (docs/h200.md)",
    ),
    Parameter(
        "spec_serial_s",
        "s",
        1.8e-3,
        1.2e-3,
        0.0,
        10e-3,
        "host time of a speculative step that overlap scheduling would hide (a tree built on the host included)",
        "steps with and without overlap at C = 1, Qwen3-4B on one H100: 1.0 ms more (DFLASH), 1.6 (DSPARK): "
        "diffusion-sparked-tree, concurrency/REPORT.md, SGLang 0.5.16; a tree built on the host adds to it",
    ),
    Parameter(
        "spec_request_s",
        "s",
        50e-6,
        30e-6,
        0.0,
        2e-3,
        "host time of a speculative step for each running request, whatever its q_len, overlap scheduling on",
        "growth of the step with C minus kernels: 0.13 ms a request, request_host_s included (DFlash Table 3, B200); "
        "split between request and token is assumed",
    ),
    Parameter(
        "spec_serial_request_s",
        "s",
        0.1e-3,
        0.1e-3,
        0.0,
        2e-3,
        "the same for each running request",
        "growth up to C = 32 in the same runs: 0.04 ms a request (DFLASH), 0.1 (DSPARK)",
    ),
    Parameter(
        "spec_row_s",
        "s",
        4e-6,
        3e-6,
        0.0,
        0.3e-3,
        "host or GPU time of a speculative step for each verified token that no table holds",
        "as spec_request_s: the same growth, if it goes with q_len",
    ),
    Parameter(
        "draft_row_s",
        "s",
        3e-6,
        2e-6,
        0.0,
        50e-6,
        "time of one drafted branch in one draft step that no table holds (sampling over 100,000 words, tree)",
        "docs/h200.md, two models on one H200: 3.4 and 4.0 us",
    ),
    Parameter(
        "layer_launch_s",
        "s",
        0.72e-3,
        0.18e-3,
        0.1e-3,
        3e-3,
        "host time to launch one layer without CUDA graphs",
        "between 0.5 ms (half as many launches, fused kernels) and 0.94 ms: Qwen3-4B eager on one A800, Transformers, "
        "floor of 34.0 ms for 36 layers (CaDDTree cost models)",
    ),
    Parameter(
        "nvls_gain_frac",
        "1",
        0.055,
        0.01,
        0.0,
        0.2,
        "throughput gained by NVLS",
        "field note FN-13: 5 to 6 %",
    ),
)

PARAMETER_NAMES = tuple(parameter.name for parameter in PARAMETERS)


@record(eq=False)
class ParameterPosterior:
    """Mean (p,), covariance (p, p) and bounds of the parameters, in the order of :data:`PARAMETER_NAMES`."""

    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]
    residual_frac: float
    """Standard deviation of what the parameters do not explain, as a fraction of the step."""

    def value(self, name: str) -> float:
        """Mean of one parameter."""
        return float(self.mean[PARAMETER_NAMES.index(name)])

    def sd(self, name: str) -> float:
        """Standard deviation of one parameter."""
        i = PARAMETER_NAMES.index(name)
        return float(np.sqrt(self.covariance[i, i]))

    def draw(self, n_samples: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Joint draws (n_samples, p), cut at the bounds."""
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        draws = self.mean + rng.standard_normal((n_samples, self.mean.size)) @ root.T
        low = np.array([parameter.low for parameter in PARAMETERS])
        high = np.array([parameter.high for parameter in PARAMETERS])
        return np.asarray(np.clip(draws, low, high))


def prior(
    residual_frac: float = 0.10, overrides: Mapping[str, tuple[float, float]] | None = None
) -> ParameterPosterior:
    """The prior as a posterior without data; ``overrides`` gives (mean, sd) by name."""
    changed = dict(overrides or {})
    mean = np.array([changed.get(p.name, (p.mean, p.sd))[0] for p in PARAMETERS])
    sd = np.array([changed.get(p.name, (p.mean, p.sd))[1] for p in PARAMETERS])
    return ParameterPosterior(mean, np.diag(sd**2), residual_frac)
