"""Makes the contract environments: a virtual environment for each SGLang version, without a GPU build of anything.

    python tests/contract/make_env.py            # both
    python tests/contract/make_env.py 0.5.23

They go to .contract/VERSION in the repository (ignored by git), about 1.5 GB and three minutes each. A complete
environment is left as it is.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2] / ".contract"
TRANSFORMERS = {"0.5.23": "5.19.0", "0.5.12.post1": "5.6.0"}
"""SGLang version -> the transformers release that it asks for."""
TORCH = ("torch==2.13.0", "numpy")
PACKAGES = (
    *("orjson", "psutil", "pybase64", "requests", "triton", "packaging", "pillow", "starlette", "msgspec"),
    *("pydantic", "pyzmq", "tqdm", "ipython", "aiohttp", "dill", "apache-tvm-ffi==0.1.11", "sentencepiece==0.2.1"),
    *("loguru", "gguf", "openai==2.8.0", "partial_json_parser", "einops"),
)
"""What the parser and the resolution import."""
COMPRESSED_TENSORS = "compressed-tensors==0.18.0"


def complete(folder: Path, version: str) -> bool:
    """Whether the environment answers with that version and can import the parser's dependencies."""
    python = folder / "bin" / "python"
    if not python.exists():
        return False
    check = "import importlib.metadata as m, torch, transformers; print(m.version('sglang'), m.version('transformers'))"
    done = subprocess.run([str(python), "-c", check], capture_output=True, text=True, check=False)
    return done.stdout.split() == [version, TRANSFORMERS[version]]


def make(version: str, base: str) -> None:
    """Installs one environment, in the order that keeps the CPU build of torch."""
    folder = ROOT / version
    if complete(folder, version):
        print(f"{version}: complete")
        return
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([base, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *TORCH], check=True)
    subprocess.run([*pip, "--no-deps", f"sglang=={version}", COMPRESSED_TENSORS], check=True)
    subprocess.run([*pip, f"transformers=={TRANSFORMERS[version]}", *PACKAGES], check=True)
    if not complete(folder, version):
        raise SystemExit(f"{version}: the environment is not complete after installation")
    print(f"{version}: made")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", default=sorted(TRANSFORMERS), metavar="VERSION")
    parser.add_argument(
        "--python", default=shutil.which("python3.11") or sys.executable, help="interpreter to build on"
    )
    asked = parser.parse_args()
    unknown = set(asked.versions) - TRANSFORMERS.keys()
    if unknown:
        parser.error(f"no recipe for {', '.join(sorted(unknown))}; known: {', '.join(sorted(TRANSFORMERS))}")
    for version in asked.versions:
        make(version, asked.python)


if __name__ == "__main__":
    main()
