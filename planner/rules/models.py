"""What is publicly known of a model by the name in its path. Unknown stays unknown."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from enum import StrEnum
from functools import cache
from typing import Any

from planner._record import record
from planner.data.files import read_text
from planner.domain import AttentionKind, ModelProfile, WeightDtype

__all__ = ["ModelFacts", "WeightForm", "facts_of_name", "facts_of_profile", "weight_form"]


class WeightForm(StrEnum):
    """How the bulk of a checkpoint is stored."""

    BF16 = "bf16"
    FP8 = "fp8"
    FP8_BLOCK = "fp8_block"
    NVFP4 = "nvfp4"
    MXFP4 = "mxfp4"
    INT4 = "int4"
    INT8 = "int8"

    @property
    def bits(self) -> float:
        """Bits of one parameter, scales included, lower bound (see ``planner.domain.bytes_per_param``)."""
        return {"bf16": 16.0, "fp8": 8.0, "fp8_block": 8.0, "nvfp4": 4.5, "mxfp4": 4.25, "int4": 4.125, "int8": 8.0}[
            self
        ]

    @property
    def is_fp8(self) -> bool:
        """Eight-bit floating point, with any scales."""
        return self in (WeightForm.FP8, WeightForm.FP8_BLOCK)


@record()
class ModelFacts:
    """Facts of a model family and, where the name tells, of the checkpoint. None: unknown."""

    id: str
    name: str
    source: str
    architecture: str | None = None
    attention: str | None = None
    hybrid: str | None = None
    n_heads: int | None = None
    n_kv_heads: int | None = None
    n_experts: int | None = None
    expert_ffn: int | None = None
    dense_ffn: int | None = None
    params_b: float | None = None
    nextn: int | None = None
    nextn_params_b: float | None = None
    native: str | None = None
    multimodal: bool = False
    diffusion: bool = False
    context: int | None = None
    state_layers: int | None = None
    state_elements: int | None = None
    form: WeightForm | None = None
    rank_gib: float | None = None
    rank_tp: int | None = None
    draft_rank_gib: float | None = None
    weight_bytes: float | None = None

    @property
    def is_mla(self) -> bool:
        """Latent attention, with or without a sparse index."""
        return self.attention in ("mla", "dsa")

    @property
    def is_moe(self) -> bool:
        """Mixture of experts."""
        return bool(self.n_experts)


_FORMS: tuple[tuple[str, WeightForm], ...] = (
    (r"nvfp4|[-_]fp4|modelopt[-_]?fp4|w4a4", WeightForm.NVFP4),
    (r"mxfp4", WeightForm.MXFP4),
    (r"w4a8|int4|awq|gptq|w4a16|4bit", WeightForm.INT4),
    (r"w8a8[-_]?int8|int8", WeightForm.INT8),
    (r"fp8", WeightForm.FP8),
    (r"bf16", WeightForm.BF16),
)

_NATIVE_QUANTIZATION = {
    "fp8": WeightForm.FP8_BLOCK,
    "modelopt_fp4": WeightForm.NVFP4,
    "mxfp4": WeightForm.MXFP4,
    "awq": WeightForm.INT4,
    "gptq": WeightForm.INT4,
}

_FORM_OF_DTYPE = {
    WeightDtype.BF16: WeightForm.BF16,
    WeightDtype.FP8: WeightForm.FP8,
    WeightDtype.FP8_BLOCK: WeightForm.FP8_BLOCK,
    WeightDtype.INT4_G32: WeightForm.INT4,
    WeightDtype.INT4_G128: WeightForm.INT4,
    WeightDtype.NVFP4: WeightForm.NVFP4,
    WeightDtype.MXFP4: WeightForm.MXFP4,
}


@cache
def rows_of(part: str) -> tuple[tuple[str, str], ...]:
    """Pattern and TOML text of each row of a part, ``family`` or ``checkpoint``: a launch names one model, so the rows
    that do not match are not read further."""
    found = []
    for text in re.split(r"^(?=\[\[)", read_text("rules/models.toml"), flags=re.MULTILINE)[1:]:
        match = re.search(r"^match = '([^']*)'$", text, re.MULTILINE)
        if match is None:
            raise ValueError(f"rules/models.toml: a row without match = '...': {text[:60]!r}")
        if text.startswith(f"[[{part}]]"):
            found.append((match[1], text))
    return tuple(found)


def read_row(text: str) -> dict[str, Any]:
    """Facts of one row.

    Raises:
        ValueError: a key that is no fact.
    """
    ((row,),) = tomllib.loads(text).values()
    if strange := row.keys() - ModelFacts.__dataclass_fields__.keys() - {"match", "fp8"}:
        raise ValueError(f"rules/models.toml: unknown keys {sorted(strange)}")
    return {key: value for key, value in row.items() if key != "match"}


def weight_form(name: str) -> WeightForm | None:
    """Storage told by a checkpoint's name (``-FP8``, ``NVFP4``); None when the name does not say."""
    short = name.lower()
    return next((form for pattern, form in _FORMS if re.search(pattern, short)), None)


@cache
def facts_of_name(name: str) -> ModelFacts | None:
    """Facts of the model whose path or id is ``name``; None for a name that no row matches."""
    plain = re.split(r"[,;(]| \+ | with ", name)[0].strip().rstrip("/").replace(" ", "-")
    parts = [part for part in plain.split("/") if part]
    short = "/".join(parts[-2:]).lower()
    row = next((read_row(text) for pattern, text in rows_of("family") if re.search(pattern, short)), None)
    if row is None:
        return None
    for pattern, text in rows_of("checkpoint"):
        if re.search(pattern, short):
            extra = read_row(text)
            row |= {key: value for key, value in extra.items() if key != "source"}
            row["source"] = f"{row['source']}; {extra['source']}"
    native = row.get("native")
    form = weight_form(short) or (WeightForm(native) if native else None)
    blocked = row.pop("fp8", None) == "fp8_block" or native == "fp8_block"
    if form is WeightForm.FP8 and blocked and "nvidia/" not in short:
        form = WeightForm.FP8_BLOCK
    return ModelFacts(name=name, form=form, **row)


def facts_of_profile(profile: ModelProfile) -> ModelFacts:
    """The same facts from a full model profile, which knows them exactly."""
    named = facts_of_name(profile.model_path) or facts_of_name(profile.id)
    base = named or ModelFacts(id=profile.id, name=profile.model_path, source=f"model profile {profile.id}")
    dsa = named is not None and named.attention == "dsa"
    attention = "mla" if profile.attention_kind is AttentionKind.MLA else "gqa"
    form = (
        _NATIVE_QUANTIZATION.get(profile.quantization or "")
        or _FORM_OF_DTYPE[profile.expert_dtype if profile.n_experts else profile.dense_dtype]
    )
    return replace(
        base,
        id=profile.id,
        source=f"model profile {profile.id}",
        architecture=profile.architecture,
        attention="dsa" if dsa else attention,
        n_heads=profile.n_heads,
        n_kv_heads=profile.n_kv_heads,
        n_experts=profile.n_experts,
        expert_ffn=profile.expert_ffn_dim or None,
        dense_ffn=profile.dense_ffn_dim or None,
        nextn=profile.n_nextn_layers,
        multimodal=profile.multimodal,
        context=profile.max_context_tok,
        form=form,
        weight_bytes=float(profile.weight_bytes),
        rank_gib=None,
        rank_tp=None,
        draft_rank_gib=None,
    )
