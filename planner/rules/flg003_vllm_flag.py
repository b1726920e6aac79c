"""A flag of vLLM's server.

What it checks:
    A flag that belongs to vLLM's command line and that SGLang does not have.

Why:
    The two servers are configured with different names; SGLang's parser exits with code 2 on an unknown flag.

Fix:
    The flag of SGLang that comes closest is written where there is one; values that mean something else in
    SGLang need a person.

Known problems:
    A flag that both servers have is not reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field, unset
from planner.rules.context import FaultKind, RuleContext
from planner.rules.flag_history import is_vllm, twin_of

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.diffusion:
        return
    for fault in ctx.faults:
        if fault.kind is FaultKind.UNKNOWN and is_vllm(fault.flag):
            twin = twin_of(fault.flag)
            say = f"SGLang's is {twin}" if twin else "SGLang has no such option"
            yield Hit(
                f"{fault.flag} is vLLM's; {say}",
                fields=(fault.flag,),
                place=fault.place,
                edits=(set_field(fault.flag, twin) if twin else unset(fault.flag),),
                safe=False,
            )


RULE = Rule(
    code="FLG003",
    slug="vllm-flag",
    title="A flag of vLLM's server",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sgl-project/sglang issue 555",
        "vLLM documentation, engine arguments (0.6 to 0.11)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --max-model-len 32768 --gpu-memory-utilization 0.9",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --context-length 32768 --mem-fraction-static 0.9",
    ),
)
