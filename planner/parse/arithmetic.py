"""Shell arithmetic over known integers: ``$((ISL * 2 + 20))``. Anything else is unknown (None)."""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["evaluate"]

_TOKEN = re.compile(
    r"\s*(?:(0[xX][0-9a-fA-F]+|\d+)|(\$?\{?[A-Za-z_]\w*\}?)|(\*\*|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%()<>!&|^~?:]))"
)
_LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"),
    ("+", "-"), ("*", "/", "%"),
)  # fmt: skip
_WIDTH = 63
_MOST_TOKENS = 100
_DEEPEST = 12


def evaluate(text: str, lookup: Callable[[str], str | None]) -> int | None:
    """The value of ``text`` when every term is known.

    Args:
        text: the expression between ``$((`` and ``))``.
        lookup: text of a variable, or None when it is unknown.
    """
    tokens = _tokens(text)
    if not tokens or len(tokens) > _MOST_TOKENS or tokens.count("(") > _DEEPEST:
        return None
    reader = _Reader(tokens, lookup)
    value = reader.ternary()
    return value if value is not None and reader.at == len(tokens) else None


def _tokens(text: str) -> list[str] | None:
    tokens, at = [], 0
    text = text.strip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        tokens.append(match.group(1) or match.group(2) or match.group(3))
        at = match.end()
    return tokens


class _Reader:
    """Recursive descent with C precedence. A result of None means unknown or malformed and is final."""

    def __init__(self, tokens: list[str], lookup: Callable[[str], str | None]) -> None:
        self.tokens, self.lookup, self.at = tokens, lookup, 0

    def peek(self) -> str | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def ternary(self) -> int | None:
        value = self.binary(0)
        if self.peek() != "?":
            return value
        self.at += 1
        yes = self.ternary()
        if self.peek() != ":":
            return None
        self.at += 1
        no = self.ternary()
        return None if value is None else (yes if value else no)

    def binary(self, level: int) -> int | None:
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while (operator := self.peek()) in _LEVELS[level]:
            self.at += 1
            right = self.binary(level + 1)
            left = None if left is None or right is None else _apply(str(operator), left, right)
        return left

    def unary(self) -> int | None:
        token = self.peek()
        if token is None:
            return None
        self.at += 1
        if token in ("-", "+", "!", "~"):
            value = self.unary()
            if value is None:
                return None
            return {"-": -value, "+": value, "!": int(not value), "~": ~value}[token]
        if token == "(":
            value = self.ternary()
            if self.peek() != ")":
                return None
            self.at += 1
            return value
        if token[0].isdigit():
            return _integer(token)
        if token[0].isalpha() or token[0] in "_$":
            text = self.lookup(token.strip("${}"))
            return None if text is None else _integer(text.strip() or "0")
        return None


def _integer(text: str) -> int | None:
    try:
        if len(text) > 20:
            return None
        octal = text.lstrip("-").startswith("0") and text.lstrip("-").isdigit() and len(text.lstrip("-")) > 1
        return int(text, 8 if octal else 0)
    except ValueError:
        return None


def _apply(operator: str, left: int, right: int) -> int | None:
    if operator in ("/", "%"):
        if right == 0:
            return None
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if operator == "/" else left - quotient * right
    if operator in ("<<", ">>") and not 0 <= right <= _WIDTH:
        return None
    value = {
        "||": lambda: int(bool(left or right)),
        "&&": lambda: int(bool(left and right)),
        "|": lambda: left | right,
        "^": lambda: left ^ right,
        "&": lambda: left & right,
        "==": lambda: int(left == right),
        "!=": lambda: int(left != right),
        "<": lambda: int(left < right),
        ">": lambda: int(left > right),
        "<=": lambda: int(left <= right),
        ">=": lambda: int(left >= right),
        "<<": lambda: left << right,
        ">>": lambda: left >> right,
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
    }[operator]()
    return value if -(1 << _WIDTH) <= value < 1 << _WIDTH else None
