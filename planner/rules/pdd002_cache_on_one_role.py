"""Prefill and decode servers keep different caches.

What it checks:
    Prefill and decode launches of one file that ask for different cache types or page sizes.

Why:
    Pages are copied between the servers as they are; both sides must lay them out alike. The transfer fails or
    fills the pool with bytes of another type.

Fix:
    Give both roles the same values.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    for prefill, decode in ctx.role_pairs():
        for name in ("kv_cache_dtype", "page_size"):
            one, other = prefill.asked(name), decode.asked(name)
            if one is not None and other is not None and one != other:
                yield Hit(
                    f"{name}: prefill {one}, decode {other}",
                    fields=(name,),
                    place=decode.place_of(name),
                )


RULE = Rule(
    code="PDD002",
    slug="cache-on-one-role",
    title="Prefill and decode servers keep different caches",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/disaggregation/base/conn.py (KVArgs: item lengths and page size of both sides)",
        "SGLang documentation, PD disaggregation",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --disaggregation-mode "
        "prefill --tp 8 --kv-cache-dtype fp8_e4m3 &\n"
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --disaggregation-mode "
        "decode --tp 8 --kv-cache-dtype bf16\n",
        form="bash",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --disaggregation-mode "
        "prefill --tp 8 --kv-cache-dtype fp8_e4m3 &\n"
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --disaggregation-mode "
        "decode --tp 8 --kv-cache-dtype fp8_e4m3\n",
        form="bash",
    ),
    per_file=True,
)
