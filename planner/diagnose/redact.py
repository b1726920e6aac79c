"""Hide secrets in a line of a log or a command before it is shown or kept."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["HIDDEN", "redact", "redact_argv"]

HIDDEN = "***"

_NAME = (
    r"(?:[A-Za-z0-9_.-]*?(?:api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|auth[_-]?token|access[_-]?token|"
    r"admin[_-]?api[_-]?key|hf[_-]?token|hub[_-]?token|bearer[_-]?token|passwd|password|client[_-]?secret|secret|"
    r"keyfile[_-]?password)|token)"
)
_VALUE = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,;)}\]'"&|]+)"""
_EMPTY = r"(?!(?:None|null|False|True|none)\b)"

_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    # scheme://user:password@host
    (re.compile(r"(?P<keep>\b[A-Za-z][A-Za-z0-9+.-]*://)[^\s/@'\"]+@"), rf"\g<keep>{HIDDEN}@"),
    # Authorization: Bearer abc   and   X-Api-Key: abc
    (
        re.compile(
            r"(?P<keep>\b(?:proxy-)?authorization['\"]?\s*[:=]\s*['\"]?(?:(?:bearer|basic|token|digest)\s+)?)"
            r"(?!(?:bearer|basic|token|digest)\s)[^\s'\",;}]+",
            re.IGNORECASE,
        ),
        rf"\g<keep>{HIDDEN}",
    ),
    (re.compile(r"(?P<keep>\bbearer\s+)[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE), rf"\g<keep>{HIDDEN}"),
    # --api-key abc   --api-key=abc
    (re.compile(rf"(?P<keep>--{_NAME}(?:\s+|=))(?!-){_EMPTY}{_VALUE}", re.IGNORECASE), rf"\g<keep>{HIDDEN}"),
    # 'api_key': 'abc'   api_key=abc   HF_TOKEN=abc   ?token=abc
    (
        re.compile(rf"(?P<keep>(?<![A-Za-z0-9_-]){_NAME}['\"]?\s*[:=]\s*){_EMPTY}{_VALUE}", re.IGNORECASE),
        rf"\g<keep>{HIDDEN}",
    ),
    # Tokens that are known by their own form: Hugging Face, OpenAI style, GitHub, AWS access key id, JSON web token.
    (re.compile(r"\bhf_[A-Za-z0-9]{16,}\b"), HIDDEN),
    (re.compile(r"\bsk-[A-Za-z0-9_-]{16,}"), HIDDEN),
    (re.compile(r"\bgh[opsur]_[A-Za-z0-9]{20,}\b"), HIDDEN),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), HIDDEN),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+"), HIDDEN),
)
_HINT = re.compile(
    r"key|token|secret|passw|authorization|bearer|://[^\s/]*@|\bhf_|\bsk-|\bgh[opsur]_|AKIA|ASIA|eyJ", re.IGNORECASE
)
_SECRET_FLAG = re.compile(rf"^--{_NAME}$", re.IGNORECASE)
# "token" also names counts ("#new-token: 16", "#cached-token: 0"): numbers are no secrets.
_COUNT = re.compile(
    r"(?<![A-Za-z0-9_-])(?:[#\w-]*token)['\"]?\s*[:=]\s*(?:\d[\d.,]*|<[^>]*>|None)(?=$|[\s,;)\]}])", re.IGNORECASE
)


def redact(line: str) -> str:
    """``line`` with every secret replaced by ``***``; the names around it stay readable.

    Hidden: values of ``api_key``, ``token``, ``password`` and the like in flags, environment assignments, dictionaries
    and URLs; ``Authorization`` headers; user information in URLs; tokens of a known form. Idempotent.
    """
    if _HINT.search(line) is None:
        return line
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match.group(0))
        return f"\x00{len(kept) - 1}\x00"

    text = _COUNT.sub(keep, line.replace("\x00", ""))
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return re.sub(r"\x00(\d+)\x00", lambda match: kept[int(match.group(1))], text)


def redact_argv(argv: Iterable[str]) -> tuple[str, ...]:
    """Arguments with secret values hidden, also where flag and value are two arguments."""
    shown: list[str] = []
    hide_next = False
    for argument in argv:
        if hide_next and not argument.startswith("--"):
            shown.append(HIDDEN)
            hide_next = False
            continue
        hide_next = _SECRET_FLAG.match(argument) is not None
        shown.append(argument if hide_next else redact(argument))
    return tuple(shown)
