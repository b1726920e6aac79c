"""Values of arguments: text to value as the engine's parser converts it, and back."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from decimal import Decimal

from planner.domain import ArgValue
from planner.engine.flag_table import FlagKind, FlagSpec, FlagType

__all__ = ["ValueFault", "looks_like_option", "read_value", "write_value"]

_HUMAN = re.compile(r"(\d+(?:\.\d+)?)(Ki|Mi|Gi|Ti|k|M|G|T)")
_FACTOR = {
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
_NEGATIVE_NUMBER = re.compile(r"-\d+|-\d*\.\d+", re.ASCII)
"""What argparse takes for a number and not for an option, in a parser without options such as ``-1``."""
_GRAPH_PHASES = ("decode", "prefill")


class ValueFault(Exception):
    """A value that the parser refuses. ``code`` is bad_choice, bad_type, missing_value or unexpected_value."""

    def __init__(self, code: str, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint


def looks_like_option(text: str) -> bool:
    """Whether argparse takes the token for an option, known or not."""
    return len(text) > 1 and text[0] == "-" and " " not in text and _NEGATIVE_NUMBER.fullmatch(text) is None


def read_value(spec: FlagSpec, name: str, raw: Sequence[str], *, explicit: bool) -> ArgValue | None:
    """Value of one occurrence. ``explicit``: written as ``--flag=value``. None: the engine stores None.

    Raises:
        ValueFault: wrong count, type or choice.
    """
    label = f"argument {'/'.join(spec.names)}"
    kind = spec.kind
    if kind in (FlagKind.TRUE, FlagKind.FALSE, FlagKind.BOOL_OPTIONAL, FlagKind.CONST, FlagKind.IGNORED):
        if explicit:
            raise ValueFault("unexpected_value", f"{label}: ignored explicit argument {raw[0]!r}")
        if kind is FlagKind.BOOL_OPTIONAL:
            return not _is_negative(spec, name)
        return spec.const if kind is FlagKind.CONST else kind is not FlagKind.FALSE
    if kind is FlagKind.LIST:
        if not raw and spec.nargs == "+":
            raise ValueFault("missing_value", f"{label}: expected at least one argument")
        items = [_convert(spec, label, text) for text in raw]
        return tuple(str(item) if isinstance(item, float) else item for item in items)  # type: ignore[return-value]
    if not raw:
        if spec.nargs == "?":
            return spec.const if isinstance(spec.const, str) else None
        raise ValueFault("missing_value", f"{label}: expected one argument")
    value = _convert(spec, label, raw[0])
    return spec.const if kind is FlagKind.CONST_OF_VALUE else value


def _is_negative(spec: FlagSpec, name: str) -> bool:
    full = name if name in spec.names else next((text for text in spec.names if text.startswith(name)), name)
    return full.startswith("--no-") and f"--{full[5:]}" in spec.names


def _convert(spec: FlagSpec, label: str, text: str) -> ArgValue | None:
    value: ArgValue | None
    try:
        if spec.type is FlagType.INT:
            value = int(text)
        elif spec.type is FlagType.FLOAT:
            value = float(text)
        elif spec.type is FlagType.HUMAN_INT:
            value = _human_int(text)
        elif spec.type is FlagType.JSON:
            json.loads(text)
            value = text
        elif spec.type is FlagType.NULLABLE_STR:
            value = None if text in ("", "None") else text
        else:
            value = text
    except ValueError:
        kind = {"human_int": "human_readable_int", "json": "JSON"}.get(spec.type.value, spec.type.value)
        raise ValueFault("bad_type", f"{label}: invalid {kind} value: {text!r}") from None
    if spec.choices is not None and value is not None and value not in spec.choices:
        choices = ", ".join(repr(choice) for choice in spec.choices)
        raise ValueFault("bad_choice", f"{label}: invalid choice: {value!r} (choose from {choices})")
    if spec.dest == "cuda_graph_config" and isinstance(value, str):
        _check_graph_config(label, value)
    return value


def _human_int(text: str) -> int:
    found = _HUMAN.fullmatch(text.strip())
    if found is None:
        return int(text)
    number, suffix = found.groups()
    if suffix.endswith("i") and "." in number:
        raise ValueError(text)
    return int(Decimal(number) * _FACTOR[suffix])


def _check_graph_config(label: str, text: str) -> None:
    content = json.loads(text)
    if not isinstance(content, dict):
        raise ValueFault("bad_type", f"{label}: --cuda-graph-config must be a JSON object")
    for phase, settings in content.items():
        if phase not in _GRAPH_PHASES or not isinstance(settings, dict):
            raise ValueFault("bad_type", f"{label}: unknown phase or no object: {phase!r}")


def write_value(spec: FlagSpec, value: ArgValue) -> list[str]:
    """Tokens that give ``value`` to the flag; empty where the value is what the engine has without the flag.

    Raises:
        ValueFault: the flag cannot express the value.
    """
    name = spec.names[0]
    if spec.kind in (FlagKind.TRUE, FlagKind.IGNORED):
        if value is True:
            return [name]
        if value is False and not spec.default:
            return []
        raise ValueFault("bad_type", f"{name} takes no value and cannot express {value!r}")
    if spec.kind is FlagKind.FALSE:
        return [name] if value is False else []
    if spec.kind is FlagKind.BOOL_OPTIONAL:
        negative = next((text for text in spec.names if text.startswith("--no-")), None)
        if not isinstance(value, bool) or negative is None:
            raise ValueFault("bad_type", f"{name} takes no value and cannot express {value!r}")
        return [name if value else negative]
    if spec.kind in (FlagKind.CONST, FlagKind.CONST_OF_VALUE, FlagKind.REFUSED):
        raise ValueFault("bad_type", f"{name} cannot express {value!r}")
    if spec.kind is FlagKind.LIST:
        items = value if isinstance(value, tuple) else (value,)
        texts = [str(item) for item in items]
        for text in texts:
            _convert(spec, f"argument {name}", text)
        if len(texts) == 1 and looks_like_option(texts[0]):
            return [f"{name}={texts[0]}"]
        if any(looks_like_option(text) for text in texts):
            raise ValueFault("bad_type", f"{name}: a list item cannot start with '-'")
        return [name, *texts]
    if isinstance(value, (tuple, bool)):
        raise ValueFault("bad_type", f"{name} takes one value, got {value!r}")
    text = repr(value) if isinstance(value, float) else str(value)
    _convert(spec, f"argument {name}", text)
    return [f"{name}={text}"] if looks_like_option(text) else [name, text]
