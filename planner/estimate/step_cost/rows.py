"""Rows of measurements or questions, as people write them, into batches: defaults, spellings, every fault at once."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from planner.domain import DrafterProfile, HardwareProfile, ModelProfile, WeightDtype
from planner.errors import InputError, Problem, nearest_hint
from planner.estimate.step_cost.batch import SPECULATION_KINDS, StepBatch, attention_backend_code
from planner.estimate.step_cost.kernels import FloatArray

__all__ = [
    "ACCEPT_FIELDS",
    "ROW_DEFAULTS",
    "ROW_FIELDS",
    "RowGroup",
    "default_tp_size",
    "framework_of",
    "known_overlap",
    "place_of",
    "read_rows",
    "row_name",
]

ROW_DEFAULTS: Mapping[str, str] = {
    "engine_version": "SGLang",
    "tp_size": "1 when the weights fit one GPU, else all GPUs of the box",
    "ep_size": "1",
    "attention_dp_size": "1",
    "weight_dtype": "the profile's",
    "kv_dtype": "bf16",
    "attention_backend": "the engine's default",
    "q_len": "1",
    "draft": "none",
    "kind": "tree when q_len is above 1 and draft is not none, chain when a drafter's block fits q_len",
    "concurrency": "1",
    "context_tok": "1024 (prompt tokens)",
    "output_tok": "absent: a bare step, without prefill of other requests",
    "prefix_hit_frac": "0",
    "draft_steps": "q_len - 1, at most the drafter's block - 1 (for a drafter that runs once a drafted token)",
    "overlap": "off for a tree on a block drafter; by engine_version: off for block drafters up to SGLang 0.5.13 and "
    "for trees up to 0.5.12, else on",
    "accept_len": "1 without speculation, else the smaller of q_len and 4",
    "cuda_graph": "true",
    "cuda_graph_max_bs": "no limit",
    "nvls": "false",
    "allreduce_fusion": "false",
}
"""Fields of a row and what an absent one means."""

ACCEPT_FIELDS = ("topk", "rounds", "domain", "temperature", "bonus_counted")
"""What a row may say of its accept length beside ``accept_len``."""

ROW_FIELDS = frozenset({*ROW_DEFAULTS, *ACCEPT_FIELDS, "step_s", "id", "source", "note", "file", "line"})
"""``file`` and ``line`` say where a row was read: faults are reported there."""

_DTYPES = {
    "bf16": WeightDtype.BF16,
    "bfloat16": WeightDtype.BF16,
    "fp16": WeightDtype.BF16,
    "float16": WeightDtype.BF16,
    "fp8": WeightDtype.FP8_BLOCK,
    "fp8_block": WeightDtype.FP8_BLOCK,
    "int4": WeightDtype.INT4_G32,
    "int4_wo": WeightDtype.INT4_G32,
    "int4_g32": WeightDtype.INT4_G32,
    "int4_g128": WeightDtype.INT4_G128,
    "w4a16": WeightDtype.INT4_G32,
    "awq": WeightDtype.INT4_G128,
    "fp4": WeightDtype.NVFP4,
    "nvfp4": WeightDtype.NVFP4,
    "mxfp4": WeightDtype.MXFP4,
}

_KV_BYTES = {
    "bf16": 2.0,
    "bfloat16": 2.0,
    "fp16": 2.0,
    "float16": 2.0,
    "auto": 2.0,
    "fp8": 1.0,
    "fp8_e4m3": 1.0,
    "fp8_e5m2": 1.0,
}

_MEANT = {
    "tp": "tp_size",
    "ep": "ep_size",
    "dp": "attention_dp_size",
    "dp_size": "attention_dp_size",
    "isl": "context_tok",
    "input_len": "context_tok",
    "osl": "output_tok",
    "output_len": "output_tok",
    "batch": "concurrency",
    "batch_size": "concurrency",
    "running": "concurrency",
    "kv_cache_dtype": "kv_dtype",
    "dtype": "weight_dtype",
    "drafter": "draft",
    "budget": "q_len (budget + 1)",
    "tpot_s": "step_s",
    "step_ms": "step_s, in seconds",
    "speculative_num_steps": "draft_steps",
    "num_steps": "draft_steps",
    "speculative_eagle_topk": "topk",
    "eagle_topk": "topk",
    "top_k": "topk",
    "speculative_num_draft_tokens": "q_len",
    "num_draft_tokens": "q_len",
    "speculative_eagle_top_k": "topk",
    "topK": "topk",
    "overlap_schedule": "overlap",
    "enable_overlap": "overlap",
    "disable_overlap_schedule": "overlap, true where this is false",
    "tpot_ms": "step_s, in seconds",
}
"""Names that other tools use: reading past them would mean a default where a value was given."""

_NEVER_EMPTY = ("concurrency", "step_s")
"""A NaN here is a measurement that went wrong, not a cell that was left empty."""

_MAX_TOPK = 64.0
"""More branches than any build drafts: a value beyond is a mistake."""
_DEFAULT_TOPK = 4.0
"""Branches of a tree that does not say: what SGLang 0.5 picks where nothing is given (srt/server_args.py)."""
_FIT_FRAC = 0.8
"""Weights above this share of one GPU's memory need more than one."""


@dataclass(frozen=True, slots=True, eq=False)
class RowGroup:
    """Rows that one :class:`planner.estimate.step_cost.costs.KernelCosts` serves."""

    framework: str
    model: ModelProfile
    drafted: bool
    """Whether a drafter runs (its forward is a part of the step)."""
    index: tuple[int, ...]
    """Positions in the input."""
    batch: StepBatch
    step_s: FloatArray
    """Measured seconds (n,), NaN where absent."""


def default_tp_size(hardware: HardwareProfile, model: ModelProfile) -> int:
    """1 when the weights fit one GPU (at most 80 % of its memory), else all GPUs of the box."""
    return 1 if model.weight_bytes <= _FIT_FRAC * hardware.memory_bytes else hardware.n_gpus


def framework_of(engine_version: object) -> str:
    """``vllm`` or ``sglang`` from an engine version: by name, or by number (SGLang is at 0.5, vLLM above)."""
    text = str(engine_version).lower()
    if "vllm" in text:
        return "vllm"
    if "sglang" in text or "sgl" in text:
        return "sglang"
    match = re.match(r"v?0\.(\d+)", text)
    return "vllm" if match and int(match.group(1)) >= 6 else "sglang"


def known_overlap(engine_version: str, drafter: DrafterProfile | None, *, tree: bool) -> float:
    """Whether a speculative step's host work overlaps the GPU's: 1 on, 0 off, 0.5 not known.

    SGLang turns the overlap scheduler off for a block drafter up to 0.5.13 (0.5.12.post1 srt/server_args.py:3707,
    0.5.13 srt/arg_groups/speculative_hook.py:240; not in 0.5.14), for a tree up to 0.5.12 (srt/server_args.py:3748) and
    for every draft of 0.5.6 and before, unless asked otherwise; when chains of EAGLE began to overlap, after 0.5.6 and
    by 0.5.11, was not read. A tree on a block drafter runs in builds of its own, none of which is known to overlap
    (docs/dialects.md). A version that is not stated counts as new, a drafter that is not known as an autoregressive
    one.
    """
    block = drafter is not None and drafter.drafts_blocks
    if tree and block:
        return 0.0
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", engine_version)
    if match is None:
        return 1.0
    release = tuple(map(int, match.groups()))
    if release >= ((0, 5, 14) if block else (0, 5, 13) if tree else (0, 5, 11)):
        return 1.0
    return 0.5 if not block and not tree and release > (0, 5, 6) else 0.0


def _with_dtype(model: ModelProfile, dtype: WeightDtype) -> ModelProfile:
    """The model with its experts (of a dense model: everything) stored in ``dtype``; FP8 checkpoints store all so."""
    if not model.n_moe_layers:
        return model if model.dense_dtype is dtype else model.replace(dense_dtype=dtype)
    if model.expert_dtype is dtype or {model.expert_dtype, dtype} <= {WeightDtype.INT4_G32, WeightDtype.INT4_G128}:
        return model
    if dtype is WeightDtype.FP8_BLOCK:
        return model.replace(expert_dtype=dtype, dense_dtype=dtype)
    return model.replace(expert_dtype=dtype)


def row_name(row: Mapping[str, object], position: int) -> str:
    """How a message names a row: by position, or by id where the file and line say the rest."""
    id_ = row.get("id")
    if row.get("file"):
        return str(id_) if id_ else "this row"
    return f"row {position}" + (f" ({id_})" if id_ else "")


def place_of(row: Mapping[str, object]) -> tuple[str | None, int | None]:
    """File and line that a row was read from, where it says."""
    file, line = row.get("file"), row.get("line")
    return (str(file) if file else None), (int(line) if isinstance(line, int) else None)


class _Reader:
    """Reads one row; faults go to ``problems``."""

    def __init__(self, row: Mapping[str, object], position: int, problems: list[Problem]) -> None:
        self.row = row
        self.name = row_name(row, position)
        self.file, self.line = place_of(row)
        self.problems = problems

    def fault(self, field: str, message: str, hint: str | None = None) -> None:
        text, value = f"{self.name}: {message}", self.row.get(field)
        self.problems.append(Problem(text, file=self.file, line=self.line, field=field, value=value, hint=hint))

    def absent(self, field: str) -> bool:
        """Whether the row does not say: no such key, None, an empty text, or the NaN of a table's empty cell."""
        value = self.row.get(field)
        if isinstance(value, float) and math.isnan(value):
            return field not in _NEVER_EMPTY
        return value is None or (isinstance(value, str) and not value.strip())

    def number(self, field: str, default: float, low: float, *, high: float = math.inf, whole: bool = False) -> float:
        if self.absent(field):
            return default
        raw = self.row[field]
        try:
            value = float(raw) if not isinstance(raw, bool) else math.nan  # type: ignore[arg-type]
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            self.fault(field, f"{raw!r} is not a number")
            return default
        if value < low or (whole and value != int(value)):
            self.fault(field, f"{raw!r} must be {'a whole number' if whole else 'a number'} of at least {low:g}")
            return default
        if value > high:
            self.fault(field, f"{raw!r} must be at most {high:g}")
            return default
        return value

    def flag(self, field: str, default: bool) -> bool:
        if self.absent(field):
            return default
        raw = self.row[field]
        text = str(raw).strip().lower()
        if text in ("true", "1", "1.0", "yes", "on"):
            return True
        if text in ("false", "0", "0.0", "no", "off"):
            return False
        self.fault(field, f"{raw!r} is neither true nor false")
        return default

    def choice(self, field: str, default: str, known: Sequence[str]) -> str:
        if self.absent(field):
            return default
        text = str(self.row[field]).strip().lower()
        if text not in known:
            self.fault(field, f"{text!r} is unknown", nearest_hint(text, [name for name in known if name]))
            return default
        return text


def read_rows(
    rows: Sequence[Mapping[str, object]],
    *,
    hardware: HardwareProfile,
    model: ModelProfile,
    drafter: DrafterProfile | None = None,
    need_step: bool = False,
) -> list[RowGroup]:
    """Group rows by framework, weight format and whether a drafter runs, with defaults filled (:data:`ROW_DEFAULTS`).

    Args:
        rows: mappings. A field that looks like a misspelt one is refused; other fields are the caller's own.
        need_step: whether each row must have a measured ``step_s``.

    Raises:
        InputError: every fault of every row at once.
    """
    problems: list[Problem] = []
    made: dict[tuple[str, WeightDtype, WeightDtype, bool], list[tuple[int, dict[str, float], float]]] = {}
    models: dict[tuple[str, WeightDtype, WeightDtype, bool], ModelProfile] = {}
    for position, row in enumerate(rows):
        if not isinstance(row, Mapping):
            problems.append(Problem(f"row {position} is a {type(row).__name__}, not a mapping of field to value"))
            continue
        reader = _Reader(row, position, problems)
        for field in sorted(str(name) for name in set(row) - ROW_FIELDS):
            meant = _MEANT.get(field) or next(iter(get_close_matches(field, ROW_DEFAULTS, n=1, cutoff=0.75)), None)
            if meant is not None:
                reader.fault(field, "unknown field", f"write {meant}")
        values, step_s, drafted, dtype = _read_row(reader, hardware, model, drafter, need_step=need_step)
        framework = "sglang" if reader.absent("engine_version") else framework_of(row["engine_version"])
        own = model if dtype is None else _with_dtype(model, dtype)
        key = (framework, own.expert_dtype, own.dense_dtype, drafted)
        models[key] = own
        made.setdefault(key, []).append((position, values, step_s))
    if problems:
        raise InputError(problems)
    return [
        RowGroup(
            framework=key[0],
            model=models[key],
            drafted=key[3],
            index=tuple(position for position, _, _ in members),
            batch=StepBatch.from_columns(
                **{name: [values[name] for _, values, _ in members] for name in members[0][1]}
            ),
            step_s=np.array([step_s for _, _, step_s in members]),
        )
        for key, members in made.items()
    ]


def _read_row(
    reader: _Reader, hardware: HardwareProfile, model: ModelProfile, drafter: DrafterProfile | None, *, need_step: bool
) -> tuple[dict[str, float], float, bool, WeightDtype | None]:
    row = reader.row
    name = reader.choice("weight_dtype", "", [*_DTYPES, "auto", ""])
    dtype = _DTYPES.get(name)
    tp = reader.number("tp_size", float(default_tp_size(hardware, model)), 1, whole=True)
    q_len = reader.number("q_len", 1, 1, whole=True)
    draft = "none" if reader.absent("draft") else str(row["draft"]).strip()
    drafted = draft.lower() not in ("none", "off", "false", "")
    kind = reader.choice("kind", _default_kind(q_len, draft, drafter), [*SPECULATION_KINDS, "none"])
    speculation = 0 if kind == "none" else SPECULATION_KINDS.index(kind)
    if speculation and q_len == 1:
        reader.fault("q_len", f"a {kind} verifies more than one token a step, q_len is 1", "give q_len = budget + 1")
    output_tok = reader.number("output_tok", 0.0, 0)
    context_tok = reader.number("context_tok", 1024.0, 1)
    hit = reader.number("prefix_hit_frac", 0.0, 0, high=1)
    attention_dp = reader.number("attention_dp_size", 1, 1, whole=True)
    if tp % attention_dp:
        reader.fault("attention_dp_size", f"{attention_dp:g} attention-DP ranks do not divide tp_size {tp:g}")
    elif model.n_heads * attention_dp % tp:
        reader.fault(
            "tp_size", f"{tp / attention_dp:g} ranks cannot share the {model.n_heads} attention heads of {model.id}"
        )
    step_s = reader.number("step_s", math.nan, 0)
    if need_step and (reader.absent("step_s") or step_s == 0):
        reader.fault("step_s", "a measured step_s in seconds, above zero, is needed to fit")
    backend = "default" if reader.absent("attention_backend") else str(row["attention_backend"])
    topk = reader.number("topk", 1.0 if kind != "tree" else _DEFAULT_TOPK, 1, high=_MAX_TOPK, whole=True)
    if kind == "chain" and topk > 1:
        reader.fault("topk", f"a chain has one branch, topk is {topk:g}", "kind = tree, or leave topk out")
    version = "" if reader.absent("engine_version") else str(row["engine_version"])
    overlap = known_overlap(version, drafter if drafted else None, tree=kind == "tree")
    values = {
        "tp_size": tp,
        "ep_size": reader.number("ep_size", 1, 1, whole=True),
        "attention_dp_size": attention_dp,
        "q_len": q_len,
        "speculation": float(speculation),
        "running": reader.number("concurrency", 1, 1e-9),
        "context_tok": context_tok + output_tok / 2,
        "prompt_tok": context_tok * (1.0 - hit) if output_tok > 0 else 0.0,
        "output_tok": max(output_tok, 1.0),
        "accept_len": _accept_len(reader, q_len, drafter if drafted else None),
        "cuda_graph": float(reader.flag("cuda_graph", True)),
        "cuda_graph_max_bs": reader.number("cuda_graph_max_bs", float(1 << 20), 0),
        "nvls": float(reader.flag("nvls", False)),
        "allreduce_fusion": float(reader.flag("allreduce_fusion", False)),
        "kv_bytes_per_element": _KV_BYTES[reader.choice("kv_dtype", "bf16", list(_KV_BYTES))],
        "attention_backend": float(attention_backend_code(backend.lower())),
        "topk": topk if speculation else 1.0,
        "draft_steps": _draft_steps(reader, q_len, drafter if drafted else None) if speculation else 0.0,
        "overlap": overlap if reader.absent("overlap") else float(reader.flag("overlap", True)),
    }
    return values, step_s, drafted, dtype


def _draft_steps(reader: _Reader, q_len: float, drafter: DrafterProfile | None) -> float:
    """Draft steps of one verify step; 0: not said. More of them than drafted tokens kill a server at its first decode
    (SPC027, docs/h200.md)."""
    steps = reader.number("draft_steps", 0.0, 0, whole=True)
    if steps > q_len - 1 and not (drafter is not None and drafter.drafts_blocks):
        message = f"{steps:g} draft steps for {q_len - 1:g} drafted tokens"
        reader.fault("draft_steps", message, "q_len is budget + 1, draft_steps at most the budget")
        return 0.0
    return steps


def _accept_len(reader: _Reader, q_len: float, drafter: DrafterProfile | None) -> float:
    """Tokens of one step: never more than the step verifies, nor than the drafter's block."""
    without_bonus = not reader.absent("accept_len") and not reader.flag("bonus_counted", True)
    value = reader.number("accept_len", min(q_len, 4.0), 0 if without_bonus else 1) + without_bonus
    cap = min(q_len, float(drafter.block_size)) if drafter is not None and q_len > 1 else q_len
    if value > cap:
        reader.fault(
            "accept_len",
            f"{value:g} is above its cap of {cap:g} (q_len {q_len:g}"
            + (f", block of {drafter.block_size}" if drafter is not None and cap < q_len else "")
            + ")",
            "q_len counts the root (budget + 1), accept_len the bonus token once: with speculation off it is 1",
        )
        return cap
    return value


def _default_kind(q_len: float, draft: str, drafter: DrafterProfile | None) -> str:
    if q_len <= 1:
        return "off"
    if drafter is not None and draft.lower() not in ("none", "") and q_len <= drafter.block_size:
        return "chain"
    return "tree"
