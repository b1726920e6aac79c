"""What a rule sees of one launch: what was asked, what the engine would run, the machine, the model, the surroundings.

Everything is as known: None means unknown, and a rule that needs an unknown fact stays silent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING

from planner._record import record
from planner.domain import ArgValue, DrafterProfile, HardwareProfile, LaunchConfig, LinkKind, ModelProfile
from planner.engine.flags import flag_table, flag_versions
from planner.rules.base import Place
from planner.rules.models import ModelFacts, WeightForm, facts_of_name, weight_form
from planner.rules.parts import Container, EnvVar, FaultKind, FlagFault, Given, WritingFault
from planner.rules.versions import UNSTATED, VersionSpan

if TYPE_CHECKING:
    from planner.engine.resolution import Resolution

__all__ = ["Container", "EnvVar", "FaultKind", "FlagFault", "Given", "RuleContext", "WritingFault"]

SM100_FAMILY = (100, 103)
SM120_FAMILY = (120, 121)
DIFFUSION_FLAGS = frozenset(
    {"--num-gpus", "--ulysses-degree", "--ring-degree", "--sp-degree", "--performance-mode", "--model-variant"}
)
"""Flags of ``sglang.multimodal_gen`` that the language-model server lacks (sgl-project/sglang issue 34226)."""
DEVELOPMENT = re.compile(r"\b(dev|main|nightly|fork|custom|patched|git)\b")
"""Words of a version statement that mean a build between releases."""
DRAFT_HEAD = re.compile(r"eagle|dflash|nextn|mtp|medusa|draft|speculator|dspark|domino")
"""Words in the name of a draft that is a head on a target, not a model of its own."""


@record()
class RuleContext:
    """One launch of a checked file."""

    launch: LaunchConfig
    resolution: Resolution | None = None
    hardware: HardwareProfile | None = None
    n_gpus: int | None = None
    model: ModelProfile | None = None
    facts: ModelFacts | None = None
    drafter: DrafterProfile | None = None
    version: VersionSpan = UNSTATED
    dialect: str | None = None
    flags: tuple[Given, ...] = ()
    faults: tuple[FlagFault, ...] = ()
    env: Mapping[str, EnvVar] = field(default_factory=dict)
    writing: tuple[WritingFault, ...] = ()
    container: Container | None = None
    role: str | None = None
    form: str = "shell"
    launcher: str = "launch_server"
    siblings: tuple[RuleContext, ...] = ()
    """Every launch of the file, this one included."""
    server_reported: bool = False
    """The values come from a running server, not from a command line."""
    open_ended: bool = False
    """The launch takes further words that cannot be read (``"$@"``, ``$EXTRA_ARGS``)."""
    tables: tuple[str, ...] = ()
    """Versions of the flag tables that may apply, oldest first."""

    # What was asked -----------------------------------------------------------------------------------------------

    @cached_property
    def asked_values(self) -> Mapping[str, ArgValue]:
        """Every argument with a known value."""
        return self.launch.given()

    def asked(self, name: str) -> ArgValue | None:
        """The value asked for; None when it was not given or cannot be read."""
        return self.asked_values.get(name)

    def given(self, name: str) -> bool:
        """Whether the argument stands in the launch, readable or not."""
        return name in self.asked_values or name in self.launch.unknown

    def unread(self, name: str) -> bool:
        """Whether the argument is given with a value that cannot be read (``$TP``)."""
        return name in self.launch.unknown

    def on(self, name: str) -> bool:
        """Whether a switch is given."""
        return self.asked(name) is True

    def number(self, name: str) -> int | None:
        """An integer argument as asked."""
        value = self.asked(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def text(self, name: str) -> str | None:
        """A text argument as asked."""
        value = self.asked(name)
        return value if isinstance(value, str) else None

    def size(self, name: str) -> int | None:
        """A parallel size: 1 when it is not given, None when it cannot be read."""
        return None if self.unread(name) else (self.number(name) or 1)

    def knows_flag(self, flag: str) -> bool:
        """Whether an engine version in question has the flag under exactly this name."""
        return any(flag in flag_table(version).by_name for version in self.tables or flag_versions())

    def writing_faults(self, *kinds: str) -> tuple[WritingFault, ...]:
        """Faults of writing of these kinds."""
        return tuple(fault for fault in self.writing if fault.kind in kinds)

    @property
    def diffusion(self) -> bool:
        """The launch is for the diffusion server, which has flags of its own."""
        if self.facts is not None and self.facts.diffusion:
            return True
        return any(given.flag in DIFFUSION_FLAGS for given in self.flags)

    def place_of(self, name: str) -> Place | None:
        """Where the argument (or ``$NAME``) stands; the last place when it is repeated."""
        if name.startswith("$"):
            variable = self.env.get(name[1:])
            return variable.place if variable is not None else None
        if name.startswith("--"):
            return next((given.place for given in reversed(self.flags) if given.flag == name), None)
        return next((given.place for given in reversed(self.flags) if given.field == name), None)

    @property
    def alone(self) -> bool:
        """No other launch stands in the file."""
        return len(self.siblings) <= 1

    def role_pairs(self) -> tuple[tuple[RuleContext, RuleContext], ...]:
        """Prefill and decode launches of the file, each with each."""
        prefill = [one for one in self.siblings if one.serves("prefill")]
        decode = [one for one in self.siblings if one.serves("decode")]
        return tuple((a, b) for a in prefill for b in decode)

    def serves(self, role: str) -> bool:
        """Whether the launch plays this part of a disaggregated deployment."""
        return role in (self.text("disaggregation_mode"), self.role)

    # What the engine would run ------------------------------------------------------------------------------------

    def effective(self, name: str) -> object | None:
        """The value the engine would run with, as far as it can be told; else what was asked."""
        if self.unread(name):
            return None
        if self.resolution is not None and self.resolution.error is None and name in self.resolution.effective:
            value: object = self.resolution.effective[name]
            return value
        return self.asked(name)

    # Machine ------------------------------------------------------------------------------------------------------

    @property
    def sm(self) -> int | None:
        """Compute capability times ten; None when unknown or not NVIDIA."""
        return self.hardware.sm if self.hardware is not None else None

    @property
    def on_cuda(self) -> bool:
        """NVIDIA, as far as the launch and the machine say."""
        if self.text("device") not in (None, "cuda"):
            return False
        return self.hardware is None or self.hardware.vendor == "nvidia"

    @property
    def sm100(self) -> bool:
        """sm_100 or sm_103 (B200, B300, GB200, GB300)."""
        return self.on_cuda and self.sm in SM100_FAMILY

    @property
    def sm120(self) -> bool:
        """sm_120 or sm_121 (RTX PRO 6000, RTX 5090)."""
        return self.on_cuda and self.sm in SM120_FAMILY

    @property
    def pcie(self) -> bool:
        """GPUs linked by PCIe only."""
        return self.hardware is not None and self.hardware.link_kind is LinkKind.PCIE

    @property
    def where(self) -> str:
        """The machine for a message."""
        return f"{self.hardware.id} ({self.hardware.sm_name})" if self.hardware is not None else "this machine"

    @property
    def gpus(self) -> int | None:
        """GPUs that the launch has on this node: stated, else the container's request."""
        if self.n_gpus is not None:
            return self.n_gpus
        return self.container.n_gpus if self.container is not None else None

    # Parallel sizes -----------------------------------------------------------------------------------------------

    @property
    def tp(self) -> int | None:
        """Tensor parallel size."""
        return self.size("tp_size")

    @property
    def pp(self) -> int | None:
        """Pipeline parallel size."""
        return self.size("pp_size")

    @property
    def dp(self) -> int | None:
        """Data parallel size."""
        return self.size("dp_size")

    @property
    def ep(self) -> int | None:
        """Expert parallel size as asked."""
        return self.size("ep_size")

    @property
    def nnodes(self) -> int | None:
        """Nodes of the launch."""
        return self.size("nnodes")

    @property
    def multi_node(self) -> bool:
        """Tensor parallelism over several nodes: more than one is asked for, or the count comes from the cluster."""
        if self.unread("nnodes"):
            return self.given("dist_init_addr")
        return (self.number("nnodes") or 1) > 1

    @property
    def attention_dp(self) -> int | None:
        """Attention data parallel size: --attn-dp-size (0.5.23), or dp_size with --enable-dp-attention, else 1."""
        own = dict(self.launch.extra_args).get("attn_dp_size")
        if isinstance(own, int) and own > 1:
            return own
        return self.dp if self.on("enable_dp_attention") else 1

    # Model --------------------------------------------------------------------------------------------------------

    @property
    def quantization(self) -> str | None:
        """``--quantization`` as asked."""
        return self.text("quantization")

    @property
    def named_form(self) -> WeightForm | None:
        """Storage that the checkpoint's own name tells (``-FP8``, ``NVFP4``), in the launch or in the model stated."""
        path = self.text("model_path") or ""
        return weight_form(path) or (weight_form(self.facts.name) if self.facts is not None else None)

    @cached_property
    def form_of_weights(self) -> WeightForm | None:
        """Storage of the weights: what the checkpoint's name says, else what ``--quantization`` makes of them, else how
        the family is published."""
        native = self.facts.form if self.facts is not None else None
        named = self.named_form
        asked = FORM_OF_QUANTIZATION.get(self.quantization or "")
        if named is not None:
            if native is not None and named.is_fp8 and native.is_fp8:
                return native
            return asked if named is WeightForm.BF16 and asked is not None else named
        if asked is None:
            return native
        return native if native is not None and asked.is_fp8 and native.is_fp8 else asked

    @property
    def is_mla(self) -> bool:
        """The model is known to use latent attention."""
        return self.facts is not None and self.facts.is_mla

    @property
    def architecture(self) -> str | None:
        """First entry of the model's ``architectures``."""
        return self.facts.architecture if self.facts is not None else None

    @property
    def is_moe(self) -> bool:
        """The model is known to have routed experts."""
        return self.facts is not None and self.facts.is_moe

    @property
    def model_name(self) -> str:
        """The model for a message."""
        return self.facts.name if self.facts is not None else self.text("model_path") or "the model"

    @property
    def draft_facts(self) -> ModelFacts | None:
        """Facts of a draft that is a whole model of its own; None for draft heads, which carry their target's name."""
        path = self.text("speculative_draft_model_path")
        if not path or DRAFT_HEAD.search(path.rstrip("/").rsplit("/", 1)[-1].lower()):
            return None
        return facts_of_name(path)

    # Speculation --------------------------------------------------------------------------------------------------

    @property
    def algorithm(self) -> str | None:
        """Speculative algorithm in upper case; None without speculation or when it cannot be read."""
        name = self.text("speculative_algorithm")
        return name.upper() if name and name.upper() != "NONE" else None

    @property
    def speculates(self) -> bool:
        """A speculative algorithm is asked for, readable or not."""
        return self.algorithm is not None or self.unread("speculative_algorithm")

    @property
    def eagle_family(self) -> bool:
        """EAGLE, EAGLE3 or the built-in multi-token prediction."""
        return self.algorithm in ("EAGLE", "EAGLE3", "NEXTN")

    @property
    def q_len(self) -> int | None:
        """Rows of one request in a verify pass (or 1), as far as it can be told."""
        if not self.speculates:
            return 1
        if (budget := self.number("speculative_ddtree_budget")) is not None:
            return budget + 1
        steps, topk = self.number("speculative_num_steps"), self.number("speculative_eagle_topk")
        if self.eagle_family and topk == 1 and steps is not None:
            return steps + 1
        return self.number("speculative_num_draft_tokens") or self.number("speculative_dflash_block_size")

    # Attention ----------------------------------------------------------------------------------------------------

    @cached_property
    def attention_backends(self) -> frozenset[str]:
        """Attention backends of prefill and decode that are asked for or filled in, without those unknown."""
        names = set()
        base = self.effective("attention_backend")
        for field_name in ("prefill_attention_backend", "decode_attention_backend"):
            value = self.effective(field_name) or base
            if isinstance(value, str):
                names.add(value)
        return frozenset(names)

    @cached_property
    def asked_attention(self) -> frozenset[str]:
        """Attention backends named in the launch."""
        fields = ("attention_backend", "prefill_attention_backend", "decode_attention_backend")
        return frozenset(value for name in fields if (value := self.text(name)))

    @property
    def attention_field(self) -> str:
        """The argument that sets the attention backend here, for the place of a finding."""
        fields = ("attention_backend", "decode_attention_backend", "prefill_attention_backend")
        return next((name for name in fields if self.given(name)), "attention_backend")

    @property
    def graphs_on(self) -> bool:
        """Decode CUDA graphs are not switched off."""
        if self.on("disable_cuda_graph") or self.on("disable_decode_cuda_graph"):
            return False
        return self.text("cuda_graph_backend_decode") != "disabled"

    # Surroundings -------------------------------------------------------------------------------------------------

    def env_value(self, name: str) -> str | None:
        """Value of a variable that reaches the server; None when it is not set in the file or cannot be read."""
        found = self.env.get(name)
        return found.value if found is not None and found.exported else None

    def env_reaches(self, name: str) -> bool:
        """Whether the file sets the variable for the server."""
        found = self.env.get(name)
        return found is not None and found.exported

    @property
    def env_complete(self) -> bool:
        """False where the image may set variables of its own (any image but the project's)."""
        image = self.container.image if self.container is not None else None
        return image is None or image.startswith(("lmsysorg/sglang", "docker.io/lmsysorg/sglang"))

    @property
    def may_be_a_fork(self) -> bool:
        """The build may have flags and values that no release has: a development build, or an image of one's own."""
        asked = (self.version.asked or "").lower()
        return not self.env_complete or DEVELOPMENT.search(asked) is not None

    def within(self, specifier: str) -> bool | None:
        """Whether the engine version lies in ``specifier``; None when it is unknown or straddles."""
        return self.version.within(specifier)

    def flag_text(self, name: str) -> str:
        """The argument as written in the launch, else its usual spelling."""
        written = next((given.flag for given in self.flags if given.field == name), None)
        return written or "--" + name.replace("_", "-")


FORM_OF_QUANTIZATION = {
    "fp8": WeightForm.FP8,
    "w8a8_fp8": WeightForm.FP8,
    "modelopt": WeightForm.FP8,
    "modelopt_fp8": WeightForm.FP8,
    "modelopt_fp4": WeightForm.NVFP4,
    "mxfp4": WeightForm.MXFP4,
    "awq": WeightForm.INT4,
    "gptq": WeightForm.INT4,
    "w4afp8": WeightForm.INT4,
    "w8a8_int8": WeightForm.INT8,
}
