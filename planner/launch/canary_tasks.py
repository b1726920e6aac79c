"""The questions of the canary and how an answer is judged."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from planner.data.files import read_text

__all__ = ["CodeTask", "Tasks", "TextTask", "ValueTask", "code_of", "long_prompt", "tasks"]


@dataclass(frozen=True, slots=True)
class ValueTask:
    """A question with one right word."""

    prompt: str
    answer: str

    def right(self, completion: str) -> bool:
        """Whether the first word of the first line is the answer."""
        line = completion.strip(" ").split("\n", 1)[0].strip()
        word = line.split(" ", 1)[0].rstrip(".,;")
        return word == self.answer


@dataclass(frozen=True, slots=True)
class CodeTask:
    """A function to complete."""

    prompt: str
    function: str
    calls: tuple[tuple[tuple[Any, ...], Any], ...]
    """(arguments, result)."""


@dataclass(frozen=True, slots=True)
class TextTask:
    """A sentence to continue; only its look is judged."""

    prompt: str


@dataclass(frozen=True, slots=True)
class Tasks:
    """All questions."""

    values: tuple[ValueTask, ...]
    code: tuple[CodeTask, ...]
    text: tuple[TextTask, ...]


@cache
def tasks() -> Tasks:
    """The packaged questions."""
    data = tomllib.loads(read_text("launch/canary.toml"))
    return Tasks(
        values=tuple(ValueTask(prompt=row["prompt"], answer=row["answer"]) for row in data["arithmetic"]),
        code=tuple(
            CodeTask(
                prompt=row["prompt"],
                function=row["function"],
                calls=tuple((tuple(call["args"]), call["result"]) for call in row["calls"]),
            )
            for row in data["code"]
        ),
        text=tuple(TextTask(prompt=row["prompt"]) for row in data["text"]),
    )


def code_of(task: CodeTask, completion: str) -> str:
    """The function as completed: the prompt and the completion up to the first line that leaves the body."""
    first, *rest = completion.split("\n")
    body = [first]
    for line in rest:
        if line.strip() and not line.startswith((" ", "\t")):
            break
        body.append(line)
    return task.prompt + "\n".join(body) + "\n"


def long_prompt(n_lines: int, question: str) -> str:
    """Text of ``n_lines`` lines, no two alike, followed by the question. The same for the same arguments."""
    lines: Sequence[str] = [f"Item {number} is on shelf {(number * 37) % 101}.\n" for number in range(1, n_lines + 1)]
    return "".join(lines) + "\n" + question
