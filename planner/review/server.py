"""What a running server says about itself (``/server_info``), as a launch for the rules.

The answer holds every resolved argument. Those that stand at the engine's default are taken as not given: the rules ask
what was asked for, and the server no longer tells the two apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from planner.domain import LaunchConfig
from planner.engine.flags import flag_table
from planner.engine.spelling import field_of_dest
from planner.errors import InputError, Problem
from planner.review.context import engine_version_of
from planner.review.reading import tables_for
from planner.review.subject import Subject, profile_for_path
from planner.rules.context import RuleContext
from planner.rules.models import facts_of_name, facts_of_profile
from planner.rules.versions import span_of

__all__ = ["context_of_server"]

_OWN = frozenset(LaunchConfig.model_fields) - {"extra_args", "env", "unknown"}


def context_of_server(info: Mapping[str, Any], *, name: str, subject: Subject) -> RuleContext:
    """Context for the rules from a server's own report.

    Raises:
        InputError: no ``model_path`` among the keys: not the answer of an SGLang server.
    """
    values = info.get("server_args") if isinstance(info.get("server_args"), Mapping) else info
    if not isinstance(values, Mapping) or not values.get("model_path"):
        raise InputError(
            [Problem("not the answer of an SGLang server", file=name, hint="ask /server_info of a running server")]
        )
    span = subject.version
    if not span.stated and isinstance(info.get("version"), str):
        span = span_of(info["version"])
    table = flag_table(engine_version_of(span).table)
    defaults = table.defaults
    own: dict[str, Any] = {}
    extra: list[tuple[str, Any]] = []
    for key in sorted(values):
        value = values[key]
        if key not in defaults or value is None or value == defaults[key] or value == []:
            continue
        field = field_of_dest(key, table)
        plain = tuple(value) if isinstance(value, list) else value
        if not isinstance(plain, (bool, int, float, str, tuple)):
            continue
        if field in _OWN:
            own[field] = plain
        elif not isinstance(plain, tuple) or all(isinstance(item, str) for item in plain):
            extra.append((field, plain))
    launch = LaunchConfig(**own, extra_args=tuple(extra))
    path = launch.model_path or ""
    profile = subject.model or profile_for_path(path)
    facts = facts_of_profile(profile) if profile is not None else (facts_of_name(path) or subject.facts)
    return RuleContext(
        launch=launch,
        hardware=subject.hardware,
        n_gpus=subject.n_gpus,
        model=profile,
        facts=replace(facts, name=path) if facts is not None else None,
        drafter=subject.drafter,
        version=span,
        dialect=subject.dialect,
        form="server",
        tables=tables_for(span, subject.dialect),
        server_reported=True,
    )
