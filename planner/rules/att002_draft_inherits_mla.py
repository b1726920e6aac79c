"""A draft without MLA inherits the target's trtllm_mla.

What it checks:
    EAGLE3 or STANDALONE with a separate draft on an MLA target on sm_100 or sm_103, where trtllm_mla is asked
    for or chosen by default and no draft backend is named.

Why:
    The draft worker takes the target's attention backend. A Llama-type draft has no latent attention, and the
    engine raises "trtllm_mla backend can only be used with MLA models".

Fix:
    Name the draft's backend: --speculative-draft-attention-backend trtllm_mha. Safe.

Known problems:
    Drafts that use MLA themselves are told by mla in their name.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    draft = ctx.text("speculative_draft_model_path")
    if ctx.algorithm not in ("EAGLE3", "STANDALONE") or draft is None or not ctx.sm100 or not ctx.is_mla:
        return
    if ctx.given("speculative_draft_attention_backend") or "mla" in draft.rsplit("/", 1)[-1].lower():
        return
    if ctx.facts is not None and ctx.facts.attention == "dsa":
        return
    if any(ctx.unread(name) for name in ("attention_backend", "decode_attention_backend")):
        return
    asked = ctx.asked_attention
    if asked and "trtllm_mla" not in asked:
        return
    how = "is asked for" if asked else "is the default here"
    yield Hit(
        f"trtllm_mla {how} on {ctx.where} and the {ctx.algorithm} draft inherits it without having latent attention",
        fields=("speculative_draft_model_path", "speculative_algorithm"),
        edits=(set_field("speculative_draft_attention_backend", "trtllm_mha"),),
    )


RULE = Rule(
    code="ATT002",
    slug="draft-inherits-mla",
    title="A draft without MLA inherits the target's trtllm_mla",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sgl-project/sglang issue 23490, PR 20298",
        "sglang 0.5.11 srt/layers/attention/attention_registry.py:57, srt/model_executor/model_runner.py:2282",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "SGLANG_ENABLE_SPEC_V2=1 sglang serve --model-path moonshotai/Kimi-K2.6 --tensor-parallel-size 4 "
        "--speculative-algorithm EAGLE3 --speculative-draft-model-path drafts/kimi-k2.6-eagle3 "
        "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        hw="gb300",
        gpus=4,
        version="0.5.10",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.5 --tp-size 8 "
        "--speculative-algorithm EAGLE3 --speculative-draft-model-path drafts/Kimi-K25-eagle3 "
        "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        hw="h200",
        gpus=8,
        version="0.5.10",
    ),
    versions="<0.5.12",
)
