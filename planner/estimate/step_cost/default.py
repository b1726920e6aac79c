"""The model that a plan starts from: packaged tables, the packaged calibration where there is one, else a prior."""

from __future__ import annotations

import io
from functools import lru_cache

import numpy as np

from planner.domain import DrafterProfile, HardwareProfile, ModelProfile, Provenance
from planner.estimate.step_cost.calibration import Calibration, read_calibration
from planner.estimate.step_cost.costs import KernelCosts
from planner.estimate.step_cost.kernels import FloatArray, KernelTable, decode_table
from planner.estimate.step_cost.model import StepCostModel
from planner.estimate.step_cost.parameters import PARAMETER_NAMES, ParameterPosterior

__all__ = [
    "base_posterior",
    "calibrated_model",
    "default_model",
    "kernel_table",
    "moe_doubt_after",
    "packaged_calibration",
    "uncalibrated_model",
    "updated_posterior",
]

_PRIOR = "prior"

_TRANSFER_SD = {
    "moe_scale": 0.08,
    "dense_scale": 0.05,
    "attention_scale": 0.15,
    "step_host_s": 0.3e-3,
    "request_host_s": 20e-6,
    "prefill_scale": 0.15,
}
"""How far the parameters move from one deployment to the next, beside the prior's own covariance. Four InferenceX
configurations fitted alone differ by 0.05, 0.04, 0.19, 0.35e-3, 10e-6 and 0.11 (standard deviation, in this order)."""

_SGLANG_REQUEST_HOST = (20e-6, 20e-6)
"""SGLang without speculation, growth of TPOT with C minus what the tables explain, for each request: 28 us (Qwen3-4B on
one B200, DFlash Table 3), 45 to 70 us (Qwen3-4B on one H100, overlap on and off: diffusion-sparked-tree), 1 and
3 us (decode lines of one H200, requests that do not stream: docs/h200.md)."""

_RESIDUAL_FRAC = {"vllm": 0.03, "sglang": 0.08}
"""Error that stays when nothing is calibrated, beside the doubt about the parameters: together they cover all
InferenceX rows with one GPU left out; for SGLang, which no such row ran, a little more."""
_NO_TABLE_FRAC = 0.20
"""A roofline without tables is off by up to 28 % on a system it was not fitted to (docs/step_cost.md)."""


@lru_cache(maxsize=16)
def kernel_table(name: str) -> KernelTable:
    """Packaged kernel table of one system.

    Raises:
        FileNotFoundError: no such table is packaged.
    """
    from planner.data.files import read_bytes

    with np.load(io.BytesIO(read_bytes(f"kernels/{name}.npz")), allow_pickle=False) as archive:
        return decode_table({key: archive[key] for key in archive.files})


@lru_cache(maxsize=8)
def _calibration(name: str) -> Calibration:
    from planner.data.files import read_text

    return read_calibration(read_text(f"calibrations/{name}.json"), name=name)


def packaged_calibration(hardware: HardwareProfile, model: ModelProfile) -> Calibration | None:
    """The packaged calibration of a system and model, or None."""
    from planner.data.files import list_names

    name = f"{hardware.id}.{model.id}"
    return _calibration(name) if f"{name}.json" in list_names("calibrations", ".json") else None


def base_posterior(framework: str, fitted: ParameterPosterior | None = None) -> ParameterPosterior:
    """Parameters before any calibration: the fit of the InferenceX rows (or ``fitted``), widened by what differs
    between deployments."""
    fitted = fitted or _calibration(_PRIOR).posterior
    mean, covariance = fitted.mean.copy(), _transferred(fitted)
    if framework == "sglang":
        i = PARAMETER_NAMES.index("request_host_s")
        covariance[i, :] = covariance[:, i] = 0.0
        mean[i], covariance[i, i] = _SGLANG_REQUEST_HOST[0], _SGLANG_REQUEST_HOST[1] ** 2
    return ParameterPosterior(mean, covariance, _RESIDUAL_FRAC[framework])


def _transferred(posterior: ParameterPosterior) -> FloatArray:
    """Its covariance, widened by what differs between deployments."""
    covariance = posterior.covariance.copy()
    for name, sd in _TRANSFER_SD.items():
        i = PARAMETER_NAMES.index(name)
        covariance[i, i] += sd**2
    return covariance


def updated_posterior(calibration: Calibration) -> ParameterPosterior:
    """What a calibration of the same system and model says of another box of it: the start of the next fit."""
    posterior = calibration.posterior
    return ParameterPosterior(posterior.mean.copy(), _transferred(posterior), posterior.residual_frac)


def uncalibrated_model(
    hardware: HardwareProfile,
    model: ModelProfile,
    drafter: DrafterProfile | None = None,
    *,
    framework: str = "sglang",
    posterior: ParameterPosterior | None = None,
    table: KernelTable | None = None,
) -> StepCostModel:
    """Tables, data sheet and prior alone. ``table`` replaces the packaged one (see :mod:`.aic`)."""
    if table is None and hardware.kernel_tables is not None:
        table = kernel_table(hardware.kernel_tables)
    costs = KernelCosts(hardware, model, table=table, framework=framework, drafter=drafter)
    extra = 0.0 if costs.table is not None else _NO_TABLE_FRAC
    notes = ["host terms: prior from independent runs, nothing measured on this system"]
    if costs.table is None:
        notes.append(f"no kernel table for {hardware.id}: data sheet and an assumed efficiency")
    elif model.n_moe_layers and costs.moe_curve(1, 1)[3] is Provenance.DATASHEET:
        notes.append("no kernel table for experts of this shape: data sheet; the extra aic builds one")
    if costs.links_unmeasured:
        notes.append("PCIe without a measured all-reduce (allreduce_latency_s): the host decides, the interval is wide")
    return StepCostModel(costs, posterior or base_posterior(framework), extra_frac=extra, notes=tuple(notes))


def moe_doubt_after(costs: KernelCosts, posterior: ParameterPosterior, framework: str) -> float:
    """What a fit leaves of the doubt about a roofline of the experts: that is one of level, so as much as it leaves of
    the doubt about ``moe_scale``. A table's disagreement between routings is about traffic and stays: 1."""
    if not costs.model.n_moe_layers or costs.moe_curve(1, 1)[3] is not Provenance.DATASHEET:
        return 1.0
    return min(1.0, posterior.sd("moe_scale") / base_posterior(framework).sd("moe_scale"))


def calibrated_model(
    calibration: Calibration,
    hardware: HardwareProfile,
    model: ModelProfile,
    drafter: DrafterProfile | None = None,
    *,
    framework: str = "sglang",
) -> StepCostModel:
    """The model of a calibration file.

    Raises:
        DomainError: the calibration was made on another system or model.
    """
    calibration.require(hardware.id, model.id)
    start = uncalibrated_model(hardware, model, drafter, framework=framework)
    return StepCostModel(
        start.costs,
        calibration.posterior,
        domain=calibration.domain,
        moe_doubt=moe_doubt_after(start.costs, calibration.posterior, framework),
        extra_frac=start.extra_frac,
        notes=(f"host terms fitted on {calibration.source}",),
    )


def default_model(
    hardware: HardwareProfile, model: ModelProfile, drafter: DrafterProfile | None = None, *, framework: str = "sglang"
) -> StepCostModel:
    """Step-cost model of a system and model: the packaged calibration, or tables and prior.

    For ``b300`` with ``kimi-k2.6`` it is calibrated on the field notes (FN-01, FN-02, FN-03).
    """
    calibration = packaged_calibration(hardware, model) if framework == "sglang" else None
    if calibration is None:
        return uncalibrated_model(hardware, model, drafter, framework=framework)
    return calibrated_model(calibration, hardware, model, drafter, framework=framework)
