"""A scripted server with SGLang's endpoints and decode lines, for the campaign's driver."""

from __future__ import annotations

import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

STEP_S = float(os.environ.get("STAND_IN_STEP_S", "0.001"))
POOL = int(os.environ.get("STAND_IN_POOL", "100000"))
ACCEPT = float(os.environ.get("SGLANG_SIMULATE_ACC_LEN", "0"))
CRASH_AT = int(os.environ.get("STAND_IN_CRASH_AT", "0"))


def say(text: str) -> None:
    print(f"[2026-01-01 00:00:00 TP0] {text}", flush=True)


class Handler(BaseHTTPRequestHandler):
    def answer(self, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        return

    def do_GET(self) -> None:
        self.answer({"version": "0.0.1", "max_total_num_tokens": POOL, "internal_states": [{}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "input_ids" not in body:
            self.answer({})
            return
        prompts, n_tok = body["input_ids"], body["sampling_params"]["max_new_tokens"]
        running = min(len(prompts), POOL // len(prompts[0]))
        if len(prompts) == CRASH_AT:
            say("Scheduler hit an exception: Traceback (most recent call last):")
            os._exit(1)
        tau = ACCEPT or 1.0
        for line in range(max(1, round(n_tok / tau / 5))):
            time.sleep(STEP_S)
            rate = 1.0 if line == 0 else running * tau / 0.010
            accept = f"accept len: {tau:.2f}, accept rate: 0.50, " if ACCEPT else ""
            say(
                f"Decode batch, #running-req: {running}, #token: 99, token usage: 0.10, {accept}cuda graph: True, "
                f"gen throughput (token/s): {rate:.2f}, #queue-req: {len(prompts) - running}"
            )
        meta = {"completion_tokens": n_tok, "cached_tokens": 0, "spec_verify_ct": 0}
        self.answer([{"text": "", "meta_info": meta} for _ in prompts])


if __name__ == "__main__":
    print("gate: imports done", flush=True)
    while not os.path.exists(os.environ["GATE_FILE"]):
        time.sleep(0.01)
    port = int(sys.argv[sys.argv.index("--port") + 1])
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
