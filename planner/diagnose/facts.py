"""Reads facts from the lines that SGLang (and vLLM) print about themselves. Memory is bounded."""

from __future__ import annotations

import ast
import re
from datetime import UTC, datetime
from statistics import median

from planner.diagnose.model import DecodePoint, LogFacts, Phase
from planner.diagnose.redact import HIDDEN

__all__ = ["FACT_TRIGGERS", "FactReader", "is_args_dump"]

FACT_TRIGGERS = (
    b"server_args=",
    b"ServerArgs(",
    b"default args: {",
    b"max_total_num_tokens=",
    b"num_tokens_per_req=",
    b"Capture cuda graph bs",
    b"CUDA graph end",
    b"Capturing batches",
    b"sglang version",
    b"vLLM API server version",
    b"LLM engine (v",
    b"sglang: ",
    b"Mean acceptance length",
    b"prompt throughput",
    b"'version': '",
    b"lmsysorg/sglang:",
)

ALL_UP_TO = 20_000
ONE_IN = 16
MAX_POINTS = 2048
FULL_BATCH_FRAC = 0.9

_RUNNING = re.compile(r"#running-req: (\d+)")
_QUEUE = re.compile(r"#queue-req: (\d+)")
_USAGE = re.compile(r"(?:^|[ ,])token usage: ([\d.]+)")
_ACCEPT = re.compile(r"accept len: ([\d.]+)")
_THROUGHPUT = re.compile(r"gen throughput \(token/s\): ([\d.]+)")
_GRAPH = re.compile(r"(?:cuda|cpu|npu) graph: (True|False)")
_TIME = re.compile(r"\[(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)")
_PREFILL = re.compile(r"#new-seq: (\d+), #new-token: (\d+), #cached-token: (\d+)")
_CAPACITY = re.compile(r"\b(max_total_num_tokens|max_running_requests|context_len)=(-?\d+)")
_BATCHES = re.compile(r"\bbs[ =]\[([\d, ]+)\]")
_PER_REQ = re.compile(r"Capture ([\w ]*?)(?:CUDA|cuda|CPU|cpu) [Gg]raph begin\..*?num_tokens_per_req=(\d+)")
_CAPTURING = re.compile(r"Capturing batches \((?:bs|num_tokens)=(\d+)")
_VERSIONS = (
    (re.compile(r"sglang version[:= ]+v?(\d[\w.+-]*)", re.IGNORECASE), "sglang"),
    (re.compile(r"^\s*sglang: (\d[\w.+-]*)\s*$"), "sglang"),
    (re.compile(r"lmsysorg/sglang:(v?\d[\w.+-]*|[\w.+-]*nightly[\w.+-]*|dev[\w.+-]*)"), "sglang"),
    (re.compile(r"vLLM API server version (\d[\w.+-]*)"), "vllm"),
    (re.compile(r"LLM engine \(v(\d[\w.+-]*)\)"), "vllm"),
)
_VLLM_RUNNING = re.compile(r"Avg generation throughput: ([\d.]+) tokens/s, Running: (\d+) reqs?, Waiting: (\d+) reqs?")
_VLLM_ACCEPT = re.compile(r"Mean acceptance length: ([\d.]+)")
_ARGS_HEAD = re.compile(r"(?:server_args=|ServerArgs\(|non-default args: |LLM engine \(v|\bargs: Namespace\()")
_PAIR = re.compile(r"""['"]?\b([A-Za-z_]\w*)['"]?\s?[=:] ?('[^']*'|"[^"]*"|\[[^\]]*\]|[^,(){}\[\]]+)(?=[,)}]|$)""")
_SECRET_FIELD = re.compile(r"(?i)api_key|token$|password|secret")


def is_args_dump(line: str) -> bool:
    """Whether the line prints the server's arguments or a request: words in it say nothing about failures."""
    if _ARGS_HEAD.search(line[:400]) or "Receive: obj=" in line or "Finish: obj=" in line:
        return True
    if "max_total_num_tokens=" in line:
        return False
    return line.count("=") >= 8 and len(_PAIR.findall(line, 0, 4000)) >= 8 and "Error" not in line


class FactReader:
    """Collects :class:`LogFacts` line by line."""

    def __init__(self) -> None:
        self.engine: str | None = None
        self.version: str | None = None
        self.args: dict[str, bool | int | float | str | None] = {}
        self.capacity: dict[str, int] = {}
        self.batches: set[int] = set()
        self.capturing: int | None = None
        self.per_req: int | None = None
        self._per_req_is_verify = False
        self.n_decode = 0
        self.n_prefill = 0
        self.sums = [0, 0, 0]
        self.n_ok = 0
        self.points: list[DecodePoint] = []
        self._stride = 1
        self._n_points = 0
        self._vllm_accept: float | None = None

    # -- the lines of which there are many ----------------------------------------------------------------------------
    def decode(self, number: int, line: str) -> None:
        """A decode line. Every line up to ALL_UP_TO is read, then one in ONE_IN (the caller may skip them itself)."""
        self.n_decode += 1
        if self.n_decode > ALL_UP_TO and self.n_decode % ONE_IN:
            return
        running = _RUNNING.search(line)
        if running is None:
            return
        self.engine = self.engine or "sglang"
        self._n_points += 1
        if self._n_points % self._stride:
            return
        accept, queue, usage = _ACCEPT.search(line), _QUEUE.search(line), _USAGE.search(line)
        throughput, graph = _THROUGHPUT.search(line), _GRAPH.search(line)
        self._add(
            DecodePoint(
                line=number,
                at_s=_seconds(line),
                running_req=_int(running.group(1)),
                queue_req=_int(queue.group(1)) if queue else None,
                used_frac=_number(usage.group(1)) if usage else None,
                accept_len=_number(accept.group(1)) if accept else None,
                gen_tok_per_s=_number(throughput.group(1)) if throughput else None,
                graph=graph.group(1) == "True" if graph else None,
            )
        )

    def prefill(self, line: str) -> None:
        """A prefill line."""
        self.n_prefill += 1
        if self.n_prefill > ALL_UP_TO and self.n_prefill % ONE_IN:
            return
        if found := _PREFILL.search(line):
            for position, text in enumerate(found.groups()):
                self.sums[position] += _int(text)

    def _add(self, point: DecodePoint) -> None:
        self.points.append(point)
        if len(self.points) > MAX_POINTS:
            self.points = self.points[1::2]
            self._stride *= 2

    # -- the lines of which there are few -----------------------------------------------------------------------------
    def other(self, number: int, line: str) -> None:
        """Any other line that holds one of FACT_TRIGGERS."""
        if self.version is None or "version" in line:
            for pattern, engine in _VERSIONS:
                if found := pattern.search(line):
                    self.version = found.group(1).removeprefix("v")
                    self.engine = engine
        if "max_total_num_tokens=" in line and not is_args_dump(line):
            self.capacity.update({name: _int(text) for name, text in _CAPACITY.findall(line)})
        if "Capturing batches" in line and (found := _CAPTURING.search(line)):
            self.capturing = _int(found.group(1))
        if found := _PER_REQ.search(line):
            verify = "verify" in found.group(1)
            if verify or not self._per_req_is_verify:
                self.per_req = _int(found.group(2))
            self._per_req_is_verify = self._per_req_is_verify or verify
        if ("Capture cuda graph bs" in line or "raph end" in line) and "prefill" not in line:
            for listed in _BATCHES.findall(line):
                self.batches.update(_int(part) for part in listed.split(",") if part.strip())
        if found := _VLLM_ACCEPT.search(line):
            self.engine = self.engine or "vllm"
            self._vllm_accept = _number(found.group(1))
            if self.points and self.points[-1].accept_len is None:
                self.points[-1] = self.points[-1].replace(accept_len=self._vllm_accept)
        if found := _VLLM_RUNNING.search(line):
            self.engine = self.engine or "vllm"
            self.n_decode += 1
            self._add(
                DecodePoint(
                    line=number,
                    running_req=_int(found.group(2)),
                    queue_req=_int(found.group(3)),
                    gen_tok_per_s=_number(found.group(1)),
                )
            )

    def server_args(self, line: str) -> None:
        """The dump of the server's arguments: scalars are kept, secrets are not."""
        self.engine = "sglang" if "server_args=" in line or "ServerArgs(" in line else self.engine or "vllm"
        start = line.find("{", line.find("args"))
        parsed: object = None
        if start >= 0 and len(line) < 200_000:
            try:
                parsed = ast.literal_eval(line[start : line.rfind("}") + 1])
            except (ValueError, SyntaxError, RecursionError, MemoryError):
                parsed = None
        pairs = parsed.items() if isinstance(parsed, dict) else _loose_pairs(line)
        for name, value in pairs:
            if not isinstance(name, str) or not (value is None or isinstance(value, (bool, int, float, str))):
                continue
            if isinstance(value, float) and value not in (float("inf"), float("-inf")) and value != value:
                continue
            if isinstance(value, float) and abs(value) == float("inf"):
                continue
            hidden = value if not (_SECRET_FIELD.search(name) and isinstance(value, str)) else HIDDEN
            self.args[name] = hidden[:400] if isinstance(hidden, str) else hidden

    # -- the answer ---------------------------------------------------------------------------------------------------
    @property
    def speculative(self) -> bool | None:
        """Whether the run speculates: from the arguments, else from accept lengths."""
        if "speculative_algorithm" in self.args:
            return self.args["speculative_algorithm"] is not None
        if "speculative_config" in self.args:
            return self.args["speculative_config"] is not None
        if self._vllm_accept is not None or any(point.accept_len is not None for point in self.points):
            return True
        return None

    @property
    def q_len(self) -> int | None:
        """Tokens per request and graph row block: the capture line, else draft tokens of the arguments."""
        if self.per_req is not None:
            return self.per_req
        budget = self.args.get("speculative_ddtree_budget")
        if isinstance(budget, int) and not isinstance(budget, bool) and budget > 0:
            return budget + 1
        drafted = self.args.get("speculative_num_draft_tokens")
        return drafted if self.speculative and isinstance(drafted, int) and drafted > 0 else None

    @property
    def asked_running(self) -> int | None:
        """max_running_requests of the server_args line."""
        value = self.args.get("max_running_requests")
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def full_batch(self) -> tuple[float | None, int, int | None]:
        """(median accept length at full batch, number of lines behind it, largest batch seen)."""
        with_accept = [point for point in self.points if point.accept_len is not None]
        largest = max((point.running_req for point in self.points), default=None)
        if not with_accept:
            return None, 0, largest
        top = max(point.running_req for point in with_accept)
        full = [
            p.accept_len for p in with_accept if p.accept_len is not None and p.running_req >= FULL_BATCH_FRAC * top
        ]
        return median(full), len(full), largest

    def facts(self, *, phase: Phase, n_lines: int, n_runs: int) -> LogFacts:
        """Everything read so far."""
        accept, n_full, largest = self.full_batch()
        return LogFacts(
            engine=self.engine,
            engine_version=self.version,
            phase=phase,
            n_lines=n_lines,
            n_runs=n_runs,
            server_args=tuple(self.args.items()),
            speculative=self.speculative,
            max_running_requests_asked=self.asked_running,
            max_running_requests=self.capacity.get("max_running_requests"),
            max_total_num_tok=self.capacity.get("max_total_num_tokens"),
            context_len=self.capacity.get("context_len"),
            captured_batch_sizes=tuple(sorted(self.batches)),
            capturing_batch_size=self.capturing,
            num_tokens_per_req=self.q_len,
            n_decode_lines=self.n_decode,
            decode=tuple(self.points),
            max_running_req=largest,
            accept_len_full_batch=accept,
            n_full_batch=n_full,
            n_prefill_lines=self.n_prefill,
            prefill_new_seq=self.sums[0],
            prefill_new_tok=self.sums[1],
            prefill_cached_tok=self.sums[2],
            n_requests_ok=self.n_ok,
        )


def _loose_pairs(line: str) -> list[tuple[str, object]]:
    pairs: list[tuple[str, object]] = []
    for name, text in _PAIR.findall(line):
        try:
            pairs.append((name, ast.literal_eval(text.strip())))
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
    return pairs


def _seconds(line: str) -> float | None:
    found = _TIME.search(line)
    if found is None:
        return None
    try:
        return datetime.fromisoformat(found.group(1)).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _int(text: str) -> int:
    """An integer of at most 18 digits (a damaged line may hold more)."""
    return int(text[:18])


def _number(text: str) -> float | None:
    try:
        return float(text[:18])
    except ValueError:
        return None
