"""A Hugging Face ``config.json`` as a model or drafter profile. Nothing is downloaded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from planner.domain import AttentionKind, DrafterProfile, ModelProfile, Source, SourceKind, WeightDtype
from planner.domain.model import BLOCK_ALGORITHMS
from planner.errors import InputError, Problem

__all__ = ["drafter_from_hf_config", "model_from_hf_config", "read_hf_config"]

MAX_BYTES = 10 * 1024 * 1024


def read_hf_config(path: Path) -> dict[str, Any]:
    """The JSON object in ``path`` (or in ``path/config.json``).

    Raises:
        InputError: missing, not JSON, or not an object.
    """
    file = path / "config.json" if path.is_dir() else path
    try:
        if file.stat().st_size > MAX_BYTES:
            raise InputError([Problem(f"larger than {MAX_BYTES // 1024 // 1024} MB", file=str(file))])
        data = json.loads(file.read_bytes())
    except OSError as error:
        hint = "a model folder holds config.json"
        raise InputError([Problem(error.strerror or str(error), file=str(file), hint=hint)]) from None
    except ValueError as error:
        raise InputError([Problem(f"not valid JSON: {error}", file=str(file))]) from None
    if not isinstance(data, dict):
        raise InputError([Problem("a config.json holds one object", file=str(file))])
    return data


def model_from_hf_config(config: Mapping[str, Any], *, folder: Path) -> ModelProfile:
    """A model profile from a config (the text part of a multimodal one).

    Raises:
        InputError: naming every key that is missing or does not fit.
    """
    file = str(folder / "config.json")
    text = config.get("text_config")
    multimodal = isinstance(text, dict)
    body: Mapping[str, Any] = {**config, **text} if isinstance(text, dict) else config
    reader = _Reader(body, file)
    layers = reader.count("num_hidden_layers")
    hidden = reader.count("hidden_size")
    heads = reader.count("num_attention_heads")
    vocab = reader.count("vocab_size")
    context = reader.count("max_position_embeddings")
    architectures = config.get("architectures") or body.get("architectures")
    if not (isinstance(architectures, list) and architectures and isinstance(architectures[0], str)):
        reader.problems.append(Problem("missing", file=file, field="architectures", hint="the engine needs its class"))
        architectures = ["unknown"]
    experts = reader.first(("n_routed_experts", "num_experts", "num_local_experts"), 0)
    latent = reader.first(("kv_lora_rank",), 0)
    nope, rope = reader.first(("qk_nope_head_dim",), 0), reader.first(("qk_rope_head_dim",), 0)
    head_dim = nope + rope if latent else reader.first(("head_dim",), hidden // heads if heads else 0)
    dense_layers = layers
    if experts:
        dense_layers = reader.first(("first_k_dense_replace",), 0)
        step = reader.first(("decoder_sparse_step", "moe_layer_freq"), 1)
        if step > 1:
            dense_layers = layers - layers // step
        only = body.get("mlp_only_layers")
        dense_layers += len(only) if isinstance(only, list) else 0
    intermediate = reader.first(("intermediate_size",), 0)
    expert_ffn = reader.first(("moe_intermediate_size",), intermediate) if experts else 0
    shared = reader.first(("n_shared_experts", "num_shared_experts"), 0)
    shared_width = reader.first(("shared_expert_intermediate_size",), 0)
    if shared_width and not shared and expert_ffn:
        shared = max(1, round(shared_width / expert_ffn))
    kinds = body.get("layer_types")
    full = (
        sum(1 for kind in kinds if "full" in str(kind) or "sliding" in str(kind))
        if isinstance(kinds, list) and any("linear" in str(kind) for kind in kinds)
        else layers
    )
    quantization, expert_dtype, dense_dtype = _quantization(config, body, file, reader.problems)
    if reader.problems:
        raise InputError(reader.problems)
    attention = AttentionKind.MLA if latent else AttentionKind.HYBRID if full < layers else AttentionKind.GQA
    try:
        return ModelProfile(
            id=folder.name or str(folder),
            name=folder.name or str(folder),
            model_path=str(folder),
            architecture=architectures[0],
            attention_kind=attention,
            n_layers=layers,
            hidden_dim=hidden,
            n_heads=heads,
            n_kv_heads=reader.first(("num_key_value_heads",), heads),
            head_dim=head_dim,
            kv_lora_rank=latent,
            q_lora_rank=reader.first(("q_lora_rank",), 0),
            qk_nope_head_dim=nope,
            qk_rope_head_dim=rope,
            v_head_dim=reader.first(("v_head_dim",), head_dim),
            n_attention_layers=full,
            dense_ffn_dim=intermediate,
            n_dense_layers=dense_layers,
            n_experts=experts,
            n_experts_per_tok=reader.first(("num_experts_per_tok", "top_k"), 0) if experts else 0,
            n_shared_experts=shared if experts else 0,
            expert_ffn_dim=expert_ffn,
            vocab_size=vocab,
            max_context_tok=context,
            tied_embeddings=bool(config.get("tie_word_embeddings", body.get("tie_word_embeddings", False))),
            expert_dtype=expert_dtype,
            dense_dtype=dense_dtype,
            quantization=quantization,
            multimodal=multimodal,
            n_nextn_layers=reader.first(("num_nextn_predict_layers",), 0),
            sources=(Source(field="*", kind=SourceKind.VENDOR_RECIPE, ref=file),),
        )
    except ValidationError as error:
        problems = [
            Problem(fault["msg"], file=file, field=".".join(map(str, fault["loc"])) or None)
            for fault in error.errors(include_url=False)
        ]
        raise InputError(problems) from None


def drafter_from_hf_config(config: Mapping[str, Any], *, folder: Path) -> DrafterProfile:
    """A drafter profile from a draft model's config.

    Raises:
        InputError: naming every key that is missing.
    """
    file = str(folder / "config.json")
    reader = _Reader(config, file)
    architecture = str((config.get("architectures") or ["unknown"])[0])
    lower = architecture.lower()
    marks = {"dflash": "DFLASH", "dspark": "DSPARK", "eagle": "EAGLE3"}
    algorithm = next((name for mark, name in marks.items() if mark in lower), "STANDALONE")
    block = reader.first(("block_size", "dflash_block_size"), 16 if algorithm in BLOCK_ALGORITHMS else 8)
    heads = reader.count("num_attention_heads")
    hidden = reader.count("hidden_size")
    layers = reader.count("num_hidden_layers")
    width = reader.count("intermediate_size")
    vocab = reader.count("vocab_size")
    if reader.problems:
        raise InputError(reader.problems)
    return DrafterProfile(
        id=folder.name or str(folder),
        name=folder.name or str(folder),
        model_path=str(folder),
        algorithm=algorithm,
        block_size=block,
        n_layers=layers,
        hidden_dim=hidden,
        n_heads=heads,
        n_kv_heads=reader.first(("num_key_value_heads",), heads),
        head_dim=reader.first(("head_dim",), hidden // heads),
        ffn_dim=width,
        vocab_size=vocab,
        shares_embeddings=algorithm != "STANDALONE",
        sources=(Source(field="*", kind=SourceKind.VENDOR_RECIPE, ref=file),),
    )


class _Reader:
    """Reads counts from a config and collects what is missing or not a count."""

    def __init__(self, body: Mapping[str, Any], file: str) -> None:
        self.body = body
        self.file = file
        self.problems: list[Problem] = []

    def count(self, key: str) -> int:
        value = self.body.get(key)
        if value is None:
            self.problems.append(Problem("missing", file=self.file, field=key, hint="the planner needs this shape"))
            return 0
        return self._as_count(key, value)

    def first(self, keys: tuple[str, ...], default: int) -> int:
        for key in keys:
            if self.body.get(key) is not None:
                return self._as_count(key, self.body[key])
        return default

    def _as_count(self, key: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            message = f"must be a whole number of 0 or more (got {value!r})"
            self.problems.append(Problem(message, file=self.file, field=key, value=value))
            return 0
        return value


def _quantization(
    config: Mapping[str, Any], body: Mapping[str, Any], file: str, problems: list[Problem]
) -> tuple[str | None, WeightDtype, WeightDtype]:
    """(engine's name, dtype of routed experts, dtype of the rest) from ``quantization_config``."""
    found = body.get("quantization_config") or config.get("quantization_config")
    if not found:
        return None, WeightDtype.BF16, WeightDtype.BF16
    if not isinstance(found, dict):
        problems.append(Problem("must be an object", file=file, field="quantization_config"))
        return None, WeightDtype.BF16, WeightDtype.BF16
    method = str(found.get("quant_method") or found.get("quant_algo") or "").lower()
    if method == "compressed-tensors":
        groups = found.get("config_groups")
        group: Any = next(iter(groups.values()), {}) if isinstance(groups, dict) else {}
        weights: Any = (group.get("weights") if isinstance(group, dict) else None) or {}
        if weights.get("num_bits") == 4 and weights.get("type") == "int":
            dtype = WeightDtype.INT4_G32 if weights.get("group_size") == 32 else WeightDtype.INT4_G128
            return method, dtype, WeightDtype.BF16
        if weights.get("num_bits") == 4:
            return method, WeightDtype.NVFP4, WeightDtype.BF16
        return method, WeightDtype.FP8, WeightDtype.FP8
    if method == "fp8":
        dtype = WeightDtype.FP8_BLOCK if found.get("weight_block_size") else WeightDtype.FP8
        return method, dtype, dtype
    if method in ("modelopt", "nvfp4", "modelopt_fp4") or "fp4" in method:
        algo = str(found.get("quant_algo") or "NVFP4").upper()
        if "FP4" in algo or "fp4" in method:
            if "mx" in method:
                return method, WeightDtype.MXFP4, WeightDtype.BF16
            return "modelopt_fp4", WeightDtype.NVFP4, WeightDtype.BF16
        return "modelopt_fp8", WeightDtype.FP8, WeightDtype.FP8
    if method in ("gptq", "awq"):
        dtype = WeightDtype.INT4_G32 if found.get("group_size") == 32 else WeightDtype.INT4_G128
        return method, dtype, dtype
    hint = "known: compressed-tensors, fp8, modelopt, mxfp4, gptq, awq"
    problems.append(Problem(f"unknown quant_method {method!r}", file=file, field="quantization_config", hint=hint))
    return None, WeightDtype.BF16, WeightDtype.BF16
