"""Loads the shell reader when the first script is met."""

from __future__ import annotations

from planner.parse.setting import Collector, Setting
from planner.parse.source import Mapped

__all__ = ["run_script"]


def run_script(script: Mapped, setting: Setting, out: Collector, depth: int = 0) -> None:
    """See :func:`planner.parse.shell.run_script`."""
    from planner.parse.shell import run_script as run

    run(script, setting, out, depth)
