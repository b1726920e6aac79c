"""Makes a very small Llama for the real server tests. Run by the Python of the SGLang environment.

``make_tiny.py OUT PAIRS.json``: PAIRS holds ``[[prompt, completion], ...]``. The tokenizer is a byte-level BPE
trained on these texts; the model is trained on the completions until it writes every one of them itself (greedy). It
knows nothing else: it is the smallest honest way to a real server whose answers can be checked.
With ``--dummy`` only config and tokenizer are written, for ``--load-format dummy``.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

VOCAB = 1024
CONTEXT = 2048
EOS = "</s>"


def make_tokenizer(out: Path, texts: list[str]):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB - 24,
        special_tokens=["<s>", EOS, "<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    out.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(out / "tokenizer.json"))
    template = "{% for m in messages %}{{ m['content'] }}\n{% endfor %}"
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": EOS,
        "pad_token": "<pad>",
        "model_max_length": CONTEXT,
        "chat_template": template,
    }
    (out / "tokenizer_config.json").write_text(json.dumps(config))
    return tokenizer


def model_config() -> dict[str, object]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 128,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "vocab_size": VOCAB,
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "dtype": "float32",
        "torch_dtype": "float32",
        "tie_word_embeddings": False,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 2,
    }


def loss_of(model, batch):
    import torch

    width = max(len(ids) for ids, _ in batch)
    ids = torch.tensor([ids + [2] * (width - len(ids)) for ids, _ in batch])
    labels = torch.tensor([want + [-100] * (width - len(want)) for _, want in batch])
    return model(input_ids=ids, attention_mask=(ids != 2).long(), labels=labels).loss


def train(out: Path, pairs: list[list[str]], tokenizer, limit_s: float = 400.0) -> None:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    torch.set_num_threads(1)
    settings = model_config()
    settings.pop("torch_dtype")
    model = LlamaForCausalLM(LlamaConfig(**settings)).to(torch.float32)
    rows = []
    for prompt, completion in pairs:
        asked, answer = tokenizer.encode(prompt).ids, [*tokenizer.encode(completion).ids, 1]
        rows.append((asked + answer, [-100] * len(asked) + answer))
    short = [row for row in rows if len(row[0]) < 200]
    long = [row for row in rows if len(row[0]) >= 200]
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
    generator = torch.Generator().manual_seed(0)
    start, step, good = time.monotonic(), 0, 0
    seen: list[float] = []
    while good < 3:
        step += 1
        # Long prompts are slow: one in every third step, after the short answers are known.
        batches = [short]
        if long and step > 60 and step % 3 == 0:
            batches.append([long[int(torch.randint(len(long), (1,), generator=generator))]])
        losses = [loss_of(model, batch) for batch in batches]
        optimizer.zero_grad()
        torch.stack(losses).sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seen.append(losses[-1].item())
        if step % 30 == 0:
            worst = max(seen[-30:])
            print(f"step {step} worst loss {worst:.4f} {time.monotonic() - start:.0f} s", flush=True)
            good = good + 1 if worst < 0.01 and step > 150 else 0
        if time.monotonic() - start > limit_s:
            raise SystemExit("the tiny model did not learn its answers in time")
    model.eval()
    with torch.no_grad():
        for row, want in short + long[:: max(1, len(long) // 8)]:
            told = model(input_ids=torch.tensor([row])).logits[0].argmax(-1).tolist()
            wrong = [(a, b) for a, b in zip(told, want[1:], strict=False) if b != -100 and a != b]
            if wrong:
                raise SystemExit(f"the tiny model is wrong after training: {tokenizer.decode(row)[-80:]!r}")
    model.save_pretrained(out)


def main() -> None:
    out, pairs = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text())
    tokenizer = make_tokenizer(out, [prompt + completion for prompt, completion in pairs])
    if "--dummy" not in sys.argv:
        train(out, pairs, tokenizer)
    (out / "config.json").write_text(json.dumps(model_config(), indent=1))


if __name__ == "__main__":
    main()
