"""What the engine asks about the machine, the target and the draft model while it resolves a launch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from planner._record import record
from planner.domain import AttentionKind, DrafterProfile, HardwareProfile, ModelProfile, WeightDtype
from planner.engine.architectures import (
    DSA_ARCHITECTURES,
    MLA_ARCHITECTURES,
    MULTIMODAL_ARCHITECTURES,
    SINK_ARCHITECTURES,
)
from planner.errors import InputError, Problem
from planner.units import MIB

__all__ = ["DraftFacts", "ModelFacts", "Platform", "draft_facts", "model_facts", "platform_facts"]

Config = Mapping[str, Any]

_TEXT_KEYS = ("thinker_config", "llm_config", "language_config", "text_config")
"""Sub-configs that hold the language model, strongest first (0.5.23 srt/utils/hf_transformers/common.py:582)."""
_CONTEXT_KEYS = ("max_sequence_length", "seq_length", "max_seq_len", "model_max_length", "max_position_embeddings")
"""Keys that give the context length, strongest first (0.5.23 srt/utils/hf_transformers/common.py:668)."""


@record()
class Platform:
    """The machine as the engine sees it."""

    id: str
    sm: int | None
    memory_mib: int
    vendor: str = "nvidia"
    cuda_visible: bool = True
    """Whether torch sees CUDA when the engine is imported; False in a process without a GPU."""

    @property
    def major(self) -> int:
        return (self.sm or 0) // 10

    @property
    def sm90(self) -> bool:
        return self.major == 9

    @property
    def hopper_cuda_12(self) -> bool:
        """Hopper with a CUDA build of torch, which the engine asks torch for."""
        return self.sm90 and self.cuda_visible

    @property
    def sm100(self) -> bool:
        return self.major == 10

    @property
    def sm120(self) -> bool:
        return self.major == 12

    @property
    def blackwell(self) -> bool:
        return self.major in (10, 11, 12)

    @property
    def hip(self) -> bool:
        return self.vendor == "amd"


def platform_facts(hardware: HardwareProfile, *, cuda_visible: bool = True) -> Platform:
    """Platform of one GPU of the system."""
    return Platform(
        id=hardware.id,
        sm=hardware.sm,
        memory_mib=hardware.memory_bytes // MIB,
        vendor=hardware.vendor,
        cuda_visible=cuda_visible,
    )


@record()
class ModelFacts:
    """The target checkpoint as the engine sees it: its ``config.json``, or what a profile says of it."""

    architecture: str
    architectures: tuple[str, ...]
    model_type: str
    text_model_type: str
    is_mla: bool
    takes_media: bool
    """Whether the engine treats the model as multimodal: by its architecture, or because the language model sits in a
    sub-config."""
    context_len: int
    quant: Config = field(default_factory=dict)
    """``quantization_config``; empty when there is none."""
    config: Config = field(default_factory=dict)
    text: Config = field(default_factory=dict)
    vision: Config | None = None
    asymmetric_kv: bool = False
    has_sinks: bool = False

    @property
    def quant_method(self) -> str | None:
        """``quant_method`` of the config as it stands in the file."""
        return self.quant.get("quant_method")

    @property
    def is_dsa(self) -> bool:
        """Whether sparse attention is on."""
        return self.architecture in DSA_ARCHITECTURES and self.config.get("index_topk") is not None

    @property
    def kimi_int4(self) -> bool:
        """INT4 in groups of 32 under compressed-tensors: the checkpoints of Kimi K2 Thinking, K2.5 and K2.6."""
        groups = self.quant.get("config_groups") or {}
        weights = (groups.get("group_0") or {}).get("weights") or {}
        return (
            self.quant_method == "compressed-tensors"
            and weights.get("num_bits") == 4
            and weights.get("group_size") == 32
            and weights.get("strategy") == "group"
            and weights.get("type") == "int"
        )


@record()
class DraftFacts:
    """The draft checkpoint: only what resolution reads."""

    architecture: str | None = None
    block_size: int | None = None
    config: Config = field(default_factory=dict)


_COUNTS = (
    *_CONTEXT_KEYS,
    "block_size",
    "head_dim",
    "hidden_size",
    "index_topk",
    "kv_lora_rank",
    "mamba_chunk_size",
    "num_attention_heads",
    "num_experts",
    "num_hidden_layers",
    "num_key_value_heads",
    "n_routed_experts",
    "qk_nope_head_dim",
    "qk_rope_head_dim",
    "swa_head_dim",
    "swa_v_head_dim",
    "v_head_dim",
)
"""Keys that hold a count wherever they stand."""
_OBJECTS = (
    *_TEXT_KEYS,
    "compression_config",
    "dflash_config",
    "linear_attn_config",
    "quantization_config",
    "rope_parameters",
    "rope_scaling",
    "vision_config",
)


def _wrong_types(config: Config, where: str) -> list[Problem]:
    """What a config.json holds in a form that the engine cannot use."""
    problems = []
    names = config.get("architectures")
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        problems.append(Problem("expected a list of names", file=where, field="architectures", value=names))
    for key in _OBJECTS:
        value = config.get(key)
        if value is None:
            continue
        if not isinstance(value, Mapping):
            problems.append(Problem("expected an object", file=where, field=key, value=value))
        else:
            problems += _wrong_types(value, where)
    for key in _COUNTS:
        value = config.get(key)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if value is not None and not (number and value > 0):
            problems.append(Problem("expected a number above 0", file=where, field=key, value=value))
    return problems


def _text_config(config: Config) -> Config:
    name = (config.get("architectures") or [""])[0]
    if name.startswith("Llava") and name.endswith("ForCausalLM"):
        return config
    for key in _TEXT_KEYS:
        found = config.get(key)
        if isinstance(found, Mapping):
            return found.get("text_config", found) if key == "thinker_config" else found
    return config


def _context_len(text: Config) -> int | None:
    scaling = text.get("rope_scaling") or text.get("rope_parameters")
    factor = 1.0
    if isinstance(scaling, Mapping):
        plain = "original_max_position_embeddings" not in scaling
        if plain and (scaling.get("rope_type") or scaling.get("type")) != "llama3":
            factor = scaling.get("factor", 1) or 1
    for key in _CONTEXT_KEYS:
        if text.get(key) is not None:
            return int(factor * text[key])
    return None


def model_facts(model: ModelProfile | None, config: Config | None, *, path: str | None = None) -> ModelFacts | None:
    """Facts of the target from its ``config.json``, else from its profile, else None.

    Raises:
        InputError: config.json lacks keys that the engine reads, or holds them in another form; all are named.
    """
    if config is not None:
        return _from_config(config, path)
    return _from_profile(model) if model is not None else None


def _from_config(config: Config, path: str | None) -> ModelFacts:
    wrong = _wrong_types(config, path or "config.json")
    if wrong:
        raise InputError(wrong, "is this folder a Hugging Face checkpoint of a language model?")
    text = _text_config(config)
    missing = [] if config.get("architectures") else ["architectures"]
    context_len = _context_len(text)
    if context_len is None:
        missing.append("max_position_embeddings")
    missing += [key for key in ("hidden_size", "num_attention_heads", "num_hidden_layers") if text.get(key) is None]
    architectures = tuple(config.get("architectures") or ())
    is_mla = bool(MLA_ARCHITECTURES & set(architectures)) or (
        "PixtralForConditionalGeneration" in architectures and text.get("kv_lora_rank") is not None
    )
    if is_mla:
        missing += [
            key
            for key in ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
            if text.get(key) is None
        ]
    if missing:
        raise InputError(
            [Problem("the engine needs this key", file=path or "config.json", field=key) for key in missing],
            "is this folder a Hugging Face checkpoint of a language model?",
        )
    assert context_len is not None
    quant = config.get("quantization_config") or config.get("compression_config")
    if not quant and architectures[0].startswith("Kimi"):
        quant = text.get("quantization_config")
    head_dim = text.get("head_dim") or text["hidden_size"] // text["num_attention_heads"]
    value_dim = text.get("v_head_dim") or head_dim
    swa_dim = text.get("swa_head_dim") or head_dim
    swa_value_dim = text.get("swa_v_head_dim") or swa_dim
    vision = config.get("vision_config")
    return ModelFacts(
        architecture=architectures[0],
        architectures=architectures,
        model_type=str(config.get("model_type", "")),
        text_model_type=str(text.get("model_type", config.get("model_type", ""))),
        is_mla=is_mla,
        takes_media=text is not config or bool(MULTIMODAL_ARCHITECTURES & set(architectures)),
        context_len=context_len,
        quant=_named_quant(quant or {}),
        config=config,
        text=text,
        vision=vision if isinstance(vision, Mapping) else None,
        asymmetric_kv=not is_mla and (head_dim != value_dim or swa_dim != swa_value_dim),
        has_sinks=bool(SINK_ARCHITECTURES & set(architectures)) or bool(text.get("learnable_sink")),
    )


def _named_quant(quant: Config) -> Config:
    """``quantization_config`` with the engine's own name for a ModelOpt checkpoint, which it writes back into it
    (0.5.23 srt/configs/model_config.py, _parse_modelopt_quant_config)."""
    if quant.get("quant_method") not in (None, "modelopt"):
        return quant
    inner = quant.get("quantization", quant)
    if not isinstance(inner, Mapping):
        return quant
    algo = str(inner.get("quant_algo") or "")
    method = None
    if algo == "MIXED_PRECISION":
        layers = inner.get("quantized_layers") or {}
        nvfp4 = any(
            isinstance(layer, Mapping) and str(layer.get("quant_algo", "")).upper() in ("NVFP4", "W4A16_NVFP4")
            for layer in layers.values()
        )
        method = "modelopt_mixed" if nvfp4 else "w4afp8"
    elif "FP4" in algo:
        method = "modelopt_fp4"
    elif algo in ("FP8", "MXFP8"):
        method = {"FP8": "modelopt_fp8", "MXFP8": "mxfp8"}[algo]
    return {**quant, "quant_method": method} if method else quant


def _from_profile(model: ModelProfile) -> ModelFacts:
    quant: dict[str, Any] = {}
    if model.quantization:
        quant["quant_method"] = model.quantization
        if model.expert_dtype is WeightDtype.INT4_G32:
            weights = {"num_bits": 4, "group_size": 32, "strategy": "group", "type": "int"}
            quant["config_groups"] = {"group_0": {"weights": weights}}
    return ModelFacts(
        architecture=model.architecture,
        architectures=(model.architecture,),
        model_type="",
        text_model_type="",
        is_mla=model.attention_kind is AttentionKind.MLA,
        takes_media=model.multimodal,
        context_len=model.max_context_tok,
        quant=quant,
        text={"num_attention_heads": model.n_heads, "num_key_value_heads": model.n_kv_heads},
        vision={} if model.multimodal else None,
        asymmetric_kv=model.attention_kind is not AttentionKind.MLA and model.head_dim != model.v_head_dim,
        has_sinks=model.architecture in SINK_ARCHITECTURES,
    )


def draft_facts(drafter: DrafterProfile | None, config: Config | None) -> DraftFacts | None:
    """Facts of the draft model from its ``config.json``, else from its profile, else None.

    Raises:
        InputError: config.json holds a key in a form that the engine cannot use.
    """
    if config is not None:
        wrong = _wrong_types(config, "config.json of the draft model")
        if wrong:
            raise InputError(wrong)
        own = config.get("dflash_config") if isinstance(config.get("dflash_config"), Mapping) else {}
        block = (own or {}).get("block_size", config.get("block_size"))
        names = config.get("architectures") or [None]
        return DraftFacts(architecture=names[0], block_size=int(block) if block is not None else None, config=config)
    if drafter is None:
        return None
    block_size = drafter.block_size if drafter.drafts_blocks else None
    return DraftFacts(block_size=block_size)
