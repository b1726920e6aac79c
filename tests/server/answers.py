"""What the tiny model is taught: the canary's questions with right answers, alone and at the end of long prompts."""

from __future__ import annotations

from planner.launch.canary_tasks import long_prompt, tasks

__all__ = ["pairs"]

_CODE = {
    "add": " a + b\n",
    "is_even": " n % 2 == 0\n",
    "reverse_text": " text[::-1]\n",
    "largest": " max(numbers)\n",
    "square": " x * x\n",
}
_TEXT = (
    " its smallest parts move faster and faster until some of them leave the surface as steam.\n",
    " red, yellow and blue; every other colour can be mixed from them with patience and care.\n",
)


def pairs(longest_lines: int = 170) -> list[list[str]]:
    """``[prompt, completion]`` of everything that is asked."""
    known = tasks()
    taught = [[task.prompt, f" {task.answer}\n"] for task in known.values]
    taught += [[task.prompt, _CODE[task.function]] for task in known.code]
    taught += [[task.prompt, text] for task, text in zip(known.text, _TEXT, strict=True)]
    first = known.values[0]
    taught += [
        [long_prompt(n_lines, first.prompt), f" {first.answer}\n"]
        for n_lines in (*range(10, 40, 3), *range(40, longest_lines + 1))
    ]
    return taught
