"""Runs the real SGLang's parser and resolution for many launches in one process, over JSON lines on stdin and stdout.

Run by the interpreter of a contract environment (see make_env.py), never imported by the test suite. A request is
``{"id": 1, "hw": "b300", "argv": [...], "env": {...}}``; the answer is ``{"id": 1, "effective": {...}, "error": null}``
or an error ``{"type", "message"}``. No GPU is needed: the facts of the machine are stated to the engine.

What is stated, and how:
* 0.5.23 has an official scoped override of platform facts (runtime_context.override_platform). Device memory and
  compute capability are replaced where they are read. ``default_prefill_backend`` asks torch for CUDA, so it is
  replaced by what it returns on a CUDA machine; a request with ``without_cuda`` leaves it, and the Hopper fact, alone.
* 0.5.12.post1 reads the facts through names in ``sglang.srt.server_args``, which are replaced there.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.abc
import importlib.machinery
import io
import json
import logging
import os
import sys
import types
import warnings

STUBBED = ("torchvision", "torchaudio", "sgl_kernel")
"""Packages whose builds need CUDA; the configuration code only imports names from them."""

HARDWARE = {
    "b300": {"capability": (10, 3), "memory_mib": 275040, "family": "sm100"},
    "rtx_pro_6000": {"capability": (12, 0), "memory_mib": 97887, "family": "sm120"},
    "h200": {"capability": (9, 0), "memory_mib": 143771, "family": "sm90"},
}
"""Device memory as the driver reports it (MiB); the same numbers as the packaged hardware profiles."""


class _Anything:
    def __init__(self, *args, **kwargs):
        pass

    def __call__(self, *args, **kwargs):
        return self

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything()


class _StubModule(types.ModuleType):
    __version__ = "0.0.0"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "InterpolationMode":
            names = ("NEAREST", "BILINEAR", "BICUBIC", "LANCZOS", "BOX", "HAMMING", "NEAREST_EXACT")
            return type("InterpolationMode", (), {key: key.lower() for key in names})
        return _Anything()


class _StubFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in STUBBED:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec):
        return _StubModule(spec.name)

    def exec_module(self, module):
        module.__path__ = []


def _plain(value):
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    if hasattr(value, "value"):
        return _plain(value.value)
    return repr(value)


def _flags_of_a_dialect(parser, flags):
    """The shim: flags that the build of a dialect adds to the parser of its base."""
    known = parser._option_string_actions
    for flag in flags:
        if flag["name"] in known:
            continue
        if flag["type"] == "bool":
            parser.add_argument(flag["name"], action="store_true")
        else:
            parser.add_argument(flag["name"], type={"int": int, "float": float}.get(flag["type"], str))


def _register_ddtree():
    """The engine's own door for further algorithms: DDTREE without the overlap scheduler and without a worker."""
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

    def no_worker(*args, **kwargs):
        raise RuntimeError("only arguments are resolved here")

    with contextlib.suppress(ValueError):
        SpeculativeAlgorithm.register("DDTREE", supports_overlap=False)(no_worker)


def _know_mxfp4():
    """mxfp4 is registered only where CUDA (or AMX) is seen; on the machines stated here it is."""
    import sglang.srt.layers.quantization as quantization

    config = getattr(quantization, "Mxfp4Config", quantization.Fp8Config)
    quantization.QUANTIZATION_METHODS.setdefault("mxfp4", config)


class Engine23:
    """0.5.15 and later releases with the resolution pipeline."""

    def __init__(self):
        import sglang.srt.arg_groups.memory_hook as memory_hook
        import sglang.srt.arg_groups.model_overrides.qwen3_vl as qwen3_vl
        import sglang.srt.model_executor.cuda_graph_config as graphs
        import sglang.srt.runtime_context as context
        import sglang.srt.server_args as server_args
        import torch

        self.torch, self.context, self.server_args = torch, context, server_args
        self.memory_modules = (memory_hook, qwen3_vl)
        self.graphs, self.seen_prefill_default = graphs, graphs.default_prefill_backend
        _know_mxfp4()
        self.parser = argparse.ArgumentParser(prog="sglang")
        server_args.ServerArgs.add_cli_args(self.parser)
        self.add_cli_args = server_args.ServerArgs.add_cli_args

    def resolve(self, hw, argv, without_cuda=False):
        facts = HARDWARE[hw]
        family = facts["family"]
        self.torch.cuda.get_device_capability = lambda *args, **kwargs: facts["capability"]
        breakable = self.graphs.Backend.BREAKABLE
        self.graphs.default_prefill_backend = self.seen_prefill_default if without_cuda else lambda: breakable
        for module in self.memory_modules:
            module.get_device_memory_capacity = lambda *args, **kwargs: facts["memory_mib"]
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            try:
                raw = self.parser.parse_args([*argv, "--device", "cuda"])
            except SystemExit:
                text = errors.getvalue().strip().splitlines()
                message = (text[-1] if text else "").removeprefix("sglang: error: ")
                return None, {"type": "SystemExit", "message": message}
        explicit = any(token.split("=")[0] == "--radix-eviction-policy" for token in argv)
        raw._radix_eviction_policy_explicitly_set = explicit
        record = self.server_args.ServerArgs.from_cli_args(raw)
        platform = self.context.override_platform(
            is_cuda=True,
            is_sm90=family == "sm90",
            is_hopper_with_cuda_12_3=family == "sm90" and not without_cuda,
            is_sm100=family == "sm100",
            is_sm100_or_sm110=family == "sm100",
            is_sm110=False,
            is_sm120=family == "sm120",
            is_blackwell=family in ("sm100", "sm120"),
            has_flashinfer=True,
            device_sm=facts["capability"][0] * 10 + facts["capability"][1],
            device_capability=facts["capability"],
        )
        with platform:
            try:
                record.resolve_once()
                record.check_server_args()
            except Exception as error:
                return None, {"type": type(error).__name__, "message": str(error)}
        effective = record.resolved_dict()
        graphs = effective.get("cuda_graph_config") or {}
        for phase in ("decode", "prefill"):
            for key in ("backend", "max_bs", "bs"):
                effective[f"cuda_graph_{key}_{phase}"] = graphs.get(phase, {}).get(key)
        return effective, None


class Engine12:
    """0.5.12.post1: the constructor resolves in place."""

    def __init__(self):
        import sglang.srt.server_args as server_args
        import torch

        self.torch, self.module = torch, server_args
        torch.cuda.is_available = lambda: False
        _know_mxfp4()
        self.parser = argparse.ArgumentParser(prog="sglang")
        server_args.ServerArgs.add_cli_args(self.parser)
        self.add_cli_args = server_args.ServerArgs.add_cli_args

    def resolve(self, hw, argv, without_cuda=False):
        facts = HARDWARE[hw]
        family = facts["family"]
        self.torch.cuda.get_device_capability = lambda *args, **kwargs: facts["capability"]
        names = {
            "is_sm90_supported": family == "sm90",
            "is_hopper_with_cuda_12_3": family == "sm90",
            "is_sm100_supported": family == "sm100",
            "is_sm120_supported": family == "sm120",
            "is_blackwell_supported": family in ("sm100", "sm120"),
            "is_cuda": True,
            "is_cpu": False,
            "is_flashinfer_available": True,
            "get_device_sm": facts["capability"][0] * 10 + facts["capability"][1],
        }
        for name, value in names.items():
            if hasattr(self.module, name):
                setattr(self.module, name, lambda *args, _value=value, **kwargs: _value)
        self.module.get_device_memory_capacity = lambda *args, **kwargs: facts["memory_mib"]
        errors = io.StringIO()
        with contextlib.redirect_stderr(errors):
            try:
                raw = self.parser.parse_args([*argv, "--device", "cuda"])
            except SystemExit:
                text = errors.getvalue().strip().splitlines()
                message = (text[-1] if text else "").removeprefix("sglang: error: ")
                return None, {"type": "SystemExit", "message": message}
        try:
            record = self.module.ServerArgs.from_cli_args(raw)
            record.check_server_args()
        except Exception as error:
            return None, {"type": type(error).__name__, "message": str(error)}
        effective = {name: getattr(record, name) for name in type(record).__dataclass_fields__}
        effective["cuda_graph_backend_decode"] = "disabled" if record.disable_cuda_graph else "full"
        effective["cuda_graph_max_bs_decode"] = record.cuda_graph_max_bs
        return effective, None


def main():
    sys.meta_path.insert(0, _StubFinder())
    warnings.simplefilter("ignore")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    import importlib.metadata as metadata

    version = metadata.version("sglang")
    engine = Engine12() if version.startswith("0.5.12") else Engine23()
    logging.disable(logging.CRITICAL)
    clean = dict(os.environ)
    out.write(json.dumps({"ready": version}) + "\n")
    for line in sys.stdin:
        request = json.loads(line)
        os.environ.update(request.get("env") or {})
        if request.get("parser"):
            actions = [
                {
                    "names": action.option_strings,
                    "dest": action.dest,
                    "required": action.required,
                    "choices": sorted(map(str, action.choices)) if action.choices is not None else None,
                    "default": repr(action.default),
                    "nargs": action.nargs,
                }
                for action in engine.parser._actions
                if action.dest != "help"
            ]
            out.write(json.dumps({"id": request["id"], "actions": actions}) + "\n")
            continue
        if request.get("register_ddtree"):
            _register_ddtree()
            out.write(json.dumps({"id": request["id"]}) + "\n")
            continue
        if request.get("parse_only"):
            parser = argparse.ArgumentParser(prog="sglang")
            engine.add_cli_args(parser)
            _flags_of_a_dialect(parser, request.get("flags") or [])
            errors = io.StringIO()
            error = None
            with contextlib.redirect_stderr(errors):
                try:
                    parser.parse_args(request["argv"])
                except SystemExit:
                    error = {"type": "SystemExit", "message": errors.getvalue().strip().splitlines()[-1]}
            out.write(json.dumps({"id": request["id"], "effective": None, "error": error}) + "\n")
            continue
        effective, error = engine.resolve(request["hw"], request["argv"], bool(request.get("without_cuda")))
        for key in set(os.environ) - set(clean):
            del os.environ[key]
        os.environ.update(clean)
        answer = {"id": request["id"], "effective": _plain(effective), "error": error}
        out.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
