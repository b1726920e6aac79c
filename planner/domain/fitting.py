"""What a fit found: parameters before and after, residuals, coverage, domain. One line of the accuracy table."""

from __future__ import annotations

from dataclasses import dataclass

from planner.domain.base import Value

__all__ = ["AcceptFit", "AcceptFitPoint", "AccuracyRow", "FitParameter", "FitReport", "FitResidual", "FitSpan"]


class FitParameter(Value):
    """One parameter of the step cost, with standard deviations."""

    name: str
    unit: str
    what: str
    before: float
    before_sd: float
    after: float
    after_sd: float


class FitResidual(Value):
    """One observation and what the fitted model says of it."""

    label: str
    file: str | None = None
    line: int | None = None
    concurrency: float
    q_len: int
    kind: str
    context_tok: float
    measured_s: float
    fitted_s: float
    left_out_s: float | None = None
    """Prediction of a fit that did not see this observation; None where that was not tried."""
    left_out_low_s: float | None = None
    left_out_high_s: float | None = None

    @property
    def residual_frac(self) -> float:
        """(fitted - measured) / measured, in-sample."""
        return self.fitted_s / self.measured_s - 1.0

    @property
    def left_out_frac(self) -> float | None:
        """Likewise of the prediction that did not see it."""
        return None if self.left_out_s is None else self.left_out_s / self.measured_s - 1.0

    @property
    def left_out_inside(self) -> bool | None:
        """Whether the measurement lies in the 90 % interval of that prediction."""
        if self.left_out_low_s is None or self.left_out_high_s is None:
            return None
        return self.left_out_low_s <= self.measured_s <= self.left_out_high_s


class FitSpan(Value):
    """Range that the observations behind a calibration cover."""

    name: str
    low: float
    high: float


class AcceptFitPoint(Value):
    """One measured accept length and the curve there."""

    budget: int
    kind: str
    measured: float
    fitted: float
    low: float
    high: float


class AcceptFit(Value):
    """An acceptance curve of one traffic."""

    domain: str
    temperature: float | None = None
    points: tuple[AcceptFitPoint, ...]
    note: str | None = None


class FitReport(Value):
    """A fit of the step cost of one machine and model, and of acceptance where accept lengths were observed."""

    hardware: str
    model: str
    drafter: str | None = None
    source: str
    starts_from: str
    """What the parameters were before."""
    left_out: tuple[str, ...] = ()
    """Observations that were not used, and why."""
    parameters: tuple[FitParameter, ...]
    residuals: tuple[FitResidual, ...]
    residual_sd_frac: float
    """Standard deviation of what the parameters do not explain."""
    mape: float
    """Mean absolute residual, in-sample."""
    left_out_mape: float | None = None
    """Mean absolute error of predictions that did not see the observation; None with one observation."""
    left_out_coverage: float | None = None
    """Part of the observations inside the 90 % interval of those predictions."""
    n_left_out: int = 0
    domain: tuple[FitSpan, ...]
    kinds: tuple[str, ...]
    layouts: tuple[str, ...]
    acceptance: tuple[AcceptFit, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AccuracyRow:
    """Leave-out errors of one group of predictions. Errors and coverage are fractions (0.03 is 3 %)."""

    group: str
    """What was predicted from what."""
    n: int
    """Predictions made (not observations, not curves)."""
    mape: float | None
    """Mean absolute relative error."""
    p90: float | None
    """90 % quantile of the absolute relative error."""
    bias: float | None
    """Mean of (predicted - measured) / measured."""
    coverage: float | None
    """Part of the measured values that lie inside the 90 % interval; None where no interval was given."""
    goal: str
    """The goal in words; empty where none was set."""
    met: bool | None
    """Whether every part of the goal holds; None without a goal."""
    note: str = ""
    """Data, weights, exclusions."""
