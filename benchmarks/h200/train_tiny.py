"""Train a byte-level target and drafter on Python sources that the host has, and log the drafter's marginals.

``python train_tiny.py --out DIR --seconds 110 [--device cuda]``

Both are Llama-shaped (Hugging Face parameter names), so that SGLang serves them unchanged. The drafter
learns the target's distribution (soft labels) once the target has settled. Written below DIR: ``tiny-target/`` and
``tiny-draft/`` (weights and configurations), ``prompts.json`` (held-out prompts), ``marginals.npz`` and ``train.json``.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import sysconfig
import time
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from shapes import BYTE_TOKENIZER  # noqa: E402

__all__ = ["Llama", "Shape", "main"]

CONTEXT = 512
THETA = 10000.0
EPS = 1e-5
PROMPT_TOK, OUTPUT_TOK = 192, 192


@dataclass(frozen=True)
class Shape:
    """Shape of a small Llama over bytes."""

    layers: int
    hidden: int
    heads: int
    ffn: int
    vocab: int = 256

    def config(self) -> dict[str, Any]:
        """As config.json."""
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "attention_bias": False,
            "mlp_bias": False,
            "hidden_act": "silu",
            "hidden_size": self.hidden,
            "head_dim": self.hidden // self.heads,
            "initializer_range": 0.02,
            "intermediate_size": self.ffn,
            "max_position_embeddings": 2048,
            "num_attention_heads": self.heads,
            "num_hidden_layers": self.layers,
            "num_key_value_heads": self.heads,
            "rms_norm_eps": EPS,
            "rope_theta": THETA,
            "tie_word_embeddings": False,
            "torch_dtype": "bfloat16",
            "use_cache": True,
            "vocab_size": self.vocab,
            "bos_token_id": 0,
            "eos_token_id": 0,
        }


TARGET = Shape(layers=8, hidden=512, heads=8, ffn=1536)
DRAFT = Shape(layers=2, hidden=256, heads=4, ffn=768)


class Norm(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.float()
        return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + EPS)).to(x.dtype) * self.weight.to(x.dtype)


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


class Attention(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(self, name, nn.Linear(shape.hidden, shape.hidden, bias=False))

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        b, t, width = x.shape
        q, k, v = (
            layer(x).view(b, t, self.heads, -1).transpose(1, 2) for layer in (self.q_proj, self.k_proj, self.v_proj)
        )
        y = F.scaled_dot_product_attention(_rotate(q, cos, sin), _rotate(k, cos, sin), v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(b, t, width))


class Mlp(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden, shape.ffn, bias=False)
        self.up_proj = nn.Linear(shape.hidden, shape.ffn, bias=False)
        self.down_proj = nn.Linear(shape.ffn, shape.hidden, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.self_attn, self.mlp = Attention(shape), Mlp(shape)
        self.input_layernorm, self.post_attention_layernorm = Norm(shape.hidden), Norm(shape.hidden)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Body(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocab, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = Norm(shape.hidden)


class Llama(nn.Module):
    """Logits (batch, tokens, vocab) from ids (batch, tokens). Parameter names are Hugging Face's."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.model = Body(shape)
        self.lm_head = nn.Linear(shape.hidden, shape.vocab, bias=False)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        width = self.shape.hidden // self.shape.heads
        frequency = THETA ** (-torch.arange(0, width, 2, device=ids.device).float() / width)
        angle = torch.arange(ids.shape[1], device=ids.device).float()[:, None] * frequency
        angle = torch.cat((angle, angle), -1)
        x = self.model.embed_tokens(ids)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        if torch.is_autocast_enabled(ids.device.type):
            cos, sin = cos.bfloat16(), sin.bfloat16()
        for layer in self.model.layers:
            x = layer(x, cos, sin)
        return self.lm_head(self.model.norm(x))

    def save(self, folder: Path) -> None:
        """As a model folder in BF16."""
        from safetensors.torch import save_file

        folder.mkdir(parents=True, exist_ok=True)
        state = {
            name: value.detach().to("cpu", torch.bfloat16).contiguous() for name, value in self.state_dict().items()
        }
        save_file(state, str(folder / "model.safetensors"), metadata={"format": "pt"})
        (folder / "config.json").write_text(json.dumps(self.shape.config(), indent=1))
        (folder / "generation_config.json").write_text('{"do_sample": false}')
        (folder / "tokenizer.json").write_text(json.dumps(BYTE_TOKENIZER, ensure_ascii=False))
        (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')


def read_sources(limit_bytes: int) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Bytes to train on and held-out bytes (every 20th file), from Python sources of this interpreter."""
    roots = [Path(sysconfig.get_paths()[name]) for name in ("stdlib", "purelib")]
    files = sorted({path for root in roots for path in root.rglob("*.py") if path.is_file()})
    random.Random(1).shuffle(files)
    parts: tuple[list[bytes], list[bytes]] = ([], [])
    total, n_files = 0, 0
    for number, path in enumerate(files):
        data = path.read_bytes()
        if not 2000 <= len(data) <= 200_000 or max(data) > 126:
            continue
        parts[number % 20 == 0].append(data)
        total, n_files = total + len(data), n_files + 1
        if total >= limit_bytes:
            break
    train, test = (np.frombuffer(b"\n\0".join(part), dtype=np.uint8) for part in parts)
    facts = {"n_files": n_files, "train_bytes": len(train), "test_bytes": len(test)}
    return train, test, facts | {"train_sha256": sha256(train.tobytes()).hexdigest()}


def train(seconds: float, device: str, out: Path, *, batch: int, limit_bytes: int) -> dict[str, Any]:
    """Trains both for that long; returns what happened."""
    torch.manual_seed(1)
    data, test, facts = read_sources(limit_bytes)
    stream = torch.from_numpy(data.copy()).to(device)
    target, draft = Llama(TARGET).to(device), Llama(DRAFT).to(device)
    # Servers that start during the training read the configurations.
    target.save(out / "tiny-target")
    draft.save(out / "tiny-draft")
    fused = device == "cuda"
    optimizers = [
        torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.95), weight_decay=0.05, fused=fused)
        for model, rate in ((target, 1e-3), (draft, 2e-3))
    ]
    peak = [group["lr"] for optimizer in optimizers for group in optimizer.param_groups]
    start, step, losses = time.monotonic(), 0, (0.0, 0.0)
    offsets = torch.arange(CONTEXT + 1, device=device)
    while (used := (time.monotonic() - start) / seconds) < 1.0:
        rate = min(1.0, step / 100) * (0.05 + 0.95 * (1 - used))
        for optimizer, value in zip(optimizers, peak, strict=True):
            optimizer.param_groups[0]["lr"] = value * rate
        begin = torch.randint(0, len(stream) - CONTEXT - 1, (batch, 1), device=device)
        ids = stream[begin + offsets].long()
        with torch.autocast(device, dtype=torch.bfloat16):
            wide, narrow = target(ids[:, :-1]), draft(ids[:, :-1])
        labels = ids[:, 1:].reshape(-1)
        loss = F.cross_entropy(wide.float().flatten(0, 1), labels)
        if used < 0.15:
            loss_draft = F.cross_entropy(narrow.float().flatten(0, 1), labels)
        else:
            soft = wide.detach().float().softmax(-1).flatten(0, 1)
            loss_draft = F.cross_entropy(narrow.float().flatten(0, 1), soft)
        (loss + loss_draft).backward()
        for model, optimizer in zip((target, draft), optimizers, strict=True):
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        step += 1
        if step % 50 == 0:
            losses = (float(loss), float(loss_draft))
    target.save(out / "tiny-target")
    draft.save(out / "tiny-draft")
    facts |= {"steps": step, "tokens": step * batch * CONTEXT, "loss_target": losses[0], "loss_draft": losses[1]}
    facts |= {"seconds": time.monotonic() - start}
    log_marginals(target.bfloat16().eval(), draft.bfloat16().eval(), test, out, device)
    return facts


@torch.no_grad()
def log_marginals(
    target: Llama, draft: Llama, test: np.ndarray, out: Path, device: str, *, n_prompts: int = 64, depth: int = 7
) -> None:
    """Greedy paths of the target on held-out prompts, and the drafter's greedy chain from every position of them.

    ``marginals`` (prompts, positions, depth, 16), largest first; ``target_rank`` (prompts, positions, depth): rank of
    the target's token, 16 where it is not among them, -1 behind the first rank that is not 0 (off the chain).
    """
    rng = np.random.default_rng(3)
    starts = rng.choice(len(test) - PROMPT_TOK - 1, size=2 * n_prompts, replace=False)
    prompts = np.stack([test[s : s + PROMPT_TOK] for s in starts]).astype(np.int64)
    (out / "prompts.json").write_text(json.dumps(prompts.tolist()))
    paths = torch.from_numpy(prompts[:n_prompts]).to(device)
    for _ in range(OUTPUT_TOK + depth + 1):
        paths = torch.cat((paths, target(paths)[:, -1:].argmax(-1)), 1)
    marginals = np.zeros((n_prompts, OUTPUT_TOK, depth, 16), dtype=np.float16)
    ranks = np.full((n_prompts, OUTPUT_TOK, depth), -1, dtype=np.int16)
    for position in range(OUTPUT_TOK):
        chain = paths[:, : PROMPT_TOK + position + 1]
        alive = torch.ones(n_prompts, dtype=torch.bool, device=device)
        for d in range(depth):
            probs, ids = draft(chain)[:, -1].float().softmax(-1).topk(16)
            marginals[:, position, d] = probs.cpu().numpy()
            truth = paths[:, PROMPT_TOK + position + 1 + d]
            match = ids == truth[:, None]
            rank = torch.where(match.any(1), match.int().argmax(1), 16)
            ranks[:, position, d] = torch.where(alive, rank, -1).cpu().numpy()
            alive = alive & (rank == 0)
            chain = torch.cat((chain, ids[:, :1]), 1)
    np.savez_compressed(
        out / "marginals.npz", marginals=marginals, target_rank=ranks, paths=paths.cpu().numpy().astype(np.uint8)
    )


def main(argv: Sequence[str]) -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=110.0)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--limit-bytes", type=int, default=60_000_000)
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    facts = train(args.seconds, args.device, args.out, batch=args.batch, limit_bytes=args.limit_bytes)
    (args.out / "train.json").write_text(json.dumps(facts, indent=1))
    print(json.dumps(facts))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
