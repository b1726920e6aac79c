"""Options of the main command, shared with every command that starts from a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from planner.errors import Problem
    from planner.search.request import Question
    from planner.search.space import Pins

__all__ = ["add_options", "plan_options", "question_from"]

_F = TypeVar("_F", bound=Callable[..., Any])

_OPTIONS: tuple[Callable[[Any], Any], ...] = (
    click.option("--hw", metavar="ID|FILE", help="Hardware profile (plan-config hw list)."),
    click.option("--gpus", metavar="N", help="GPUs of the box to use [all]."),
    click.option("--model", default="kimi-k2.6", show_default=True, metavar="ID|FILE|FOLDER"),
    click.option("--drafter", default="auto", show_default=True, metavar="ID|FILE|FOLDER|none"),
    click.option("--target-c", metavar="C", help="Clients in a closed loop with zero think time."),
    click.option("--context", default="1024", show_default=True, metavar="TOKENS", help="Prompt length."),
    click.option("--output-len", default="1024", show_default=True, metavar="TOKENS"),
    click.option("--prefix-hit", default="0", show_default=True, metavar="FRAC", help="Cached part of the prompt."),
    click.option("--temperature", default="0", show_default=True),
    click.option("--domain", default="unknown", show_default=True, metavar="code|chat|math|unknown"),
    click.option("--needs", default="", metavar="grammar,logprobs", help="Request features that must work."),
    click.option("--max-ttft-ms", metavar="MS", help="Ceiling on time to first token."),
    click.option("--max-tpot-ms", metavar="MS", help="Ceiling on time per output token."),
    click.option("--min-tok-per-user", metavar="TOK_PER_S", help="Floor on the rate of each user."),
    click.option("--allow-queue", is_flag=True, help="Fewer than C requests may run at a time."),
    click.option("--limits", multiple=True, metavar="FILE", help="Limits added to the built-in ones (repeatable)."),
    click.option("--lift", multiple=True, metavar="ID=REASON", help="Set a limit aside (repeatable, printed)."),
    click.option(
        "--risk", default="safe", show_default=True, metavar="safe|edge", help="edge: untested intervals too."
    ),
    click.option("--robust", metavar="QUANTILE", help="Maximise this quantile of tok/s instead of the median."),
    click.option("--calibration", metavar="FILE", help="Calibration of your own runs (plan-config fit)."),
    click.option("--engine-version", metavar="VERSION|TAG|YYYY-MM", help="SGLang to plan for."),
    click.option("--dialect", metavar="NAME", help="Build with tree speculation: field, pr29907, upstream, ..."),
    click.option("--speculation", metavar="off|chain|tree", help="Only this form of draft."),
    click.option("--budget", metavar="N", help="Only this draft budget (nodes without the root)."),
    click.option("--topk", metavar="N", help="Only this width."),
    click.option("--tp-size", metavar="N", help="Only this tensor-parallel size."),
    click.option("--ep-size", metavar="N", help="Only this expert-parallel size."),
    click.option("--attention-dp-size", metavar="N", help="Only this attention data-parallel size."),
    click.option("--max-running-requests", metavar="N", help="Only this value."),
    click.option("--cuda-graph", metavar="on|off", help="Only with or without CUDA graphs."),
    click.option("--nvls", metavar="on|off", help="Only with or without NVLS."),
    click.option("--attention-backend", metavar="NAME", help="Only this backend."),
    click.option("--kv-cache-dtype", metavar="bf16|fp8_e4m3", help="Only this KV dtype."),
    click.option("--mem-fraction", metavar="FRAC", help="Only this mem_fraction_static."),
)


def add_options(command: _F, options: Sequence[Callable[[Any], Any]]) -> _F:
    """Adds click options to a command, in this order in its help."""
    for option in reversed(options):
        command = option(command)
    return command


def plan_options(command: _F) -> _F:
    """Adds every option of a plan to a click command."""
    return add_options(command, _OPTIONS)


def question_from(given: Mapping[str, Any]) -> Question:
    """The question that parsed options ask.

    Raises:
        InputError: every option that is missing or cannot be read.
    """
    from planner.errors import InputError, Problem
    from planner.search.request import Question, WorkloadInput

    problems: list[Problem] = []
    for name, option in (("hw", "--hw"), ("target_c", "--target-c")):
        if given.get(name) is None:
            problems.append(Problem("missing", field=option, hint="plan-config --hw b300 --target-c 64"))
    given = _without_empty(given, problems)

    pins, more = _pins(given)
    problems += more
    gpus, robust = _read(given, "gpus", int, problems), _read(given, "robust", float, problems)
    lifts = _lifts(given.get("lift", ()), problems)
    question = Question(
        hw=given.get("hw") or "b300",
        workload=WorkloadInput(
            target_c=given.get("target_c") if given.get("target_c") is not None else 1,
            context=given["context"],
            output_len=given["output_len"],
            prefix_hit=given["prefix_hit"],
            temperature=given["temperature"],
            domain=given["domain"],
            needs=[need.strip() for need in given["needs"].split(",") if need.strip()],
            max_ttft_ms=given.get("max_ttft_ms"),
            max_tpot_ms=given.get("max_tpot_ms"),
            min_tok_per_user=given.get("min_tok_per_user"),
            allow_queue=bool(given.get("allow_queue")),
        ),
        model=given["model"],
        drafter=given["drafter"],
        limits=tuple(given.get("limits", ())),
        engine_version=given.get("engine_version"),
        dialect=given.get("dialect"),
        risk=given["risk"],
        lift=lifts,
        gpus=gpus,
        pins=pins,
        robust=robust,
        calibration=given.get("calibration"),
    )
    if problems:
        from planner.search.request import load_subject

        try:
            load_subject(question)
        except InputError as error:
            problems.extend(error.problems)
        raise InputError(problems)
    return question


def _without_empty(given: Mapping[str, Any], problems: list[Problem]) -> dict[str, Any]:
    """``given`` without empty names and paths (an unset shell variable, mostly), each told as a fault."""
    from planner.errors import Problem

    kept = dict(given)
    files = tuple(given.get("limits", ()))
    stand_in = {"hw": None, "model": "kimi-k2.6", "drafter": "auto", "limits": tuple(file for file in files if file)}
    for name, value in stand_in.items():
        if given.get(name) == "" or (name == "limits" and "" in files):
            kept[name] = value
            problems.append(Problem("is empty", field=f"--{name}", hint="give a name or a path"))
    return kept


def _read(given: Mapping[str, Any], name: str, kind: type[int] | type[float], problems: list[Problem]) -> Any:
    """A number from text; a fault is added to ``problems``."""
    from planner.errors import Problem

    text = given.get(name)
    if text is None:
        return None
    try:
        return kind(text)
    except ValueError:
        word = "a whole number" if kind is int else "a number"
        problems.append(Problem(f"must be {word} (got {text!r})", field="--" + name.replace("_", "-"), value=text))
        return None


def _pins(given: Mapping[str, Any]) -> tuple[Pins, list[Problem]]:
    """Fixed settings among the options, and what is wrong with them."""
    from dataclasses import replace

    from planner.errors import InputError, Problem
    from planner.search.space import Pins

    problems: list[Problem] = []
    values: dict[str, Any] = {}
    for name in ("budget", "topk", "tp_size", "ep_size", "attention_dp_size", "max_running_requests"):
        values[name] = _read(given, name, int, problems)
    values["mem_fraction_static"] = _read(given, "mem_fraction", float, problems)
    for name, option in (("cuda_graph", "--cuda-graph"), ("enable_nccl_nvls", "--nvls")):
        text = given.get(option.removeprefix("--").replace("-", "_"))
        if text not in (None, "on", "off"):
            problems.append(Problem(f"must be on or off (got {text!r})", field=option, value=text))
        values[name] = None if text not in ("on", "off") else text == "on"
    for name in ("speculation", "attention_backend", "kv_cache_dtype"):
        values[name] = given.get(name)
    try:
        return Pins.read(values), problems
    except InputError as error:
        options = {"enable_nccl_nvls": "--nvls", "mem_fraction_static": "--mem-fraction"}
        for problem in error.problems:
            field = str(problem.field)
            problems.append(replace(problem, field=options.get(field, "--" + field.replace("_", "-"))))
        return Pins(), problems


def _lifts(given: Sequence[str], problems: list[Problem]) -> dict[str, str]:
    from planner.errors import Problem

    lifts = {}
    for text in given:
        id_, equals, reason = text.partition("=")
        if not equals:
            hint = f'write --lift {text}="why it is safe"'
            problems.append(Problem(f"{text!r} has no reason", field="--lift", value=text, hint=hint))
            continue
        lifts[id_.strip()] = reason.strip()
    return lifts
