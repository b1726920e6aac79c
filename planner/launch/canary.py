"""The canary: greedy generations with answers that can be checked, at several batch sizes.

A server that answers is not a server that is right (field note FN-07: it passed its readiness check with accept length
1.00 and 0 of 5 coding answers right). So a few questions are asked alone, then by as many clients as may run at once,
then by one client less than a captured batch size (padding of the graph), then a long prompt twice (prefix cache).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from planner.launch.canary_tasks import CodeTask, TextTask, ValueTask, code_of, long_prompt, tasks
from planner.launch.client import CallError, CallFault, Generation, ServerClient
from planner.launch.sandbox import run_functions
from planner.launch.sanity import oddity
from planner.launch.verdict import Cause, JudgedError, Stage

__all__ = ["CanaryPlan", "CanaryResult", "fault_cause", "run_canary"]

MIN_ACCEPT_LEN = 1.05
"""Under speculation a healthy draft is accepted more often than never (1.00 exactly on record for a broken one)."""
MIN_RIGHT_FRAC = 0.8
"""Share of checked answers that must be right at each batch size."""
LONG_PROMPT_TOK = 4096
LONG_PROMPT_MIN_TOK = 256
MIN_HIT_FRAC = 0.5
"""Share of the repeated long prompt that must come from the prefix cache."""
_VALUE_TOK, _CODE_TOK, _TEXT_TOK = 16, 40, 48
_TAIL_TOK = 64

Task = ValueTask | CodeTask | TextTask


@dataclass(frozen=True, slots=True)
class CanaryPlan:
    """What to ask of this server."""

    full_batch: int
    """Requests that may run at a time."""
    graph_batches: tuple[int, ...] = ()
    """Captured batch sizes."""
    speculating: bool = False
    prefix_cache: bool = True
    max_prompt_tok: int = LONG_PROMPT_TOK
    """Longest prompt that the server takes."""
    call_timeout_s: float = 120.0

    @property
    def below_capture(self) -> int | None:
        """One less than the largest captured size that can be filled; None when that is no new batch."""
        sizes = [size for size in self.graph_batches if size <= self.full_batch] or [self.full_batch]
        below = max(sizes) - 1
        return below if below > 1 else None


@dataclass(slots=True)
class CanaryResult:
    """Figures, whether the canary passed or not."""

    figures: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


async def run_canary(client: ServerClient, plan: CanaryPlan, say: Callable[[str], None]) -> CanaryResult:
    """Asks everything.

    Raises:
        JudgedError: the server answers wrongly, strangely, slowly or not at all; the cause says which.
    """
    result = CanaryResult()
    start = time.monotonic()
    known = tasks()
    every: list[Task] = [*known.values, *known.code, *known.text]
    try:
        alone = [await _ask(client, task, plan) for task in every]
        _judge("batch 1", every, alone, plan, result)
        say("  canary: batch 1 right")
        checked: list[Task] = [*known.values, *known.code]
        for name, size in (("full batch", plan.full_batch), ("below capture", plan.below_capture)):
            if size is None or size < 2:
                continue
            asked = [checked[number % len(checked)] for number in range(size)]
            answers = await asyncio.gather(*(_ask(client, task, plan) for task in asked))
            _judge(f"{name} {size}", asked, answers, plan, result)
            say(f"  canary: {name} {size} right")
        await _long_prompt(client, plan, result)
    except CallError as error:
        raise JudgedError(fault_cause(error), error.detail, stage=Stage.CANARY) from None
    result.figures["took_s"] = round(time.monotonic() - start, 3)
    return result


def fault_cause(error: CallError) -> Cause:
    """The cause that a failed call stands for."""
    return {
        CallFault.REFUSED: Cause.CONNECTION_LOST,
        CallFault.SILENT: Cause.HANG_GENERATION,
        CallFault.SLOW: Cause.SLOW_ANSWER,
        CallFault.STATUS: Cause.UNHEALTHY if error.status == 503 else Cause.REQUEST_REFUSED,
        CallFault.CUT: Cause.CONNECTION_LOST,
        CallFault.UNREADABLE: Cause.BAD_ANSWER,
    }[error.fault]


async def _ask(client: ServerClient, task: Task, plan: CanaryPlan) -> Generation:
    limit = {ValueTask: _VALUE_TOK, CodeTask: _CODE_TOK, TextTask: _TEXT_TOK}[type(task)]
    return await client.generate(task.prompt, max_new_tok=limit, deadline_s=plan.call_timeout_s)


def _judge(
    name: str, asked: Sequence[Task], answers: Sequence[Generation], plan: CanaryPlan, result: CanaryResult
) -> None:
    """Fills in the figures of one batch size and raises when they are not those of a healthy server."""
    distinct = {
        (task.function, code_of(task, got.text)): task
        for task, got in zip(asked, answers, strict=True)
        if isinstance(task, CodeTask)
    }
    ran = run_functions([(task, source) for (_, source), task in distinct.items()])
    verdicts = dict(zip(distinct, ran, strict=True))
    n_checked = n_right = n_odd = 0
    odd: list[str] = []
    wrong: list[str] = []
    for task, got in zip(asked, answers, strict=True):
        if isinstance(task, TextTask):
            if reason := oddity(got.text):
                odd.append(f"{task.prompt!r} -> {got.text[:60]!r} ({reason})")
            continue
        n_checked += 1
        right = (
            task.right(got.text) if isinstance(task, ValueTask) else verdicts[task.function, code_of(task, got.text)]
        )
        n_right += right
        if not right:
            n_odd += oddity(got.text) is not None
            wrong.append(f"{task.prompt.splitlines()[-2][:40]!r} -> {got.text[:40]!r}")
    accept = _accept_len(answers)
    key = name.replace(" ", "_")
    result.figures[f"{key}_right_frac"] = round(n_right / n_checked, 4)
    if accept is not None:
        result.figures[f"{key}_accept_len"] = round(accept, 4)
    one = accept is not None and plan.speculating and accept <= MIN_ACCEPT_LEN
    right_frac = n_right / n_checked
    tail = f"; accept length {accept:.2f}" if accept is not None else ""
    if right_frac < MIN_RIGHT_FRAC:
        garbage = n_right == 0 or odd or 2 * n_odd >= len(wrong) or (one and right_frac < 0.5)
        cause = "garbage-output" if garbage else str(Cause.WRONG_ANSWER)
        raise JudgedError(
            cause,
            f"{name}: {n_right} of {n_checked} checked answers right, such as {wrong[0]}{tail}",
            stage=Stage.CANARY,
        )
    if odd:
        raise JudgedError("garbage-output", f"{name}: {odd[0]}{tail}", stage=Stage.CANARY)
    if one:
        raise JudgedError(
            "accept-len-1",
            f"{name}: accept length {accept:.2f}, more than {MIN_ACCEPT_LEN} is needed",
            stage=Stage.CANARY,
        )
    if plan.speculating and accept is None:
        result.notes.append(f"{name}: the server does not tell its verify steps, accept length was not checked")


def _accept_len(answers: Sequence[Generation]) -> float | None:
    """Tokens committed per verify step, bonus token included; the first token comes from prefill and is left out."""
    told = [got for got in answers if got.verify_steps]
    steps = sum(got.verify_steps or 0 for got in told)
    return sum(got.completion_tok - 1 for got in told) / steps if steps else None


async def _long_prompt(client: ServerClient, plan: CanaryPlan, result: CanaryResult) -> None:
    """The same long prompt twice: right both times, and the second time from the prefix cache."""
    task = tasks().values[0]
    sample_lines = 20
    sample = await client.generate(
        long_prompt(sample_lines, task.prompt), max_new_tok=1, deadline_s=plan.call_timeout_s
    )
    short = await client.generate(task.prompt, max_new_tok=1, deadline_s=plan.call_timeout_s)
    per_line = max(1.0, (sample.prompt_tok - short.prompt_tok) / sample_lines)
    target = min(LONG_PROMPT_TOK, plan.max_prompt_tok - _TAIL_TOK)
    if target < LONG_PROMPT_MIN_TOK:
        result.notes.append(f"prompts may have {plan.max_prompt_tok} tokens only: no long prompt was sent")
        return
    # Numbers grow longer with the lines: the estimate is kept a little below the limit.
    prompt = long_prompt(int((target - short.prompt_tok) / (per_line * 1.1)), task.prompt)
    first = await client.generate(prompt, max_new_tok=_VALUE_TOK, deadline_s=plan.call_timeout_s)
    second = await client.generate(prompt, max_new_tok=_VALUE_TOK, deadline_s=plan.call_timeout_s)
    result.figures["long_prompt_tok"] = second.prompt_tok
    for which, got in (("first", first), ("second", second)):
        if not task.right(got.text):
            cause = Cause.WRONG_ANSWER if oddity(got.text) is None else "garbage-output"
            hit = f", {got.cached_tok} of them from the prefix cache" if got.cached_tok else ""
            raise JudgedError(
                str(cause),
                f"{which} prompt of {got.prompt_tok} tokens{hit}: {got.text[:40]!r} instead of {task.answer}",
                stage=Stage.CANARY,
            )
    if second.cached_tok is None:
        result.notes.append("the server does not tell cached tokens, the prefix cache was not checked")
        return
    result.figures["long_prompt_cached_tok"] = second.cached_tok
    if plan.prefix_cache and second.cached_tok < MIN_HIT_FRAC * second.prompt_tok:
        raise JudgedError(
            Cause.NO_PREFIX_HIT,
            f"the same prompt of {second.prompt_tok} tokens twice: {second.cached_tok} came from the prefix cache",
            stage=Stage.CANARY,
        )
