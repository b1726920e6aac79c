"""Counts how often our resolution equals the engine's and writes the figures into docs/engine.md.

python tests/contract/agreement.py            # 1,500 launches a version, and the random flags
python tests/contract/agreement.py --count 200 --print
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from planner.engine.flag_table import FlagKind, FlagSpec, FlagType
from planner.engine.flags import flag_table
from tests.contract.client import RealEngine
from tests.contract.launches import MACHINES, named
from tests.contract.record_cases import generated
from tests.engine.expected import HIDDEN, concrete, differences

PAGE = Path(__file__).resolve().parents[2] / "docs" / "engine.md"
START, END = "<!-- agreement: start -->", "<!-- agreement: end -->"
SEED = 20261130


@dataclass
class Score:
    """Counts of one set of launches."""

    what: str
    launches: int = 0
    fields: int = 0
    refused: int = 0
    different: int = 0
    by_field: Counter[str] = field(default_factory=Counter)

    def add(self, engine: RealEngine, hw: str, argv: list[str]) -> None:
        answer = engine.resolve(hw, argv)
        found = differences(engine.version, hw, argv, answer)
        self.launches += 1
        self.refused += answer["error"] is not None
        self.fields += 1 if answer["error"] is not None else len(answer["effective"].keys() - HIDDEN)
        self.different += bool(found)
        self.by_field.update(found.keys())
        if found:
            print(engine.version, hw, argv, found, file=sys.stderr)

    def row(self, version: str) -> str:
        worst = ", ".join(f"`{name}` {count}" for name, count in self.by_field.most_common(6)) or "none"
        numbers = f"{self.launches:,} | {self.refused:,} | {self.fields:,} | {self.different:,}"
        return f"| {version} | {self.what} | {numbers} | {worst} |"


def random_flag(rng: random.Random, flags: list[FlagSpec]) -> list[str]:
    """Any flag of the version with a value of its type."""
    flag = rng.choice(flags)
    name = flag.names[0]
    if flag.kind in (FlagKind.TRUE, FlagKind.BOOL_OPTIONAL):
        return [name]
    if flag.choices:
        value = str(rng.choice(flag.choices))
    elif flag.type in (FlagType.INT, FlagType.HUMAN_INT):
        value = str(rng.choice([0, 1, 2, 4, 8, 64, 1024]))
    elif flag.type is FlagType.FLOAT:
        value = str(rng.choice([0.0, 0.5, 1.0, 2.0]))
    elif flag.type is FlagType.JSON:
        value = "{}"
    else:
        value = "abc"
    return [name, value]


def measure(version: str, count: int) -> list[str]:
    """Rows of the table for one version."""
    engine = RealEngine(version)
    rng = random.Random(SEED)
    own = {"model_path", "tokenizer_path", "device", "config", "random_seed", "speculative_draft_model_path"}
    flags = [
        flag
        for flag in flag_table(version).flags
        if flag.kind in (FlagKind.VALUE, FlagKind.TRUE, FlagKind.BOOL_OPTIONAL, FlagKind.LIST) and flag.dest not in own
    ]
    by_name, drawn, anything = Score("named"), Score("generated"), Score("generated, with 1 to 3 random flags")
    for argv in named(version).values():
        for hw in MACHINES:
            by_name.add(engine, hw, concrete(argv))
    sample = generated(version, count, SEED + 1)
    for hw, argv in sample:
        drawn.add(engine, hw, argv)
    for hw, argv in sample[: count // 2]:
        more = [token for _ in range(rng.randint(1, 3)) for token in random_flag(rng, flags)]
        anything.add(engine, hw, [*argv, *more])
    engine.close()
    return [score.row(version) for score in (by_name, drawn, anything)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1500, help="generated launches for each version")
    parser.add_argument("--print", action="store_true", dest="only_print", help="leave the page as it is")
    asked = parser.parse_args()
    lines = [
        "| version | launches | number | refused by the engine | fields compared | launches that differ | by field |",
        "|---|---|---|---|---|---|---|",
    ]
    for version in ("0.5.23", "0.5.12.post1"):
        lines += measure(version, asked.count)
    text = "\n".join(lines)
    print(text)
    if not asked.only_print:
        page = PAGE.read_text(encoding="utf-8")
        before, rest = page.split(START)
        _, after = rest.split(END)
        PAGE.write_text(f"{before}{START}\n\n{text}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
