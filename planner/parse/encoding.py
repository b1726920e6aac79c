"""How a word is written inside the quotings around it: the reverse of reading."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable

from planner.errors import InputError, Problem

__all__ = ["encode", "is_number"]

_SAFE = re.compile(r"[\w./:=,+@%~^-]*")
_SHELL_SAFE = re.compile(r"[\w./:=,+@%^-][\w./:=,+@%~^-]*")
_YAML_PLAIN = re.compile(
    r"(?![-?:,\[\]{}#&*!|>'\"%@`]|\s)(?:[^:#\n\t]|:(?=\S)|(?<=\S)#)*(?<![\s:])|--?[\w][^\s:#,\[\]{}]*"
)
_YAML_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "~", ""})
_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def is_number(text: str) -> bool:
    """Whether a YAML or Python reader takes the text for a number."""
    return _NUMBER.fullmatch(text) is not None


def encode(text: str, layers: tuple[str, ...], *, raw: str = "", keyed: bool = False) -> str:
    """``text`` as it must stand in the file.

    Args:
        text: the word that the program should receive.
        layers: quotings around it, innermost first (:attr:`planner.parse.model.Token.layers`).
        raw: what stands there now; its style is kept where it can be.
        keyed: the word is the value of a key, where numbers are written bare.

    Raises:
        InputError: the word cannot be written there.
    """
    for index, layer in enumerate(layers or ("split",)):
        if layer.startswith("whole-"):
            text = _whole(text, layer, raw, keyed)
        else:
            encoder = _ENCODERS.get(layer)
            if encoder is None or (layer == "split" and index):
                raise _refusal(text, layer)
            text = encoder(text)
    return text


def _refusal(text: str, layer: str) -> InputError:
    return InputError(
        [Problem("the word cannot be written here without changing what is around it", value=text, field=layer)]
    )


def _shell(text: str) -> str:
    return text if _SHELL_SAFE.fullmatch(text) else shlex.quote(text)


def _plain_only(text: str) -> str:
    if not text or _SAFE.fullmatch(text) is None:
        raise _refusal(text, "split")
    return text


def _one_line(text: str) -> str:
    if "\n" in text:
        raise _refusal(text, "line")
    return text


def _systemd(text: str) -> str:
    text = text.replace("%", "%%").replace("$", "$$")
    if re.fullmatch(r"[\w./:=,+@%$-]+", text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t") + '"'


def _escaped(characters: str) -> Callable[[str], str]:
    pattern = re.compile(f"[{re.escape(characters)}]")
    return lambda text: pattern.sub(lambda match: "\\" + match.group(), text)


def _json_inside(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _identity(text: str) -> str:
    return text


_ENCODERS: dict[str, Callable[[str], str]] = {
    "shell": _shell,
    "split": _plain_only,
    "shell-double": _escaped('\\"$`'),
    "shell-single": lambda text: text.replace("'", "'\\''"),
    "shell-ansi": _escaped("\\'"),
    "heredoc": _escaped("\\$`"),
    "heredoc-raw": _identity,
    "yaml-plain": _one_line,
    "yaml-block": _one_line,
    "yaml-double": _json_inside,
    "yaml-single": lambda text: _one_line(text).replace("'", "''"),
    "json": _json_inside,
    "compose": lambda text: text.replace("$", "$$"),
    "python": lambda text: _plain_only(text) if "\\" in text or ('"' in text and "'" in text) else _one_line(text),
    "systemd": _systemd,
}


def _whole(text: str, layer: str, raw: str, keyed: bool) -> str:
    style = layer.removeprefix("whole-")
    bare = keyed and (is_number(text) or text in ("true", "false", "null"))
    if style == "json":
        return text if bare and not raw.startswith('"') else json.dumps(text, ensure_ascii=False)
    if style == "python":
        if bare and raw[:1] not in "\"'":
            return {"true": "True", "false": "False", "null": "None"}.get(text, text)
        quote = "'" if raw.startswith("'") and "'" not in text else '"'
        return quote + json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"' if quote == "'" else '\\"') + quote
    if style == "yaml-plain":
        special = text.lower() in _YAML_WORDS or is_number(text)
        if _YAML_PLAIN.fullmatch(text) and (not special or bare or (is_number(text) and is_number(raw))):
            return text
        return json.dumps(text, ensure_ascii=False)
    if style == "yaml-single" and "\n" not in text:
        return "'" + text.replace("'", "''") + "'"
    if style in ("yaml-double", "yaml-single"):
        return json.dumps(text, ensure_ascii=False)
    raise _refusal(text, layer)
