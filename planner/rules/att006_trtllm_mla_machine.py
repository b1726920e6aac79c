"""trtllm_mla on a machine that has no kernel for it.

What it checks:
    trtllm_mla, cutlass_mla or cutedsl_mla named on a GPU outside their range.

Why:
    These latent-attention kernels exist for sm_100 and sm_103. The engine raises on Hopper and older. On sm_120
    resolution accepts trtllm_mla, but nothing is known to run there.

Fix:
    On sm_90 flashinfer or fa3, on sm_120 triton.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_DATACENTER_ONLY = frozenset({"trtllm_mla", "cutlass_mla", "cutedsl_mla", "tokenspeed_mla"})


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.sm is None or ctx.sm100 or not ctx.on_cuda:
        return
    for name in ("attention_backend", "prefill_attention_backend", "decode_attention_backend"):
        backend = ctx.text(name)
        if backend in _DATACENTER_ONLY:
            yield Hit(
                f"{backend} has no kernel for {ctx.where}",
                fields=(name,),
                edits=(set_field(name, "triton" if ctx.sm120 else "flashinfer"),),
                suspected=ctx.sm120 and backend == "trtllm_mla",
            )


RULE = Rule(
    code="ATT006",
    slug="trtllm-mla-machine",
    title="trtllm_mla on a machine that has no kernel for it",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/overrides.py:1212,1236",
        "sglang 0.5.12.post1 srt/server_args.py:2730",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --attention-backend trtllm_mla",
        hw="h200",
        gpus=8,
        version="0.5.16",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --attention-backend trtllm_mla",
        hw="b200",
        gpus=8,
        version="0.5.16",
    ),
)
