"""Prefill and decode servers speculate differently.

What it checks:
    Prefill and decode launches of one file whose speculative algorithm or numbers differ.

Why:
    The draft's cache and hidden states travel from prefill to decode. With speculation on one side only, one
    engine stops with a component-count mismatch and another answers with worse results (0.96 to 0.88 on gsm8k)
    and no error.

Fix:
    Give both roles the same speculative arguments.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_NUMBERS = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")


def _check(ctx: RuleContext) -> Iterator[Hit]:
    for prefill, decode in ctx.role_pairs():
        if prefill.unread("speculative_algorithm") or decode.unread("speculative_algorithm"):
            continue
        if prefill.open_ended or decode.open_ended:
            continue
        one, other = prefill.algorithm, decode.algorithm
        if (one is None) != (other is None):
            with_it, without = ("decode", "prefill") if other is not None else ("prefill", "decode")
            holder = decode if other is not None else prefill
            yield Hit(
                f"{with_it} speculates with {holder.algorithm}, {without} does not: both need the same configuration",
                fields=("speculative_algorithm",),
                place=holder.place_of("speculative_algorithm"),
            )
        elif one is not None:
            differ = [
                name
                for name in _NUMBERS
                if (a := prefill.number(name)) is not None and (b := decode.number(name)) is not None and a != b
            ]
            if differ or {one, other} not in ({one}, {"EAGLE", "NEXTN"}):
                yield Hit(
                    f"prefill and decode speculate differently: {', '.join(differ) or f'{one} and {other}'}",
                    fields=(differ[0] if differ else "speculative_algorithm",),
                    place=decode.place_of(differ[0] if differ else "speculative_algorithm"),
                )


RULE = Rule(
    code="PDD001",
    slug="speculation-on-one-role",
    title="Prefill and decode servers speculate differently",
    consequence=Consequence.WRONG_OUTPUT,
    status=Status.ESTABLISHED,
    sources=("SemiAnalysisAI/InferenceX PR 2305 (changelog)",),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --disaggregation-mode prefill --tp 8 &\n"
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --disaggregation-mode "
        "decode --tp 8 --max-running-requests 64 --speculative-algorithm EAGLE --speculative-num-steps 1 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 2\n",
        form="bash",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --disaggregation-mode "
        "prefill --tp 8 --max-running-requests 64 --speculative-algorithm EAGLE --speculative-num-steps "
        "1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 2 &\n"
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --disaggregation-mode "
        "decode --tp 8 --max-running-requests 64 --speculative-algorithm EAGLE --speculative-num-steps 1 "
        "--speculative-eagle-topk 1 --speculative-num-draft-tokens 2\n",
        form="bash",
    ),
    per_file=True,
)
