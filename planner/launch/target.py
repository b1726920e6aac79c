"""What to launch: from the JSON of a plan, or from a plain argv."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from planner.domain import Candidate, Launch, Plan, Predicted, Versions, Workload
from planner.domain.base import Value
from planner.errors import InputError, Problem, nearest_hint

__all__ = ["DEFAULT_PORT", "MODULE", "Target", "read_plan_json", "target_from_argv", "target_from_plan"]

MODULE = "sglang.launch_server"
DEFAULT_PORT = 30000
"""Port of SGLang when none is given (ServerArgs.port, 0.5.23)."""
_LOOPBACK = "127.0.0.1"
_PLAN_VERSION: int = get_args(Plan.model_fields["schema_version"].annotation)[0]


class Target(Value):
    """One server to start."""

    program: tuple[str, ...]
    """Up to and including the module: ``python -m sglang.launch_server``."""
    arguments: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    expected: Candidate | None = None
    """Effective settings that the plan relies on; None for a plain argv."""
    predicted: Predicted | None = None
    workload: Workload | None = None
    versions: Versions | None = None

    @property
    def argv(self) -> tuple[str, ...]:
        """The whole command."""
        return self.program + self.arguments

    def option(self, *names: str) -> str | None:
        """Value of the last of these flags, in the forms ``--flag value`` and ``--flag=value``."""
        found = None
        for position, word in enumerate(self.arguments):
            flag, equals, value = word.partition("=")
            if flag in names:
                if equals:
                    found = value
                elif position + 1 < len(self.arguments):
                    found = self.arguments[position + 1]
        return found

    def has(self, *names: str) -> bool:
        """Whether one of these switches is given."""
        return any(word.partition("=")[0] in names for word in self.arguments)

    @property
    def port(self) -> int:
        """HTTP port of the server."""
        text = self.option("--port")
        return int(text) if text is not None else DEFAULT_PORT

    @property
    def host(self) -> str:
        """Address that the server binds."""
        return self.option("--host") or _LOOPBACK

    @property
    def base_url(self) -> str:
        """Where to reach it from its own host."""
        host = _LOOPBACK if self.host in ("0.0.0.0", "::", "[::]") else self.host
        return f"http://{host}:{self.port}"

    @property
    def api_key(self) -> str | None:
        """Key that the server asks for."""
        return self.option("--api-key")

    def with_python(self, python: str | None) -> Target:
        """The same launch run by ``python``."""
        if python is None:
            return self
        rest = self.program[self.program.index("-m") :] if "-m" in self.program else ("-m", MODULE)
        return self.replace(program=(python, *rest))

    @property
    def python(self) -> str | None:
        """The interpreter that runs the server; None when the program is not one."""
        return self.program[0] if "-m" in self.program else None


def target_from_argv(words: Sequence[str], *, env: Sequence[tuple[str, str]] = ()) -> Target:
    """A target from ``python -m sglang.launch_server ARGS``, ``sglang serve ARGS`` or the arguments alone.

    Raises:
        InputError: nothing to run, or a port that is none.
    """
    words = tuple(words)
    program: tuple[str, ...]
    if not words:
        raise InputError("nothing to launch", "give a plan file, or the server's command after `--`")
    if words[0].startswith("-"):
        program, arguments = ("python", "-m", MODULE), words
    elif "-m" in words[:4] and words.index("-m") + 1 < len(words):
        cut = words.index("-m") + 2
        program, arguments = words[:cut], words[cut:]
    elif len(words) > 1 and words[1] == "serve":
        program, arguments = words[:2], words[2:]
    else:
        raise InputError(
            f"cannot tell how {words[0]!r} starts SGLang",
            f"write `python -m {MODULE} ...`, `sglang serve ...`, or only the arguments",
        )
    target = Target(program=program, arguments=arguments, env=tuple(env))
    port = target.option("--port")
    if port is not None and not (port.isdigit() and 0 < int(port) < 65536):
        raise InputError([Problem("not a port number", field="--port", value=port, hint="1 to 65535")])
    return target


def read_plan_json(text: str, *, name: str) -> dict[str, Any]:
    """The JSON object of a plan file.

    Raises:
        InputError: not JSON, not a plan, or of another schema version.
    """
    try:
        data = json.loads(text)
    except ValueError as error:
        raise InputError(
            [
                Problem(
                    f"not JSON: {error}",
                    file=name,
                    hint="write the plan with `plan-config ... --format json > PLAN.json`",
                )
            ]
        ) from None
    if not isinstance(data, dict) or "status" not in data or "launch" not in data:
        known = sorted(data) if isinstance(data, dict) else []
        near = nearest_hint("launch", [str(key) for key in known]) if known else "it must be a JSON object"
        raise InputError([Problem("not a plan: it has no `status` and `launch`", file=name, hint=near)])
    version = data.get("schema_version")
    if version != _PLAN_VERSION:
        raise InputError(
            [
                Problem(
                    f"plan of schema version {version!r}; this program reads version {_PLAN_VERSION}",
                    file=name,
                    field="schema_version",
                    hint="make the plan again with this program, or launch it with the program that wrote it",
                )
            ]
        )
    return data


def _pairs(data: Any, key: str) -> Any:
    """An object under ``key`` as pairs, the form of the domain values."""
    if isinstance(data, dict) and isinstance(data.get(key), dict):
        return {**data, key: list(data[key].items())}
    return data


def target_from_plan(data: dict[str, Any], *, name: str = "plan", replica: int = 0) -> Target:
    """A target from the JSON of a plan. Keys that launching does not need are not looked at.

    Raises:
        InputError: the plan is infeasible or parts of it cannot be read; all problems at once.
    """
    if data.get("launch") is None:
        conflict = data.get("conflict") or {}
        text = conflict.get("text", "no launch meets the limits and requests") if isinstance(conflict, dict) else ""
        raise InputError(
            [Problem(f"the plan is {data.get('status')}: {text}", file=name, hint="relax a request, then plan again")]
        )
    problems: list[Problem] = []

    def part(key: str, kind: Any, value: object) -> Any:
        if value is None:
            return None
        try:
            return TypeAdapter(kind).validate_json(json.dumps(value))
        except ValidationError as error:
            for fault in error.errors():
                place = ".".join(str(step) for step in (key, *fault["loc"]))
                problems.append(Problem(fault["msg"], file=name, field=place))
            return None

    data = {**data, "launch": _pairs(data["launch"], "env")}
    data["launches"] = [_pairs(one, "env") for one in data.get("launches") or [data["launch"]]]
    launches = data["launches"]
    if replica >= len(launches):
        raise InputError([Problem(f"the plan has {len(launches)} replicas", file=name, field="replica", value=replica)])
    launch: Launch | None = part("launch", Launch, launches[replica] if replica else data["launch"])
    expected: Candidate | None = part("effective", Candidate, data.get("effective"))
    predicted: Predicted | None = part("predicted", Predicted, _pairs(data.get("predicted"), "memory_bytes"))
    workload: Workload | None = part("workload", Workload, data.get("workload"))
    versions: Versions | None = part("versions", Versions, data.get("versions"))
    if problems or launch is None:
        raise InputError(problems)
    base = target_from_argv(launch.argv, env=launch.env)
    return base.replace(expected=expected, predicted=predicted, workload=workload, versions=versions)
