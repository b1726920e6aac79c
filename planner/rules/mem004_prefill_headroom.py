"""Little memory is left for the prefill chunk.

What it checks:
    An explicit static fraction that leaves less than half of what the engine itself would keep free for the
    prefill chunk asked for; further tokenizer workers count against it.

Why:
    Activations of a prefill chunk live outside the static fraction. The engine's own choice keeps 1.5 MiB a
    token; recipes that run keep at least half of that. A server below starts and runs out of memory at the
    first long prompt. Each tokenizer worker holds about 0.7 GiB of context on GPU 0.

Fix:
    A lower fraction, or a smaller chunk; a person should choose.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext
from planner.rules.memory import gib, prefill_reserve_bytes

__all__ = ["RULE"]

_WORKER_BYTES = 0.7 * 1024**3


def _check(ctx: RuleContext) -> Iterator[Hit]:
    fraction, chunk = ctx.asked("mem_fraction_static"), ctx.number("chunked_prefill_size")
    if ctx.hardware is None or not isinstance(fraction, (int, float)) or chunk is None or chunk < 8192 or not ctx.tp:
        return
    workers = (ctx.number("tokenizer_worker_num") or 1) - 1
    left = (1 - fraction) * ctx.hardware.memory_bytes - workers * _WORKER_BYTES
    kept = prefill_reserve_bytes(chunk, ctx.tp)
    if left < 0.5 * kept:
        yield Hit(
            f"{gib(left)} stay free for a prefill chunk of {chunk} tokens; the engine itself would keep {gib(kept)}",
            fields=("mem_fraction_static", "chunked_prefill_size"),
            edits=(set_field("chunked_prefill_size", 8192),),
            safe=False,
        )


RULE = Rule(
    code="MEM004",
    slug="prefill-headroom",
    title="Little memory is left for the prefill chunk",
    consequence=Consequence.OOM,
    status=Status.SUSPECTED,
    sources=(
        "SemiAnalysisAI/InferenceX PR 2312 (0.8 and 32768 on 96 GB fail at the first 8K prefill)",
        "sglang 0.5.23 srt/arg_groups/memory_hook.py:276",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path nvidia/Qwen3.5-397B-A17B-NVFP4 "
        "--tensor-parallel-size 4 --quantization modelopt_fp4 --attention-backend flashinfer "
        "--mem-fraction-static 0.8 --chunked-prefill-size 32768 --tokenizer-worker-num 6",
        hw="rtx_pro_6000",
        gpus=4,
        version="0.5.16",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path nvidia/Qwen3.5-397B-A17B-NVFP4 "
        "--tensor-parallel-size 4 --quantization modelopt_fp4 --attention-backend flashinfer "
        "--mem-fraction-static 0.7 --chunked-prefill-size 8192",
        hw="rtx_pro_6000",
        gpus=4,
        version="0.5.16",
    ),
)
