"""The examples run: scripts in a fresh process, the notebook by nbclient in a kernel of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.docs_pages import ROOT

SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))

RUN_NOTEBOOK = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
nbformat.validate(notebook)
NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
print("outputs", len(outputs), "pictures", sum("image/png" in output.get("data", {}) for output in outputs))
"""


def _run(*arguments: str, folder: Path) -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=180
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_scripts_run_from_any_folder(script: Path, tmp_path: Path):
    printed = _run(str(script), folder=tmp_path)
    assert "tok/s" in printed
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.name)
def test_notebooks_run(notebook: Path):
    """From the notebook's own folder, as Jupyter starts it."""
    printed = _run("-c", RUN_NOTEBOOK, str(notebook), folder=notebook.parent)
    words = printed.split()
    assert int(words[1]) > 0, "a notebook that shows nothing"
    if notebook.name == "plan.ipynb":
        assert int(words[3]) == 1


def test_there_are_examples_of_both_kinds():
    assert [script.name for script in SCRIPTS][:2] == ["01_plan.py", "02_predict.py"]
    assert "plan.ipynb" in [notebook.name for notebook in NOTEBOOKS]
