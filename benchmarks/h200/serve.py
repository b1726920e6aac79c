"""Start SGLang's server for the campaign: the same server, with three hooks that measurement needs.

``GATE_FILE``      the scheduler waits, after its imports and before it touches the GPU, until this file exists. The
                   next server imports (about half of a start) while the one before is measured.
``ROUTE_TOKENS=1`` dummy weights of a mixture of experts route every token alike (norms near 0 leave the router with its
                   bias). Norms become 1, embeddings and routers unit normal, so that tokens differ in their experts;
                   forced tokens are drawn at random instead of one constant token, so that requests differ too.

Nothing else changes: kernels, graphs and scheduling are SGLang's.
"""

from __future__ import annotations

import os
import time
from typing import Any


def _wait_for_gate() -> None:
    path = os.environ.get("GATE_FILE")
    while path and not os.path.exists(path):
        time.sleep(0.05)


def _gate_scheduler() -> None:
    from sglang.srt.managers.scheduler import Scheduler

    begin = Scheduler.__init__

    def gated(self: Any, *args: Any, **kwargs: Any) -> None:
        print("gate: imports done", flush=True)
        _wait_for_gate()
        print("gate: open", flush=True)
        begin(self, *args, **kwargs)

    Scheduler.__init__ = gated


def _route_tokens() -> None:
    import torch
    from sglang.srt.model_loader import loader
    from sglang.srt.speculative import spec_utils

    fill = loader.initialize_dummy_weights

    def spread(model: Any, *args: Any, **kwargs: Any) -> None:
        fill(model, *args, **kwargs)
        changed = {"norm": 0, "embedding": 0, "router": 0, "bias": 0}
        for number, (name, value) in enumerate(model.state_dict().items()):
            if not torch.is_floating_point(value):
                continue
            generator = torch.Generator(device=value.device).manual_seed(1000 + number)
            if "e_score_correction_bias" in name:
                value.zero_()
                changed["bias"] += 1
            elif "norm" in name:
                value.fill_(1.0)
                changed["norm"] += 1
            elif "embed_tokens" in name:
                value.normal_(0.0, 1.0, generator=generator)
                changed["embedding"] += 1
            elif name.endswith("mlp.gate.weight"):
                value.normal_(0.0, value.shape[-1] ** -0.5, generator=generator)
                changed["router"] += 1
        print(f"routed dummy weights: {changed}", flush=True)

    loader.initialize_dummy_weights = spread
    force = spec_utils.generate_simulated_accept_index

    def forced(*args: Any, **kwargs: Any) -> Any:
        index = force(*args, **kwargs)
        predict = kwargs["predict"] if "predict" in kwargs else args[1]
        predict.random_(3, int(os.environ.get("ROUTE_VOCAB", "20000")))
        return index

    spec_utils.generate_simulated_accept_index = forced


if __name__ == "__mp_main__":
    if os.environ.get("GATE_FILE"):
        _gate_scheduler()
    if os.environ.get("ROUTE_TOKENS") == "1":
        _route_tokens()

if __name__ == "__main__":
    import sys

    from sglang.launch_server import run_server
    from sglang.srt.server_args import prepare_server_args

    run_server(prepare_server_args(sys.argv[1:]))
