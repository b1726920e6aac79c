"""trtllm_mha on a machine that has no kernel for it.

What it checks:
    trtllm_mha named on GPUs where the engine version refuses it: for prefill everything but sm_100 and sm_103
    before 0.5.23; for decoding sm_120 and Hopper before 0.5.11; everything before Hopper always.

Why:
    The engine raises while it resolves ("TRTLLM MHA backend ... is only supported on ...").

Fix:
    triton on sm_120, fa3 on Hopper, flashinfer elsewhere.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.sm is None or ctx.sm100 or not ctx.on_cuda:
        return
    good = "triton" if ctx.sm120 else "fa3" if ctx.sm == 90 else "flashinfer"
    known = ctx.sm120 or ctx.sm == 90
    for name in ("attention_backend", "prefill_attention_backend", "decode_attention_backend"):
        if ctx.text(name) != "trtllm_mha":
            continue
        since = "<0.5.11" if name == "decode_attention_backend" else "<0.5.23"
        refused = ctx.within(since) if known else True
        if refused is not False:
            yield Hit(
                f"{ctx.flag_text(name)} trtllm_mha is refused on {ctx.where}",
                fields=(name,),
                edits=(set_field(name, good),),
                suspected=refused is None,
            )


RULE = Rule(
    code="ATT019",
    slug="trtllm-mha-machine",
    title="trtllm_mha on a machine that has no kernel for it",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.5 srt/server_args.py:1243",
        "sglang 0.5.11 srt/server_args.py:2631,2644",
        "sglang 0.5.23 srt/arg_groups/attention_hook.py:203,225",
        "sgl-project/sglang issue 9140",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --attention-backend trtllm_mha",
        hw="rtx_5090",
        gpus=1,
        version="2025-08",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --attention-backend trtllm_mha",
        hw="b200",
        gpus=1,
        version="2025-08",
    ),
)
