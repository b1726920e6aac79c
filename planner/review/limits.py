"""Limit data over one launch as asked: the scalar form of :mod:`planner.limits`, in which a fact may be unknown.

A limit speaks where every term of its scope is known to hold; where a term is unknown it is skipped and said so. The
value is compared with the interval: on the known-good side nothing is said, in the untested interval one level lower.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.domain import Finding, Fix, FixEdit, Level, Limit, LimitShape, LimitStatus
from planner.domain.limit import LimitScope
from planner.rules.base import Place
from planner.rules.context import RuleContext

__all__ = ["launch_quantity", "limit_findings"]

_FIELDS = {
    "verify_rows_per_rank": ("max_running_requests", "cuda_graph_max_bs_decode"),
    "verify_rows_x_heads_per_rank": ("max_running_requests", "cuda_graph_max_bs_decode"),
    "q_len": ("speculative_ddtree_budget", "speculative_num_draft_tokens"),
    "budget": ("speculative_ddtree_budget", "speculative_num_draft_tokens"),
    "topk": ("speculative_eagle_topk",),
    "cuda_graph_max_bs": ("cuda_graph_max_bs_decode",),
    "attention_dp_size": ("dp_size",),
}


_SAID_BY_A_RULE = frozenset({"NVLS-NEEDS-NVLINK"})
"""Limits that keep a planner from a choice, and that a rule (COM006) reports by what is known to happen."""
_NOT_IN_A_LAUNCH = frozenset({"accept_len_over_block_size", "context_tok"})
"""Quantities of the traffic, which a launch does not state: a review has nothing to say about them."""


def limit_findings(
    context: RuleContext, limits: Sequence[Limit], *, start: Place, file: str
) -> tuple[list[Finding], list[str]]:
    """Findings of the limits that a launch breaks, and the limits that could not be judged with the reason."""
    found: list[Finding] = []
    skipped: list[str] = []
    for limit in limits:
        if limit.status is LimitStatus.RETIRED or not context.on_cuda or limit.id in _SAID_BY_A_RULE:
            continue
        if limit.status is LimitStatus.FIXED_IN and context.within(f"<{limit.fixed_in}") is False:
            continue
        scope, missing = _scope(limit.when, context)
        if scope is False:
            continue
        if scope is None:
            if context.sm is not None and context.sm == limit.when.sm:
                skipped.append(f"{limit.id}: {missing} unknown")
            continue
        broken = _broken(limit, context)
        if broken is None and (context.hardware is None or limit.quantity in _NOT_IN_A_LAUNCH):
            continue
        if broken is None:
            skipped.append(f"{limit.id}: {limit.quantity or limit.settings[0]} unknown")
        elif broken:
            found.append(_finding(limit, context, broken, start, file))
    return found, skipped


def launch_quantity(name: str, context: RuleContext) -> float | None:
    """A named quantity of the launch; None when a part of it is unknown."""
    if name == "verify_rows_per_rank":
        return _verify_rows(context)
    if name == "verify_rows_x_heads_per_rank":
        rows, heads = _verify_rows(context), _heads_per_rank(context)
        return rows * heads if rows is not None and heads is not None else None
    if name in ("q_len", "budget"):
        width = context.q_len
        return None if width is None else float(width if name == "q_len" else width - 1)
    if name == "attention_dp_size":
        return context.attention_dp
    if name in ("tp_size", "ep_size"):
        return context.size(name)
    plain = {"topk": "speculative_eagle_topk", "cuda_graph_max_bs": "cuda_graph_max_bs_decode"}.get(name, name)
    value = context.effective(plain)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _verify_rows(context: RuleContext) -> float | None:
    """min(graph batch, requests a rank) x q_len; a bound that is unknown does not lower the other."""
    width, dp = context.q_len, context.attention_dp
    if width is None or dp is None:
        return None
    running = context.number("max_running_requests")
    if running is None and not context.unread("max_running_requests"):
        resolved = context.effective("max_running_requests")
        running = resolved if isinstance(resolved, int) else (48 if context.speculates else None)
    graph = context.effective("cuda_graph_max_bs_decode") if context.graphs_on else None
    sizes = [max(1, running // dp)] if running is not None else []
    sizes += [graph] if isinstance(graph, int) and not isinstance(graph, bool) else []
    return float(min(sizes) * width) if sizes and running is not None else None


def _heads_per_rank(context: RuleContext) -> float | None:
    heads = context.facts.n_heads if context.facts is not None else None
    if heads is None or not context.tp or not context.attention_dp:
        return None
    return heads * context.attention_dp / context.tp


def _scope(when: LimitScope, context: RuleContext) -> tuple[bool | None, str]:
    """Whether the limit speaks here; None with the name of what is unknown."""
    kind = context.facts.attention if context.facts is not None else None
    spoken = context.algorithm
    backends = context.attention_backends
    if spoken == "DDTREE" and not context.asked_attention:
        backends = frozenset({"triton"})
    terms: list[tuple[str, object, object]] = [
        ("hardware", when.sm, context.sm),
        ("attention kind", when.attention_kind, kind),
        ("heads per rank", when.heads_per_rank, _heads_per_rank(context)),
        ("attention backend", when.attention_backend, next(iter(backends)) if len(backends) == 1 else None),
        ("model", when.model, context.facts.id if context.facts is not None else None),
        ("CUDA graphs", when.cuda_graph, context.graphs_on),
    ]
    if when.speculation is not None:
        form = "off" if not context.speculates else "tree" if spoken == "DDTREE" else "chain"
        terms.append(("speculation", when.speculation, form))
    if when.engine not in (None, "sglang"):
        return False, "engine"
    unknown = ""
    for name, wanted, here in terms:
        if wanted is None:
            continue
        if here is None:
            unknown = unknown or name
        elif here != wanted:
            return False, name
    return (None, unknown) if unknown else (True, "")


def _setting(name: str, wanted: str, context: RuleContext) -> bool | None:
    if name == "cuda_graph":
        return context.graphs_on == (wanted == "true")
    if name in ("attention_backend", "kv_cache_dtype"):
        value = context.effective(name)
        return None if value is None else value == wanted
    if name in ("enable_nccl_nvls", "allreduce_fusion"):
        field = "enable_flashinfer_allreduce_fusion" if name == "allreduce_fusion" else name
        return None if context.unread(field) else context.on(field) == (wanted == "true")
    if name == "nvls":
        return None if context.hardware is None else context.hardware.nvls == (wanted == "true")
    number = launch_quantity(name, context)
    return None if number is None else number == float(wanted)


def _broken(limit: Limit, context: RuleContext) -> str | bool | None:
    """``bad`` or ``untested`` when broken, False when kept, None when it cannot be told."""
    if limit.shape in (LimitShape.AT_MOST, LimitShape.AT_LEAST):
        value = launch_quantity(limit.quantity or "", context)
        if value is None or limit.known_good is None:
            return None
        sign = 1.0 if limit.shape is LimitShape.AT_MOST else -1.0
        if sign * value <= sign * limit.known_good:
            return False
        bad = limit.known_bad if limit.known_bad is not None else limit.known_good
        return "bad" if sign * value >= sign * bad else "untested"
    if limit.shape is LimitShape.ONE_OF:
        return None
    terms = [_setting(name, wanted, context) for name, wanted in limit.terms()]
    if None in terms:
        return None
    if limit.shape is LimitShape.NOT_TOGETHER:
        return "bad" if all(terms) else False
    return "bad" if terms[0] and not all(terms[1:]) else False


def _finding(limit: Limit, context: RuleContext, broken: str | bool, start: Place, file: str) -> Finding:
    level = Level.ERROR if limit.consequence.blocks else Level.WARNING
    if limit.status is LimitStatus.SUSPECTED or broken == "untested":
        level = level.softer
    if not _seen_here(context):
        level = level.softer
    if limit.quantity is not None:
        fields = _FIELDS.get(limit.quantity, (limit.quantity,))
        value = launch_quantity(limit.quantity, context)
        known = f"known good up to {limit.known_good:g}" if limit.known_good is not None else "one of a list"
        bad = f", known bad from {limit.known_bad:g}" if limit.known_bad is not None else ""
        message = f"{limit.title}: {value:g} here, {known}{bad}"
    else:
        fields = tuple(name for name, _ in limit.terms())
        message = f"{limit.title}: {' and '.join(limit.settings)}"
    place = next((spot for name in fields if (spot := context.place_of(name)) is not None), start)
    return Finding(
        code=limit.id,
        slug=limit.id.lower(),
        level=level,
        consequence=limit.consequence,
        message=message,
        why=limit.confidence_note or "",
        fields=fields,
        file=file,
        line=place.line,
        column=place.column,
        fix=_fix(limit, context),
        sources=tuple(f"{item.ref}: {item.outcome}" for item in limit.evidence),
    )


def _seen_here(context: RuleContext) -> bool:
    """Built-in limits were seen on a nightly of May 2026 patched for trees; on another engine, or an unknown one, they
    are softer. A launch that asks for a tree is for such a build."""
    if context.dialect == "field" or context.algorithm == "DDTREE":
        return True
    return context.version.stated and context.within(">=0.5.11,<=0.5.13") is not False


def _fix(limit: Limit, context: RuleContext) -> Fix | None:
    """For row limits: the largest number of requests on the known-good side."""
    width, dp, good = context.q_len, context.attention_dp, limit.known_good
    if limit.quantity == "verify_rows_x_heads_per_rank" and good is not None:
        heads = _heads_per_rank(context)
        good = good / heads if heads else None
    elif limit.quantity != "verify_rows_per_rank":
        return None
    if width is None or dp is None or good is None or good < width:
        return None
    rows = int(good // width)
    return Fix(
        edits=(
            FixEdit(field="max_running_requests", value=rows * dp),
            FixEdit(field="cuda_graph_max_bs_decode", value=rows),
        ),
        note=f"{rows} requests a rank x {width} tokens stay on the known-good side",
    )
