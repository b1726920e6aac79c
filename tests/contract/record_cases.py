"""Records what the real engine answers, so that the normal suite compares with it without an engine.

    python tests/contract/record_cases.py 0.5.23 0.5.12.post1

writes tests/engine/cases/VERSION.json: every named launch (launches.py) on every machine, and a sample of generated
ones. An answer is stored as its difference from the parser's defaults; an error as type and first words.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from hypothesis import HealthCheck, Phase, given, seed, settings

from planner.engine.flags import flag_table
from tests.contract.client import RealEngine
from tests.contract.launches import MACHINES, named
from tests.engine.expected import CASES, HIDDEN, symbolic
from tests.engine.strategies import CHECKPOINTS, launches

N_GENERATED = 150
LONG = 80
"""Characters from which a value is kept once for all cases."""


def generated(version: str, count: int, start: int) -> list[tuple[str, list[str]]]:
    """A fixed sample of generated launches."""
    found: list[tuple[str, list[str]]] = []

    @seed(start)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(launches(version))
    def collect(launch: tuple[str, list[str]]) -> None:
        found.append(launch)

    collect()
    return found


def expand(argv: list[str]) -> list[str]:
    """``@name`` becomes the folder of a checkpoint."""
    return [str(CHECKPOINTS / token[1:]) if token.startswith("@") else token for token in argv]


def _pooled(value: Any, pool: list[str]) -> Any:
    """A long value is kept once; the case points at it."""
    text = json.dumps(value)
    if len(text) <= LONG:
        return value
    if text not in pool:
        pool.append(text)
    return {"long": pool.index(text)}


def record(version: str) -> None:
    engine = RealEngine(version)
    defaults = json.loads(json.dumps(flag_table(version).defaults))
    cases: list[dict[str, Any]] = []
    wanted = [(name, hw, expand(argv)) for name, argv in named(version).items() for hw in MACHINES]
    wanted += [(f"generated-{n}", hw, argv) for n, (hw, argv) in enumerate(generated(version, N_GENERATED, 20261130))]
    for name, hw, argv in wanted:
        answer = engine.resolve(hw, argv)
        case: dict[str, Any] = {"name": name, "hw": hw, "argv": symbolic(argv)}
        if answer["error"] is not None:
            case["error"] = {"type": answer["error"]["type"], "message": symbolic(answer["error"]["message"])[:160]}
        else:
            values = {key: value for key, value in answer["effective"].items() if key not in HIDDEN}
            missing = object()
            case["changed"] = {
                key: symbolic(value) for key, value in values.items() if defaults.get(key, missing) != value
            }
            case["n_fields"] = len(values)
        cases.append(case)
    engine.close()
    pool: list[str] = []
    for case in cases:
        case["changed"] = {key: _pooled(value, pool) for key, value in case.get("changed", {}).items()}
        if not case["changed"]:
            del case["changed"]
    content = {
        "engine_version": version,
        "provenance": f"sglang {version} wheel, parser and resolution run on CPU with the machine's facts stated "
        "(tests/contract/engine_server.py); recorded by tests/contract/record_cases.py",
        "machines": {"b300": "275040 MiB, sm_103", "rtx_pro_6000": "97887 MiB, sm_120", "h200": "143771 MiB, sm_90"},
    }
    lines = [json.dumps(case, sort_keys=True) for case in cases]
    text = json.dumps(content, indent=1)[:-2] + ',\n "long": [\n' + ",\n".join(pool)
    text += '\n ],\n "cases": [\n' + ",\n".join(lines) + "\n ]\n}\n"
    path = CASES / f"{version}.json"
    path.write_text(text, encoding="utf-8")
    print(f"{path.relative_to(Path.cwd())}: {len(cases)} cases")


if __name__ == "__main__":
    for one in sys.argv[1:]:
        record(one)
