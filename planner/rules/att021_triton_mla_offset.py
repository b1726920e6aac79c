"""Triton's MLA decode attention overflows its 32-bit offsets.

What it checks:
    An MLA model with Triton decode attention on SGLang 0.5.12 to 0.5.15, without speculation: requests a rank x heads
    a rank x splits x 512 above 2**31. Requests are --max-running-requests over attention DP or, without it, the largest
    graph asked for.

Why:
    The kernel keeps a partial result of 512 values for each request, head and split, and since 0.5.12 an MLA model has
    up to 256 splits on GPUs of 129 to 256 multiprocessors. The offset of a request in that buffer is a product of
    32-bit numbers: beyond 2**31 it is wrong, which ends in an illegal memory access or in wrong output. At 256 splits
    that is above 2048 requests at 8 heads and above 128 at 128 heads (DeepSeek with attention DP). 0.5.16 computes it
    in 64 bits.

Fix:
    --max-running-requests at the largest safe value, another MLA backend for decode, or 0.5.16.

Known problems:
    Read in the source, not seen on a GPU. The key-value pool may hold fewer requests than the limit lets run. Drafts
    that use MLA take the same kernel in their own steps; launches with speculation are passed over, as are those with
    pipeline stages, context parallelism, two-batch overlap, deterministic inference or a split tile size, and models
    with a sparse index.
"""

from __future__ import annotations

from collections.abc import Iterator

from planner.domain import Consequence
from planner.domain.splits import KV_SPLITS, mla_splits
from planner.rules.base import Example, Hit, Rule, Status, set_field
from planner.rules.context import RuleContext

__all__ = ["RULE"]

_LATENT = 512
"""Values of one partial result: kv_lora_rank of the MLA models that are published."""
_SM100_PROCESSORS = 148
"""Multiprocessors of sm_100 and sm_103 where the machine does not say: 148 to 160, which all give 256 splits."""
_OTHER_ROWS_OR_SPLITS = (
    "attn_cp_size",
    "dcp_size",
    "enable_deterministic_inference",
    "enable_two_batch_overlap",
    "triton_attention_split_tile_size",
)


def _check(ctx: RuleContext) -> Iterator[Hit]:
    decode = ctx.effective("decode_attention_backend") or ctx.effective("attention_backend")
    if decode != "triton" or ctx.unread("decode_attention_backend") or not ctx.on_cuda or ctx.speculates:
        return
    if ctx.pp != 1 or "prefill" in (ctx.text("disaggregation_mode"), ctx.role):
        return
    if any(ctx.given(name) for name in _OTHER_ROWS_OR_SPLITS):
        return
    requests, heads, splits = _requests(ctx), _heads(ctx), _splits(ctx)
    if requests is None or heads is None or splits is None or not ctx.attention_dp:
        return
    latent = (ctx.model.kv_lora_rank if ctx.model is not None else 0) or _LATENT
    most = 2**31 // (heads * splits * latent)
    if requests > most >= 1:
        yield Hit(
            f"{requests} requests a rank at {heads} heads and {splits} splits overflow 32-bit offsets in Triton's MLA "
            f"decode attention: at most {most} a rank",
            fields=(
                "max_running_requests",
                "cuda_graph_max_bs_decode",
                "cuda_graph_bs_decode",
                "decode_attention_backend",
                "attention_backend",
            ),
            edits=(set_field("max_running_requests", most * ctx.attention_dp),),
            safe=False,
            suspected=_context_tok(ctx) is None,
        )


def _requests(ctx: RuleContext) -> int | None:
    """Largest decode batch of one rank. Graphs end at the requests that may run, so they count only without a limit."""
    if ctx.unread("max_running_requests") or not ctx.attention_dp:
        return None
    running = ctx.effective("max_running_requests")
    if isinstance(running, int):
        return running // ctx.attention_dp
    if not ctx.graphs_on:
        return None
    listed = ctx.asked("cuda_graph_bs_decode")
    if isinstance(listed, tuple) and listed:
        return max(int(size) for size in listed)
    return ctx.number("cuda_graph_max_bs_decode")


def _heads(ctx: RuleContext) -> int | None:
    """Query heads of one rank; None where they do not divide."""
    if ctx.facts is None or ctx.facts.attention != "mla" or not ctx.facts.n_heads:
        return None
    if ctx.tp is None or not ctx.attention_dp or ctx.tp % ctx.attention_dp:
        return None
    ranks = ctx.tp // ctx.attention_dp
    return ctx.facts.n_heads // ranks if ctx.facts.n_heads % ranks == 0 else None


def _splits(ctx: RuleContext) -> int | None:
    """Splits that the decode buffer has room for. Where the context is unknown it is taken to be long enough."""
    known = ctx.hardware.n_sms if ctx.hardware is not None else None
    processors = known or (_SM100_PROCESSORS if ctx.sm100 else None)
    if processors is None or ctx.unread("triton_attention_num_kv_splits"):
        return None
    asked = ctx.number("triton_attention_num_kv_splits") or KV_SPLITS
    return mla_splits(processors, _context_tok(ctx), asked=asked)


def _context_tok(ctx: RuleContext) -> int | None:
    """Context length asked for, else the model's own."""
    if ctx.unread("context_length"):
        return None
    return ctx.number("context_length") or (ctx.facts.context if ctx.facts is not None else None)


RULE = Rule(
    code="ATT021",
    slug="triton-mla-offset",
    title="Triton's MLA decode attention overflows its 32-bit offsets",
    consequence=Consequence.CRASH,
    status=Status.ESTABLISHED,
    sources=(
        "sglang 0.5.12.post1 srt/layers/attention/triton_backend.py:40,151 (splits of MLA)",
        "sglang 0.5.12.post1 srt/layers/attention/triton_ops/decode_attention.py:158,171,401,414,561",
        "sglang 0.5.15.post1 srt/layers/attention/triton_backend.py:63,206",
        "sglang 0.5.15.post1 srt/layers/attention/triton_ops/decode_attention.py:238,251,529,542,705",
        "sglang 0.5.16 kernels/ops/attention/decode_attention.py:139,429,752 (64 bits, and why)",
    ),
    check=_check,
    doc=__doc__ or "",
    bad=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --dp 8 "
        "--enable-dp-attention --attention-backend triton --max-running-requests 2048",
        hw="h200",
        gpus=8,
        version="0.5.15.post1",
    ),
    good=Example(
        "python3 -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 8 --dp 8 "
        "--enable-dp-attention --attention-backend triton --max-running-requests 1024",
        hw="h200",
        gpus=8,
        version="0.5.15.post1",
    ),
    versions=">=0.5.12,<0.5.16",
)
