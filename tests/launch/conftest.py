"""Fixtures: a fake installation of SGLang whose server is the stand-in, and a launch against it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from planner.domain import Candidate, Speculation
from planner.launch.gate import TimeLimits
from planner.launch.progress import SilentUi
from planner.launch.session import Order, Session, Then, free_port
from planner.launch.target import Target, target_from_argv
from planner.launch.verdict import LaunchReport
from tests.launch.launch_kit import FAST, standins_of
from tests.launch.standin import Truth
from tests.launch.standin_site import make_site


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder for PYTHONPATH with the stand-in as ``sglang``."""
    return make_site(tmp_path_factory.mktemp("site"))


@pytest.fixture
def make_target(site: Path) -> Callable[..., Target]:
    """A target that starts the stand-in on a free port."""

    def make(truth: Truth | None = None, *extra: str, expected: Candidate | None = None, port: int = 0) -> Target:
        words = [sys.executable, "-m", "sglang.launch_server", "--port", str(port or free_port())]
        words += ["--model-path", "standin", "--max-running-requests", "4", "--speculative-algorithm", "DFLASH"]
        words += [
            "--speculative-draft-model-path",
            "draft",
            "--speculative-num-draft-tokens",
            "9",
            "--attention-backend",
            "triton",
            "--enable-metrics",
            *extra,
        ]
        env = [("PYTHONPATH", str(site)), *(truth or Truth(seed=1)).env().items()]
        return target_from_argv(words, env=env).replace(expected=expected)

    return make


@pytest.fixture
def candidate() -> Candidate:
    """The plan that the stand-in fulfils when it has no fault."""
    return Candidate(
        tp_size=1,
        speculation=Speculation.TREE,
        budget=8,
        topk=4,
        q_len=9,
        max_running_requests=4,
        cuda_graph_max_bs=4,
        attention_backend="triton",
        mem_fraction_static=0.8,
    )


@pytest.fixture
def launch_it(tmp_path: Path, make_target: Callable[..., Target]) -> Callable[..., LaunchReport]:
    """Runs a whole launch against the stand-in."""

    def run(
        truth: Truth | None = None,
        *extra: str,
        expected: Candidate | None = None,
        limits: TimeLimits = FAST,
        then: Then = Then.STOP,
        **order: object,
    ) -> LaunchReport:
        target = make_target(truth, *extra, expected=expected)
        run_dir = tmp_path / "run"
        return Session(Order(target=target, run_dir=run_dir, limits=limits, then=then, **order), SilentUi()).run()

    return run


@pytest.fixture(autouse=True)
def _nothing_left(site: Path) -> object:
    """After every test: no process of a stand-in is left."""
    yield
    import time

    deadline = time.monotonic() + 8.0
    while (left := standins_of(site)) and time.monotonic() < deadline:
        time.sleep(0.05)
    for pid in left:
        os.kill(pid, 9)
    assert not left, f"left behind: {left}"
