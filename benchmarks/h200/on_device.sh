#!/usr/bin/env bash
# Commands for the GPU host; OUT is a folder for results.
#   on_device.sh piece            keep the bundle piece that travelled with this call
#   on_device.sh unpack           unpack the bundle, copy this repository, write the model folders
#   on_device.sh drive SECONDS GPUS JOB...   GPUS as CUDA_VISIBLE_DEVICES; drivers of different GPUs may run at once
#   on_device.sh sweep SECONDS GPU           the planner's own `sweep` and `bench` over three launches
#   on_device.sh accept TRAIN_SECONDS GPU [--probe]
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
  mkdir -p /tmp/site /tmp/repo /tmp/own
  cat /tmp/pk/piece.* | xz -dc -T8 | tar -C /tmp/site -xf -
  # What the planner's command needs and the bundle does not hold.
  for wheel in .bundle/wheels/*.whl; do python3 -m zipfile -e "$wheel" /tmp/own; done
  # SGLang's client imports Hugging Face's datasets for data that is not used here.
  echo 'def load_dataset(*args, **kwargs): raise RuntimeError("datasets is not installed")' > /tmp/own/datasets.py
  cp -r planner hardware_profiles benchmarks /tmp/repo/
  python3 /tmp/repo/benchmarks/h200/shapes.py /tmp/models
  cd /tmp/repo && python3 -c 'import planner.launch.logwatch, planner.launch.bench_stats, torch, sglang; print(torch.__version__, sglang.__version__)'
  PYTHONPATH=$PYTHONPATH:/tmp/own python3 -m planner.cli --version
  nvidia-smi
  ;;
drive)
  seconds=$1 gpus=$2
  shift 2
  state=/tmp/state-${gpus//,/}
  python3 /tmp/repo/benchmarks/h200/drive.py --models /tmp/models --out "$OUT/gpu${gpus//,/}" --state "$state" \
    --seconds "$seconds" --gpus "$gpus" --jobs "$@"
  ;;
sweep)
  seconds=$1
  export CUDA_VISIBLE_DEVICES=$2 SGLANG_SIMULATE_ACC_LEN=4
  mkdir -p "$OUT/sweep"
  cd /tmp/repo
  # The client's and the server's interpreter: the host's own, with the bundle on its path.
  set +e
  PYTHONPATH=$PYTHONPATH:/tmp/own timeout -s INT "$seconds" python3 -m planner.cli sweep \
    --list benchmarks/h200/sweep.txt --hw h200 --engine-version 0.5.15.post1 --no-canary \
    --bench 1,16,64 --bench-context 512 --bench-output 256 --bench-minutes 1.5 --ready-timeout 240 \
    --dir /tmp/sweep --ledger /tmp/sweep/ledger.jsonl --python "$(command -v python3)" > "$OUT/sweep/report.txt" 2>&1
  echo "sweep: exit $?"
  find /tmp/sweep -type f | head -50
  cp /tmp/sweep/*.jsonl "$OUT/sweep/"
  tar -C /tmp -cJf "$OUT/sweep/all.tar.xz" sweep
  tail -40 "$OUT/sweep/report.txt"
  ;;
accept)
  export CUDA_VISIBLE_DEVICES=$2
  timeout 330 python3 /tmp/repo/benchmarks/h200/accept.py --work /tmp/accept --out "$OUT/accept" --train-seconds "$1" "${@:3}"
  ;;
*)
  echo "unknown verb $verb" >&2
  exit 2
  ;;
esac
