"""Recorded answers of the real engine, and our own answers in the same form."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from planner.data import load_hardware
from planner.data.hf_config import read_hf_config
from planner.engine.argv import read_argv
from planner.engine.flags import flag_table
from planner.engine.resolution import resolve

CASES = Path(__file__).with_name("cases")
CHECKPOINTS = Path(__file__).with_name("checkpoints")
HIDDEN = frozenset(
    {
        "random_seed",  # drawn
        "remote_instance_weight_loader_start_seed_via_transfer_engine",  # asks for an installed package
    }
)


def symbolic(value: Any) -> Any:
    """Checkpoint folders as ``@name``, so that a recorded case holds on any machine."""
    if isinstance(value, str):
        return value.replace(f"{CHECKPOINTS}/", "@")
    if isinstance(value, list):
        return [symbolic(item) for item in value]
    return value


def concrete(argv: list[str]) -> list[str]:
    """The inverse of :func:`symbolic` for arguments."""
    return [str(CHECKPOINTS / token[1:]) if token.startswith("@") else token for token in argv]


@cache
def config(path: str | None) -> Any:
    """config.json of a checkpoint folder, or None."""
    return read_hf_config(Path(path)) if path is not None and Path(path).is_dir() else None


@cache
def record(version: str) -> dict[str, Any]:
    """What was recorded for a version, with where it comes from."""
    return json.loads((CASES / f"{version}.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def cases(version: str) -> list[dict[str, Any]]:
    """Recorded cases of a version."""
    return record(version)["cases"]  # type: ignore[no-any-return]


def ours(
    version: str, hw: str, argv: list[str], *, cuda_visible: bool = True
) -> tuple[dict[str, Any] | None, tuple[str, str] | None]:
    """Our effective values in JSON's types and our error (type, message); one of them is None."""
    read = read_argv(argv, version=version)
    if read.problems:
        return None, ("SystemExit", read.problems[0].message)
    launch = read.launch
    found = resolve(
        launch,
        hardware=load_hardware(hw),
        engine_version=version,
        model_config=config(launch.model_path),
        draft_config=config(launch.speculative_draft_model_path),
        cuda_visible=cuda_visible,
    )
    if found.error is not None:
        return None, (found.error.error_type, found.error.message)
    return json.loads(json.dumps(dict(found.effective))), None


def differences(
    version: str, hw: str, argv: list[str], answer: dict[str, Any], *, cuda_visible: bool = True
) -> dict[str, Any]:
    """Fields in which our answer is not the engine's: name -> (engine, ours); empty when all agree.

    An error agrees when both raise the same type. ``answer`` has ``error`` or ``effective``.
    """
    effective, error = ours(version, hw, argv, cuda_visible=cuda_visible)
    theirs = answer.get("error")
    if theirs is not None or error is not None:
        same = theirs is not None and error is not None and theirs["type"] == error[0]
        return {} if same else {"error": (theirs, error)}
    assert effective is not None
    return {
        name: (value, effective.get(name, "(missing)"))
        for name, value in answer["effective"].items()
        if name not in HIDDEN and effective.get(name, "(missing)") != value
    }


def recorded_answer(version: str, case: dict[str, Any]) -> dict[str, Any]:
    """A recorded case in the form of the engine's answer, checkpoint folders expanded."""
    if "error" in case:
        return {"error": case["error"]}
    long = record(version)["long"]
    changed = {
        name: long[value["long"]] if isinstance(value, dict) and set(value) == {"long"} else value
        for name, value in case.get("changed", {}).items()
    }
    text = json.dumps(flag_table(version).defaults | changed)
    return {"effective": json.loads(text.replace('"@', f'"{CHECKPOINTS}/'))}


def folder_of(name: str) -> str:
    """Path of a checkpoint folder that holds only config.json."""
    return str(CHECKPOINTS / name)
