# ruff: noqa: E501
"""Hypothesis strategies: lines that mean nothing for a cause, prefixes of collectors, consequences of a crash."""

from __future__ import annotations

from hypothesis import strategies as st

__all__ = ["CONSEQUENCES", "NOISE", "consequences", "noise_lines", "prefixes"]

NOISE = (
    "[2026-05-28 11:00:00 TP0] Cache flushed successfully!",
    "SITE/sglang/srt/layers/quantization/awq.py:53: UserWarning: Only CUDA, HIP and XPU support AWQ currently.",
    "[2026-05-28 11:00:00] Ignore import error when loading sglang.srt.models.inkling: No module named 'cutlass'",
    "[2026-05-28 11:00:00] Using default HuggingFace chat template with detected content format: string",
    "nanobind: leaked 64 types!",
    ' - leaked type "triton._C.libtriton.nvidia.cublas.CublasLt"',
    "  warnings.warn(",
    "[2026-05-28 11:00:00 TP1] Init torch distributed begin.",
    "host:1:1 [0] NCCL INFO NVLS multicast support is not available on dev 0 (NVLS_NCHANNELS 0)",
    "[2026-05-28 11:00:00] server_args={'watchdog_timeout': 300, 'custom_sigquit_handler': None, 'enable_nan_detection': True}",
    "[2026-05-28 11:00:00] Receive: obj=GenerateReqInput(rid='9', text='CUDA out of memory, illegal memory access, NaN in logits')",
    "[2026-05-28 11:00:00 TP0] Using default MoE kernel config. Performance might be sub-optimal! Config file not found at x.json",
    "python3 -m sglang.launch_server --model-path m --watchdog-timeout 300 --enable-nan-detection",
    "",
    "The following error message 'operation scheduled before its operands' can be ignored.",
)
CONSEQUENCES = (
    "[2026-05-28 11:10:00] Received sigquit from a child process. It usually means the child failed.",
    "[2026-05-28 11:10:00] SIGQUIT received. signum=None, frame=None. It usually means one child failed.",
    "[2026-05-28 11:10:00] kill_process_tree called: parent_pid=9, include_parent=True, pid=9",
    "[rank5]: torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:81, remote process exited or there was a network "
    "error, NCCL version 2.27.3",
    "[rank5]:[E223 11:20:34.991762039 ProcessGroupNCCL.cpp:616] [Rank 5] Watchdog caught collective operation timeout: WorkNCCL(",
    "[2026-05-28 11:15:00 TP4] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
    "RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:29500",
    "terminate called after throwing an instance of 'c10::DistBackendError'",
    "SITE/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 1 leaked shared_memory objects",
    "Pyspy failed (py-spy dump --native --pid 30472). Error: /bin/sh: 1: py-spy: not found",
    "Waiting 60.0 seconds for CUDA coredumps before exiting.",
)

prefixes = st.sampled_from(
    (
        "",
        "sglang-1  | ",
        "May 28 11:00:00 node7 sglang[4242]: ",
        "2026-05-28T11:00:00.123456789Z stderr F ",
        "(SGLangEngine pid=952, ip=10.0.0.9) ",
        "\x1b[36m(SchedulerActor pid=11)\x1b[0m ",
        "[rank3]: ",
        "ERROR 05-28 11:26:04 [core.py:337] ",
    )
)
noise_lines = st.lists(st.tuples(st.sampled_from(NOISE), st.floats(0, 1)), max_size=12)
consequences = st.lists(st.sampled_from(CONSEQUENCES), min_size=1, max_size=8)
