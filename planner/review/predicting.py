"""Figures for a launch under review, where something was measured to predict from; otherwise why there are none."""

from __future__ import annotations

from planner._record import record
from planner.errors import EngineRefusal, PlannerError
from planner.rules.context import RuleContext

__all__ = ["Figures", "figures_of", "predict_launch"]


@record()
class Figures:
    """Predicted output rate of the server at a number of concurrent requests, with its 90 % interval."""

    target_c: int
    tok_per_s: float
    low: float
    high: float


def predict_launch(context: RuleContext) -> tuple[Figures | None, str | None]:
    """Figures at as many clients as the launch admits, or the reason why there are none."""
    if context.hardware is None or context.model is None:
        return None, "a prediction needs a hardware and a model profile (--hw, --model)"
    if not context.hardware.predictions:
        return None, f"nothing was measured on {context.hardware.id}"
    if context.launch.unknown or context.open_ended:
        return None, f"not every argument could be read: {', '.join(sorted(context.launch.unknown)) or 'further words'}"
    from planner.search.predicting import make_prediction
    from planner.search.request import Question, WorkloadInput

    running = context.effective("max_running_requests")
    clients = running if isinstance(running, int) and running > 0 else 48
    try:
        answer = make_prediction(
            Question(
                hw=context.hardware,
                workload=WorkloadInput.from_mapping({"target_c": clients}),
                model=context.model,
                drafter=context.drafter or "auto",
                engine_version=context.version.nearest,
                dialect=context.dialect,
                gpus=context.n_gpus,
            ),
            context.launch,
        )
    except EngineRefusal as error:
        return None, f"the engine refuses it: {error.message}"
    except PlannerError as error:
        return None, str(error).splitlines()[0]
    estimate = answer.predicted.tok_per_s
    return Figures(clients, estimate.value, estimate.low, estimate.high), None


def figures_of(context: RuleContext) -> tuple[tuple[tuple[str, float], ...], str | None]:
    """The same as pairs for a report."""
    figures, why = predict_launch(context)
    if figures is None:
        return (), why
    return (
        ("target_c", float(figures.target_c)),
        ("tok_per_s", figures.tok_per_s),
        ("low", figures.low),
        ("high", figures.high),
    ), None
