"""A launch as asked for (SGLang's own field names, None = not given) and the fully resolved choice of the planner."""

# Annotations are evaluated here, not kept as text: pydantic would compile each of them when the module is imported.

from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from planner.domain.base import Value

__all__ = ["ArgValue", "Candidate", "Decision", "LaunchConfig", "Speculation"]

ArgValue = bool | int | float | str | tuple[str, ...] | tuple[int, ...]
"""What one argument of the engine can hold."""

_Pos = Annotated[int, Field(gt=0)]


class Speculation(StrEnum):
    """Form of the draft: none, a linear chain, or a tree."""

    OFF = "off"
    CHAIN = "chain"
    TREE = "tree"


class LaunchConfig(Value):
    """What a launch command asks for. None means that the argument was not given, so the engine decides.

    Field names are SGLang's (``ServerArgs``), as of the newest flag table; an older or newer spelling is translated
    when argv is read or written. Arguments that the planner has no field for are kept in ``extra_args`` untouched.
    """

    model_path: str | None = None
    tokenizer_path: str | None = None
    trust_remote_code: bool | None = None
    load_format: str | None = None
    dtype: str | None = None
    quantization: str | None = None
    kv_cache_dtype: str | None = None
    context_length: int | None = None
    device: str | None = None
    host: str | None = None
    port: int | None = None
    served_model_name: str | None = None
    tp_size: int | None = None
    pp_size: int | None = None
    dp_size: int | None = None
    ep_size: int | None = None
    moe_dp_size: int | None = None
    moe_dense_tp_size: int | None = None
    attn_cp_size: int | None = None
    nnodes: int | None = None
    node_rank: int | None = None
    enable_dp_attention: bool | None = None
    enable_dp_lm_head: bool | None = None
    mem_fraction_static: float | None = None
    max_running_requests: int | None = None
    max_total_tokens: int | None = None
    chunked_prefill_size: int | None = None
    max_prefill_tokens: int | None = None
    page_size: int | None = None
    schedule_policy: str | None = None
    disable_radix_cache: bool | None = None
    disable_overlap_schedule: bool | None = None
    enable_mixed_chunk: bool | None = None
    attention_backend: str | None = None
    decode_attention_backend: str | None = None
    prefill_attention_backend: str | None = None
    sampling_backend: str | None = None
    grammar_backend: str | None = None
    moe_runner_backend: str | None = None
    moe_a2a_backend: str | None = None
    deepep_mode: str | None = None
    fp8_gemm_runner_backend: str | None = None
    fp4_gemm_runner_backend: str | None = None
    disable_shared_experts_fusion: bool | None = None
    cuda_graph_max_bs_decode: int | None = None
    cuda_graph_bs_decode: tuple[int, ...] | None = None
    cuda_graph_max_bs_prefill: int | None = None
    cuda_graph_backend_decode: str | None = None
    cuda_graph_backend_prefill: str | None = None
    cuda_graph_config: str | None = None
    disable_cuda_graph: bool | None = None
    disable_prefill_cuda_graph: bool | None = None
    disable_decode_cuda_graph: bool | None = None
    disable_cuda_graph_padding: bool | None = None
    enable_torch_compile: bool | None = None
    enable_nccl_nvls: bool | None = None
    enable_symm_mem: bool | None = None
    disable_custom_all_reduce: bool | None = None
    enable_flashinfer_allreduce_fusion: bool | None = None
    flashinfer_allreduce_fusion_backend: str | None = None
    enforce_disable_flashinfer_allreduce_fusion: bool | None = None
    enable_deterministic_inference: bool | None = None
    speculative_algorithm: str | None = None
    speculative_draft_model_path: str | None = None
    speculative_num_steps: int | None = None
    speculative_eagle_topk: int | None = None
    speculative_num_draft_tokens: int | None = None
    speculative_dflash_block_size: int | None = None
    speculative_draft_attention_backend: str | None = None
    speculative_draft_window_size: int | None = None
    speculative_attention_mode: str | None = None
    speculative_moe_runner_backend: str | None = None
    speculative_moe_a2a_backend: str | None = None
    speculative_use_rejection_sampling: bool | None = None
    speculative_draft_model_quantization: str | None = None
    speculative_ddtree_budget: int | None = None
    """Only in builds with tree speculation on a block drafter (see the dialects of ``planner.engine``)."""
    tool_call_parser: str | None = None
    reasoning_parser: str | None = None
    disaggregation_mode: str | None = None
    enable_metrics: bool | None = None
    decode_log_interval: int | None = None
    extra_args: tuple[tuple[str, ArgValue], ...] = ()
    """``(dest, value)`` of every other argument, in the order given."""
    env: tuple[tuple[str, str], ...] = ()
    """Environment of the server that the launch sets."""
    unknown: frozenset[str] = frozenset()
    """Fields (or dests of extra_args) that are given but whose value could not be read, such as ``$TP``."""

    def given(self) -> dict[str, ArgValue]:
        """Every argument with a known value, extra_args included, by field name."""
        own = {
            name: value
            for name in type(self).model_fields
            if name not in ("extra_args", "env", "unknown") and (value := getattr(self, name)) is not None
        }
        return own | dict(self.extra_args)


class Decision(Value):
    """One value that the engine fills or changes, and why."""

    field: str
    before: ArgValue | None
    """What was asked for; None: nothing."""
    after: ArgValue | None
    because: str
    source: str
    """Where in the engine: ``0.5.23 srt/arg_groups/memory_hook.py:205``."""


class Candidate(Value):
    """One configuration with nothing left open: what the planner ranks and what ``effective`` shows."""

    tp_size: _Pos
    """Tensor-parallel ranks of one replica."""
    ep_size: _Pos = 1
    attention_dp_size: _Pos = 1
    replicas: _Pos = 1
    """Independent servers on the box; requests are spread evenly."""
    speculation: Speculation = Speculation.OFF
    budget: Annotated[int, Field(ge=0)] = 0
    """Draft nodes without the root; 0 when speculation is off."""
    topk: Annotated[int, Field(ge=0)] = 0
    """Candidates per depth; 1 for a chain, 0 when off."""
    q_len: _Pos = 1
    """Tokens that one verify step runs per request: budget + 1."""
    max_running_requests: _Pos
    """Per replica, as passed to the server."""
    cuda_graph: bool = True
    cuda_graph_max_bs: Annotated[int, Field(ge=0)]
    """Largest captured decode batch of one attention-DP rank; 0 without graphs."""
    enable_nccl_nvls: bool = False
    allreduce_fusion: bool = False
    attention_backend: str
    page_size: _Pos = 1
    kv_cache_dtype: str = "bf16"
    """``bf16`` or ``fp8_e4m3``."""
    mem_fraction_static: Annotated[float, Field(gt=0, lt=1)]
    dialect: str = "upstream"
    engine_version: str | None = None

    @property
    def verify_rows_per_rank(self) -> int:
        """Rows run by a rank: min(cuda_graph_max_bs, max_running_requests // attention_dp_size) x q_len."""
        running = max(1, self.max_running_requests // self.attention_dp_size)
        return (min(self.cuda_graph_max_bs, running) if self.cuda_graph else running) * self.q_len

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.q_len != self.budget + 1:
            raise ValueError(f"q_len {self.q_len} must be budget + 1 = {self.budget + 1}")
        if (self.speculation is Speculation.OFF) != (self.budget == 0):
            raise ValueError(f"speculation {self.speculation.value} does not go with budget {self.budget}")
        return self
