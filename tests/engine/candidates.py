"""Hypothesis strategies for candidates, as the search makes them, with the build that can express them."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from planner.domain import Candidate, Speculation
from planner.engine.dialects import DIALECTS

VERSIONS = ("0.5.11", "0.5.12.post1", "0.5.13", "0.5.15.post1", "0.5.16", "0.5.23")


@dataclass(frozen=True)
class Wanted:
    """One call of emit_launch."""

    hw: str
    candidate: Candidate
    version: str
    dialect: str


@st.composite
def wanted(
    draw: st.DrawFn, *, versions: tuple[str, ...] = VERSIONS, dialects: tuple[str, ...] = tuple(sorted(DIALECTS))
) -> Wanted:
    """A candidate that a build should be able to run: backends, page sizes and graphs that go together."""
    dialect = draw(st.sampled_from(dialects))
    speaks = DIALECTS[dialect]
    version = draw(st.sampled_from(versions)) if not speaks.has_tree else speaks.base_version
    hw = draw(st.sampled_from(["b300", "rtx_pro_6000", "h200"]))
    form = draw(st.sampled_from([Speculation.OFF, Speculation.CHAIN, *([Speculation.TREE] if speaks.has_tree else [])]))
    block = 8
    budget = 0
    if form is Speculation.CHAIN:
        budget = block - 1
    elif form is Speculation.TREE:
        budget = draw(st.integers(8, 24))
    running = draw(st.integers(1, 64))
    replicas = draw(st.sampled_from([1, 2]))
    tp_size = 8 // replicas
    block_with_dp = form is Speculation.CHAIN and version == "0.5.23"  # older releases refuse DFLASH with attention DP
    attention_dp = draw(st.sampled_from([1, 2, 4])) if form is Speculation.OFF or block_with_dp else 1
    graphs = draw(st.booleans())
    per_rank = max(1, running // attention_dp)
    tree = form is Speculation.TREE
    backend, page = (
        ("triton", 1) if tree or hw == "rtx_pro_6000" else ("trtllm_mla", 64) if hw == "b300" else ("fa3", 1)
    )
    topk = 0 if form is Speculation.OFF else 1 if form is Speculation.CHAIN else draw(st.integers(2, 4))
    candidate = Candidate(
        tp_size=tp_size,
        ep_size=draw(st.sampled_from([1, tp_size])),
        attention_dp_size=attention_dp,
        replicas=replicas,
        speculation=form,
        budget=budget,
        topk=topk,
        q_len=budget + 1,
        max_running_requests=max(running, attention_dp),
        cuda_graph=graphs,
        cuda_graph_max_bs=per_rank if graphs else 0,
        enable_nccl_nvls=draw(st.booleans()) and hw != "rtx_pro_6000",
        allreduce_fusion=draw(st.booleans()) and hw == "b300" and attention_dp == 1,
        attention_backend=backend,
        page_size=page,
        kv_cache_dtype="bf16",
        mem_fraction_static=draw(st.sampled_from([0.8, 0.85, 0.9])),
        dialect=dialect,
        engine_version=version,
    )
    return Wanted(hw, candidate, version, dialect)
