"""Working state of one resolution: values as they stand, what was given, and a Decision for each change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from planner.domain import Decision
from planner.engine.facts import DraftFacts, ModelFacts, Platform
from planner.errors import EngineRefusal

__all__ = ["State"]


class State:
    """Values by SGLang's field names, readable as attributes. Rules change them with :meth:`set` only."""

    def __init__(
        self,
        *,
        version: str,
        values: dict[str, Any],
        given: frozenset[str],
        platform: Platform,
        model: ModelFacts | None,
        draft: DraftFacts | None,
        env: Mapping[str, str],
    ) -> None:
        self.version = version
        self.values = values
        self.asked = {name: values[name] for name in given if name in values}
        self.platform = platform
        self.model = model
        self.draft = draft
        self.env = dict(env)
        self.notes: list[str] = []
        self.locked: set[tuple[str, str]] = set()
        """CUDA graph settings (phase, key) that were given, so that defaults leave them alone."""
        self._because: dict[str, tuple[list[str], str]] = {}
        self._first: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["values"][name]
        except KeyError:
            raise AttributeError(name) from None

    def set(self, because: str, where: str, **changes: Any) -> None:
        """Changes values; a value that stays the same is no decision. ``where`` is ``file:line`` inside the wheel."""
        for name, value in changes.items():
            before = self.values.get(name)
            self.values[name] = value
            if before == value and type(before) is type(value):
                continue
            self._first.setdefault(name, before)
            reasons, _ = self._because.setdefault(name, ([], where))
            if because not in reasons:
                reasons.append(because)
            self._because[name] = (reasons, where)

    def graph(self, phase: str) -> dict[str, Any]:
        """Settings of a CUDA graph phase (``decode`` or ``prefill``)."""
        return self.values["cuda_graph_config"][phase]  # type: ignore[no-any-return]

    def set_graph(self, because: str, where: str, phase: str, **changes: Any) -> None:
        """Changes settings of a CUDA graph phase, with decisions under ``cuda_graph_<key>_<phase>``."""
        config = self.values["cuda_graph_config"]
        self.values["cuda_graph_config"] = {**config, phase: {**config[phase], **changes}}
        for key, value in changes.items():
            self.values.setdefault(f"cuda_graph_{key}_{phase}", None)
            self.set(because, where, **{f"cuda_graph_{key}_{phase}": value})

    def refuse(self, kind: str, message: str, where: str) -> NoReturn:
        """The engine raises here."""
        source = where if where.startswith("dialect ") else f"{self.version} srt/{where}"
        raise EngineRefusal(kind, message, source)

    def value_error(self, message: str, where: str) -> NoReturn:
        self.refuse("ValueError", message, where)

    def require(self, holds: bool, message: str, where: str) -> None:
        """An assertion of the engine."""
        if not holds:
            self.refuse("AssertionError", message, where)

    def flag(self, name: str, default: bool = False) -> bool:
        """A boolean environment variable."""
        text = self.env.get(name)
        return default if text is None else text.lower() in ("1", "true", "yes", "y")

    def decisions(self) -> tuple[Decision, ...]:
        """One decision for each value that ended different from what was asked, in the order of the first change."""
        made = []
        for name, (reasons, where) in self._because.items():
            before = self.asked.get(name)
            after = self.values.get(name)
            if before is None and name not in self.asked:
                before = self._first.get(name)
            if _same(before, after):
                continue
            made.append(
                Decision(
                    field=name,
                    before=_arg(before) if name in self.asked else None,
                    after=_arg(after),
                    because="; ".join(reasons),
                    source=where if where.startswith("dialect ") else f"{self.version} srt/{where}",
                )
            )
        return tuple(made)


def _same(before: Any, after: Any) -> bool:
    return bool(before == after) and type(before) is type(after)


def _arg(value: Any) -> Any:
    """A value in the form that a Decision holds."""
    if isinstance(value, (list, tuple)):
        if all(isinstance(item, int) and not isinstance(item, bool) for item in value):
            return tuple(value)
        return tuple(str(item) for item in value)
    return str(value) if isinstance(value, Mapping) else value
