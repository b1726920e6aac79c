"""What the launch tests share: time limits, a search for leftovers, an observation."""

from __future__ import annotations

import os
from pathlib import Path

from planner.domain import Metric, Observation
from planner.launch.gate import TimeLimits

__all__ = ["FAST", "SHORT", "observation", "standins_of"]

FAST = TimeLimits(
    ready_timeout_s=6.0,
    health_call_s=0.7,
    call_timeout_s=1.5,
    canary_timeout_s=15.0,
    stop_grace_s=1.0,
    crash_grace_s=0.3,
    poll_s=0.03,
)
SHORT = TimeLimits(
    ready_timeout_s=1.5,
    health_call_s=0.5,
    call_timeout_s=1.5,
    canary_timeout_s=15.0,
    stop_grace_s=1.0,
    crash_grace_s=0.3,
    poll_s=0.03,
)


def standins_of(site: Path) -> list[int]:
    """Living processes that run the stand-in of this site (or a child of it)."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            environment = Path(f"/proc/{name}/environ").read_bytes()
            state = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if str(site).encode() in environment and state != "Z" and int(name) != os.getpid():
            found.append(int(name))
    return found


def observation(number: int, **changes: object) -> Observation:
    base = Observation(
        id=f"obs-{number}",
        hardware="h200",
        model="m",
        engine_version="0.5.23",
        concurrency=8,
        tok_per_s=100.0 + number,
        spread_frac=0.01,
        argv=("python", "-m", "sglang.launch_server", "--tp-size", "8"),
        metrics=(Metric(name="sm_clock_mhz", value=1900.0, unit="MHz"),),
        source="test",
    )
    return base.replace(**changes)
