"""Measured steps that ship with the planner, as rows: what calibrations and the accuracy table are made from."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from planner.domain import ModelProfile

__all__ = [
    "EXCLUDED",
    "TPOT_SYSTEMS",
    "Exclusion",
    "autoregressive_rows",
    "excluded",
    "field_rows",
    "overlapped_rows",
    "quoted_model",
    "round_rows",
    "tpot_rows",
]

TPOT_SYSTEMS = ("b200", "h200")

Exclusion = tuple[str, str]
"""What the id of a row contains, and why the row is left out."""

EXCLUDED: tuple[Exclusion, ...] = (
    (
        "cfg635",
        "15 rows say EP16 on 4 GPUs and list a quarter of the concurrency that their id says; their TPOT is near that "
        "of the EP4 rows at the id's concurrency",
    ),
    (
        "h200_sxm_vllm_int4_agg_1024x8192_c16_tp8_0_ep1_0_605",
        "63.98 ms at C = 16, where C = 8 has 12.3 ms and C = 32 has 22.5 ms: five times its neighbours",
    ),
)


def excluded(row_id: str) -> str | None:
    """Why a row of the TPOT file is left out, or None."""
    return next((why for part, why in EXCLUDED if part in row_id), None)


@lru_cache(maxsize=1)
def _tpot() -> tuple[Mapping[str, Any], ...]:
    from planner.data.files import read_text

    lines = [line for line in read_text("observations/kimi_k25_tpot.csv").splitlines() if not line.startswith("#")]
    rows = []
    for entry in csv.DictReader(lines):
        rows.append(
            {
                "id": entry["id"],
                "system": entry["system"].removesuffix("_sxm"),
                "engine_version": f"{entry['backend']} {entry['version']}",
                "tp_size": int(entry["tp"]),
                "ep_size": int(entry["moe_ep"]),
                "weight_dtype": entry["moe_dtype"],
                "concurrency": int(entry["concurrency"]),
                "context_tok": int(entry["isl"]),
                "output_tok": int(entry["osl"]),
                "step_s": float(entry["tpot_ms"]) / 1e3,
            }
        )
    return tuple(rows)


def tpot_rows(system: str, *, with_excluded: bool = False) -> list[dict[str, object]]:
    """Autoregressive TPOT of Kimi K2.5 on ``b200`` or ``h200`` as rows of a fit."""
    return [
        {key: value for key, value in row.items() if key != "system"}
        for row in _tpot()
        if row["system"] == system and (with_excluded or excluded(row["id"]) is None)
    ]


@lru_cache(maxsize=1)
def _quoted() -> Mapping[str, Any]:
    from planner.data.files import read_text

    return tomllib.loads(read_text("observations/steps.toml"))


def field_rows(*, role: str = "calibrate") -> list[dict[str, object]]:
    """Field notes as rows, steps derived from tok/s: ``calibrate`` (FN-01 to FN-03) or ``predict`` (FN-08, FN-14)."""
    rows = []
    for entry in _quoted()["field"]:
        if entry["role"] == role:
            row = {key: value for key, value in entry.items() if key not in ("role", "tok_per_s", "ref", "note")}
            row["step_s"] = entry["concurrency"] * entry.get("accept_len", 1.0) / entry["tok_per_s"]
            rows.append({**row, "id": entry["ref"]})
    return rows


def round_rows() -> list[dict[str, object]]:
    """Quoted verify-round times of Qwen3-4B on one H100 (tree arms), as rows of a fit."""
    table = _quoted()["round"]
    return [
        {
            "id": f"q{q_len}c{concurrency}",
            "engine_version": table["engine_version"],
            "overlap": table["overlap"],
            "tp_size": 1,
            "kind": "tree",
            "q_len": q_len,
            "concurrency": concurrency,
            "step_s": ms / 1e3,
        }
        for q_len, concurrency, ms in table["points"]
    ]


def overlapped_rows() -> list[dict[str, object]]:
    """Plain decoding and a DFLASH chain of Qwen3-4B on one H100, overlap scheduling on, steps derived from tok/s."""
    table = _quoted()["overlapped"]
    common = {name: table[name] for name in ("engine_version", "context_tok", "output_tok")} | {"tp_size": 1}
    rows: list[dict[str, object]] = []
    for i, concurrency in enumerate(table["concurrency"]):
        here = common | {"concurrency": concurrency}
        rows.append(here | {"id": f"off C={concurrency}", "step_s": concurrency / table["off_tok_per_s"][i]})
        accept = table["chain_accept_len"][i]
        chain = {"kind": "chain", "q_len": table["q_len"], "draft": table["draft"], "accept_len": accept}
        step_s = concurrency * accept / table["chain_tok_per_s"][i]
        rows.append(here | chain | {"id": f"chain C={concurrency}", "step_s": step_s})
    return rows


def quoted_model(model_id: str) -> ModelProfile:
    """The model of a quoted measurement (``qwen3-4b``, ``qwen3-8b``, ``qwen3-30b-a3b``), from its published shape."""
    from planner.data.hf_config import model_from_hf_config

    return model_from_hf_config(_quoted()["config"][model_id], folder=Path(model_id))


def autoregressive_rows() -> dict[str, list[dict[str, object]]]:
    """Plain decoding on one B200 with SGLang, by model id of :func:`quoted_model`."""
    table = _quoted()["autoregressive"]
    return {
        entry["id"]: [
            {
                "id": f"{entry['id']} C={concurrency}",
                "engine_version": table["engine_version"],
                "tp_size": 1,
                "concurrency": concurrency,
                "context_tok": table["context_tok"],
                "output_tok": table["output_tok"],
                "step_s": concurrency / tok_per_s,
            }
            for concurrency, tok_per_s in zip(table["concurrency"], entry["tok_per_s"], strict=True)
        ]
        for entry in table["model"]
    }
