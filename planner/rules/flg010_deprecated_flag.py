"""A deprecated spelling.

What it checks:
    A flag that the engine version still takes but has renamed or given up, or that the newest known version no
    longer takes.

Why:
    The old name stops working at an update: --cuda-graph-max-bs, --nsa-decode-backend and
    --mamba-scheduler-strategy went that way in 2026.

Fix:
    Write the new name where this version has it. Safe.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import FaultKind, RuleContext

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    for fault in ctx.faults:
        if fault.kind is not FaultKind.DEPRECATED:
            continue
        new = fault.options[0] if fault.options else None
        here = new is not None and ctx.knows_flag(new)
        yield Hit(
            f"{fault.flag} is deprecated" + (f"; the newer name is {new}" if new else ""),
            fields=(fault.flag,),
            place=fault.place,
            edits=(set_field(fault.flag, new),) if new is not None and here else (),
        )


RULE = Rule(
    code="FLG010",
    slug="deprecated-flag",
    title="A deprecated spelling",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.16 srt/server_args.py:7201",
        "sglang 0.5.23 srt/arg_groups/argparse_actions.py:56",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --cuda-graph-max-bs 64",
        version="0.5.16",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --cuda-graph-max-bs-decode 64",
        version="0.5.16",
    ),
    informs=True,
)
