"""Time of the parser: import, one file of each form, and how many files scale. By hand; prints a table.

python benchmarks/bench_parse.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from planner.parse import parse_paths, parse_text

__all__ = ["main"]

WORDS = "--model-path m --tp 8 --mem-fraction-static 0.85 --speculative-algorithm EAGLE --speculative-num-steps 3"
FLAGS = WORDS.split()
PAIRS = list(zip(FLAGS[::2], FLAGS[1::2], strict=True))
SHELL = (
    "#!/bin/bash\nexport NCCL_DEBUG=INFO\nTP=8\nif [[ $CONC -ge 16 ]]; then N=30; else N=10; fi\nARGS=(\n"
    + "".join(f"  {name} {value}\n" for name, value in PAIRS)
    + ')\npython3 -m sglang.launch_server "${ARGS[@]}" \\\n'
    + "".join(f"  {name}-{index} $N \\\n" for index in range(6) for name, _ in PAIRS)
    + "  --port 30000 > log 2>&1 &\n"
)
LIST = ["python3", "-m", "sglang.launch_server", *FLAGS * 6]
TEXTS = {
    "run.sh": SHELL,
    "compose.yaml": "services:\n  a:\n    image: lmsysorg/sglang:v0.5.12\n    command:\n"
    + "".join(f"      - {word!r}\n" for word in LIST),
    "k.yaml": "apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n    image: i\n    command:\n"
    + "".join(f"    - {word!r}\n" for word in LIST),
    "recipe.yaml": "backend:\n  sglang_config:\n    prefill:\n"
    + "".join(f"      {name[2:]}-{index}: {value}\n" for index in range(6) for name, value in PAIRS),
    "a.service": f"[Service]\nEnvironment=A=1\nExecStart={' '.join(LIST)}\n",
    "Dockerfile": "FROM lmsysorg/sglang:v0.5.12\nCMD [" + ", ".join(f'"{word}"' for word in LIST) + "]\n",
    "run.py": f"import subprocess\nsubprocess.run({LIST!r})\n",
    "a.json": "[" + ", ".join(f'"{word}"' for word in LIST) + "]\n",
}


def best_s(action: object, n_repeats: int) -> float:
    """Shortest time of ``n_repeats`` calls."""
    assert callable(action)
    times = []
    for _ in range(n_repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return min(times)


def cpu_s(action: object, n_repeats: int) -> float:
    """Least processor time of ``n_repeats`` calls: on a shared machine the clock tells who else is there."""
    assert callable(action)
    times = []
    for _ in range(n_repeats):
        start = time.process_time()
        action()
        times.append(time.process_time() - start)
    return min(times)


def start_s(code: str) -> float:
    """Shortest time of a Python process that runs ``code``."""
    return best_s(lambda: subprocess.run([sys.executable, "-c", code], check=True), 5)


def main() -> None:
    """Prints the table."""
    empty = start_s("pass")
    print(f"import planner.parse: {(start_s('import planner.parse') - empty) * 1000:.0f} ms over an empty Python")
    for name, text in TEXTS.items():
        parsed = parse_text(text, name=name)
        assert parsed.launches, name
        assert not parsed.problems, name
        spent = best_s(lambda name=name, text=text: parse_text(text, name=name), 20)
        print(f"{name}: {text.count(chr(10))} lines, {len(parsed.launches[0].argv)} words, {spent * 1000:.1f} ms")
    spent = {}
    for count in (50, 500):
        with tempfile.TemporaryDirectory() as folder:
            names = list(TEXTS.items())
            for index in range(count):
                name, text = names[index % len(names)]
                place = Path(folder, str(index))
                place.mkdir()
                Path(place, name).write_text(text)
            spent[count] = cpu_s(lambda folder=folder: parse_paths([folder]), 3)
    print(
        f"processor time: 50 files {spent[50]:.2f} s, 500 files {spent[500]:.2f} s: {spent[500] / spent[50]:.1f} times"
    )


if __name__ == "__main__":
    main()
