"""One rule, three uses: what the planner emits is clean under its own review, limits and rules alike."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from planner.domain import Launch, Level, Plan

CLIENTS = (1, 8, 32, 64, 128, 192, 256, 512)


def faults(plan: Plan, launch: Launch) -> list[str]:
    """Findings above a note for one launch of a plan."""
    assert plan.effective is not None
    words = [f"{name}={shlex.quote(value)}" for name, value in launch.env] + [shlex.quote(word) for word in launch.argv]
    report = planner.check(
        " ".join(words) + "\n",
        hw=plan.versions.hardware,
        model=plan.versions.model,
        drafter=plan.versions.drafter,
        engine_version=plan.effective.engine_version,
        dialect=plan.effective.dialect,
        form="shell",
    )
    assert report.launches
    return [f"{one.code}: {one.message}" for one in report.findings if one.level is not Level.NOTE]


@pytest.mark.parametrize("target_c", CLIENTS)
@pytest.mark.parametrize("hw", ["b300", "rtx_pro_6000", "h200"])
@pytest.mark.parametrize("version", [None, "0.5.23", "0.5.12.post1"])
def test_every_launch_of_a_plan_is_clean(hw: str, target_c: int, version: str | None) -> None:
    plan = planner.plan(hw=hw, target_c=target_c, engine_version=version)
    if plan.launch is None:
        assert plan.conflict is not None
        assert plan.conflict.ids
        return
    launches = [*plan.launches, *(plan.other_build.launches if plan.other_build is not None else ())]
    for launch in plan.launches:
        assert faults(plan, launch) == []
    assert launches[0] == plan.launch


@settings(max_examples=25)
@given(
    hw=st.sampled_from(("b300", "rtx_pro_6000", "h200", "b200")),
    target_c=st.sampled_from((1, 5, 16, 48, 96, 200)),
    context=st.sampled_from((512, 4096, 16384)),
    dialect=st.sampled_from((None, "field", "pr29907", "upstream")),
    needs=st.sampled_from(((), ("grammar",))),
    queue=st.booleans(),
)
def test_any_plan_is_clean(
    hw: str, target_c: int, context: int, dialect: str | None, needs: tuple[str, ...], queue: bool
) -> None:
    plan = planner.plan(hw=hw, target_c=target_c, context=context, dialect=dialect, needs=needs, allow_queue=queue)
    for launch in plan.launches:
        assert faults(plan, launch) == []
    if plan.effective is not None:
        assert plan.effective.tp_size * plan.effective.replicas == 8
        prediction = planner.predict(
            hw,
            launch=plan.launches[0].argv,
            workload={"target_c": max(1, target_c // plan.effective.replicas), "context": context},
            dialect=plan.effective.dialect,
            engine_version=plan.effective.engine_version,
        )
        names = ("tp_size", "ep_size", "attention_dp_size", "speculation", "budget", "q_len", "max_running_requests")
        names += ("cuda_graph", "cuda_graph_max_bs", "enable_nccl_nvls", "attention_backend", "kv_cache_dtype")
        for name in names:
            assert getattr(prediction.effective, name) == getattr(plan.effective, name), name
