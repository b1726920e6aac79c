"""A stand-in for an SGLang server: same command line, same log lines, same HTTP answers, with hidden truths and faults.

Standard library only, so that any interpreter runs it. It is a small simulation, not a list of canned replies: requests
queue and run in batches, a step takes the time that the truth says, tokens are committed by accept length, counters and
decode lines follow from that. What goes wrong is scripted::

    Truth(row_limit=1152, graph_q_len_max=9, flaky_start_frac=0.1, slow_flags={"--enable-x": 0.7}, noise_frac=0.02)
    Truth(faults=("garbage",))

The truth is read from the environment variable STANDIN (JSON); the command line is read as the server reads it. How it
takes its arguments, and the scripted faults, are listed in :data:`standin_truth.FAULTS`.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

from standin_truth import FAULTS, Truth, answer_to

__all__ = ["FAULTS", "Truth", "answer_to", "main"]


def _shared(a: str, b: str) -> int:
    """Length of the common beginning."""
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _flag(argv: list[str], *names: str) -> str | None:
    for position, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name in names:
            return value if equals else argv[position + 1]
    return None


class Standin:
    """One server."""

    def __init__(self, argv: list[str], truth: Truth) -> None:
        self.argv = argv
        self.truth = truth
        self.random = random.Random(truth.seed or None)
        self.port = int(_flag(argv, "--port") or 30000)
        self.host = _flag(argv, "--host") or "127.0.0.1"
        self.max_running = int(_flag(argv, "--max-running-requests") or 8)
        self.effective = max(1, self.max_running // 2) if "throttled" in truth.faults else self.max_running
        self.algorithm = _flag(argv, "--speculative-algorithm")
        drafted = _flag(argv, "--speculative-num-draft-tokens")
        budget = _flag(argv, "--speculative-ddtree-budget")
        self.q_len = 1
        if self.algorithm:
            self.q_len = int(budget) + 1 if budget else int(drafted or 4)
        self.graphs = "--disable-cuda-graph" not in argv and "no_graphs" not in truth.faults
        top = int(_flag(argv, "--cuda-graph-max-bs-decode", "--cuda-graph-max-bs") or self.max_running)
        self.batches = sorted({size for size in (1, 2, 4, 8, 16, 32, 64, 128, 256) if size < top} | {top})
        self.interval = int(_flag(argv, "--decode-log-interval") or 40)
        self.metrics = "--enable-metrics" in argv
        self.accept = truth.accept_len if self.algorithm else 1.0
        self.broken_output = self.graphs and truth.garbage_q_len is not None and self.q_len >= truth.garbage_q_len
        if self.has("garbage") or self.has("accept_one") or self.broken_output:
            self.accept = 1.0
        speed = 1.0
        for name, factor in truth.slow_flags.items():
            if name in argv:
                speed *= factor
        self.speed = speed
        self.running: list[_Request] = []
        self.waiting: list[_Request] = []
        self.prompts: list[str] = []
        self.n_inside = self.n_health = self.n_requests = self.n_done = self.n_steps = 0
        self.prompt_tok = self.gen_tok = self.cached_tok = self.verify_calls = 0
        self.latency_sum_s = 0.0
        self.last_throughput = 0.0
        self.wake = asyncio.Event()

    def has(self, fault: str) -> bool:
        return fault in self.truth.faults

    def log(self, text: str) -> None:
        now = time.time()
        if self.has("clock_jump"):
            now += self.random.choice((-86400, 0, 86400))
        stamp = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
        print(f"[{stamp}] {text}", file=sys.stderr, flush=True)

    # -- start -------------------------------------------------------------------------------------------------------
    def load(self) -> None:
        """Everything before HTTP."""
        truth = self.truth
        if self.has("die_at_once"):
            sys.exit(1)
        if self.has("missing_module"):
            self._traceback("ModuleNotFoundError: No module named 'sgl_kernel'", exit_code=1)
        for flags in truth.bad_flags:
            if all(flag in self.argv for flag in flags):
                self._scheduler_dies(CUBLAS)
        if self.random.random() < truth.flaky_start_frac:
            self._scheduler_dies("RuntimeError: NCCL error in: ProcessGroupNCCL.cpp, unhandled system error")
        if self.has("ignore_sigterm"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if self.has("stray_child"):
            code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(120)"
            subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
        args = {"model_path": "standin", "max_running_requests": self.max_running, "port": self.port}
        args |= {"speculative_algorithm": self.algorithm, "custom_sigquit_handler": None, "api_key": "hunter2"}
        self.log(f"server_args={args}")
        if self.has("secret"):
            self.log("using HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz0123")
        if self.has("binary"):
            sys.stderr.buffer.write(bytes(range(128, 256)) * 20 + b"\n")
            sys.stderr.flush()
        if self.has("flood"):
            for number in range(20_000):
                sys.stderr.write(f"[2026-11-30 08:00:00] filler line {number}\n")
        self.log("Load weight begin. avail mem=80.00 GB")
        while self.has("never_ready"):
            time.sleep(1)
        for step in range(1, 4):
            time.sleep(truth.start_s / 3)
            sys.stderr.write(
                f"\rLoading safetensors checkpoint shards: {step * 33}% Completed | {step}/3 [00:00<00:00]"
            )
            sys.stderr.flush()
        sys.stderr.write("\n")
        if self.has("oom_startup"):
            self._scheduler_dies(
                "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a "
                "total capacity of 79.11 GiB of which 1.00 GiB is free."
            )
        if self.has("die_loading"):
            self._scheduler_dies("RuntimeError: something that no signature knows")
        if self.has("segfault"):
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.has("oom_killed"):
            os.kill(os.getpid(), signal.SIGKILL)
        if self.has("nccl"):
            self._scheduler_dies(
                "torch.distributed.DistBackendError: [1] is setting up NCCL communicator and retrieving "
                "ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got "
                "error: wait timeout after 600000ms"
            )
        self.log("Load weight end. elapsed=0.05 s, type=LlamaForCausalLM, dtype=torch.bfloat16, avail mem=40.00 GB")
        self.log("KV Cache is allocated. #tokens: 100000, K size: 1.00 GB, V size: 1.00 GB")
        if self.graphs:
            self.capture()
        self.log(
            f"max_total_num_tokens={truth.kv_tok}, chunked_prefill_size=8192, max_prefill_tokens=16384, "
            f"max_running_requests={self.effective}, context_len=32768, available_gpu_mem=10.00 GB"
        )

    def capture(self) -> None:
        width = self.q_len + self.has("wide")
        kind = "target verify" if self.algorithm else "target decode"
        self.log(f"Capture {kind} CUDA graph begin. backend=full, num_tokens_per_req={width}, avail mem=10.00 GB")
        for size in reversed(self.batches):
            sys.stderr.write(f"\rCapturing batches (bs={size} avail_mem=10.0 GB):  50%|##   | 1/{len(self.batches)}")
        sys.stderr.write("\n")
        rows = min(max(self.batches), self.max_running) * width
        truth = self.truth
        if self.has("cublas") or (truth.row_limit is not None and rows > truth.row_limit):
            self._scheduler_dies(f"Exception: Capture cuda graph failed: {CUBLAS}")
        if self.has("die_capture") or (
            truth.graph_q_len_max is not None and width > truth.graph_q_len_max and not self.broken_output
        ):
            self._scheduler_dies(
                "Exception: Capture cuda graph failed: CUDA error: an illegal memory access was encountered"
            )
        if self.has("oom_capture"):
            self._scheduler_dies(
                "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 3.00 GiB. "
                "GPU 0 has a total capacity of 79.11 GiB of which 1.00 GiB is free."
            )
        self.log(
            f"Capture {kind} CUDA graph end. bs={self.batches}, elapsed=0.10 s, mem usage=0.10 GB, avail mem=9 GB."
        )

    def _traceback(self, error: str, *, exit_code: int) -> None:
        print(
            f'Traceback (most recent call last):\n  File "sglang/launch.py", line 1, in <module>\n{error}',
            file=sys.stderr,
        )
        sys.stderr.flush()
        os._exit(exit_code)

    def _scheduler_dies(self, error: str) -> None:
        self.log(
            f"Scheduler hit an exception: Traceback (most recent call last):\n"
            f'  File "sglang/srt/managers/scheduler.py", line 1, in run_scheduler_process\n{error}\n'
        )
        self.log("Received sigquit from a child process. It usually means the child failed.")
        os._exit(131)

    # -- engine ------------------------------------------------------------------------------------------------------
    async def engine(self) -> None:
        """Steps while something runs."""
        tokens_since, since = 0, time.perf_counter()
        while True:
            if not self.running and not self.waiting:
                self.wake.clear()
                await self.wake.wait()
                since = time.perf_counter()
            while self.waiting and len(self.running) < self.effective:
                request = self.waiting.pop(0)
                self.running.append(request)
                self.log(
                    f"Prefill batch, #new-seq: 1, #new-token: {request.prompt_tok - request.cached}, #cached-token: "
                    f"{request.cached}, token usage: 0.01, #running-req: {len(self.running)}, "
                    f"#queue-req: {len(self.waiting)}, "
                )
                request.commit(1)
            rows = len(self.running) * self.q_len
            step_s = (self.truth.step_s + rows * self.truth.step_per_row_s) / self.speed
            if self.truth.noise_frac:
                step_s *= max(0.2, self.random.gauss(1.0, self.truth.noise_frac))
            await asyncio.sleep(step_s)
            self.n_steps += 1
            for request in list(self.running):
                accepted = int(self.accept) + (self.random.random() < self.accept % 1.0)
                before = request.done
                request.verify += 1
                request.commit(max(1, accepted))
                tokens_since += request.done - before
                if request.done >= request.limit:
                    self.running.remove(request)
            if self.n_steps % self.interval == 0:
                batch = max(1, len(self.running))
                self.last_throughput = tokens_since / (time.perf_counter() - since)
                spec = f"accept len: {self.accept:.2f}, accept rate: 0.50, " if self.algorithm else ""
                self.log(
                    f"Decode batch, #running-req: {batch}, #token: {batch * 100}, token usage: 0.02, {spec}"
                    f"cuda graph: {self.graphs}, gen throughput (token/s): {self.last_throughput:.2f}, "
                    f"#queue-req: {len(self.waiting)}"
                )
                tokens_since, since = 0, time.perf_counter()

    def words(self, prompt: str, seen: bool, crowded: bool) -> str:
        """What this server answers."""
        garbage = self.has("garbage") or self.broken_output or (self.has("stale_cache") and seen)
        if garbage or (self.has("garbage_batch") and crowded):
            letters = "abcdefghijklmnopqrstuvwxyzжшщ中文العרעष0123456789#@"
            return "".join(self.random.choice(letters) for _ in range(120))
        if self.has("one_character"):
            return "o" * 120
        if self.has("wrong"):
            return re.sub(r"\d+", "7", answer_to(prompt)).replace("a + b", "a - b").replace("x * x", "x + x")
        return answer_to(prompt)

    # -- HTTP --------------------------------------------------------------------------------------------------------
    async def serve(self) -> None:
        if self.has("port_in_use"):
            self.log(
                f"[Errno 98] error while attempting to bind on address ('{self.host}', {self.port}): "
                "address already in use"
            )
            sys.exit(1)
        if not self.has("never_listens_after_ready"):
            server = await asyncio.start_server(self.connection, self.host, self.port, backlog=1024)
            self.log(f"Uvicorn running on http://{self.host}:{self.port} (Press CTRL+C to quit)")
        self.log("The server is fired up and ready to roll!")
        engine = asyncio.ensure_future(self.engine())
        if self.has("never_listens_after_ready"):
            await asyncio.sleep(3600)
        async with server:
            await asyncio.gather(server.serve_forever(), engine)

    async def connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                first, *lines = head.decode("latin-1").split("\r\n")
                method, path, _ = first.split(" ", 2)
                headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                await self.route(method, path.partition("?")[0], body, writer)
                await writer.drain()
                if headers.get("connection", "").lower() == "close":
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def reply(
        self, writer: asyncio.StreamWriter, body: bytes, status: int = 200, kind: str = "application/json"
    ) -> None:
        head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)

    async def route(self, method: str, path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        if path in ("/health", "/health_generate"):
            self.n_health += 1
            if self.has("hang_health"):
                await asyncio.sleep(3600)
            storm = self.has("storm_503") or (self.has("some_503") and self.n_health <= 10)
            self.reply(writer, b"", 503 if storm else 200)
        elif path in ("/model_info", "/get_model_info"):
            self.reply(writer, json.dumps({"model_path": "standin", "tokenizer_path": "standin"}).encode())
        elif path in ("/server_info", "/get_server_info"):
            if self.has("info_500"):
                self.reply(writer, b"Internal Server Error", 500, "text/plain")
            else:
                self.reply(writer, json.dumps(self.info()).encode())
        elif path == "/v1/models":
            self.reply(writer, json.dumps({"data": [{"id": "standin"}]}).encode())
        elif path == "/metrics":
            self.reply(writer, self.prometheus().encode(), 200 if self.metrics else 404, "text/plain")
        elif path == "/flush_cache":
            self.prompts.clear()
            self.reply(writer, b"ok", 200, "text/plain")
        elif path == "/generate":
            await self.generate(json.loads(body), writer)
        else:
            self.reply(writer, b'{"detail":"Not Found"}', 404)

    async def generate(self, order: dict[str, object], writer: asyncio.StreamWriter) -> None:
        self.n_requests += 1
        ids = order.get("input_ids")
        prompt = str(order.get("text") or " ".join(str(token) for token in ids or ()))
        crowded = False
        if self.has("hang_full_batch") or self.has("garbage_batch"):
            # A moment in which requests of one batch can meet, however slow the machine is.
            self.n_inside += 1
            await asyncio.sleep(0.15)
            crowded = self.n_inside > 1
            await asyncio.sleep(0.05)
            self.n_inside -= 1
        if self.has("hang_generate") or (self.has("hang_full_batch") and crowded):
            await asyncio.sleep(3600)
        if self.has("status_400"):
            self.reply(writer, b'{"error":{"message":"The input is too long"}}', 400)
            return
        if self.has("exit_generate"):
            os._exit(3)
        if self.has("nan"):
            self._lingering_crash("RuntimeError: probability tensor contains either `inf`, `nan` or element < 0")
        if self.has("crash_generate") or (self.has("crash_load") and self.n_requests > 200):
            self._lingering_crash("torch.AcceleratorError: CUDA error: an illegal memory access was encountered")
            await asyncio.sleep(3600)
        seen = prompt in self.prompts
        shared = max((_shared(prompt, old) for old in self.prompts[-64:]), default=0)
        cached = 0 if self.has("no_prefix") else max(0, shared // 4 - 1)
        self.prompts.append(prompt)
        params = order.get("sampling_params") or {}
        assert isinstance(params, dict)
        request = _Request(
            prompt_tok=max(1, len(prompt) // 4),
            cached=cached,
            limit=int(params.get("max_new_tokens", 16)),
            text=self.words(prompt, seen, crowded),
        )
        start = time.perf_counter()
        self.waiting.append(request)
        self.wake.set()
        if order.get("stream"):
            await self.stream(request, writer)
        else:
            await request.finished.wait()
        self.n_done += 1
        self.prompt_tok += request.prompt_tok
        self.cached_tok += request.cached
        self.gen_tok += request.done
        self.verify_calls += request.verify
        self.latency_sum_s += time.perf_counter() - start
        if not order.get("stream"):
            await self.answer(request, writer)

    def _lingering_crash(self, error: str) -> None:
        self.log(
            f"Scheduler hit an exception: Traceback (most recent call last):\n"
            f'  File "sglang/srt/managers/scheduler.py", line 1, in event_loop\n{error}\n'
        )
        self.log("SIGQUIT received. signum=None, frame=None. It usually means one child failed.")

    async def stream(self, request: _Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            request.news.clear()
            data = f"data: {json.dumps(request.json(self.algorithm is not None))}\n\n".encode()
            writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            if request.finished.is_set():
                break
            await writer.drain()
            await request.news.wait()
        writer.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")

    async def answer(self, request: _Request, writer: asyncio.StreamWriter) -> None:
        body = json.dumps(request.json(self.algorithm is not None)).encode()
        if self.has("truncated_json"):
            body = body[: len(body) // 2]
        if self.has("not_json"):
            body = b"<html>gateway</html>"
        if self.has("no_meta"):
            body = json.dumps({"text": request.text}).encode()
        if self.has("cut"):
            writer.write(f"HTTP/1.1 200 X\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body[:20])
            await writer.drain()
            writer.close()
            return
        if self.has("drip"):
            writer.write(f"HTTP/1.1 200 X\r\nContent-Length: {len(body)}\r\n\r\n".encode())
            for position in range(len(body)):
                writer.write(body[position : position + 1])
                await writer.drain()
                await asyncio.sleep(0.05)
            return
        self.reply(writer, body)

    # -- what it says about itself -----------------------------------------------------------------------------------
    def info(self) -> dict[str, object]:
        backend = _flag(self.argv, "--attention-backend") or "triton"
        decode = {"backend": "full" if self.graphs else "disabled", "max_bs": max(self.batches), "bs": self.batches}
        return {
            "model_path": "standin", "version": self.truth.version, "port": self.port, "host": self.host,
            "tp_size": int(_flag(self.argv, "--tp-size", "--tp") or 1),
            "ep_size": int(_flag(self.argv, "--ep-size") or 1),
            "dp_size": 1, "enable_dp_attention": False, "page_size": int(_flag(self.argv, "--page-size") or 1),
            "attention_backend": "flashinfer" if self.has("wrong_backend") else backend,
            "kv_cache_dtype": _flag(self.argv, "--kv-cache-dtype") or "auto",
            "mem_fraction_static": float(_flag(self.argv, "--mem-fraction-static") or 0.8),
            "enable_nccl_nvls": "--enable-nccl-nvls" in self.argv, "disable_radix_cache": False,
            "max_running_requests": self.max_running, "disable_cuda_graph": not self.graphs,
            "cuda_graph_config": {"decode": decode}, "speculative_algorithm": self.algorithm,
            "speculative_num_draft_tokens": self.q_len if self.algorithm else None,
            "max_total_num_tokens": self.truth.kv_tok, "max_req_input_len": 32000,
            "internal_states": [{"effective_max_running_requests_per_dp": self.effective,
                                 "decode_cuda_graph_bs": self.batches if self.graphs else [],
                                 "avg_spec_accept_length": self.accept if self.algorithm else None}],
        }  # fmt: skip

    def prometheus(self) -> str:
        label = '{model_name="standin",tp_rank="0"}'
        values = {
            "num_running_reqs": len(self.running), "num_queue_reqs": len(self.waiting),
            "gen_throughput": self.last_throughput,
            "token_usage": min(1.0, len(self.running) * 500 / self.truth.kv_tok),
            "prompt_tokens_total": self.prompt_tok, "generation_tokens_total": self.gen_tok,
            "cached_tokens_total": self.cached_tok, "num_requests_total": self.n_done,
            "spec_verify_calls_total": self.verify_calls, "spec_accept_length": self.accept if self.algorithm else 0.0,
            "e2e_request_latency_seconds_sum": self.latency_sum_s, "e2e_request_latency_seconds_count": self.n_done,
            "max_total_num_tokens": self.truth.kv_tok,
        }  # fmt: skip
        return "".join(f"sglang:{name}{label} {value}\n" for name, value in values.items())


class _Request:
    """One request in the engine."""

    def __init__(self, *, prompt_tok: int, cached: int, limit: int, text: str) -> None:
        self.prompt_tok, self.cached, self.limit, self.text = prompt_tok, cached, limit, text
        self.done = self.verify = 0
        self.finished, self.news = asyncio.Event(), asyncio.Event()

    def commit(self, n_tok: int) -> None:
        self.done = min(self.limit, self.done + n_tok)
        self.news.set()
        if self.done >= self.limit:
            self.finished.set()

    def json(self, speculating: bool) -> dict[str, object]:
        meta: dict[str, object] = {
            "prompt_tokens": self.prompt_tok, "completion_tokens": self.done, "cached_tokens": self.cached,
            "finish_reason": {"type": "length", "length": self.limit} if self.finished.is_set() else None,
        }  # fmt: skip
        if speculating:
            meta["spec_verify_ct"] = self.verify
        return {"text": self.text[: self.done * 4], "meta_info": meta}


CUBLAS = (
    "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmStridedBatchedEx(handle, opa, opb, m, n, k)`"
)


def main(argv: list[str]) -> None:
    """Runs the server until a signal ends it."""
    truth = Truth.from_env()
    server = Standin(argv, truth)
    server.load()
    if server.has("ignore_sigterm"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    asyncio.run(server.serve())


if __name__ == "__main__":
    main(sys.argv[1:])
