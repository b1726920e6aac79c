"""What is true of the stand-in server, and its right answers. Standard library only."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass, field, fields

__all__ = ["FAULTS", "Truth", "answer_to"]

FAULTS = {
    "die_at_once": "exits with code 1 before a word",
    "die_loading": "traceback while weights load, exit 1",
    "oom_startup": "out of memory while weights load",
    "die_capture": "illegal address during graph capture",
    "oom_capture": "out of memory during graph capture",
    "cublas": "cuBLAS failure during graph capture",
    "missing_module": "ModuleNotFoundError at import",
    "port_in_use": "its HTTP port is taken when it binds",
    "nccl": "a collective times out at start",
    "segfault": "ends by SIGSEGV while loading",
    "oom_killed": "ends by SIGKILL while loading",
    "never_ready": "loads for ever, no HTTP",
    "never_listens_after_ready": "says ready, no HTTP",
    "storm_503": "answers every health check with 503",
    "some_503": "answers the first ten health checks with 503",
    "hang_health": "health check never answers although it says ready",
    "hang_generate": "healthy, generations never answer",
    "hang_full_batch": "generations hang when more than one runs",
    "drip": "answers one byte at a time",
    "cut": "closes the connection in the middle of an answer",
    "truncated_json": "answers half a JSON document",
    "not_json": "answers HTML",
    "no_meta": "answers without meta_info",
    "status_400": "refuses generations with 400",
    "garbage": "accept length 1.00 and random text",
    "garbage_batch": "right alone, garbage at full batch",
    "one_character": "answers the same character",
    "wrong": "readable text, wrong answers",
    "accept_one": "right answers, accept length 1.00",
    "stale_cache": "the second time a prompt is sent the answer is garbage",
    "no_prefix": "nothing ever comes from the prefix cache",
    "throttled": "runs half of max_running_requests",
    "wrong_backend": "runs another attention backend",
    "no_graphs": "runs without graphs",
    "wide": "captures one token more per request",
    "info_500": "/server_info fails",
    "crash_generate": "scheduler dies in the first generation, process lingers",
    "exit_generate": "process exits in the first generation",
    "nan": "NaN probabilities in the first generation",
    "crash_load": "dies after 200 requests",
    "clock_jump": "log time jumps a day back and forth",
    "flood": "prints 20,000 lines while it loads",
    "secret": "prints a token",
    "binary": "prints bytes that are no text",
    "ignore_sigterm": "does not end by SIGTERM",
    "stray_child": "has a child in its own session that ignores SIGTERM",
}


@dataclass
class Truth:
    """What is true of the stand-in and is to be found out."""

    faults: tuple[str, ...] = ()
    start_s: float = 0.05
    """Time of loading."""
    row_limit: int | None = None
    """Graph rows above this fail with the cuBLAS error."""
    graph_q_len_max: int | None = None
    """Wider verify steps fail with an illegal address, with graphs only."""
    garbage_q_len: int | None = None
    """From this width on answers are garbage, with graphs only."""
    flaky_start_frac: float = 0.0
    """Share of starts that fail for no reason."""
    bad_flags: tuple[tuple[str, ...], ...] = ()
    """Each: flags that together crash at start."""
    slow_flags: dict[str, float] = field(default_factory=dict)
    """Flag -> factor on the speed."""
    step_s: float = 0.002
    step_per_row_s: float = 0.0
    accept_len: float = 3.0
    noise_frac: float = 0.0
    seed: int = 0
    kv_tok: int = 100_000
    version: str = "0.5.23"

    @classmethod
    def from_env(cls) -> Truth:
        data = json.loads(os.environ.get("STANDIN", "{}"))
        known = {item.name for item in fields(cls)}
        unknown = set(data) - known
        if unknown:
            raise SystemExit(f"standin: unknown truth {sorted(unknown)}")
        data["faults"] = tuple(data.get("faults", ()))
        data["bad_flags"] = tuple(tuple(pair) for pair in data.get("bad_flags", ()))
        return cls(**data)

    def env(self) -> dict[str, str]:
        """Environment that gives a server this truth."""
        return {"STANDIN": json.dumps(asdict(self))}


CODE = {
    "add": " a + b\n",
    "is_even": " n % 2 == 0\n",
    "reverse_text": " text[::-1]\n",
    "largest": " max(numbers)\n",
    "square": " x * x\n",
}
PROSE = (
    " the small parts of it move faster and faster until some of them leave, and then the rest follows after a while.\n"
)
_SUM = re.compile(r"What is (\d+) ([-+*/]) (\d+)\?\nA:$")


def answer_to(prompt: str) -> str:
    """The right completion."""
    if found := _SUM.search(prompt):
        a, op, b = int(found.group(1)), found.group(2), int(found.group(3))
        return f" {({'+': a + b, '-': a - b, '*': a * b, '/': a // b})[op]}\nQ: What is 2 + 2?\nA: 4\n"
    if found := re.search(r"def (\w+)\(", prompt):
        return CODE.get(found.group(1), " None\n")
    return PROSE
