"""Lower bounds of device memory that rules argue with: what a launch needs at the very least on one rank.

Bounds only: activations, graphs, fragmentation and the context of the driver come on top, so a rule that finds the
bound above the capacity is right whatever the rest needs.
"""

from __future__ import annotations

from planner.rules.context import RuleContext
from planner.rules.models import ModelFacts, WeightForm

__all__ = [
    "draft_floor_bytes",
    "gib",
    "prefill_reserve_bytes",
    "state_bytes_per_request",
    "static_fraction",
    "weight_floor_bytes",
]

GIB = 1024**3
MIB = 1024**2


def gib(n_bytes: float) -> str:
    """Bytes as text in GiB."""
    return f"{n_bytes / GIB:.1f} GiB"


def weight_floor_bytes(ctx: RuleContext) -> float | None:
    """Weights of the target on one rank, at least; None when size, storage or parallel sizes are unknown."""
    if ctx.facts is None or ctx.tp is None or ctx.pp is None or ctx.given("cpu_offload_gb"):
        return None
    return _floor(ctx.facts, ctx.form_of_weights, ctx.tp * ctx.pp)


def draft_floor_bytes(ctx: RuleContext) -> float:
    """Weights of the draft on one rank, at least; 0 when nothing is known."""
    if not ctx.speculates or ctx.tp is None:
        return 0.0
    if ctx.drafter is not None:
        return ctx.drafter.weight_bytes / ctx.tp
    if ctx.given("speculative_draft_model_path"):
        draft = ctx.draft_facts
        return (_floor(draft, draft.form, ctx.tp) or 0.0) if draft is not None else 0.0
    if ctx.facts is None or not ctx.eagle_family:
        return 0.0
    if ctx.facts.draft_rank_gib is not None and ctx.facts.rank_tp is not None:
        return ctx.facts.draft_rank_gib * GIB * ctx.facts.rank_tp / ctx.tp
    if ctx.facts.nextn_params_b is not None and ctx.form_of_weights is not None:
        return ctx.facts.nextn_params_b * 1e9 * ctx.form_of_weights.bits / 8 / ctx.tp
    return 0.0


def _floor(facts: ModelFacts, form: WeightForm | None, n_ranks: int) -> float | None:
    if facts.weight_bytes is not None:
        return facts.weight_bytes / n_ranks
    if facts.rank_gib is not None and facts.rank_tp is not None:
        return facts.rank_gib * GIB * facts.rank_tp / n_ranks
    if facts.params_b is None or form is None:
        return None
    return facts.params_b * 1e9 * form.bits / 8 / n_ranks


def static_fraction(ctx: RuleContext) -> float | None:
    """``mem_fraction_static`` as asked or as the engine would set it."""
    value = ctx.effective("mem_fraction_static")
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def state_bytes_per_request(ctx: RuleContext) -> float | None:
    """Recurrent state of a hybrid model for one running request on one rank: one state, and with speculation one
    more for each draft token of the verify step."""
    facts = ctx.facts
    if facts is None or facts.state_layers is None or facts.state_elements is None or not ctx.tp:
        return None
    width = 2 if ctx.text("mamba_ssm_dtype") in ("bfloat16", "float16") else 4
    one = facts.state_layers * facts.state_elements * width / ctx.tp
    if not ctx.speculates:
        return one
    drafts = ctx.number("speculative_num_draft_tokens")
    return one * (1 + drafts) if drafts is not None else None


def prefill_reserve_bytes(chunk_tok: int, n_ranks: int) -> float:
    """What the engine itself keeps free for activations when it chooses the fraction: 512 MiB, 1.5 MiB a token of the
    prefill chunk, 1 GiB for eight ranks (0.5.23 ``srt/arg_groups/memory_hook.py:276``)."""
    return (512 + 1.5 * max(chunk_tok, 2048) + n_ranks / 8 * 1024) * MIB
