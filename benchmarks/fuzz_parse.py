"""Feeds random and mutated text to the parser: it must return and never raise. By hand; prints counts and the speed.

python benchmarks/fuzz_parse.py --count 100000 --seed 1
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from types import FrameType

from planner.errors import InputError
from planner.parse import ParsedFile, parse_text
from planner.parse.detect import ALIASES
from planner.parse.edit import RemoveFlag, SetEnv, SetFlag, apply_edits

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "parse"))

from parse_inputs import mutated, seeds

__all__ = ["main"]

FORMS = [None, *sorted(ALIASES)]
LIMIT_S = 5
EDITED = 0.05
"""Share of launches that are edited as well."""


def edited(parsed: ParsedFile, rng: random.Random) -> None:
    """Edits a launch: the edit is made and holds, or is refused."""
    index = rng.randrange(len(parsed.launches))
    flags = parsed.launches[index].flags
    name = rng.choice(flags).name if flags else "--x"
    value = rng.choice(["1", "a b", "it's", "$X", '"'])
    edit = rng.choice([SetFlag(name, (value,)), SetFlag("--new", (value,)), RemoveFlag(name), SetEnv("X", value)])
    try:
        text = apply_edits(parsed, index, [edit])
    except InputError:
        return
    if isinstance(edit, SetFlag) and value not in text and value == "1":
        raise AssertionError("an edit was lost")


def _too_slow(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError(f"no answer within {LIMIT_S} s")


def main() -> int:
    """Runs the fuzz; 1 when an input raised."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=100_000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--more", type=Path, help="a folder with more seed files")
    chosen = options.parse_args()
    rng = random.Random(chosen.seed)
    texts = seeds()
    if chosen.more is not None:
        texts += [path.read_text() for path in sorted(chosen.more.iterdir()) if path.is_file()]
    signal.signal(signal.SIGALRM, _too_slow)
    tally: Counter[str] = Counter()
    began, slowest = time.perf_counter(), 0.0
    for number in range(chosen.count):
        text = mutated(rng, texts)
        form = rng.choice(FORMS) if rng.random() < 0.5 else None
        start = time.perf_counter()
        signal.alarm(LIMIT_S)
        try:
            parsed = parse_text(text, name="fuzz", form=form)
            for launch in parsed.launches:
                for token in launch.argv:
                    if parsed.text[token.start : token.end] != token.raw:
                        raise AssertionError("a token is not where it says")
                if launch.flags and rng.random() < EDITED:
                    edited(parsed, rng)
                    tally["edited"] += 1
        except Exception:
            tally["raised"] += 1
            if tally["raised"] <= 10:
                print(f"#{number} form={form} {text!r}", file=sys.stderr)
                traceback.print_exc()
            continue
        finally:
            signal.alarm(0)
        slowest = max(slowest, time.perf_counter() - start)
        tally["with launches" if parsed.launches else "with problems" if parsed.problems else "empty"] += 1
    spent = time.perf_counter() - began
    print(f"{chosen.count} inputs in {spent:.0f} s, slowest {slowest * 1000:.0f} ms: {dict(tally)}")
    return 1 if tally["raised"] else 0


if __name__ == "__main__":
    sys.exit(main())
