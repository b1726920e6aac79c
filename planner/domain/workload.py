"""What is asked of the deployment: traffic, needs, ceilings."""

# Annotations are evaluated here, not kept as text: pydantic would compile each of them when the module is imported.

from enum import StrEnum
from typing import Annotated

from pydantic import Field, Strict

from planner.domain.base import Value

__all__ = ["Domain", "Need", "Workload"]


class Domain(StrEnum):
    """Kind of text: an accept length belongs to a traffic."""

    CODE = "code"
    CHAT = "chat"
    MATH = "math"
    UNKNOWN = "unknown"


class Need(StrEnum):
    """Request features that some builds refuse."""

    GRAMMAR = "grammar"
    LOGPROBS = "logprobs"


class Workload(Value):
    """A closed loop of ``target_c`` clients with zero think time, and what must hold for them."""

    target_c: Annotated[int, Strict(), Field(ge=1, le=1_000_000)]
    """Concurrent requests (``--target-c``)."""
    context_tok: Annotated[int, Strict(), Field(ge=1)] = 1024
    """Prompt tokens of a request, cached prefix included."""
    output_tok: Annotated[int, Strict(), Field(ge=1)] = 1024
    prefix_hit_frac: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Part of the prompt that is found in the prefix cache."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    domain: Domain = Domain.UNKNOWN
    needs: frozenset[Need] = frozenset()
    max_ttft_s: Annotated[float, Field(gt=0)] | None = None
    max_tpot_s: Annotated[float, Field(gt=0)] | None = None
    min_tok_per_s_per_user: Annotated[float, Field(gt=0)] | None = None
    allow_queue: bool = False
    """Whether fewer than target_c requests may run at a time."""

    @property
    def mean_context_tok(self) -> float:
        """Mean length of a running sequence during decoding."""
        return self.context_tok + self.output_tok / 2

    @property
    def peak_context_tok(self) -> int:
        """Length of a sequence at its end: what the KV pool must hold for each request."""
        return self.context_tok + self.output_tok
