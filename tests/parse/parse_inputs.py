"""Random and mutated launch files, for the fuzz test of the suite and the long one in ``benchmarks/fuzz_parse.py``."""

from __future__ import annotations

import random
import string
from pathlib import Path

from ruamel.yaml import YAML

__all__ = ["PIECES", "mutated", "seeds"]

PIECES = [
    *"\"'`$(){}[]<>|&;#\\\n\t :=-,!*?%@~^",
    *("$(", "${", "$((", "))", "]]", "[[ ", "<<EOF\n", "EOF\n", "\\\n", "\r\n", "\\ # c\n", "{{ .Values.x }}"),
    *("&a ", "*a", "<<: *a", "if ", "then ", "fi\n", "else ", "for i in ", "do ", "done\n", "case $x in ", "esac"),
    *("function f() {", "export ", "- ", "--tp ", "python3 -m sglang.launch_server ", "sglang serve ", "bash -c "),
    *("docker run ", "eval ", "é", "\ufdd0", "\ufdd1", "\U0001f600", "\ud800", "\0", "\u2028", "\x85", "[Service]\n"),
    *("ExecStart=", "Environment=", "FROM a\n", "CMD ", "services:\n", "kind: Pod\n", "sgl.Engine(", "lambda: "),
    *("1e999", "0x", "${#", "${!", "%i", "!!binary ", "|\n", ">-\n", "? ", "EOF", '"""', "f'{x}'", "\\u12", "---\n"),
]


def seeds() -> list[str]:
    """Texts of the cases."""
    texts: list[str] = []
    for path in sorted(Path(__file__).with_name("cases").glob("*.yaml")):
        texts += [case["text"] for case in YAML(typ="safe", pure=True).load(path.read_text())]
    return texts


def mutated(rng: random.Random, texts: list[str]) -> str:
    """A text with random cuts, copies and insertions, or random pieces alone."""
    if rng.random() < 0.2:
        return "".join(rng.choice(PIECES) for _ in range(rng.randrange(60)))
    if rng.random() < 0.05:
        return "".join(rng.choice(string.printable) for _ in range(rng.randrange(200)))
    text = rng.choice(texts)
    for _ in range(rng.randrange(1, 8)):
        at = rng.randrange(len(text) + 1)
        kind = rng.random()
        if kind < 0.35:
            text = text[:at] + rng.choice(PIECES) + text[at:]
        elif kind < 0.6:
            text = text[:at] + text[at + rng.randrange(1, 12) :]
        elif kind < 0.75:
            text = text[:at] + chr(rng.randrange(1, 0x300)) + text[at + 1 :]
        elif kind < 0.9:
            start = rng.randrange(len(text) + 1)
            text = text[:at] + text[start : start + rng.randrange(60)] + text[at:]
        else:
            other = rng.choice(texts)
            start = rng.randrange(len(other) + 1)
            text = text[:at] + other[start : start + 200]
    return text
