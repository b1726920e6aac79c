"""The model that a plan starts from: packaged tables, the packaged calibration where there is one, a prior elsewhere."""

from __future__ import annotations

from functools import lru_cache

from planner.data.files import list_names, open_npz, read_text
from planner.domain import DrafterProfile, HardwareProfile, ModelProfile
from planner.estimate.step_cost.calibration import Calibration, read_calibration
from planner.estimate.step_cost.costs import KernelCosts
from planner.estimate.step_cost.kernels import KernelTable, decode_table
from planner.estimate.step_cost.model import StepCostModel
from planner.estimate.step_cost.parameters import PARAMETER_NAMES, ParameterPosterior

__all__ = ["base_posterior", "default_model", "kernel_table", "packaged_calibration", "uncalibrated_model"]

_PRIOR = "prior"

_TRANSFER_SD = {
    "moe_scale": 0.10,
    "dense_scale": 0.05,
    "attention_scale": 0.20,
    "step_host_s": 0.4e-3,
    "request_host_s": 20e-6,
    "prefill_scale": 0.20,
}
"""How far the parameters move from one deployment to the next, beside the prior's own covariance: differences between
the five configurations of the InferenceX rows when each is fitted alone (docs/step_cost.md)."""

_SGLANG_REQUEST_HOST = (50e-6, 40e-6)
"""SGLang 0.5.16 without speculation, Qwen3-4B on one H100: TPOT grows by 73 us (overlap) to 98 us (none) for each
request from C = 1 to 32, of which the tables explain 20 to 30 (diffusion-sparked-tree, results_H100)."""

_RESIDUAL_FRAC = {"vllm": 0.07, "sglang": 0.10}
"""Error that stays when nothing is calibrated: leave-one-GPU-out on the InferenceX rows gives 5 to 9 % (standard
deviation); for SGLang, which no such row ran, a little more."""
_NO_TABLE_FRAC = 0.20
"""A roofline without tables is off by up to 28 % on a system it was not fitted to (docs/step_cost.md)."""


@lru_cache(maxsize=16)
def kernel_table(name: str) -> KernelTable:
    """Packaged kernel table of one system.

    Raises:
        FileNotFoundError: no such table is packaged.
    """
    with open_npz(f"kernels/{name}.npz") as archive:
        return decode_table({key: archive[key] for key in archive.files})


@lru_cache(maxsize=8)
def _calibration(name: str) -> Calibration:
    return read_calibration(read_text(f"calibrations/{name}.json"), name=name)


def packaged_calibration(hardware: HardwareProfile, model: ModelProfile) -> Calibration | None:
    """The packaged calibration of a system and model, or None."""
    name = f"{hardware.id}.{model.id}"
    return _calibration(name) if f"{name}.json" in list_names("calibrations", ".json") else None


def base_posterior(framework: str, fitted: ParameterPosterior | None = None) -> ParameterPosterior:
    """Parameters before any calibration: the fit of the InferenceX rows (or ``fitted``), widened by what differs between
    deployments."""
    fitted = fitted or _calibration(_PRIOR).posterior
    mean, covariance = fitted.mean.copy(), fitted.covariance.copy()
    for name, sd in _TRANSFER_SD.items():
        i = PARAMETER_NAMES.index(name)
        covariance[i, i] += sd**2
    if framework == "sglang":
        i = PARAMETER_NAMES.index("request_host_s")
        covariance[i, :] = covariance[:, i] = 0.0
        mean[i], covariance[i, i] = _SGLANG_REQUEST_HOST[0], _SGLANG_REQUEST_HOST[1] ** 2
    return ParameterPosterior(mean, covariance, _RESIDUAL_FRAC[framework])


def _costs(
    hardware: HardwareProfile, model: ModelProfile, drafter: DrafterProfile | None, framework: str
) -> KernelCosts:
    table = kernel_table(hardware.kernel_tables) if hardware.kernel_tables is not None else None
    return KernelCosts(hardware, model, table=table, framework=framework, drafter=drafter)


def uncalibrated_model(
    hardware: HardwareProfile,
    model: ModelProfile,
    drafter: DrafterProfile | None = None,
    *,
    framework: str = "sglang",
    posterior: ParameterPosterior | None = None,
) -> StepCostModel:
    """Tables, data sheet and prior alone."""
    costs = _costs(hardware, model, drafter, framework)
    extra = 0.0 if costs.table is not None else _NO_TABLE_FRAC
    notes = ["host terms: prior from independent runs, nothing measured on this system"]
    if costs.table is None:
        notes.append(f"no kernel table for {hardware.id}: data sheet and an assumed efficiency")
    if costs.links_unmeasured:
        notes.append("PCIe without a measured all-reduce (allreduce_latency_s): the host decides, the interval is wide")
    return StepCostModel(costs, posterior or base_posterior(framework), extra_frac=extra, notes=tuple(notes))


def default_model(
    hardware: HardwareProfile, model: ModelProfile, drafter: DrafterProfile | None = None, *, framework: str = "sglang"
) -> StepCostModel:
    """Step-cost model of a system and model: the packaged calibration, or tables and prior.

    For ``b300`` with ``kimi-k2.6`` it is calibrated on the field notes (FN-01, FN-02, FN-03).
    """
    calibration = packaged_calibration(hardware, model) if framework == "sglang" else None
    start = uncalibrated_model(hardware, model, drafter, framework=framework)
    if calibration is None:
        return start
    return StepCostModel(
        start.costs,
        calibration.posterior,
        domain=calibration.domain,
        measured_kinds=calibration.measured_kinds,
        extra_frac=start.extra_frac,
        notes=(f"host terms fitted on {calibration.source}",),
    )
