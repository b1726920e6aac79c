"""The library's functions: a question in the caller's words, an immutable value as the answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.domain import (
        DrafterProfile,
        HardwareProfile,
        Launch,
        LaunchConfig,
        ModelProfile,
        Plan,
        Prediction,
        Workload,
    )

__all__ = ["plan", "predict"]


def plan(
    hw: str | Path | HardwareProfile = "b300",
    target_c: int = 1,
    *,
    model: str | Path | ModelProfile = "kimi-k2.6",
    drafter: str | Path | DrafterProfile | None = "auto",
    context: int = 1024,
    output_len: int = 1024,
    prefix_hit: float = 0.0,
    temperature: float = 0.0,
    domain: str = "unknown",
    needs: str | Iterable[str] = (),
    max_ttft_ms: float | None = None,
    max_tpot_ms: float | None = None,
    min_tok_per_user: float | None = None,
    allow_queue: bool = False,
    limits: str | Path | Sequence[str | Path] = (),
    lift: Mapping[str, str] | Iterable[str] | None = None,
    risk: str = "safe",
    robust: float | None = None,
    engine_version: str | None = None,
    dialect: str | None = None,
    gpus: int | None = None,
    calibration: str | Path | None = None,
    **pins: Any,
) -> Plan:
    """The safe launch with the highest projected throughput.

    Args:
        hw: hardware profile: id, TOML file or value.
        target_c: clients of a closed loop with zero think time.
        model: model profile: id, TOML file, folder with ``config.json``, or value.
        drafter: likewise; ``auto`` takes the one trained for the model, None or ``none`` plans without speculation.
        context: prompt tokens of a request.
        output_len: output tokens of a request.
        prefix_hit: share of the prompt found in the prefix cache, 0 to 1.
        temperature: sampling temperature; accept length falls above 0.
        domain: ``code``, ``chat``, ``math`` or ``unknown``.
        needs: request features that must work: ``grammar``, ``logprobs``; also in one string, with commas.
        max_ttft_ms: ceiling on time to first token.
        max_tpot_ms: ceiling on time per output token.
        min_tok_per_user: floor on the rate of each user, tok/s.
        allow_queue: whether fewer than ``target_c`` requests may run at a time.
        limits: TOML files with limits, added to the built-in ones.
        lift: limit id -> reason (or ``ID=REASON`` texts), for limits to be set aside; printed in the plan.
        risk: ``safe`` stays on the known-good side of every limit, ``edge`` enters the untested interval.
        robust: quantile of tok/s to maximise instead of the median, such as 0.1.
        engine_version: SGLang release, image tag or month; None: see ``docs/plan.md``.
        dialect: build with tree speculation.
        gpus: GPUs of the box to use; all by default.
        calibration: file that ``plan-config fit`` wrote for this hardware and model.
        **pins: fixed settings, fields of :class:`planner.search.Pins` (``budget=8``, ``tp_size=8``, ...).

    Returns:
        A :class:`planner.domain.Plan`; ``status`` says whether there is a launch.

    Raises:
        InputError: bad input, every problem at once.
        MissingDataError: nothing was measured to predict from.
    """
    from planner.search.planning import make_plan
    from planner.search.request import Question, WorkloadInput
    from planner.search.space import Pins

    return make_plan(
        Question(
            hw=hw,
            workload=WorkloadInput(
                target_c=target_c,
                context=context,
                output_len=output_len,
                prefix_hit=prefix_hit,
                temperature=temperature,
                domain=domain,
                needs=_words(needs),
                max_ttft_ms=max_ttft_ms,
                max_tpot_ms=max_tpot_ms,
                min_tok_per_user=min_tok_per_user,
                allow_queue=allow_queue,
            ),
            model=model,
            drafter=drafter,
            limits=_paths(limits),
            engine_version=engine_version,
            dialect=dialect,
            risk=risk,
            lift=_reasons(lift),
            gpus=gpus,
            pins=Pins.read(pins),
            robust=robust,
            calibration=calibration,
        )
    )


def predict(
    hw: str | Path | HardwareProfile,
    model: str | Path | ModelProfile = "kimi-k2.6",
    *,
    launch: str | Sequence[str] | Launch | LaunchConfig,
    workload: Mapping[str, Any] | Workload | None = None,
    drafter: str | Path | DrafterProfile | None = "auto",
    accept_len: float | None = None,
    engine_version: str | None = None,
    dialect: str | None = None,
    limits: str | Path | Sequence[str | Path] = (),
    gpus: int | None = None,
    calibration: str | Path | None = None,
) -> Prediction:
    """What a given launch would do, with every limit that it breaks. Nothing is chosen.

    Args:
        hw: hardware profile.
        model: model profile.
        launch: argv as a list (from ``python -m ...`` or the flags alone) or as one command line, the ``launch`` of a
            plan, or a LaunchConfig.
        workload: keywords of :func:`plan` that describe traffic (``target_c``, ``context``, ``output_len``, ...),
            or a Workload.
        drafter: drafter profile; ``auto`` takes the one trained for the model.
        accept_len: accept length measured on this traffic, in place of the model's.
        engine_version: SGLang release, image tag or month.
        dialect: how the build spells tree speculation; with neither this nor a version named, told from the flags.
        limits: TOML files with limits, added to the built-in ones.
        gpus: GPUs of the box.
        calibration: file that ``plan-config fit`` wrote for this hardware and model.

    Raises:
        InputError: bad input, every problem at once.
        EngineRefusal: the engine would refuse the launch.
        MissingDataError: nothing was measured to predict from.
    """
    from planner.search.predicting import make_prediction
    from planner.search.request import Question, WorkloadInput

    question = Question(
        hw=hw,
        workload=WorkloadInput.of(workload or {}),
        model=model,
        drafter=drafter,
        limits=_paths(limits),
        engine_version=engine_version,
        dialect=dialect,
        gpus=gpus,
        calibration=calibration,
    )
    return make_prediction(question, launch, accept_len=accept_len)


def _words(given: str | Iterable[str]) -> tuple[str, ...]:
    """Words as the command line takes them (``grammar,logprobs``), or one by one."""
    return tuple(one.strip() for one in given.split(",") if one.strip()) if isinstance(given, str) else tuple(given)


def _paths(given: str | Path | Sequence[str | Path]) -> tuple[str | Path, ...]:
    """One path is a list of one."""
    return (given,) if isinstance(given, str | Path) else tuple(given)


def _reasons(given: Mapping[str, str] | Iterable[str] | None) -> dict[str, str]:
    """Limit id -> reason; a text without a reason keeps an empty one, which is refused where limits are read."""
    if isinstance(given, Mapping):
        return dict(given)
    texts = (given,) if isinstance(given, str) else tuple(given or ())
    return {name.strip(): reason.strip() for name, _, reason in (text.partition("=") for text in texts)}
