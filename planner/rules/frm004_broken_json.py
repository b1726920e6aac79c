"""A JSON argument does not parse.

What it checks:
    Arguments that the engine reads as JSON, when their value is known and begins like an object or a list.

Why:
    The engine calls json.loads on the value while it resolves its arguments; a syntax error ends the start with
    a traceback.

Fix:
    A person has to mend the JSON; the place of the fault is named.

Known problems:
    None known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status, unset
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_JSON_FIELDS = (
    "model_loader_extra_config",
    "json_model_override_args",
    "cuda_graph_config",
    "hicache_storage_backend_extra_config",
    "preferred_sampling_params",
    "mm_process_config",
    "limit_mm_data_per_request",
    "extra_metric_labels",
)


def _check(ctx: RuleContext) -> Iterator[Hit]:
    if ctx.writing_faults("unquoted-json"):
        return
    for name in _JSON_FIELDS:
        value = ctx.asked(name)
        if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
            continue
        try:
            json.loads(value)
        except json.JSONDecodeError as error:
            yield Hit(
                f"{ctx.flag_text(name)} is not valid JSON: {error.msg} at character {error.pos + 1}",
                fields=(name,),
                edits=(unset(name),),
                safe=False,
            )


RULE = Rule(
    code="FRM004",
    slug="broken-json",
    title="A JSON argument does not parse",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.23 srt/arg_groups/fields/model.py",
        "Python documentation, json.loads",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --model-loader-extra-config "
        "'{\"num_threads\": 8,}'",
        form="bash",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path Qwen/Qwen3-8B --model-loader-extra-config '{\"num_threads\": 8}'",
        form="bash",
    ),
)
