"""Public facts by a model's name: what is told, and that nothing is told for a name that is not known."""

from __future__ import annotations

import tomllib

import pytest

from planner.data import load_model, packaged_ids
from planner.data.files import read_text
from planner.review.subject import profile_for_path
from planner.rules.models import WeightForm, facts_of_name, facts_of_profile, read_row, rows_of, weight_form


@pytest.mark.parametrize(
    ("name", "family", "form"),
    [
        ("deepseek-ai/DeepSeek-R1", "deepseek-v3", WeightForm.FP8_BLOCK),
        ("/models/nvidia/DeepSeek-R1-0528-NVFP4", "deepseek-v3", WeightForm.NVFP4),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "llama-70b", WeightForm.BF16),
        ("moonshotai/Kimi-K2.6", "kimi-k2.5", WeightForm.INT4),
        ("models/Kimi-K25", "kimi-k2.5", WeightForm.INT4),
        ("GLM-5-FP8, EAGLE 3/1/4", "glm-5", WeightForm.FP8),
        ("Qwen3.5-397B-A17B NVFP4 + MTP", "qwen3.5-397b", WeightForm.NVFP4),
        ("openai/gpt-oss-20b", "gpt-oss", WeightForm.MXFP4),
    ],
)
def test_known_names(name: str, family: str, form: WeightForm) -> None:
    facts = facts_of_name(name)
    assert facts is not None
    assert (facts.id, facts.form) == (family, form)


@pytest.mark.parametrize("name", ["", "model", "/data", "some/new-model-9000b", "$MODEL"])
def test_unknown_names_stay_unknown(name: str) -> None:
    assert facts_of_name(name) is None


def test_a_checkpoint_without_its_draft_layer_is_told_apart() -> None:
    """One repack of GLM-5 lacks layer 78; the family has it."""
    with_layer, without = facts_of_name("zai-org/GLM-5"), facts_of_name("lukealonso/GLM-5-NVFP4")
    assert with_layer is not None
    assert without is not None
    assert (with_layer.nextn, without.nextn) == (1, 0)


def test_profile_facts_agree_with_the_table() -> None:
    """The table and the full profile of Kimi K2.6 must say the same where both speak."""
    profile = load_model("kimi-k2.6")
    exact, named = facts_of_profile(profile), facts_of_name(profile.model_path)
    assert named is not None
    for field in ("architecture", "attention", "n_heads", "n_experts", "expert_ffn", "nextn", "multimodal", "form"):
        assert getattr(exact, field) == getattr(named, field), field


def test_weight_form_is_told_only_by_the_name() -> None:
    assert weight_form("zai-org/GLM-4.7") is None
    assert weight_form("x/y-AWQ") is WeightForm.INT4


def test_rows_read_one_by_one_are_the_file() -> None:
    """Rows are cut from the text and read alone: none may be lost, and each must hold facts only."""
    whole = tomllib.loads(read_text("rules/models.toml"))
    for part in ("family", "checkpoint"):
        alone = [read_row(text) | {"match": pattern} for pattern, text in rows_of(part)]
        assert alone == whole[part]


@pytest.mark.parametrize("id_", packaged_ids("model"))
def test_a_packaged_profile_is_found_by_every_name(id_: str) -> None:
    """Files are passed over by their text: each name of a profile must lead to it."""
    profile = load_model(id_)
    for name in (profile.id, profile.model_path, *profile.aliases):
        assert profile_for_path(name) == profile
        assert profile_for_path(f"/models/{name.rsplit('/', 1)[-1].upper()}/") == profile
