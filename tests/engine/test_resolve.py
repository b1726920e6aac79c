"""resolve(): the traps by name, purity, every version, and what is wrong with an input."""

from __future__ import annotations

import contextlib
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.data import load_drafter, load_hardware, load_model
from planner.engine.argv import read_argv
from planner.engine.flags import flag_table
from planner.engine.resolution import Resolution, resolve
from planner.errors import InputError
from tests.engine.expected import config, folder_of
from tests.engine.strategies import launches

KIMI = ["--model-path", folder_of("kimi-int4"), "--trust-remote-code", "--tp-size", "8"]
DFLASH = ["--speculative-algorithm", "DFLASH", "--speculative-draft-model-path", folder_of("draft-dflash")]


def resolved(argv: list[str], hw: str = "b300", version: str = "0.5.23", **more: Any) -> Resolution:
    launch = read_argv(argv, version=version).launch
    return resolve(
        launch,
        hardware=load_hardware(hw),
        engine_version=version,
        model_config=config(launch.model_path),
        draft_config=config(launch.speculative_draft_model_path),
        **more,
    )


def test_order_trap_of_48_running_requests() -> None:
    """Without a stated limit 48 requests run, yet graphs and memory are sized for 512."""
    trap = resolved([*KIMI, *DFLASH]).effective
    assert (trap["max_running_requests"], trap["cuda_graph_max_bs_decode"]) == (48, 512)
    stated = resolved([*KIMI, *DFLASH, "--max-running-requests", "48"]).effective
    assert (stated["max_running_requests"], stated["cuda_graph_max_bs_decode"]) == (48, 48)
    assert stated["mem_fraction_static"] > trap["mem_fraction_static"]


def test_page_size_is_rewritten() -> None:
    found = resolved([*KIMI, "--page-size", "1"])
    assert found.effective["page_size"] == 64
    decision = found.decision("page_size")
    assert decision is not None
    assert (decision.before, decision.after) == (1, 64)


def test_the_block_drafter_sets_its_own_numbers() -> None:
    asked = ["--speculative-num-steps", "4", "--speculative-eagle-topk", "4"]
    found = resolved([*KIMI, *DFLASH, *asked]).effective
    assert (found["speculative_num_steps"], found["speculative_eagle_topk"]) == (1, 1)
    assert found["speculative_num_draft_tokens"] == 8
    assert found["speculative_draft_attention_backend"] == "flashinfer"


def test_a_process_without_cuda_answers_differently() -> None:
    """The engine asks torch for CUDA: an emulated machine on a CPU has no prefill graphs and no fa3 on Hopper."""
    real, emulated = resolved(KIMI), resolved(KIMI, cuda_visible=False)
    assert real.effective["cuda_graph_backend_prefill"] == "breakable"
    assert emulated.effective["cuda_graph_backend_prefill"] == "disabled"
    assert emulated.effective["mem_fraction_static"] == pytest.approx(0.8197, abs=5e-5)
    assert real.effective["mem_fraction_static"] == pytest.approx(0.8151, abs=5e-5)
    dense = ["--model-path", folder_of("qwen3-dense")]
    assert resolved(dense, "h200").effective["attention_backend"] == "fa3"
    assert resolved(dense, "h200", cuda_visible=False).effective["attention_backend"] != "fa3"


@pytest.mark.parametrize("version", ["0.5.11", "0.5.12.post1", "0.5.13", "0.5.15.post1", "0.5.16", "0.5.23"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_version_resolves_under_its_own_names(version: str, data: st.DataObject) -> None:
    """Versions without rules of their own use older ones; their fields keep their names and none is lost."""
    hw, argv = data.draw(launches(version if version == "0.5.23" else "0.5.12.post1"))
    read = read_argv(argv, version=version)
    if read.problems:
        return
    found = resolve(
        read.launch,
        hardware=load_hardware(hw),
        engine_version=version,
        model_config=config(read.launch.model_path),
        draft_config=config(read.launch.speculative_draft_model_path),
    )
    table = flag_table(version)
    assert found.error is not None or table.defaults.keys() - {"random_seed"} <= found.effective.keys()
    assert "cuda_graph_backend_decode" in found.effective or found.error is not None
    assert {decision.field for decision in found.decisions} <= found.effective.keys()
    again = resolve(
        read.launch,
        hardware=load_hardware(hw),
        engine_version=version,
        model_config=config(read.launch.model_path),
        draft_config=config(read.launch.speculative_draft_model_path),
    )
    assert dict(again.effective) == dict(found.effective)
    assert str(again.error) == str(found.error)


def test_a_version_without_rules_says_whose_it_follows() -> None:
    found = resolved(["--model-path", folder_of("kimi-int4"), "--tp-size", "8"], version="0.5.16")
    assert any("rules of 0.5.12.post1" in note for note in found.notes)
    assert "cuda_graph_max_bs" not in found.effective
    assert found.effective["cuda_graph_max_bs_decode"] == 512


def test_nothing_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pure: after the tables are loaded, neither files nor network nor the environment change an answer."""
    before = resolved(KIMI)

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("opened")

    monkeypatch.setattr("builtins.open", refuse)
    monkeypatch.setattr(Path, "read_text", refuse)
    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setenv("SGLANG_ENABLE_SPEC_V2", "0")
    monkeypatch.setenv("NCCL_NVLS_ENABLE", "1")
    assert dict(resolved(KIMI).effective) == dict(before.effective)


def test_a_profile_stands_for_a_folder() -> None:
    """Without config.json the packaged profiles lead to the same values that the step cost rests on."""
    argv = ["--model-path", "moonshotai/Kimi-K2.6", "--trust-remote-code", "--tp-size", "8"]
    argv += ["--speculative-algorithm", "DFLASH", "--speculative-draft-model-path", "z-lab/Kimi-K2.6-DFlash"]
    for version in ("0.5.23", "0.5.12.post1"):
        by_profile = resolve(
            read_argv(argv, version=version).launch,
            hardware=load_hardware("b300"),
            model=load_model("kimi-k2.6"),
            drafter=load_drafter("kimi-k2.6-dflash"),
            engine_version=version,
        ).effective
        by_folder = resolved([*KIMI, *DFLASH], version=version).effective
        hidden = {"model_path", "tokenizer_path", "served_model_name", "speculative_draft_model_path"}
        hidden.add("speculative_boundary_reduction")  # by the draft's architecture, which a profile does not name
        different = {name for name, value in by_folder.items() if name not in hidden and by_profile.get(name) != value}
        assert different == set()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({}, "architectures"),
        ({"architectures": ["Qwen3ForCausalLM"]}, "num_attention_heads"),
        ({"architectures": 3}, "architectures"),
    ],
)
def test_a_config_without_the_needed_keys_names_them(content: dict[str, Any], words: str) -> None:
    launch = read_argv(["--model-path", "/x", "--tp-size", "8"], version="0.5.23").launch
    with pytest.raises(InputError, match=words):
        resolve(launch, hardware=load_hardware("b300"), engine_version="0.5.23", model_config=content)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_spoiled_config_is_an_input_error_and_no_crash(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["kimi-int4", "deepseek-dsa", "qwen3-next", "gpt-oss", "llama4"]))
    content = json.loads(json.dumps(config(folder_of(name))))
    inner = [content, *(value for value in content.values() if isinstance(value, dict) and value)]
    target = data.draw(st.sampled_from(inner))
    key = data.draw(st.sampled_from(sorted(target)))
    target[key] = data.draw(st.sampled_from([None, [], {}, "x", -1, 0, 1.5, True, ["x"], {"a": 1}]))
    launch = read_argv(["--model-path", "/x", "--tp-size", "8"], version="0.5.23").launch
    for version in ("0.5.23", "0.5.12.post1"):
        with contextlib.suppress(InputError):
            resolve(launch, hardware=load_hardware("b300"), engine_version=version, model_config=content)


def test_unknown_version_and_dialect() -> None:
    launch = read_argv(KIMI, version="0.5.23").launch
    with pytest.raises(InputError, match="unknown engine version"):
        resolve(launch, hardware=load_hardware("b300"), engine_version="nonsense", model_config={})
    with pytest.raises(InputError, match="unknown dialect"):
        resolve(launch, hardware=load_hardware("b300"), engine_version="0.5.23", dialect="x")
