"""Whatever is typed: an answer (0), a no (1) or a message (2), never a traceback; and answers hold no NaN."""

from __future__ import annotations

import contextlib
import io
import json

from hypothesis import given, settings
from hypothesis import strategies as st

from planner.cli import main

ODD = st.sampled_from(
    [
        "",
        "0",
        "1",
        "-1",
        "64",
        "1e3",
        "nan",
        "inf",
        "1e309",
        "x",
        "0.5",
        "é",
        "a=b",
        "--",
        "9" * 30,
        "1_000",
        " 8 ",
        "on",
    ]
)
USUAL: dict[str, tuple[str, ...]] = {
    "--gpus": ("1", "2", "4", "8"),
    "--model": ("kimi-k2.6", "kimi-k2.6-nvfp4"),
    "--drafter": ("auto", "none", "kimi-k2.6-dflash"),
    "--context": ("1", "1024", "100000"),
    "--output-len": ("1", "1024", "10000"),
    "--prefix-hit": ("0", "0.5", "1"),
    "--temperature": ("0", "0.7", "2"),
    "--domain": ("code", "chat", "math", "unknown"),
    "--needs": ("grammar", "logprobs", "grammar,logprobs", ","),
    "--max-ttft-ms": ("1", "1000", "1e9"),
    "--max-tpot-ms": ("5", "20", "1e9"),
    "--min-tok-per-user": ("1", "50", "1000"),
    "--risk": ("safe", "edge"),
    "--lift": ("B300-GRAPH-Q-LEN=x", "NVLS-NEEDS-NVLINK=y"),
    "--engine-version": ("0.5.23", "0.5.12.post1", "2026-05"),
    "--dialect": ("field", "pr29907", "upstream"),
    "--speculation": ("off", "chain", "tree"),
    "--budget": ("0", "1", "4", "8", "16", "64"),
    "--topk": ("0", "1", "2", "4", "8"),
    "--tp-size": ("1", "2", "4", "8"),
    "--ep-size": ("1", "4", "8"),
    "--attention-dp-size": ("1", "2", "8"),
    "--max-running-requests": ("1", "8", "64", "1000"),
    "--cuda-graph": ("on", "off"),
    "--nvls": ("on", "off"),
    "--attention-backend": ("triton", "trtllm_mla", "fa3"),
    "--kv-cache-dtype": ("bf16", "fp8_e4m3"),
    "--mem-fraction": ("0.1", "0.5", "0.85", "0.99"),
}


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    argv = ["--hw", draw(st.sampled_from(["b300", "rtx_pro_6000", "h200"]))]
    argv += ["--target-c", draw(st.sampled_from(["1", "8", "64", "300"]) | ODD)]
    for option in draw(st.lists(st.sampled_from(sorted(USUAL)), max_size=6, unique=True)):
        argv += [option, draw(st.sampled_from(USUAL[option]) | ODD)]
    return argv + (["--allow-queue"] if draw(st.booleans()) else [])


@settings(max_examples=50)
@given(command_lines())
def test_an_answer_a_no_or_a_message(argv: list[str]):
    out, err = io.StringIO(), io.StringIO()
    code: object = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main([*argv, "--format", "json"])
        except SystemExit as exit_:
            code = exit_.code
    assert code in (0, 1, 2)
    if code == 2:
        assert (out.getvalue(), bool(err.getvalue())) == ("", True)
        return
    assert err.getvalue() == ""
    plan = json.loads(out.getvalue(), parse_constant=_refuse)
    assert (plan["launch"] is None) == (plan["status"] == "infeasible")
    assert (code == 0) == (plan["status"] in ("optimal", "feasible"))
    if plan["launch"] is None:
        assert plan["conflict"] is not None
        return
    lifted = {entry["id"] for entry in plan["lifted"]}
    for limit in plan["binding"]:
        outside = limit["margin_frac"] is not None and limit["margin_frac"] < 0 and limit["id"] not in lifted
        assert not outside or plan["risk"] == "edge", limit


def _refuse(word: str) -> float:
    raise AssertionError(f"{word} in JSON")
