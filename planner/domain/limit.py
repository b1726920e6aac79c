"""Limits: what was learned on a machine, as data. Evaluated by ``planner.limits``."""

# Annotations are evaluated here, not kept as text: pydantic would compile each of them when the module is imported.

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from planner.domain.base import Value
from planner.errors import nearest_hint

__all__ = [
    "QUANTITIES",
    "SETTINGS",
    "Consequence",
    "Evidence",
    "Limit",
    "LimitScope",
    "LimitShape",
    "LimitStatus",
]

QUANTITIES = {
    "verify_rows_per_rank": "min(cuda_graph_max_bs, max_running_requests // attention_dp_size) x q_len",
    "verify_rows_x_heads_per_rank": "verify rows of a rank times its attention heads",
    "q_len": "tokens that one verify step runs per request: budget + 1",
    "budget": "draft nodes without the root",
    "topk": "draft candidates per depth",
    "max_running_requests": "running requests of one server",
    "cuda_graph_max_bs": "largest captured decode batch of a rank",
    "accept_len_over_block_size": "accept length over the drafter's block size",
    "context_tok": "prompt and output tokens of a request",
    "tp_size": "tensor-parallel ranks",
    "ep_size": "expert-parallel ranks",
    "attention_dp_size": "attention data-parallel ranks",
    "page_size": "tokens of one KV page",
    "mem_fraction_static": "share of device memory for weights and KV",
}
"""Named quantities that an ``at_most``, ``at_least`` or ``one_of`` limit may speak of."""

SETTINGS = (
    "allreduce_fusion",
    "attention_backend",
    "attention_dp_size",
    "cuda_graph",
    "enable_nccl_nvls",
    "ep_size",
    "kv_cache_dtype",
    "nvls",
    "page_size",
    "replicas",
    "speculation",
    "tp_size",
)
"""Names on the left of ``name=value`` in ``settings``; ``nvls`` is a fact of the hardware."""


class Consequence(StrEnum):
    """What happens when a limit or rule is broken, worst first."""

    CRASH = "crash"
    OOM = "oom"
    WRONG_OUTPUT = "wrong_output"
    HANG = "hang"
    SILENT = "silent"
    SLOW = "slow"

    @property
    def blocks(self) -> bool:
        """Whether a launch that breaks it must not be started (error level)."""
        return self in (Consequence.CRASH, Consequence.OOM, Consequence.WRONG_OUTPUT, Consequence.HANG)


class LimitShape(StrEnum):
    """The closed set of forms that a limit may have."""

    AT_MOST = "at_most"
    AT_LEAST = "at_least"
    ONE_OF = "one_of"
    NOT_TOGETHER = "not_together"
    REQUIRES = "requires"


class LimitStatus(StrEnum):
    """How sure it is and whether it still holds."""

    SUSPECTED = "suspected"
    ESTABLISHED = "established"
    FIXED_IN = "fixed_in"
    RETIRED = "retired"


class Evidence(Value):
    """One run or report behind a limit."""

    ref: str
    outcome: str
    value: float | None = None
    """The quantity's value in that run."""
    note: str | None = None


class LimitScope(Value):
    """Where a limit speaks; outside it the limit is silent. None means any."""

    sm: Annotated[int, Field(gt=0)] | None = None
    attention_kind: str | None = None
    heads_per_rank: Annotated[int, Field(gt=0)] | None = None
    attention_backend: str | None = None
    cuda_graph: bool | None = None
    engine: str | None = None
    model: str | None = None
    """Id of a model profile."""
    speculation: str | None = None
    """``off``, ``chain`` or ``tree``."""


class Limit(Value):
    """A learned boundary of a named quantity (``at_most``, ``at_least``, ``one_of``) or of a set of settings
    (``not_together``, ``requires``)."""

    id: Annotated[str, Field(min_length=1)]
    title: str
    shape: LimitShape
    quantity: str | None = None
    """Named quantity of the code (see ``planner.limits.QUANTITIES``) for at_most, at_least and one_of."""
    known_good: float | None = None
    known_bad: float | None = None
    allowed: tuple[str, ...] = ()
    """Allowed values for one_of."""
    settings: tuple[str, ...] = ()
    """``quantity=value`` terms: not_together forbids all at once; requires: the first implies the others."""
    when: LimitScope = LimitScope()
    status: LimitStatus
    consequence: Consequence
    seen_on: str
    """Engine build or builds on which it was seen."""
    fixed_in: str | None = None
    """First engine version without it (status fixed_in)."""
    confidence_note: str | None = None
    evidence: Annotated[tuple[Evidence, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _shape_has_its_parts(self) -> Self:
        numeric = self.shape in (LimitShape.AT_MOST, LimitShape.AT_LEAST)
        if numeric and (self.quantity is None or self.known_good is None):
            raise ValueError(f"shape {self.shape.value} needs quantity and known_good")
        if numeric and self.known_bad is not None and self.known_good is not None:
            upper = self.shape is LimitShape.AT_MOST
            if (self.known_bad <= self.known_good) if upper else (self.known_bad >= self.known_good):
                side = "above" if upper else "below"
                raise ValueError(f"known_bad {self.known_bad:g} must lie {side} known_good {self.known_good:g}")
        if self.shape is LimitShape.ONE_OF and (self.quantity is None or not self.allowed):
            raise ValueError("shape one_of needs quantity and allowed")
        if self.shape in (LimitShape.NOT_TOGETHER, LimitShape.REQUIRES) and len(self.settings) < 2:
            raise ValueError(f"shape {self.shape.value} needs at least two settings of the form quantity=value")
        if self.status is LimitStatus.FIXED_IN and self.fixed_in is None:
            raise ValueError("status fixed_in needs fixed_in, the first version without the fault")
        return self

    def terms(self) -> tuple[tuple[str, str], ...]:
        """``settings`` split at the equals sign."""
        return tuple(
            (name.strip(), value.strip()) for name, _, value in (term.partition("=") for term in self.settings)
        )

    def unknown_names(self) -> list[tuple[str, str, str]]:
        """``(field, message, hint)`` for each quantity or setting that the planner does not know."""
        faults = []
        known = [*QUANTITIES, *SETTINGS]
        if self.quantity is not None and self.quantity not in (
            known if self.shape is LimitShape.ONE_OF else QUANTITIES
        ):
            faults.append(
                ("quantity", f"unknown quantity {self.quantity!r}", nearest_hint(self.quantity, [*QUANTITIES]))
            )
        for name, value in self.terms():
            if name not in SETTINGS:
                faults.append(("settings", f"unknown setting {name!r}", nearest_hint(name, SETTINGS)))
            elif not value:
                faults.append(("settings", f"{name!r} has no value", "write name=value"))
        return faults
