"""Runs ``plan-config launch`` in a process of its own, for tests that send it signals."""

from __future__ import annotations

import sys

from planner.cli.launch import launch

if __name__ == "__main__":
    launch.main(args=sys.argv[1:], prog_name="plan-config launch")
