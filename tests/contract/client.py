"""Talks to the real engine in a contract environment (see engine_server.py)."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SERVER = Path(__file__).with_name("engine_server.py")


def environment(version: str) -> Path:
    """Interpreter of the contract environment of a version."""
    return ROOT / ".contract" / version / "bin" / "python"


class RealEngine:
    """One process of the real engine that resolves many launches."""

    def __init__(self, version: str) -> None:
        python = environment(version)
        if not python.exists():
            raise FileNotFoundError(f"no contract environment for {version}: run python tests/contract/make_env.py")
        env = {key: value for key, value in os.environ.items() if not key.startswith(("SGLANG_", "NCCL_", "CI"))}
        env |= {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONWARNINGS": "ignore"}
        env.pop("GITHUB_ACTIONS", None)
        self._process = subprocess.Popen(
            [str(python), str(SERVER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=env,
        )
        self._count = 0
        self.version = self._answer()["ready"]

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the engine process ended with {self._process.wait()}")
        return json.loads(line)  # type: ignore[no-any-return]

    def ask(self, **request: Any) -> dict[str, Any]:
        """One request, one answer."""
        assert self._process.stdin is not None
        self._count += 1
        self._process.stdin.write(json.dumps({"id": self._count, **request}) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def resolve(
        self, hw: str, argv: list[str], env: dict[str, str] | None = None, *, without_cuda: bool = False
    ) -> dict[str, Any]:
        """Effective values of a launch, or the engine's error."""
        return self.ask(hw=hw, argv=argv, env=env or {}, without_cuda=without_cuda)

    def parse(self, argv: list[str], flags: tuple[tuple[str, str], ...] = ()) -> dict[str, Any] | None:
        """The parser's error, or None. ``flags``: name and type of the flags that a dialect adds."""
        added = [{"name": name, "type": kind} for name, kind in flags]
        return self.ask(argv=argv, parse_only=True, flags=added)["error"]  # type: ignore[no-any-return]

    def actions(self) -> list[dict[str, Any]]:
        """The parser's own list of arguments."""
        return self.ask(parser=True)["actions"]  # type: ignore[no-any-return]

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(timeout=60)
        if self._process.stdout is not None:
            self._process.stdout.close()
