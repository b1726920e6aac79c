#!/usr/bin/env bash
# Commands for the GPU host; OUT is a folder for results.
#   on_device.sh piece            keep the bundle piece that travelled with this call
#   on_device.sh unpack           unpack the bundle, copy this repository, write the model folders
#   on_device.sh drive SECONDS [JOB ...]
#   on_device.sh accept TRAIN_SECONDS
set -euo pipefail
export PYTHONPATH=/tmp/site:/tmp/site/nvidia_cutlass_dsl/python_packages PYTHONUNBUFFERED=1
export FLASHINFER_DISABLE_VERSION_CHECK=1 HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 TOKENIZERS_PARALLELISM=false
export SGLANG_HEALTH_CHECK_TIMEOUT=60 TQDM_DISABLE=1
verb=${1:?verb}
shift
case $verb in
piece)
  mkdir -p /tmp/pk
  cp .bundle/p*/piece.* /tmp/pk/
  ls -l /tmp/pk
  ;;
unpack)
  mkdir -p /tmp/site /tmp/repo
  cat /tmp/pk/piece.* | xz -dc -T8 | tar -C /tmp/site -xf -
  cp -r planner benchmarks /tmp/repo/
  python3 /tmp/repo/benchmarks/h200/shapes.py /tmp/models
  cd /tmp/repo && python3 -c 'import planner.launch.logwatch, planner.launch.bench_stats, torch, sglang; print(torch.__version__, sglang.__version__)'
  nvidia-smi
  ;;
drive)
  seconds=$1
  shift
  python3 /tmp/repo/benchmarks/h200/drive.py --models /tmp/models --out "$OUT" --state /tmp/state --seconds "$seconds" ${1:+--jobs "$@"}
  ;;
accept)
  timeout 330 python3 /tmp/repo/benchmarks/h200/accept.py --work /tmp/accept --out "$OUT" --train-seconds "$1"
  ;;
*)
  echo "unknown verb $verb" >&2
  exit 2
  ;;
esac
