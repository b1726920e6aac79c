"""Predict launches that were chosen elsewhere: budget 8 and budget 16 with CUDA graphs on a B300.

Shows the table-based figure, the figure under the constant-step assumption, and the limits that a launch breaks.

    python examples/02_predict.py
"""

from __future__ import annotations

import shlex

import planner

COMMON = shlex.split("""
    --model-path moonshotai/Kimi-K2.6 --trust-remote-code --tp-size 8 --context-length 32768
    --mem-fraction-static 0.85 --attention-backend triton --enable-nccl-nvls
    --enforce-disable-flashinfer-allreduce-fusion
    --speculative-algorithm DDTREE --speculative-draft-model-path z-lab/Kimi-K2.6-DFlash
""")


def predict(budget: int, topk: int, max_running_requests: int) -> planner.Prediction:
    """One client; the dialect ``field`` is the build of the field notes, which counts the root as a draft token."""
    tree = ["--speculative-num-draft-tokens", str(budget + 1), "--speculative-eagle-topk", str(topk)]
    size = ["--max-running-requests", str(max_running_requests)]
    return planner.predict("b300", launch=[*COMMON, *tree, *size], workload={"target_c": 1}, dialect="field")


def main() -> None:
    print("budget  q_len  step ms  accept  tok/s by table      tok/s if steps cost the same  breaks")
    for budget, topk, size in ((8, 4, 128), (16, 8, 64)):
        found = predict(budget, topk, size)
        told, rate, same = found.predicted, found.predicted.tok_per_s, found.constant_step
        assert same is not None
        by_table = f"{rate.value:,.0f} [{rate.low:,.0f}-{rate.high:,.0f}]"
        if_equal = f"{same.value:,.0f} [{same.low:,.0f}-{same.high:,.0f}]"
        breaks = ", ".join(limit.id for limit in found.broken) or "-"
        print(
            f"{budget:>6}  {found.effective.q_len:>5}  {told.step_s.value * 1e3:>7.1f}  {told.accept_len.value:>6.2f}  "
            f"{by_table:<18}  {if_equal:<28}  {breaks}"
        )


if __name__ == "__main__":
    main()
