"""A container without shared memory for NCCL.

What it checks:
    TP above 1 in docker, compose or Kubernetes without a larger /dev/shm (--shm-size, --ipc=host, an emptyDir
    of medium Memory), or with less than 1 GiB.

Why:
    NCCL keeps its host buffers in /dev/shm; the container default of 64 MiB is too small, and the start ends in
    "Error while creating shared memory segment".

Fix:
    An emptyDir of medium Memory mounted at /dev/shm, or --shm-size or --ipc=host.

Known problems:
    Some container runtimes give more by default; hence suspected.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.rules.base import Example, Hit, Rule, Status
from planner.rules.context import RuleContext
from planner.rules.memory import gib

__all__ = ["RULE"]


def _check(ctx: RuleContext) -> Iterator[Hit]:
    box = ctx.container
    if box is None or box.kind == "dockerfile" or ctx.tp == 1 or box.ipc_host:
        return
    if ctx.tp is None and (box.n_gpus or 1) == 1:
        return
    if box.shm_bytes is not None and box.shm_bytes < 1024**3:
        yield Hit(
            f"/dev/shm of {gib(box.shm_bytes)} for {ctx.tp or 'several'} ranks is small for NCCL", fields=("tp_size",)
        )
    elif box.shm_bytes is None and not box.shm_mounted:
        yield Hit(
            f"{ctx.tp or 'several'} ranks in a container with the default /dev/shm of 64 MiB",
            fields=("tp_size",),
            fix_note="mount an emptyDir {medium: Memory} at /dev/shm, or pass --shm-size 32g or --ipc=host",
        )


RULE = Rule(
    code="COM007",
    slug="container-shm",
    title="A container without shared memory for NCCL",
    consequence=Consequence.CRASH,
    status=Status.SUSPECTED,
    sources=(
        "sgl-project/sglang issue 4259, PR 1986",
        "NVIDIA NCCL documentation, troubleshooting, shared memory",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "apiVersion: v1\n"
        "kind: Pod\n"
        "metadata: {name: sglang}\n"
        "spec:\n"
        "  containers:\n"
        "  - name: sglang\n"
        "    image: lmsysorg/sglang:v0.5.16\n"
        '    command: ["python3", "-m", "sglang.launch_server", "--model-path", '
        '"meta-llama/Meta-Llama-3-8B-Instruct", "--tp", "2"]\n'
        '    resources: {limits: {nvidia.com/gpu: "2"}}\n',
        form="kubernetes",
    ),
    good=Example(
        "apiVersion: v1\n"
        "kind: Pod\n"
        "metadata: {name: sglang}\n"
        "spec:\n"
        "  containers:\n"
        "  - name: sglang\n"
        "    image: lmsysorg/sglang:v0.5.16\n"
        '    command: ["python3", "-m", "sglang.launch_server", "--model-path", '
        '"meta-llama/Meta-Llama-3-8B-Instruct", "--tp", "1"]\n'
        '    resources: {limits: {nvidia.com/gpu: "1"}}\n',
        form="kubernetes",
    ),
)
