"""A plan as text: ten seconds to the choice, then its grounds, then the command."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterable

from planner.domain import BindingLimit, Comparison, Estimate, Launch, Plan, PlanStatus, Predicted, Prediction
from planner.domain.describe import describe, draft_words, layout_words
from planner.units import format_count

__all__ = ["render_argv", "render_env", "render_plan", "render_prediction"]

WIDTH = 118


def render_plan(plan: Plan) -> str:
    """The whole answer. Same plan, same bytes."""
    lines = [*_head(plan)]
    if plan.status is PlanStatus.INFEASIBLE:
        lines += _conflict(plan)
    else:
        lines += [*_choice(plan), *_limits(plan)]
    lines += _paragraph("LIFTED", [f"{lift.id}: {lift.reason}" for lift in plan.lifted])
    lines += _refused(plan)
    lines += _close(plan)
    lines += _paragraph("ASSUMED", plan.assumptions)
    lines += _paragraph("SAFE", [plan.safe_because] if plan.safe_because else _not_run(plan))
    lines += _paragraph("UNKNOWN", plan.skipped)
    lines += _paragraph("NEXT", [plan.next_measurement] if plan.next_measurement else [])
    lines += _paragraph("SOURCES", plan.sources)
    lines += _paragraph("ENGINE", plan.engine_notes)
    lines += _launches(plan)
    return "\n".join(lines) + "\n"


def render_prediction(prediction: Prediction) -> str:
    """What a launch would do: figures, the constant-step figure beside them, broken limits."""
    predicted = prediction.predicted
    lines = [
        f"PREDICTED  {describe(prediction.effective)}",
        f"  {_rate(predicted.tok_per_s)}   step {predicted.step_s.value * 1e3:.1f} ms   "
        f"accept {_accept(predicted.accept_len)}",
        *_wrap("  step ms: ", _parts(predicted)),
    ]
    if prediction.constant_step is not None:
        lines += _wrap(
            "  ",
            f"if a step cost the same at any q_len: {_interval(prediction.constant_step)} tok/s "
            f"({prediction.constant_step.note})",
        )
    for limit in prediction.broken:
        where = (
            f"{_num(limit.plan)} against known good {_num(limit.known_good)}" if limit.plan is not None else limit.title
        )
        lines += _wrap(
            "BREAKS  ",
            f"{limit.id}: {where}, {limit.consequence.value.replace('_', ' ')} ({', '.join(limit.refs)})",
            indent=8,
        )
    lines += _paragraph("UNKNOWN", prediction.skipped)
    lines += _paragraph("ASSUMED", tuple(one for one in prediction.assumptions if one not in prediction.sources))
    lines += _paragraph("SOURCES", prediction.sources)
    return "\n".join(lines) + "\n"


def render_argv(launches: Iterable[Launch]) -> str:
    """One shell-quoted command a line, one for each replica."""
    return "".join(shlex.join(launch.argv) + "\n" for launch in launches)


def render_env(launches: Iterable[Launch]) -> str:
    """``NAME=value`` quoted for a shell: one a line; of several replicas one line each, as ``render_argv`` has them."""
    lines = [[f"{name}={shlex.quote(value)}" for name, value in launch.env] for launch in launches]
    if len(lines) > 1:
        return "".join(" ".join(words) + "\n" for words in lines)
    return "".join(f"{word}\n" for words in lines for word in words)


def _head(plan: Plan) -> list[str]:
    work, versions = plan.workload, plan.versions
    loop = "closed loop" + (", queueing allowed" if work.allow_queue else "")
    parts = [
        f"{versions.hardware}",
        versions.model + (f" + {versions.drafter}" if versions.drafter else ""),
        f"C={work.target_c} {loop}",
        f"{_tokens(work.context_tok)} in / {_tokens(work.output_tok)} out",
        f"T={work.temperature:g}",
        f"risk {plan.risk}",
    ]
    return [f"PLAN  {' - '.join(parts)}"]


def _choice(plan: Plan) -> list[str]:
    assert plan.effective is not None
    assert plan.predicted is not None
    choice, predicted = plan.effective, plan.predicted
    lines = [f"  {describe(choice)}"]
    rate, user = predicted.tok_per_s, predicted.tok_per_s_per_user
    per_user = f"{user.value:,.0f}" if user.value >= 10 else f"{user.value:,.1f}"
    lines.append(
        f"  {_rate(rate)}   {per_user} tok/s/user   step {predicted.step_s.value * 1e3:.1f} ms   "
        f"accept {_accept(predicted.accept_len)}"
    )
    if plan.off is not None:
        line = f"  vs off {_interval(plan.off.predicted.tok_per_s)}{_probability(plan.off)}"
        if predicted.break_even_accept_len is not None:
            even = predicted.break_even_accept_len
            line += f"   break-even accept {even.value:.1f} [{even.low:.1f}-{even.high:.1f}]"
            if predicted.accept_len.low < even.high:
                line += ": traffic that accepts less may lose"
        lines.append(line)
    lines += _wrap("  step ms: ", _parts(predicted))
    if plan.workload.max_ttft_s is not None and predicted.ttft_s is not None:
        first = predicted.ttft_s
        mark = " extrapolated" if first.extrapolated else ""
        lines.append(f"  TTFT {first.value * 1e3:,.0f} ms [{first.low * 1e3:,.0f}-{first.high * 1e3:,.0f}]{mark}")
    if predicted.wait_s > 0:
        lines.append(
            f"  {format_count(predicted.n_running)} of {plan.workload.target_c} requests run at a time, "
            f"a request waits {predicted.wait_s:.1f} s"
        )
    if plan.status is PlanStatus.UNKNOWN:
        lines.append(f"  status unknown: {plan.status_note}")
    return lines


def _limits(plan: Plan) -> list[str]:
    rows = [("LIMITS", "plan", "good", "bad", "cost here")]
    for limit in plan.binding:
        if limit.plan is None and not limit.cost_tok_per_s:
            continue
        title = limit.title + ("" if limit.status.value == "established" else f" ({limit.status.value})")
        rows.append((f"  {title}", _num(limit.plan), _num(limit.known_good), _num(limit.known_bad), _cost(limit)))
    width = max(len(row[0]) for row in rows)
    return [f"{row[0]:<{width}} {row[1]:>10} {row[2]:>11} {row[3]:>8}   {row[4]}".rstrip() for row in rows]


def _cost(limit: BindingLimit) -> str:
    if not limit.cost_tok_per_s:
        return "0"
    low, high = limit.cost_low_tok_per_s, limit.cost_high_tok_per_s
    text = f"{limit.cost_tok_per_s:,.0f} tok/s [{low:,.0f} to {high:,.0f}]"
    return f"{text}, a coin toss" if low < 0 and limit.cost_tok_per_s < 0.25 * (high - low) else text


def _refused(plan: Plan) -> list[str]:
    items = []
    for refused in plan.refused:
        rate = f" ({refused.tok_per_s:,.0f} tok/s by the model)" if refused.tok_per_s else ""
        items.append(f"{refused.what}{rate}: {refused.by}, {refused.why}")
    return _paragraph("REFUSED", items)


def _close(plan: Plan) -> list[str]:
    lines: list[str] = []
    for title, comparisons in (("TIES", plan.ties), ("CLOSE", plan.runners_up)):
        items = []
        for other in comparisons:
            note = f", {other.note}" if other.note else ""
            name = f"{other.label}: {draft_words(other.candidate)}, {layout_words(other.candidate)}"
            items.append(f"{name}: {_interval(other.predicted.tok_per_s)}{_probability(other)}{note}")
        lines += _paragraph(title, items)
    return lines


def _not_run(plan: Plan) -> list[str]:
    if plan.effective is None:
        return []
    untested = [
        f"UNTESTED {limit.id}: {_num(limit.plan)} lies beyond the known good {_num(limit.known_good)}"
        + (f", below the known bad {_num(limit.known_bad)}" if limit.known_bad is not None else "")
        for limit in plan.binding
        if limit.margin_frac is not None and limit.margin_frac < 0 and limit.lifted is None
    ]
    if untested:
        return [*untested, "no run with these settings is on record: a canary run comes before traffic"]
    kept = "not lifted" if plan.lifted else "known"
    return [
        f"no run with these settings is on record: every limit that is {kept} holds, a canary run comes before traffic"
    ]


def _conflict(plan: Plan) -> list[str]:
    assert plan.conflict is not None
    lines = ["  INFEASIBLE: " + (plan.status_note or "nothing meets requests and limits")]
    lines += _wrap("  ", plan.conflict.text)
    for relaxation in plan.conflict.relaxations:
        lines += _wrap("  - ", relaxation)
    return lines


def _launches(plan: Plan) -> list[str]:
    lines: list[str] = []
    for launch in plan.launches:
        lines += ["LAUNCH", *_command(launch)]
    if plan.other_build is not None and plan.other_build.launches:
        other = plan.other_build
        lines += [
            f"OR, on the {other.label}: {describe(other.candidate)}",
            f"  {_interval(other.predicted.tok_per_s)} tok/s{_probability(other)}",
        ]
        for launch in other.launches:
            lines += _command(launch)
    return lines


def _command(launch: Launch) -> list[str]:
    """A command that copies and pastes: environment first, one flag with its values a line."""
    words = [f"{name}={shlex.quote(value)}" for name, value in launch.env]
    groups: list[list[str]] = [[*words]] if words else []
    current: list[str] = []
    for word in launch.argv:
        if word.startswith("--") and current:
            groups.append(current)
            current = []
        current.append(shlex.quote(word))
    groups.append(current)
    lines: list[str] = []
    row = "  "
    for group in groups:
        text = " ".join(group)
        if len(row) + len(text) + 2 > WIDTH and row.strip():
            lines.append(row.rstrip() + " \\")
            row = "    "
        row += text + " "
    lines.append(row.rstrip())
    return lines


def _paragraph(title: str, items: Iterable[str]) -> list[str]:
    lines: list[str] = []
    for index, item in enumerate(items):
        lines += _wrap(f"{title:<8}" if index == 0 else " " * 8, item, indent=8)
    return lines


def _wrap(start: str, text: str, *, indent: int | None = None) -> list[str]:
    later = " " * (len(start) if indent is None else indent)
    return textwrap.wrap(
        text, WIDTH, initial_indent=start, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    )


def _parts(predicted: Predicted) -> str:
    """Parts of a step, largest first; what is below a half millisecond and a hundredth of the step is summed up."""
    floor = max(0.0, 0.01 * predicted.step_s.value)
    shown = [part for part in predicted.step_parts if abs(part.step_s) >= floor]
    rest = sum(part.step_s for part in predicted.step_parts) - sum(part.step_s for part in shown)
    words = [
        f"{part.name.replace('_', '-')} {part.step_s * 1e3:.1f} ({part.provenance})"
        for part in sorted(shown, key=lambda part: -part.step_s)
    ]
    if abs(rest) >= 5e-5:
        words.append(f"other {rest * 1e3:.1f}")
    return ", ".join(words)


def _rate(estimate: Estimate) -> str:
    return f"{_interval(estimate, unit=' tok/s')}"


def _interval(estimate: Estimate, unit: str = "") -> str:
    digits = 0 if estimate.value >= 10 else 1
    mark = " extrapolated" if estimate.extrapolated else ""
    return f"{estimate.value:,.{digits}f}{unit} [{estimate.low:,.{digits}f}-{estimate.high:,.{digits}f}]{mark}"


def _accept(estimate: Estimate) -> str:
    if estimate.low == estimate.high:
        return f"{estimate.value:g}"
    note = f" ({estimate.note})" if estimate.note else ""
    return f"{estimate.value:.2f} [{estimate.low:.1f}-{estimate.high:.1f}] {estimate.provenance.value}{note}"


def _probability(other: Comparison) -> str:
    return "" if other.p_choice_better is None else f"   P(choice better) {other.p_choice_better:.2f}"


def _num(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2f}"


def _tokens(value: int) -> str:
    return f"{value // 1024}K" if value % 1024 == 0 else f"{value:,}"
