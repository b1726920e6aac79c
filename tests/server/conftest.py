"""The environment of the real SGLang CPU server, and the tiny models (see make_env.sh and make_tiny.py)."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CONTRACT = HERE.parents[1] / ".contract"
PYTHON = Path(os.environ.get("PLAN_CONFIG_SERVER_PYTHON", CONTRACT / "0.5.23" / "bin" / "python"))

sys.path.insert(0, str(HERE))


@pytest.fixture(scope="session")
def server_python() -> str:
    """Interpreter with SGLang 0.5.23."""
    if not PYTHON.exists():
        pytest.skip("no SGLang environment: run tests/server/make_env.sh")
    return str(PYTHON)


def _make(python: str, name: str, *options: str) -> Path:
    from tests.server.answers import pairs

    order = json.dumps(pairs())
    script = (HERE / "make_tiny.py").read_text()
    stamp = hashlib.sha256((order + script).encode()).hexdigest()[:12]
    folder = CONTRACT / f"{name}-{stamp}"
    if (folder / "config.json").exists():
        return folder
    draft = folder.with_name(folder.name + ".part")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    (draft / "pairs.json").write_text(order)
    argv = [python, "-W", "ignore", str(HERE / "make_tiny.py"), str(draft), str(draft / "pairs.json"), *options]
    subprocess.run(argv, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}, timeout=900)
    draft.rename(folder)
    return folder


@pytest.fixture(scope="session")
def trained_model(server_python: str) -> Path:
    """A Llama that was trained on the canary's questions (about two minutes, kept in .contract)."""
    return _make(server_python, "tiny-trained")


@pytest.fixture(scope="session")
def dummy_model(server_python: str) -> Path:
    """Config and tokenizer only."""
    return _make(server_python, "tiny-dummy", "--dummy")
