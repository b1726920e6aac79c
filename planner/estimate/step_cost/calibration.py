"""A calibration: what was measured, what it made of the parameters, how well it fits, and where it holds. A file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from planner.errors import DomainError, InputError, Problem
from planner.estimate.step_cost.model import StepDomain
from planner.estimate.step_cost.parameters import PARAMETER_NAMES, PARAMETERS, ParameterPosterior

__all__ = ["Calibration", "CalibrationRow", "read_calibration", "write_calibration"]

_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class CalibrationRow:
    """One observation behind a calibration, and what the fitted model says of it."""

    row: Mapping[str, object]
    """As it was given to the fit, ``step_s`` included."""
    fitted_s: float

    @property
    def residual_frac(self) -> float:
        """(fitted - measured) / measured."""
        measured = float(self.row["step_s"])  # type: ignore[arg-type]
        return (self.fitted_s - measured) / measured


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """Fitted parameters of the step cost, for one system and model (``*``: the prior of all others)."""

    hardware: str
    model: str
    drafter: str | None
    source: str
    posterior: ParameterPosterior
    domain: StepDomain
    rows: tuple[CalibrationRow, ...]

    @property
    def measured_kinds(self) -> frozenset[int]:
        """0 off, 1 chain, 2 tree: the kinds of steps among the observations."""
        names = {"off": 0, "none": 0, "chain": 1, "tree": 2}
        return frozenset(names[str(row.row.get("kind", "off"))] for row in self.rows)

    def require(self, hardware: str, model: str) -> None:
        """Refuse another machine or model.

        Raises:
            DomainError: the calibration was made elsewhere.
        """
        if self.hardware not in ("*", hardware):
            raise DomainError(
                f"the calibration was made on {self.hardware}, not on {hardware}",
                "measure there, or predict without it",
            )
        if self.model not in ("*", model):
            raise DomainError(
                f"the calibration is of {self.model}, not of {model}", "measure that model, or predict without it"
            )


def write_calibration(calibration: Calibration) -> str:
    """JSON text with sorted keys; floats in full, so that reading gives the same predictions."""
    posterior = calibration.posterior
    sd = np.sqrt(np.diag(posterior.covariance))
    body = {
        "schema_version": _SCHEMA,
        "what": "step cost",
        "hardware": calibration.hardware,
        "model": calibration.model,
        "drafter": calibration.drafter,
        "source": calibration.source,
        "residual_frac": posterior.residual_frac,
        "domain": {name: list(getattr(calibration.domain, name)) for name in ("running", "q_len", "context_tok")},
        "parameters": {
            parameter.name: {"mean": mean, "sd": spread, "unit": parameter.unit, "what": parameter.what}
            for parameter, mean, spread in zip(PARAMETERS, posterior.mean.tolist(), sd.tolist(), strict=True)
        },
        "covariance": posterior.covariance.tolist(),
        "observations": [
            {**row.row, "fitted_s": row.fitted_s, "residual_frac": row.residual_frac} for row in calibration.rows
        ],
    }
    return json.dumps(body, indent=1, sort_keys=True) + "\n"


def read_calibration(text: str, *, name: str = "calibration") -> Calibration:
    """The inverse of :func:`write_calibration`.

    Raises:
        InputError: not such a file, another schema, or parameters that this version does not have.
    """
    try:
        body: dict[str, Any] = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError([Problem(f"not JSON: {error.msg}", file=name, line=error.lineno)]) from error
    if not isinstance(body, dict) or body.get("what") != "step cost":
        raise InputError([Problem("not a step-cost calibration", file=name, hint="write one with plan-config fit")])
    if body.get("schema_version") != _SCHEMA:
        raise InputError(
            [Problem(f"schema_version {body.get('schema_version')!r}; this version reads {_SCHEMA}", file=name)]
        )
    missing = sorted(
        {"hardware", "model", "parameters", "covariance", "domain", "observations", "residual_frac"} - set(body)
    )
    if missing:
        raise InputError([Problem(f"key {key!r} is missing", file=name, field=key) for key in missing])
    if set(body["parameters"]) != set(PARAMETER_NAMES):
        odd = sorted(set(body["parameters"]) ^ set(PARAMETER_NAMES))
        raise InputError(
            [Problem(f"parameters differ from this version's: {', '.join(odd)}", file=name, hint="fit it again")]
        )
    mean = np.array([float(body["parameters"][key]["mean"]) for key in PARAMETER_NAMES])
    covariance = np.array(body["covariance"], dtype=float)
    if covariance.shape != (mean.size, mean.size) or not np.all(np.isfinite(covariance)):
        raise InputError(
            [Problem(f"covariance must be {mean.size} x {mean.size} numbers", file=name, field="covariance")]
        )
    domain = StepDomain(**{key: tuple(map(float, body["domain"][key])) for key in ("running", "q_len", "context_tok")})  # type: ignore[arg-type]
    return Calibration(
        hardware=str(body["hardware"]),
        model=str(body["model"]),
        drafter=body.get("drafter"),
        source=str(body.get("source", "")),
        posterior=ParameterPosterior(mean, covariance, float(body["residual_frac"])),
        domain=domain,
        rows=_rows(body["observations"]),
    )


def _rows(observations: Sequence[Mapping[str, Any]]) -> tuple[CalibrationRow, ...]:
    own = ("fitted_s", "residual_frac")
    return tuple(
        CalibrationRow({key: value for key, value in entry.items() if key not in own}, float(entry["fitted_s"]))
        for entry in observations
    )
