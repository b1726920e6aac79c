"""The context asked for does not fit the cache.

What it checks:
    --context-length (or --max-total-tokens) above the tokens that the cache can hold beside the weights at the
    static fraction, for models whose cache shape is known.

Why:
    The server starts, but a request longer than the pool is refused or waits for ever. With 153600 tokens asked
    for, one report shows 81272 allocated.

Fix:
    A smaller context, or more memory for the cache (FP8 cache, more GPUs); a person should choose.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext
from planner.rules.memory import draft_floor_bytes, static_fraction, weight_floor_bytes

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    weights, fraction = weight_floor_bytes(ctx), static_fraction(ctx)
    if weights is None or ctx.hardware is None or ctx.model is None or fraction is None or not ctx.tp:
        return
    width = 1 if (ctx.text("kv_cache_dtype") or "").startswith("fp8") else 2
    per_tok = float(ctx.model.kv_elements_per_tok_per_layer * ctx.model.n_attention_layers * width)
    if not ctx.is_mla:
        per_tok /= min(ctx.tp, ctx.model.n_kv_heads)
    pool = fraction * ctx.hardware.memory_bytes - weights - draft_floor_bytes(ctx)
    held = int(pool / per_tok)
    for name in ("context_length", "max_total_tokens"):
        asked = ctx.number(name)
        if asked is not None and 0 < held < asked:
            yield Hit(
                f"{ctx.flag_text(name)} {asked}, but the cache holds at most {held} tokens a rank",
                fields=(name,),
                edits=(set_field(name, held // 1024 * 1024),) if held >= 1024 else (),
                safe=False,
            )


RULE = Rule(
    code="MEM005",
    slug="context-beyond-pool",
    title="The context asked for does not fit the cache",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=(
        "sgl-project/sglang issue 35822 (81272 of 153600 tokens)",
        "ai-dynamo/dynamo issue 10104 (max_model_len without room in the cache)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --attention-backend "
        "triton --mem-fraction-static 0.8 --context-length 262144",
        hw="rtx_pro_6000",
        gpus=8,
        model="kimi-k2.6",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 --tp 8 --attention-backend "
        "triton --mem-fraction-static 0.8 --context-length 262144",
        hw="b300",
        gpus=8,
        model="kimi-k2.6",
    ),
)
