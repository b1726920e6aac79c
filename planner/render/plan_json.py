"""A plan as JSON: the keys of ``Plan``, env as an object, numbers as they are. Same plan, same bytes."""

from __future__ import annotations

import json
from typing import Any

from planner.domain import Plan, Prediction

__all__ = ["plan_to_dict", "prediction_to_dict", "render_json"]


def render_json(data: dict[str, Any]) -> str:
    """Indented JSON with keys in the order of the value's fields; NaN never appears."""
    return json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def plan_to_dict(plan: Plan) -> dict[str, Any]:
    """Plain data of a plan (``planner.domain.Plan`` describes the keys)."""
    return _plain(plan.model_dump(mode="json"))  # type: ignore[no-any-return]


def prediction_to_dict(prediction: Prediction) -> dict[str, Any]:
    """Plain data of a prediction."""
    return _plain(prediction.model_dump(mode="json"))  # type: ignore[no-any-return]


def _plain(data: Any) -> Any:
    """Launch environments as ``{name: value}``, memory by part as an object; sets sorted."""
    if isinstance(data, dict):
        out = {key: _plain(value) for key, value in data.items()}
        for key in ("env", "memory_bytes"):
            if isinstance(out.get(key), list):
                out[key] = dict(out[key])
        if isinstance(out.get("needs"), list):
            out["needs"] = sorted(out["needs"])
        return out
    if isinstance(data, list):
        return [_plain(item) for item in data]
    return data
