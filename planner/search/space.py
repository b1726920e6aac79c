"""The space of candidates: every combination that the arithmetic of the box, the model and the drafter admits.

What is left out here could not start at all: heads that do not divide, a tree that the drafter cannot fill or that
the build does not have. Everything known to be unsafe or too slow stays in and is masked later, so that the answer
can say what it costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, Strict, ValidationError

from planner.domain import AttentionKind, DrafterProfile, HardwareProfile, ModelProfile, Speculation, Value, Workload
from planner.domain.faults import faults_of
from planner.domain.table import SPECULATION_BY_CODE, CandidateTable, SizeTable
from planner.engine.dialects import Dialect, TreeForm
from planner.errors import InputError, Problem
from planner.estimate.memory import weight_bytes_per_rank

__all__ = ["KV_DTYPES", "MAX_BUDGET", "TREE_TOPK", "Pins", "build_space", "check_pins", "tree_capacity"]

KV_DTYPES = ("bf16", "fp8_e4m3")
MAX_BUDGET = 64
TREE_ALGORITHMS = ("EAGLE", "EAGLE3", "NEXTN", "STANDALONE")
"""Drafters whose trees every release has (sglang.md section 1.1)."""

TREE_TOPK = (2, 3, 4, 6, 8)
"""Candidates per depth that are searched; 4, 6 and 8 are those of the field notes, 6 the cap of PR 29907."""

SIZE_LADDER = (8, 16, 24, 32, 48, 64, 96, 128, 144, 164, 192, 230, 256, 288, 384, 512, 576, 768, 1024, 1152, 2048, 4096)
"""Running requests that are tried above the smallest that serves the clients (the products with 9, 8, 7, 6, 5, 4, 3
and 2 rows under 1152 are among them)."""

GRAPH_BS_FRAC = (1.0, 0.5)
MEM_FRACTIONS = (0.70, 0.75, 0.80, 0.82, 0.85, 0.88, 0.90, 0.92)


_Count = Annotated[int, Strict(), Field(ge=1)]
_CountOrZero = Annotated[int, Strict(), Field(ge=0)]


class Pins(Value):
    """Settings that the user fixed; None leaves them to the search."""

    speculation: Speculation | None = None
    budget: _CountOrZero | None = None
    topk: _CountOrZero | None = None
    tp_size: _Count | None = None
    ep_size: _Count | None = None
    attention_dp_size: _Count | None = None
    max_running_requests: _Count | None = None
    cuda_graph: bool | None = None
    enable_nccl_nvls: bool | None = None
    attention_backend: str | None = None
    kv_cache_dtype: Literal["bf16", "fp8_e4m3"] | None = None
    mem_fraction_static: Annotated[float, Field(gt=0, lt=1)] | None = None

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Pins:
        """Pins from keywords.

        Raises:
            InputError: unknown names and values out of range, all at once.
        """
        try:
            return cls(**given)
        except ValidationError as error:
            raise InputError(problem for _, problem in faults_of(error, cls)) from None


def tree_capacity(block_size: int, topk: int) -> int:
    """Nodes of the full tree that a block drafter can propose: topk candidates at each of block_size - 1 depths."""
    depth = block_size - 1
    return depth if topk == 1 else (topk ** (depth + 1) - topk) // (topk - 1)


def build_space(
    hardware: HardwareProfile,
    model: ModelProfile,
    drafter: DrafterProfile | None,
    workload: Workload,
    *,
    n_gpus: int,
    dialect: Dialect,
    pins: Pins | None = None,
    kv_dtypes: tuple[str, ...] = KV_DTYPES,
    n_waiting: int = 0,
) -> CandidateTable:
    """Every combination that can start, as a table.

    ``n_waiting`` clients wait beside the ``workload.target_c`` that run; the engine fills its seats, so there are as
    many seats as run, however few.

    Layouts whose weights alone exceed a rank's memory are left out, unless that is all of them.

    Raises:
        InputError: the pins leave nothing (all reasons at once).
    """
    pins = pins or Pins()
    problems = check_pins(hardware, model, drafter, n_gpus, pins)
    if problems:
        raise InputError(problems)
    backends = _backends(hardware, model)
    drafts = np.array(_drafts(drafter, dialect, pins), dtype=np.int64).reshape(-1, 3)
    blocks = []
    for tp, ep, adp in _layouts(hardware, model, n_gpus, pins):
        switches = np.array(
            [
                (graph, nvls, fusion, backend, kv)
                for graph in _choice((True, False), pins.cuda_graph)
                for nvls in _choice((True, False), pins.enable_nccl_nvls)
                for fusion in ((False, True) if tp > 1 and adp == 1 and hardware.sm in (90, 100, 103) else (False,))
                for backend in range(len(backends))
                if pins.attention_backend in (None, backends[backend])
                for kv in range(len(kv_dtypes))
                if pins.kv_cache_dtype in (None, kv_dtypes[kv])
                if (nvls is False or tp > 1)
            ],
            dtype=np.int64,
        ).reshape(-1, 5)
        fitting = drafts if adp == 1 else drafts[drafts[:, 0] == 0]
        block = np.empty((len(fitting), len(switches), 12), dtype=np.int64)
        block[:, :, :4] = tp, ep, adp, n_gpus // tp
        block[:, :, 4:7] = fitting[:, None]
        block[:, :, 7:] = switches
        blocks.append(block.reshape(-1, 12))
    core = np.concatenate(blocks) if blocks else np.empty((0, 12), dtype=np.int64)
    # A tree runs on Triton alone.
    columns = core[(core[:, 4] < 2) | (np.array(backends)[core[:, 10]] == "triton")].T
    if not columns.shape[1]:
        raise InputError([_nothing_left(drafter, dialect, pins)])
    pages = np.array([64 if name in ("trtllm_mla", "trtllm_mha") else 1 for name in backends], dtype=np.int64)
    return CandidateTable(
        tp_size=columns[0].copy(),
        ep_size=columns[1].copy(),
        attention_dp_size=columns[2].copy(),
        replicas=columns[3].copy(),
        speculation=columns[4].copy(),
        budget=columns[5].copy(),
        topk=columns[6].copy(),
        cuda_graph=columns[7].astype(bool),
        enable_nccl_nvls=columns[8].astype(bool),
        allreduce_fusion=columns[9].astype(bool),
        attention_backend=columns[10].copy(),
        page_size=pages[columns[10]],
        kv_cache_dtype=columns[11].copy(),
        sizes=_sizes(workload, n_gpus, pins, least=1 if n_waiting else 8),
        mem_fraction_static=np.array(
            MEM_FRACTIONS if pins.mem_fraction_static is None else (pins.mem_fraction_static,), dtype=np.float64
        ),
        backends=backends,
        kv_dtypes=kv_dtypes,
    )


def _choice(options: Sequence[bool], pin: bool | None) -> Sequence[bool]:
    return options if pin is None else (pin,)


def _layouts(hardware: HardwareProfile, model: ModelProfile, n_gpus: int, pins: Pins) -> list[tuple[int, int, int]]:
    """``(tp_size, ep_size, attention_dp_size)``."""
    layouts = list(_divisors(model, n_gpus, pins))
    most = max(MEM_FRACTIONS if pins.mem_fraction_static is None else (pins.mem_fraction_static,))
    fitting = [
        (tp, ep, adp)
        for tp, ep, adp in layouts
        if float(weight_bytes_per_rank(model, tp_size=tp, attention_dp_size=adp)) < most * hardware.memory_bytes
    ]
    return fitting or layouts


def _divisors(model: ModelProfile, n_gpus: int, pins: Pins) -> Iterable[tuple[int, int, int]]:
    for tp in range(1, n_gpus + 1):
        if n_gpus % tp or model.n_heads % tp or pins.tp_size not in (None, tp):
            continue
        experts = sorted({1, tp}) if model.n_experts and model.n_experts % tp == 0 else [1]
        for ep in experts:
            if pins.ep_size not in (None, ep):
                continue
            for adp in (1, 2, 4, 8, 16):
                if tp % adp == 0 and pins.attention_dp_size in (None, adp):
                    yield tp, ep, adp


def tree_topk(drafter: DrafterProfile, dialect: Dialect, budget: int) -> tuple[int, ...]:
    """Widths that a tree of ``budget`` nodes can have in this build: the user's choice, or derived from the budget.
    Empty: no tree (where the width is derived, a budget within the spine is a chain)."""
    if drafter.algorithm in TREE_ALGORITHMS or dialect.tree is TreeForm.BUDGET_TOPK:
        return TREE_TOPK
    if dialect.tree is TreeForm.BUDGET and dialect.full_tree(budget=budget, block_size=drafter.block_size):
        return (dialect.derived_topk(budget=budget, block_size=drafter.block_size),)
    return TREE_TOPK if dialect.tree is TreeForm.WIDTH else ()


def _nothing_left(drafter: DrafterProfile | None, dialect: Dialect, pins: Pins) -> Problem:
    """Why no candidate has the settings asked for, where one of them alone says it."""
    form = pins.speculation
    if drafter is None and form not in (None, Speculation.OFF):
        return Problem(f"{form.value}: there is no drafter", field="--speculation", hint="name one with --drafter")
    if form is Speculation.TREE and not dialect.has_tree:
        message = f"tree: {dialect.id} has no tree for this drafter; no SGLang release up to 0.5.23 has one"
        return Problem(message, field="--speculation", hint="name a build that has with --dialect, without a release")
    hint = "fix fewer settings, or name another --dialect"
    return Problem(f"nothing that {dialect.id} builds has the settings asked for", hint=hint)


def _drafts(drafter: DrafterProfile | None, dialect: Dialect, pins: Pins) -> list[tuple[int, int, int]]:
    """``(speculation code, budget, topk)``; topk is 1 for a chain and 0 when off."""
    drafts = [(0, 0, 0)]
    if drafter is not None:
        deepest = drafter.block_size - 1
        drafts += [(1, budget, 1) for budget in range(1, deepest + 1)]
        drafts += [
            (2, budget, topk)
            for budget in range(2, min(MAX_BUDGET, dialect.budget_max or MAX_BUDGET) + 1)
            for topk in tree_topk(drafter, dialect, budget)
            if topk <= budget <= tree_capacity(drafter.block_size, topk)
        ]
    wanted = None if pins.speculation is None else SPECULATION_BY_CODE.index(pins.speculation)
    return [
        (code, budget, topk)
        for code, budget, topk in drafts
        if wanted in (None, code)
        and (pins.budget is None or pins.budget == budget)
        and (pins.topk is None or pins.topk == topk)
    ]


def _backends(hardware: HardwareProfile, model: ModelProfile) -> tuple[str, ...]:
    """Attention backends that are searched: Triton, and the engine's own choice on that architecture (sglang 0.5.23
    srt/arg_groups/model_overrides: trtllm on sm_100 and sm_103, fa3 on sm_90, flashinfer elsewhere but for MLA on
    sm_120, which stays on Triton)."""
    latent = model.attention_kind is AttentionKind.MLA
    if hardware.sm in (100, 103):
        return ("triton", "trtllm_mla" if latent else "trtllm_mha")
    if hardware.sm == 90:
        return ("triton", "fa3")
    return ("triton",) if latent else ("triton", "flashinfer")


def _sizes(workload: Workload, n_gpus: int, pins: Pins, *, least: int = 8) -> SizeTable:
    shares = {-(-workload.target_c // replicas) for replicas in range(1, n_gpus + 1) if n_gpus % replicas == 0}
    smallest = {max(least, share) for share in shares}
    if pins.max_running_requests is not None:
        running = [pins.max_running_requests]
    else:
        largest = max(smallest)
        above = [size for size in SIZE_LADDER if size > largest][:2]
        below = [size for size in SIZE_LADDER if size < largest] if workload.allow_queue else []
        multiples = [16 * -(-size // 16) for size in smallest]
        running = sorted(smallest | {*above, *below, *multiples})
    grid = np.array(np.meshgrid(running, GRAPH_BS_FRAC, indexing="ij")).reshape(2, -1)
    return SizeTable(max_running_requests=grid[0].astype(np.int64), cuda_graph_max_bs_frac=grid[1].copy())


def _contradictions(pins: Pins) -> Iterable[Problem]:
    """Pins that rule each other out whatever the machine."""
    form, budget, topk = pins.speculation, pins.budget, pins.topk
    if budget is not None and form is not None and (form is Speculation.OFF) != (budget == 0):
        hint = "off goes with budget 0, a draft with 1 or more"
        yield Problem(f"--budget {budget} does not go with --speculation {form.value}", field="--budget", hint=hint)
    if form is Speculation.TREE and budget == 1:
        hint = "a chain of 1 is --speculation chain"
        yield Problem("a tree has 2 nodes or more", field="--budget", value=budget, hint=hint)
    if form is Speculation.TREE and topk in (0, 1):
        yield Problem("a tree has 2 candidates a depth or more", field="--topk", value=topk, hint="1 is a chain")
    if form is Speculation.CHAIN and topk not in (None, 1):
        yield Problem("a chain has one candidate a depth", field="--topk", value=topk, hint="leave --topk out")
    if pins.attention_dp_size not in (None, 1) and form in (Speculation.CHAIN, Speculation.TREE):
        message = "drafts are planned without attention DP"
        hint = "DFLASH refuses it before 0.5.23 and needs two more flags there (speculative_hook.py:303)"
        yield Problem(message, field="--attention-dp-size", value=pins.attention_dp_size, hint=hint)


def check_pins(
    hardware: HardwareProfile, model: ModelProfile, drafter: DrafterProfile | None, n_gpus: int, pins: Pins
) -> list[Problem]:
    """What is wrong with the pins on this box, model and drafter, all at once."""
    problems = [*_contradictions(pins)]
    if pins.budget is not None and drafter is None and pins.budget > 0:
        problems.append(
            Problem(
                f"budget {pins.budget} needs a drafter",
                field="--budget",
                hint=f"name one for {model.id} with --drafter",
            )
        )
    if pins.budget is not None and drafter is not None and pins.budget > 0:
        deepest = drafter.block_size - 1
        topk = pins.topk or (1 if pins.speculation is Speculation.CHAIN else max(TREE_TOPK))
        if pins.speculation is Speculation.CHAIN:
            topk = 1
        most = min(MAX_BUDGET, tree_capacity(drafter.block_size, topk))
        if pins.budget > most:
            what = f"a chain of {drafter.id} is at most {deepest} deep (block_size {drafter.block_size})"
            if topk > 1:
                what = f"a tree of {drafter.id} with topk {topk} has at most {most} nodes that are searched"
            problems.append(
                Problem(
                    f"the drafter cannot fill a budget of {pins.budget}: {what}",
                    field="--budget",
                    value=pins.budget,
                    hint=f"ask for 1 to {most}",
                )
            )
    if pins.topk is not None and pins.topk not in (0, 1, *TREE_TOPK):
        hint = f"one of 1, {', '.join(map(str, TREE_TOPK))}"
        problems.append(Problem(f"topk {pins.topk} is not searched", field="--topk", value=pins.topk, hint=hint))
    if pins.tp_size is not None and (n_gpus % pins.tp_size or model.n_heads % pins.tp_size):
        problems.append(
            Problem(
                f"tp_size {pins.tp_size} must divide {n_gpus} GPUs and {model.n_heads} heads",
                field="--tp-size",
                value=pins.tp_size,
            )
        )
    elif not list(_divisors(model, n_gpus, pins)):
        given = [(name, getattr(pins, name)) for name in ("tp_size", "ep_size", "attention_dp_size")]
        asked = ", ".join(f"{name} {value}" for name, value in given if value is not None)
        field = "--ep-size" if pins.ep_size is not None else "--attention-dp-size"
        hint = "ep_size is 1 or tp_size, attention_dp_size a power of two that divides tp_size"
        problems.append(Problem(f"no layout has {asked}", field=field, hint=hint))
    if pins.attention_backend is not None and pins.attention_backend not in _backends(hardware, model):
        hint = f"searched on {hardware.id}: {', '.join(_backends(hardware, model))}"
        message = f"attention backend {pins.attention_backend!r} is not searched"
        problems.append(Problem(message, field="--attention-backend", value=pins.attention_backend, hint=hint))
    return problems
