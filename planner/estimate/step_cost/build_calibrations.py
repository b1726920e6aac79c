"""Rebuild the packaged calibrations from the packaged observations:
``python -m planner.estimate.step_cost.build_calibrations FOLDER``.

``prior.json``        InferenceX rows (autoregressive, vLLM, B200 and H200): the prior of every other system.
``b300.kimi-k2.6.json``   field notes FN-01, FN-02, FN-03 on that prior.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from planner.data.load import load_drafter, load_hardware, load_model
from planner.estimate.step_cost.api import fit_step_cost
from planner.estimate.step_cost.calibration import Calibration, CalibrationRow, write_calibration
from planner.estimate.step_cost.default import uncalibrated_model
from planner.estimate.step_cost.features import build_features
from planner.estimate.step_cost.fit import fit_posterior
from planner.estimate.step_cost.model import StepCostModel, StepDomain
from planner.estimate.step_cost.observations import TPOT_SYSTEMS, field_rows, tpot_rows
from planner.estimate.step_cost.parameters import ParameterPosterior, prior
from planner.estimate.step_cost.rows import read_rows

__all__ = ["fit_prior", "main"]

_FIELD_NOISE_FRAC = 0.06
"""FN-01 and FN-02 differ by 6 % for the same configuration."""


def fit_prior(
    systems: Sequence[str] = TPOT_SYSTEMS,
) -> tuple[ParameterPosterior, tuple[CalibrationRow, ...], StepDomain]:
    """Parameters from the InferenceX rows of some systems, on the bare prior of :mod:`.parameters`."""
    start, features, steps, used, models = prior(), [], [], [], []
    for system in systems:
        hardware, model, rows = load_hardware(system), load_model("kimi-k2.6"), tpot_rows(system)
        for group in read_rows(rows, hardware=hardware, model=model, need_step=True):
            own = uncalibrated_model(hardware, group.model, framework=group.framework, posterior=start)
            features.append(build_features(own.costs, group.batch))
            steps.append(group.step_s)
            used.append([rows[i] for i in group.index])
            models.append((own, group))
    posterior = fit_posterior(features, steps, start)
    fitted = []
    for rows, (own, group) in zip(used, models, strict=True):
        values = StepCostModel(own.costs, posterior).predict_columns(group.batch).value_s
        fitted += [CalibrationRow(row, float(value)) for row, value in zip(rows, values, strict=True)]
    return posterior, tuple(fitted), StepDomain.of([group.batch for _, group in models])


def main(argv: Sequence[str]) -> int:
    """Write the calibrations into the folder given."""
    if len(argv) != 1:
        sys.stderr.write("usage: python -m planner.estimate.step_cost.build_calibrations FOLDER\n")
        return 2
    folder = Path(argv[0])
    posterior, rows, domain = fit_prior()
    source = "InferenceX runs of Kimi K2.5 on B200 and H200 (aiconfigurator silicon_sample.csv, Apache-2.0)"
    calibration = Calibration("*", "*", None, source, posterior, domain, rows)
    (folder / "prior.json").write_text(write_calibration(calibration), encoding="utf-8")
    fit = fit_step_cost(
        field_rows(),
        hw=load_hardware("b300"),
        model=load_model("kimi-k2.6"),
        drafter=load_drafter("kimi-k2.6-dflash"),
        noise_frac=_FIELD_NOISE_FRAC,
    )
    text = write_calibration(fit.calibration("field notes FN-01, FN-02, FN-03"))
    (folder / "b300.kimi-k2.6.json").write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
