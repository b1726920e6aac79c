"""Runs ``plan-config launch`` in a process of its own, for tests that send it signals."""

from __future__ import annotations

import sys

from planner.cli.launch import launch
from planner.errors import PlannerError

if __name__ == "__main__":
    try:
        launch.main(args=sys.argv[1:], prog_name="plan-config launch")
    except PlannerError as error:
        sys.exit(f"bad input: {error}")
