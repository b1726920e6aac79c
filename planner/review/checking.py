"""check(): the whole review of texts, files, words and running servers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from planner._record import record
from planner.data import load_limits
from planner.domain import Consequence, Finding, HardwareProfile, Level, Limit, ModelProfile
from planner.domain.report import DecisionLine, LaunchReport, NotRead, Report, SetAside
from planner.errors import InputError, Problem
from planner.parse import Launcher, ParsedFile, ParsedLaunch, Skipped, parse_argv, parse_paths, parse_text
from planner.review.context import build_contexts
from planner.review.judge import in_order, judge
from planner.review.subject import Subject, load_subject
from planner.review.suppress import Settings, set_aside
from planner.rules.base import Place
from planner.rules.context import RuleContext

__all__ = ["Reviewed", "check", "check_files", "check_server", "check_words", "limits_for", "review_file"]

Predictor = Callable[[RuleContext], "tuple[tuple[tuple[str, float], ...], str | None]"]
"""Gives predicted figures for a launch, or why there are none."""

_A_FILE = re.compile(r"\S+\.(?:sh|bash|ya?ml|json|toml|env|service|py|txt|md)")

_FAILING = frozenset({Consequence.CRASH, Consequence.OOM, Consequence.HANG})


@record()
class Reviewed:
    """One file after review."""

    parsed: ParsedFile
    contexts: tuple[RuleContext, ...]
    findings: tuple[Finding, ...]
    launches: tuple[LaunchReport, ...]
    set_aside: tuple[SetAside, ...] = ()
    skipped: tuple[str, ...] = ()
    unreadable: tuple[NotRead, ...] = field(default=())

    def report(self) -> Report:
        """The file's part of a report."""
        return Report(
            findings=self.findings,
            launches=self.launches,
            skipped=self.skipped,
            unreadable=self.unreadable,
            set_aside=self.set_aside,
        )


def check(
    text_or_path: str | Path,
    *,
    hw: str | Path | HardwareProfile | None = None,
    gpus: int | None = None,
    model: str | Path | ModelProfile | None = None,
    drafter: str | Path | None = None,
    engine_version: str | None = None,
    dialect: str | None = None,
    form: str | None = None,
    limits: Sequence[str | Path] = (),
    settings: Settings | None = None,
    baseline: frozenset[str] = frozenset(),
) -> Report:
    """Reviews a launch.

    Args:
        text_or_path: the text of a launch file, or a path to a file or folder (a :class:`~pathlib.Path`, or a string of
            one line that names something that exists).
        hw: hardware profile: id, TOML file or value. Without it rules about machines are silent.
        gpus: GPUs that the launch has.
        model: model profile, or the name of a model; without it the launch's own model path is looked up by name.
        drafter: drafter profile.
        engine_version: release, image tag, month or date; without it the image named in the file.
        dialect: build with tree speculation.
        form: form of the text (``shell``, ``kubernetes``, ...); told from name and content by default.
        limits: TOML files with limits, added to the built-in ones.
        settings: ``[tool.plan-config]`` of a project.
        baseline: fingerprints of findings that are set aside.

    Raises:
        InputError: an option or a path that names nothing. Faults of the launch are in the report.
    """
    subject = load_subject(
        hw=hw, gpus=gpus, model=model, drafter=drafter, engine_version=engine_version, dialect=dialect
    )
    bounds = limits_for(subject, limits)
    if isinstance(text_or_path, Path) or _names_a_path(text_or_path):
        return check_files(
            [text_or_path], subject=subject, limits=bounds, form=form, settings=settings, baseline=baseline
        )
    if _A_FILE.fullmatch(text_or_path):
        # One word is no launch: a file was meant, and none is there.
        raise InputError([Problem("no such file", file=text_or_path)])
    parsed = parse_text(text_or_path, name="<text>", form=form)
    return review_file(parsed, subject=subject, limits=bounds, settings=settings, baseline=baseline).report()


def limits_for(subject: Subject, files: Sequence[str | Path] = ()) -> tuple[Limit, ...]:
    """Limits that can speak: every built-in one belongs to a machine, so without a machine only those of ``files``.

    Raises:
        InputError: faults in a file of limits.
    """
    return load_limits(files) if subject.hardware is not None or files else ()


def check_files(
    paths: Sequence[str | Path],
    *,
    subject: Subject,
    limits: Sequence[Limit] = (),
    form: str | None = None,
    settings: Settings | None = None,
    baseline: frozenset[str] = frozenset(),
    predict: Predictor | None = None,
) -> Report:
    """Reviews files and folders in one report."""
    tree = parse_paths(paths, form=form)
    parts = [
        review_file(
            parsed, subject=subject, limits=limits, settings=settings, baseline=baseline, predict=predict
        ).report()
        for parsed in tree.files
    ]
    return merge(parts, tree.skipped)


def check_words(
    words: Sequence[str],
    *,
    subject: Subject,
    limits: Sequence[Limit] = (),
    settings: Settings | None = None,
    predict: Predictor | None = None,
) -> Report:
    """Reviews a command line that is already split into words."""
    parsed = parse_argv(words)
    return review_file(parsed, subject=subject, limits=limits, settings=settings, predict=predict).report()


def check_server(info: Mapping[str, Any], *, name: str, subject: Subject, limits: Sequence[Limit] = ()) -> Report:
    """Reviews what a running server reports about itself (the answer of ``/server_info``).

    Raises:
        InputError: the answer does not hold the arguments of a server.
    """
    from planner.review.server import context_of_server

    context = context_of_server(info, name=name, subject=subject)
    findings, skipped = judge([context], [Place(1, 1)], file=name, limits=limits)
    launch = _launch_report(context, None, name, None)
    return Report(findings=findings, launches=(launch,), skipped=skipped)


def merge(parts: Sequence[Report], skipped: Sequence[Skipped] = ()) -> Report:
    """One report of several."""
    return Report(
        findings=in_order(finding for part in parts for finding in part.findings),
        launches=tuple(launch for part in parts for launch in part.launches),
        skipped=(
            *(line for part in parts for line in part.skipped),
            *(f"{item.path}: {item.reason}" for item in skipped),
        ),
        unreadable=tuple(item for part in parts for item in part.unreadable),
        set_aside=tuple(item for part in parts for item in part.set_aside),
    )


def review_file(
    parsed: ParsedFile,
    *,
    subject: Subject,
    limits: Sequence[Limit] = (),
    settings: Settings | None = None,
    baseline: frozenset[str] = frozenset(),
    predict: Predictor | None = None,
) -> Reviewed:
    """Reviews one parsed file."""
    launches = [launch for launch in parsed.launches if launch.launcher is not Launcher.ROUTER]
    contexts = build_contexts(launches, subject)
    starts = [Place(launch.span.line, launch.span.column) for launch in launches]
    findings, skipped = judge(contexts, starts, file=parsed.name, limits=limits)
    kept, aside, notes = set_aside(
        findings,
        inline=parsed.suppressions,
        spans=[(launch.span.line, launch.span.end_line) for launch in launches],
        settings=settings,
        baseline=baseline,
    )
    return Reviewed(
        parsed=parsed,
        contexts=contexts,
        findings=kept,
        launches=tuple(
            _launch_report(context, launch, parsed.name, _unless_it_fails(predict, findings, launch))
            for context, launch in zip(contexts, launches, strict=True)
        ),
        set_aside=aside,
        skipped=(*subject.notes, *(f"{parsed.name}: {line}" for line in (*skipped, *notes))),
        unreadable=tuple(
            NotRead(file=problem.file or parsed.name, line=problem.line, reason=_reason(problem))
            for problem in parsed.problems
        ),
    )


def _unless_it_fails(predict: Predictor | None, findings: Sequence[Finding], launch: ParsedLaunch) -> Predictor | None:
    """No figures beside an error that says that the server does not start or does not go on."""
    failing = [
        finding.code
        for finding in findings
        if finding.level is Level.ERROR
        and finding.consequence in _FAILING
        and launch.span.line <= (finding.line or launch.span.line) <= launch.span.end_line
    ]
    if predict is None or not failing:
        return predict
    return lambda _: ((), f"{', '.join(dict.fromkeys(failing))}: it does not run as it stands")


def _reason(problem: Problem) -> str:
    return f"{problem.message}; {problem.hint}" if problem.hint else problem.message


def _names_a_path(text: str) -> bool:
    if "\n" in text or len(text) > 4096 or not text.strip():
        return False
    try:
        return Path(text).exists()
    except (OSError, ValueError):
        return False


def _launch_report(
    context: RuleContext, launch: ParsedLaunch | None, file: str, predict: Predictor | None
) -> LaunchReport:
    resolution = context.resolution
    notes: list[str] = []
    effective: tuple[tuple[str, Any], ...] = ()
    decisions: tuple[DecisionLine, ...] = ()
    if resolution is None:
        notes.append("effective values need --hw" if context.hardware is None else "the engine could not be asked")
    else:
        notes.extend(resolution.notes)
        if resolution.error is not None:
            notes.append(f"the engine refuses: {resolution.error.error_type}: {resolution.error.message}")
        effective = tuple((name, _held(value)) for name, value in sorted(resolution.effective.items()))
        decisions = tuple(
            DecisionLine(field=one.field, before=one.before, after=one.after, because=one.because, source=one.source)
            for one in resolution.decisions
        )
    figures, why = predict(context) if predict is not None else ((), "not asked for")
    return LaunchReport(
        file=file,
        line=launch.span.line if launch is not None else 1,
        name=launch.name if launch is not None else None,
        role=context.role,
        condition=launch.condition if launch is not None else None,
        engine_version=str(context.version),
        hardware=context.hardware.id if context.hardware is not None else None,
        model=context.facts.id if context.facts is not None else None,
        asked=tuple(sorted(context.asked_values.items())),
        unknown=tuple(sorted(context.launch.unknown)),
        effective=effective,
        decisions=decisions,
        predicted=figures,
        not_predicted=why,
        notes=tuple(notes),
    )


def _held(value: object) -> Any:
    """A value that stays as it is in a frozen report."""
    return tuple(value) if isinstance(value, list) else value
