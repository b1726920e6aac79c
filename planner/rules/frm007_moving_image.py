"""The engine image is not pinned.

What it checks:
    A container image of the engine with no tag, or with a tag that moves (latest, dev, nightly).

Why:
    A third of all known faults begin or end with an engine version. With a moving tag no version-bound finding
    can be decided, and a restart may run another engine than the last one.

Fix:
    Pin a release tag; a person has to choose it.

Known problems:
    None known.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_MOVING = frozenset({"latest", "dev", "main", "nightly", ""})


def _check(ctx: RuleContext) -> Iterator[Hit]:
    image = ctx.container.image if ctx.container is not None else None
    if image is None or "sglang" not in image or "@sha256:" in image or "$" in image:
        return
    tag = image.rsplit("/", 1)[-1].partition(":")[2]
    if tag in _MOVING:
        yield Hit(f"image {image} is not pinned: its engine version is unknown and may change")


RULE = Rule(
    code="FRM007",
    slug="moving-image",
    title="The engine image is not pinned",
    consequence=Consequence.SILENT,
    status=Status.ESTABLISHED,
    sources=(
        "sgl-project/sglang issue 31093 (a dated image works, the next release crashes)",
        "SemiAnalysisAI/InferenceX PR 1420 (crash after an image bump)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        'FROM lmsysorg/sglang:latest\nCMD ["python3", "-m", "sglang.launch_server", "--model-path", "Qwen/Qwen3-8B"]\n',
        form="dockerfile",
    ),
    good=Example(
        "FROM lmsysorg/sglang:v0.5.16-cu130\n"
        'CMD ["python3", "-m", "sglang.launch_server", "--model-path", "Qwen/Qwen3-8B"]\n',
        form="dockerfile",
    ),
    informs=True,
)
