"""Profiles and limits from files: every fault is named by file, line and key, with the nearest valid key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.data import (
    load_drafter,
    load_hardware,
    load_limits,
    load_model,
    packaged_ids,
    read_hardware,
    read_limits,
)
from planner.data.field_notes import field_runs
from planner.data.files import read_text
from planner.domain import AttentionKind, WeightDtype
from planner.errors import InputError

LIMIT = """
[[limit]]
id = "MINE"
title = "mine"
shape = "at_most"
quantity = "q_len"
known_good = 5
status = "established"
consequence = "crash"
seen_on = "here"
[[limit.evidence]]
ref = "a run"
outcome = "crash"
"""


def problems(error: pytest.ExceptionInfo[InputError]) -> list[str]:
    return [str(problem) for problem in error.value.problems]


def test_everything_packaged_loads() -> None:
    assert {"b300", "rtx_pro_6000", "h200"} <= set(packaged_ids("hardware"))
    for id_ in packaged_ids("hardware"):
        assert load_hardware(id_).id == id_
    for id_ in packaged_ids("model"):
        assert load_model(id_).id == id_
    for id_ in packaged_ids("drafter"):
        assert set(load_drafter(id_).targets) <= set(packaged_ids("model"))
    assert len({limit.id for limit in load_limits()}) == len(load_limits())


def test_alias_and_unknown_name() -> None:
    assert load_hardware("RTX6000").id == "rtx_pro_6000"
    assert load_model("moonshotai/Kimi-K2.6").id == "kimi-k2.6"
    with pytest.raises(InputError, match=r"unknown hardware 'b3000'; did you mean b300"):
        load_hardware("b3000")
    with pytest.raises(InputError, match="unknown model"):
        load_model("gpt-9")


def test_typo_in_a_profile_names_line_key_and_nearest(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "hardware_profiles" / "b300.toml").read_text(encoding="utf-8")
    file = tmp_path / "mine.toml"
    file.write_text(text.replace("nvls = true", "nvlx = true").replace("power_w = 1100", 'power_w = "much"'))
    with pytest.raises(InputError) as error:
        read_hardware(file)
    found = problems(error)
    line = {row: number for number, row in enumerate(text.splitlines(), 1)}
    assert f"{file}:{line['nvls = true']}: nvlx: unknown key; did you mean nvls?" in found
    assert any(f"{file}:{line['power_w = 1100']}: power_w: " in row and "'much'" in row for row in found)
    assert any("nvls: missing" in row for row in found)
    assert len(found) == 3


def test_typo_deep_inside_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "limits.toml"
    file.write_text(
        LIMIT + LIMIT.replace("MINE", "OTHER").replace("outcome =", "outcom =").replace('"q_len"', '"q_lenn"')
    )
    with pytest.raises(InputError) as error:
        read_limits(file)
    found = problems(error)
    assert any(":26: " in row and "outcom: unknown key; did you mean outcome?" in row for row in found), found


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"q_len"', '"q_lenn"', "unknown quantity 'q_lenn'; did you mean q_len?"),
        ("known_good = 5", "known_good = nan", "known_good"),
        ("[[limit]]", "[[limits]]", "limits: unknown key; did you mean limit?"),
        ('"at_most"', '"at_moost"', "at_moost"),
        ("known_good = 5", "known_good = = 5", "not valid TOML"),
    ],
)
def test_bad_limits_file(tmp_path: Path, old: str, new: str, message: str) -> None:
    file = tmp_path / "limits.toml"
    file.write_text(LIMIT.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        load_limits([file])
    assert any(message in row for row in problems(error)), problems(error)
    assert all(str(file) in row for row in problems(error))


def test_missing_and_unreadable_limits_are_told_together(tmp_path: Path) -> None:
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError) as error:
        load_limits([tmp_path / "none.toml", binary, tmp_path])
    assert len(error.value.problems) == 3
    assert "none.toml: No such file" in str(error.value)
    assert "not UTF-8" in str(error.value)


def test_users_limit_replaces_a_built_in_one(tmp_path: Path) -> None:
    file = tmp_path / "limits.toml"
    file.write_text(LIMIT.replace("MINE", "B300-GRAPH-Q-LEN"))
    before, after = load_limits(), load_limits([file])
    assert len(before) == len(after)
    assert next(limit for limit in after if limit.id == "B300-GRAPH-Q-LEN").known_good == 5
    file.write_text(LIMIT + LIMIT)
    with pytest.raises(InputError, match="MINE stands twice"):
        load_limits([file])


def write_config(folder: Path, **changes: object) -> Path:
    config: dict[str, object] = {
        "architectures": ["Qwen3ForCausalLM"],
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "vocab_size": 151936,
        "max_position_embeddings": 40960,
    }
    config |= changes
    folder.mkdir(exist_ok=True)
    kept = {key: value for key, value in config.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(kept))
    return folder


def test_config_json_becomes_a_profile(tmp_path: Path) -> None:
    model = load_model(write_config(tmp_path / "qwen3-8b"))
    assert (model.id, model.attention_kind, model.n_experts) == ("qwen3-8b", AttentionKind.GQA, 0)
    assert model.weight_bytes == pytest.approx(16.4e9, rel=0.01)


def test_config_json_of_a_quantised_moe(tmp_path: Path) -> None:
    folder = write_config(
        tmp_path / "moe",
        num_experts=128,
        num_experts_per_tok=8,
        moe_intermediate_size=768,
        quantization_config={"quant_method": "fp8", "weight_block_size": [128, 128]},
    )
    model = load_model(folder)
    assert (model.n_experts, model.expert_ffn_dim, model.expert_dtype) == (128, 768, WeightDtype.FP8_BLOCK)
    assert model.quantization == "fp8"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"hidden_size": None, "vocab_size": None}, "hidden_size: missing"),
        ({"num_attention_heads": "many"}, "num_attention_heads: must be a whole number"),
        ({"quantization_config": {"quant_method": "magic"}}, "unknown quant_method 'magic'"),
        ({"architectures": None}, "architectures: missing"),
        ({"num_experts": 4, "num_experts_per_tok": 8}, "exceeds n_experts"),
    ],
)
def test_config_json_faults_name_the_key(tmp_path: Path, changes: dict[str, object], field: str) -> None:
    folder = write_config(tmp_path / "bad", **changes)
    with pytest.raises(InputError) as error:
        load_model(folder)
    assert field in str(error.value)
    assert "config.json" in str(error.value)


def test_config_json_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a model folder holds config\.json"):
        load_model(tmp_path)
    (tmp_path / "config.json").write_text("[1]")
    with pytest.raises(InputError, match="holds one object"):
        load_model(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(InputError, match="not valid JSON"):
        load_model(tmp_path)


def test_field_notes_are_whole() -> None:
    runs = field_runs()
    assert [run.id for run in runs] == [f"FN-{number:02d}" for number in range(1, 19)]
    known = {limit.id for limit in load_limits()}
    assert all(set(run.limits) <= known for run in runs)
    assert all(bool(run.limits) != run.ok for run in runs)
    assert all(set(run.assumed) <= set(type(run.candidate).model_fields) | {"tok_per_s"} for run in runs)
    assert "FN-19" not in read_text("field_notes.toml")
