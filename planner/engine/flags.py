"""Flag tables by version: packaged ones and those a user added."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from planner.data.engine.store import flag_table_names, read_flag_table, read_wheel, write_flag_table
from planner.engine.flag_table import FlagSpec, FlagTable
from planner.errors import InputError

__all__ = ["VLLM_FLAGS", "add_wheel", "flag_table", "flag_versions"]

VLLM_FLAGS = frozenset(
    {
        "--async-scheduling",
        "--block-size",
        "--compilation-config",
        "--data-parallel-size-local",
        "--disable-log-requests",
        "--distributed-executor-backend",
        "--enable-auto-tool-choice",
        "--enable-chunked-prefill",
        "--enable-expert-parallel",
        "--enable-prefix-caching",
        "--enforce-eager",
        "--gpu-memory-utilization",
        "--guided-decoding-backend",
        "--hf-overrides",
        "--kv-transfer-config",
        "--limit-mm-per-prompt",
        "--max-log-len",
        "--max-model-len",
        "--max-num-batched-tokens",
        "--max-num-seqs",
        "--max-seq-len-to-capture",
        "--mm-encoder-tp-mode",
        "--no-enable-prefix-caching",
        "--num-gpu-blocks-override",
        "--num-scheduler-steps",
        "--num-speculative-tokens",
        "--override-generation-config",
        "--speculative-config",
        "--speculative-model",
        "--swap-space",
        "--tokenizer-revision",
        "--use-v2-block-manager",
    }
)
"""Flags of vLLM's server that SGLang does not have (vLLM engine arguments, docs of 0.6 to 0.11)."""

SGLANG_TWIN = {
    "--block-size": "--page-size",
    "--data-parallel-size-local": "--dp-size",
    "--enable-expert-parallel": "--ep-size",
    "--enable-prefix-caching": None,
    "--no-enable-prefix-caching": "--disable-radix-cache",
    "--enforce-eager": "--disable-cuda-graph",
    "--gpu-memory-utilization": "--mem-fraction-static",
    "--max-model-len": "--context-length",
    "--max-num-batched-tokens": "--chunked-prefill-size",
    "--max-num-seqs": "--max-running-requests",
    "--num-speculative-tokens": "--speculative-num-draft-tokens",
    "--speculative-model": "--speculative-draft-model-path",
}
"""The flag of SGLang that comes closest; None where SGLang does it by default."""


def flag_versions() -> list[str]:
    """Versions with a table, oldest first."""
    from packaging.version import Version

    return sorted(flag_table_names(), key=Version)


@cache
def flag_table(version: str) -> FlagTable:
    """The table of one version.

    Raises:
        InputError: it is spoiled, or there is none (:func:`planner.engine.version.parse_engine_version` finds the
            nearest).
    """
    content = read_flag_table(version)
    try:
        return FlagTable(
            version=content["version"],
            released=content["released"],
            fields=tuple(sorted(content["fields"].items())),
            flags=tuple(FlagSpec.from_row(row) for row in content["flags"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the flag table of {version} is spoiled: {error}", "plan-config engine add WHEEL") from None


def add_wheel(path: Path, folder: Path | None = None) -> tuple[FlagTable, Path]:
    """Makes and keeps the table of a wheel.

    Raises:
        InputError: not a wheel, or not SGLang's.
    """
    version, released, sources = read_wheel(path)
    from planner.engine.flag_extract import extract_flags

    table = extract_flags(sources, version=version, released=released)
    content = {
        "schema_version": 1,
        "version": version,
        "released": released,
        "source": f"sglang-{version} wheel, sglang/srt/server_args.py and what it imports (syntax tree, nothing run)",
        "fields": dict(table.fields),
        "flags": [flag.to_row() for flag in table.flags],
    }
    written = write_flag_table(version, content, folder)
    flag_table.cache_clear()
    return table, written
