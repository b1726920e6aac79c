"""The container asks for more GPUs than its ranks use.

What it checks:
    GPUs of the container (or CUDA_VISIBLE_DEVICES) above tp_size times pp_size times dp_size.

Why:
    The surplus is reserved and idle. aiconfigurator 0.12.0 multiplies an already multiplied size: 14 of 15
    artefacts asked for 2 to 8 times the GPUs of their own plan.

Fix:
    Ask for as many as the ranks use.

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
    if ctx.tp is None or ctx.pp is None or ctx.dp is None or ctx.multi_node or ctx.unread("nnodes"):
        return
    replicas = 1 if ctx.on("enable_dp_attention") or ctx.launcher == "dynamo" else ctx.dp
    ranks = ctx.tp * ctx.pp * replicas
    visible = ctx.env_value("CUDA_VISIBLE_DEVICES")
    listed = len([part for part in visible.split(",") if part.strip()]) if visible else None
    asked = ctx.container.n_gpus if ctx.container is not None else None
    if asked is not None and asked > ranks:
        yield Hit(f"the container asks for {asked} GPUs, {ranks} ranks run", fields=("tp_size",))
    elif listed is not None and listed > ranks and len(ctx.siblings) <= 1:
        yield Hit(
            f"CUDA_VISIBLE_DEVICES lists {listed} GPUs, {ranks} ranks run",
            fields=("$CUDA_VISIBLE_DEVICES", "tp_size"),
            informs=listed < 16,
        )


RULE = Rule(
    code="PAR008",
    slug="idle-gpus",
    title="The container asks for more GPUs than its ranks use",
    consequence=Consequence.SLOW,
    status=Status.ESTABLISHED,
    sources=(
        "aiconfigurator 0.12.0 output (run_0.sh, k8s_deploy.yaml gpu: 64 for a plan of 8)",
        "ai-dynamo/enhancements PR 62",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "apiVersion: v1\n"
        "kind: Pod\n"
        "metadata: {name: worker}\n"
        "spec:\n"
        "  containers:\n"
        "  - name: worker\n"
        "    image: lmsysorg/sglang:v0.5.16\n"
        '    command: ["python3", "-m", "sglang.launch_server", "--model-path", '
        '"nvidia/Kimi-K2.6-NVFP4", "--tp", "8"]\n'
        '    resources: {limits: {nvidia.com/gpu: "64"}}\n'
        "    volumeMounts: [{name: shm, mountPath: /dev/shm}]\n"
        "  volumes: [{name: shm, emptyDir: {medium: Memory}}]\n",
        form="kubernetes",
    ),
    good=Example(
        "apiVersion: v1\n"
        "kind: Pod\n"
        "metadata: {name: worker}\n"
        "spec:\n"
        "  containers:\n"
        "  - name: worker\n"
        "    image: lmsysorg/sglang:v0.5.16\n"
        '    command: ["python3", "-m", "sglang.launch_server", "--model-path", '
        '"nvidia/Kimi-K2.6-NVFP4", "--tp", "8"]\n'
        '    resources: {limits: {nvidia.com/gpu: "8"}}\n'
        "    volumeMounts: [{name: shm, mountPath: /dev/shm}]\n"
        "  volumes: [{name: shm, emptyDir: {medium: Memory}}]\n",
        form="kubernetes",
    ),
)
