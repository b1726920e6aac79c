"""Launch files to launches with places: shell, containers, clusters, units, recipes, Python and plain argv.

Nothing in a file is ever run. The readers load their libraries when a file of their form is met, so importing this
package is cheap.
"""

from __future__ import annotations

from planner.parse.files import parse_path, parse_paths
from planner.parse.model import (
    ContainerFacts,
    EnvHow,
    EnvSetting,
    Flag,
    Form,
    JobFacts,
    Launcher,
    Note,
    NoteKind,
    ParsedFile,
    ParsedLaunch,
    ParsedTree,
    Role,
    Skipped,
    Span,
    Suppression,
    Token,
)
from planner.parse.reading import parse_argv, parse_text

__all__ = [
    "ContainerFacts",
    "EnvHow",
    "EnvSetting",
    "Flag",
    "Form",
    "JobFacts",
    "Launcher",
    "Note",
    "NoteKind",
    "ParsedFile",
    "ParsedLaunch",
    "ParsedTree",
    "Role",
    "Skipped",
    "Span",
    "Suppression",
    "Token",
    "parse_argv",
    "parse_path",
    "parse_paths",
    "parse_text",
]
