"""Running ``plan-config`` in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from planner.cli import main


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


Run = Callable[..., Ran]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """``run("fit", "runs.csv", ...)``: exit code, standard output, standard error."""

    def call(*argv: object) -> Ran:
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in argv])
        seen = capsys.readouterr()
        code = ended.value.code
        return Ran(code if isinstance(code, int) else 0, seen.out, seen.err)

    return call
