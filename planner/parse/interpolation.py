"""Variables in container and unit files, which are not shell: ``$(VAR)`` of Kubernetes, ``${VAR:-x}`` of compose."""

from __future__ import annotations

import re
from collections.abc import Mapping

from planner.parse.source import HOLE, Mapped, join

__all__ = ["interpolate_compose", "interpolate_kubernetes"]

_KUBERNETES = re.compile(r"\$\$|\$\(([A-Za-z_][\w.-]*)\)")
_COMPOSE = re.compile(r"\$\$|\$([A-Za-z_]\w*)|\$\{([A-Za-z_]\w*)(?:(:?[-?+])([^${}]*))?\}")


def interpolate_kubernetes(text: Mapped, env: Mapping[str, Mapped]) -> Mapped:
    """``$(VAR)`` replaced by the value that the container's ``env`` gives, else unknown; ``$$`` is one dollar."""
    parts: list[Mapped] = []
    at = 0
    for match in _KUBERNETES.finditer(text.text):
        parts.append(text[at : match.start()])
        start, end = text.span(match.start(), match.end())
        if match.group() == "$$":
            parts.append(Mapped("$", [start], [end], text.layers))
        else:
            value = env.get(match.group(1))
            known = None if value is None or value.has_hole else value.text
            parts.append(Mapped(HOLE, [start], [end]) if known is None else Mapped.at(known, start, end, text.layers))
        at = match.end()
    return text if not parts else join([*parts, text[at:]])


def interpolate_compose(text: Mapped) -> tuple[Mapped, bool]:
    """Compose's own substitution, from the environment of who runs it; and whether a default was taken."""
    parts: list[Mapped] = []
    by_default, at = False, 0
    for match in _COMPOSE.finditer(text.text):
        parts.append(text[at : match.start()])
        start, end = text.span(match.start(), match.end())
        operator = match.group(3)
        if match.group() == "$$":
            parts.append(Mapped("$", [start], [end], text.layers))
        elif operator in (":-", "-"):
            by_default = True
            parts.append(Mapped.at(match.group(4), start, end, text.layers))
        else:
            parts.append(Mapped(HOLE, [start], [end]))
        at = match.end()
    return (text if not parts else join([*parts, text[at:]])), by_default
