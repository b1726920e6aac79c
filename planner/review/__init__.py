"""Review of launches: parsed file, contexts, rules and limits, findings with levels, what is set aside, report."""

from __future__ import annotations

from planner.domain.report import LaunchReport, NotRead, Report, SetAside
from planner.review.checking import Reviewed, check, check_files, check_server, check_words, review_file
from planner.review.subject import Subject, load_subject
from planner.review.suppress import Settings, baseline_of, read_baseline, read_settings

__all__ = [
    "LaunchReport",
    "NotRead",
    "Report",
    "Reviewed",
    "SetAside",
    "Settings",
    "Subject",
    "baseline_of",
    "check",
    "check_files",
    "check_server",
    "check_words",
    "load_subject",
    "read_baseline",
    "read_settings",
    "review_file",
]
