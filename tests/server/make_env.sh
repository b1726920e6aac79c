#!/usr/bin/env bash
# Environment of the real server tests: SGLang 0.5.23 with the CPU build of torch, a server's packages and the packages
# of its benchmark client. Shares .contract/0.5.23 with the contract tests and only adds what is absent.
# Usage: tests/server/make_env.sh [FOLDER]   (2.9 GB, about 4 minutes on two cores from nothing)
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
venv="${1:-$root/.contract/0.5.23}"
stamp="$venv/.server-extras-1"
[ -e "$stamp" ] && exit 0
pip=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check)
if [ ! -x "$venv/bin/python" ]; then
    "${PYTHON:-python3.11}" -m venv "$venv"
fi
has() { "$venv/bin/python" -c "import importlib.metadata as m, sys; sys.exit(m.version(sys.argv[1]).split('+')[0] != sys.argv[2])" "$1" "$2" 2>/dev/null; }
has torch 2.13.0 || "${pip[@]}" torch==2.13.0 numpy
has sglang 0.5.23 || "${pip[@]}" --no-deps sglang==0.5.23 compressed-tensors==0.18.0
"${pip[@]}" transformers==5.19.0 tokenizers==0.23.2 orjson psutil pybase64 requests triton packaging pillow starlette \
    msgspec pydantic pyzmq tqdm ipython aiohttp dill apache-tvm-ffi==0.1.11 sentencepiece==0.2.1 loguru gguf \
    openai==2.8.0 partial_json_parser einops \
    fastapi uvicorn uvloop python-multipart setproctitle jsonschema soundfile prometheus-client watchfiles \
    openai-harmony==0.0.4 datasets safetensors
"${pip[@]}" --no-deps xgrammar==0.2.7
touch "$stamp"
