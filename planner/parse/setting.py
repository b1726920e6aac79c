"""What surrounds a command while a file is read, and the launches collected so far."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from planner._record import record
from planner.errors import Problem
from planner.parse.model import ContainerFacts, EnvHow, Form, JobFacts, Launcher, NoteKind, Role
from planner.parse.source import Document, Field, Mapped

__all__ = [
    "ENGINE_VARIABLE",
    "MENTION",
    "Collector",
    "Draft",
    "DraftNote",
    "EnvItem",
    "KeyedFlag",
    "Setting",
    "role_of",
]

MENTION = re.compile(r"sglang|launch_server|\bsgl\b")
"""A text without this holds no launch."""
_COMMAND_LINE = (
    r"(?m)^[ \t]*(?:[A-Za-z_]\w*=\S*[ \t]+)*(?:\$|[\w./-]*(?:python|sglang|exec|nohup|sudo|env|bash|sh|docker|podman|"
    r"srun|mpirun|numactl|cd|export|set|ssh|kubectl|source|timeout|if|for))[\w.{}]*\b[^\n]*"
)
"""A line that begins as a command does."""
ENGINE_VARIABLE = re.compile(
    r"(?:SGLANG|SGL|NCCL|CUDA|HIP|ROCM|ROCR|TORCH|TORCHINDUCTOR|PYTORCH|FLASHINFER|OMP|NVSHMEM|HF|MOONCAKE|MC|UCX|GLOO|DG|"
    r"TRITON|NVIDIA|TLLM|TRTLLM|FLASHATTENTION|DEEPEP|NIXL|AITER|CUTE|NVTE|TRANSFORMERS|TOKENIZERS)_\w+|CUDA_HOME"
)
"""Variables that the engine or its libraries read: reported also when the script forgets to export them."""
_MOST_LAUNCHES = 400
_ROLE_WORDS = (
    (r"(?i)prefill", Role.PREFILL),
    (r"(?i)decode", Role.DECODE),
    (r"(?i)\bdraft(?:er|[-_]?server)?\b", Role.DRAFT),
    (r"(?i)router|\bmini_?lb\b", Role.ROUTER),
    (r"(?i)\bencode(?:r)?\b", Role.ENCODE),
    (r"(?i)\bagg(?:regated)?\b", Role.AGGREGATED),
)


def role_of(name: str | None) -> Role | None:
    """Role that a name says: ``decode-leader`` is a decode server. A name with two roles says none."""
    if not name:
        return None
    words = name.replace("_", "-")
    found = {role for pattern, role in _ROLE_WORDS if re.search(pattern, words)}
    found.discard(Role.AGGREGATED) if len(found) > 1 else None
    return found.pop() if len(found) == 1 else None


@record(eq=False)
class EnvItem:
    """One variable set around a command. ``value`` has the chars and place of its value."""

    name: str
    value: Field
    how: EnvHow
    exported: bool = True
    name_at: tuple[int, int] | None = None


@record(eq=False)
class Setting:
    """Facts that hold for every command in some part of a file."""

    form: Form
    env: tuple[EnvItem, ...] = ()
    container: ContainerFacts | None = None
    job: JobFacts | None = None
    name: str | None = None
    role: Role | None = None
    condition: tuple[str, ...] = ()

    def with_env(self, items: tuple[EnvItem, ...] | list[EnvItem]) -> Setting:
        """The setting with more variables; a later one of a name replaces the earlier."""
        if not items:
            return self
        merged = {item.name: item for item in self.env}
        for item in items:
            merged.pop(item.name, None)
            merged[item.name] = item
        return replace(self, env=tuple(merged.values()))

    def named(self, name: str | None) -> Setting:
        """The setting inside a service, container or function of that name."""
        return self if not name else replace(self, name=name, role=role_of(name) or self.role)


@record(eq=False)
class KeyedFlag:
    """A key of a recipe or of keyword arguments; ``values`` None: set to false or null."""

    name: Field
    values: tuple[Field, ...] | None


@record()
class DraftNote:
    """A fault of writing at an offset."""

    kind: NoteKind
    message: str
    start: int


@dataclass(eq=False, repr=False)
class Draft:
    """A launch before its tokens are made."""

    launcher: Launcher
    program: tuple[Field, ...]
    argv: tuple[Field, ...]
    setting: Setting
    start: int
    end: int
    lost: tuple[Field, ...] = ()
    notes: tuple[DraftNote, ...] = ()
    keyed: bool = False
    switched_off: tuple[KeyedFlag, ...] = ()
    site: object = None
    """Same for drafts of one command on different branches."""

    def key(self) -> tuple[object, ...]:
        """What two drafts share that need not be told apart."""
        env = tuple(
            (item.name, item.value.chars.text, item.exported)
            for item in self.setting.env
            if item.how is not EnvHow.EXPORT or ENGINE_VARIABLE.fullmatch(item.name)
        )
        return (self.launcher, tuple((word.chars.text, word.start) for word in self.argv), env)


RunScript = Callable[["Mapped", "Setting", "Collector", int], None]


@dataclass(eq=False, repr=False)
class Collector:
    """Gathers drafts and problems of one file."""

    document: Document
    run_script: RunScript
    drafts: list[Draft] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    quiet: int = 0
    """Above zero inside text that may be no script at all: what cannot be read there is no fault of the file."""

    def add(self, draft: Draft) -> None:
        """Keeps a launch."""
        if len(self.drafts) < _MOST_LAUNCHES:
            self.drafts.append(draft)
        elif len(self.drafts) == _MOST_LAUNCHES:
            self.drafts.append(draft)
            self.problem(f"more than {_MOST_LAUNCHES} launches; the rest is not read", draft.start)

    def problem(self, message: str, offset: int | None, hint: str | None = None) -> None:
        """Keeps a reason why a part cannot be read."""
        if self.quiet:
            return
        line = 1 if offset is None else self.document.place(offset)[0]
        item = Problem(message, file=self.document.name, line=line, hint=hint)
        if item not in self.problems:
            self.problems.append(item)

    def guess(self, script: Mapped, setting: Setting, depth: int) -> None:
        """Reads text that looks like a command but may be prose."""
        if re.search(_COMMAND_LINE, script.text) is not None:
            self.quiet += 1
            try:
                self.script(script, setting, depth)
            finally:
                self.quiet -= 1

    def script(self, script: Mapped, setting: Setting, depth: int) -> None:
        """Reads shell text found inside another text."""
        if MENTION.search(script.text) is None:
            return
        if depth > 6:
            self.problem("scripts are nested too deeply", script.starts[0] if script.text else None)
            return
        self.run_script(script, setting, self, depth + 1)
