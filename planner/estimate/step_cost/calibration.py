"""A calibration: what was measured, what it made of the parameters, how well it fits, and where it holds. A file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import ValidationError

from planner._record import record
from planner.domain import AcceptPoint
from planner.errors import DomainError, InputError, Problem
from planner.estimate.step_cost.model import StepDomain
from planner.estimate.step_cost.parameters import PARAMETER_NAMES, PARAMETERS, ParameterPosterior

__all__ = ["Calibration", "CalibrationRow", "read_calibration", "report_lines", "write_calibration"]

_SCHEMA = 1
_Z90 = 1.6448536269514722
_DOMAIN = ("running", "q_len", "context_tok")
_PLOT_HALF = 15
_PLOT_FRAC = 0.15
"""The residual plot spans plus and minus this fraction."""


@record()
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


@record(eq=False)
class Calibration:
    """Fitted parameters of the step cost, for one system and model (``*``: the prior of all others)."""

    hardware: str
    model: str
    drafter: str | None
    source: str
    posterior: ParameterPosterior
    domain: StepDomain
    rows: tuple[CalibrationRow, ...]
    accept_points: tuple[AcceptPoint, ...] = ()
    """Accept lengths that the same runs measured: they stand in for the drafter profile's."""

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
        "domain": {
            **{name: list(getattr(calibration.domain, name)) for name in _DOMAIN},
            "kinds": sorted(calibration.domain.kinds),
            "layouts": sorted(list(layout) for layout in calibration.domain.layouts),
        },
        "parameters": {
            parameter.name: {"mean": mean, "sd": spread, "unit": parameter.unit, "what": parameter.what}
            for parameter, mean, spread in zip(PARAMETERS, posterior.mean.tolist(), sd.tolist(), strict=True)
        },
        "covariance": posterior.covariance.tolist(),
        "observations": [
            {**_plain(row.row), "fitted_s": row.fitted_s, "residual_frac": row.residual_frac}
            for row in calibration.rows
        ],
    }
    if calibration.accept_points:
        body["accept_points"] = [
            point.model_dump(mode="json", exclude_none=True) for point in calibration.accept_points
        ]
    return json.dumps(body, indent=1, sort_keys=True) + "\n"


def read_calibration(text: str, *, name: str = "calibration") -> Calibration:
    """The inverse of :func:`write_calibration`.

    Raises:
        InputError: not such a file, another schema, or parameters that this version does not have.
    """
    try:
        body: dict[str, Any] = json.loads(text)
    except json.JSONDecodeError as error:
        hint = "a calibration is what plan-config fit --out writes"
        raise InputError([Problem(f"not JSON: {error.msg}", file=name, line=error.lineno, hint=hint)]) from error
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
    try:
        mean = np.array([float(body["parameters"][key]["mean"]) for key in PARAMETER_NAMES])
        covariance = np.array(body["covariance"], dtype=float)
        residual_frac = float(body["residual_frac"])
        domain = _domain(body["domain"])
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(name, "parameters, covariance, residual_frac or domain") from error
    if covariance.shape != (mean.size, mean.size) or not np.all(np.isfinite(covariance)):
        raise InputError(
            [Problem(f"covariance must be {mean.size} x {mean.size} numbers", file=name, field="covariance")]
        )
    if not np.all(np.isfinite(mean)) or not 0 < residual_frac < 10:
        raise _damaged(name, "parameters or residual_frac")
    return Calibration(
        hardware=str(body["hardware"]),
        model=str(body["model"]),
        drafter=body.get("drafter"),
        source=str(body.get("source", "")),
        posterior=ParameterPosterior(mean, covariance, residual_frac),
        domain=domain,
        rows=_rows(body["observations"], name),
        accept_points=_accept_points(body.get("accept_points", []), name),
    )


def report_lines(calibration: Calibration) -> list[str]:
    """What a reader wants to know of a calibration: residuals (as a plot in text), domain, coverage, parameters."""
    residuals = np.array([row.residual_frac for row in calibration.rows])
    width = _Z90 * calibration.posterior.residual_frac
    inside = int((np.abs(residuals) <= width).sum())
    lines = [f"step cost of {calibration.model} on {calibration.hardware}: {len(calibration.rows)} observations"]
    lines.append("domain: " + ", ".join(f"{n} {getattr(calibration.domain, n)}" for n in _DOMAIN))
    lines.append(
        f"residuals: mean {np.abs(residuals).mean():.1%}, largest {np.abs(residuals).max():.1%}; "
        f"{inside} of {residuals.size} inside the 90 % band of {width:.1%} (in-sample)"
    )
    for row in calibration.rows:
        at = int(np.clip(round(_PLOT_HALF * (1 + row.residual_frac / _PLOT_FRAC)), 0, 2 * _PLOT_HALF))
        bar = "".join("*" if i == at else "|" if i == _PLOT_HALF else "." for i in range(2 * _PLOT_HALF + 1))
        measured = float(row.row["step_s"])  # type: ignore[arg-type]
        name = row.row.get("id") or f"C={row.row.get('concurrency', 1)} q_len={row.row.get('q_len', 1)}"
        lines.append(f"  {bar} {row.residual_frac:+7.1%}  {measured * 1e3:9.3g} ms  {name}")
    sd = np.sqrt(np.diag(calibration.posterior.covariance))
    for parameter, mean, spread in zip(PARAMETERS, calibration.posterior.mean, sd, strict=True):
        lines.append(f"  {parameter.name:<22} {mean:.3g} +- {spread:.2g} {parameter.unit}")
    return lines


def _plain(row: Mapping[str, object]) -> dict[str, object]:
    """A row for JSON: NumPy's numbers as Python's, without empty cells."""
    plain = {str(key): value.item() if isinstance(value, np.generic) else value for key, value in row.items()}
    return {key: value for key, value in plain.items() if not (isinstance(value, float) and not np.isfinite(value))}


def _domain(spans: Mapping[str, Any]) -> StepDomain:
    return StepDomain(
        **{key: (float(spans[key][0]), float(spans[key][1])) for key in _DOMAIN},
        kinds=frozenset(int(kind) for kind in spans["kinds"]),
        layouts=frozenset((int(tp), int(ep), int(dp)) for tp, ep, dp in spans["layouts"]),
    )


def _rows(observations: Sequence[Mapping[str, Any]], name: str) -> tuple[CalibrationRow, ...]:
    own = ("fitted_s", "residual_frac")
    try:
        return tuple(
            CalibrationRow({key: value for key, value in entry.items() if key not in own}, float(entry["fitted_s"]))
            for entry in observations
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _damaged(name, "observations") from error


def _accept_points(entries: Sequence[Mapping[str, Any]], name: str) -> tuple[AcceptPoint, ...]:
    try:
        return tuple(AcceptPoint.model_validate(entry) for entry in entries)
    except (TypeError, ValidationError) as error:
        raise _damaged(name, "accept_points") from error


def _damaged(name: str, field: str) -> InputError:
    return InputError([Problem("cannot be read", file=name, field=field, hint="write the file again: plan-config fit")])
