"""Values: immutable, checked, and every number has a source."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from planner.data import load_hardware, load_model, packaged_ids
from planner.domain import Candidate, Estimate, Limit, Provenance, Source, SourceKind, Workload


def test_frozen_and_replace_validates() -> None:
    work = Workload(target_c=64)
    with pytest.raises(ValidationError):
        work.target_c = 65  # type: ignore[misc]
    assert work.replace(target_c=65).target_c == 65
    assert hash(work) == hash(Workload(target_c=64))
    with pytest.raises(ValidationError):
        work.replace(target_c=-1)
    with pytest.raises(ValidationError, match="Extra inputs"):
        work.replace(taget_c=3)


@pytest.mark.parametrize("value", [0, -3, 10**9, True, 1.5, "64", float("nan")])
def test_target_c_out_of_range(value: object) -> None:
    with pytest.raises(ValidationError):
        Workload(target_c=value)  # type: ignore[arg-type]


def test_estimate_is_ordered() -> None:
    with pytest.raises(ValidationError, match="low <= value <= high"):
        Estimate(value=3, low=4, high=5, provenance=Provenance.MEASURED)


def test_number_without_source_is_refused() -> None:
    profile = load_hardware("b300")
    fewer = tuple(source for source in profile.sources if source.field != "memory_bytes")
    with pytest.raises(ValidationError, match="numbers without a source: memory_bytes"):
        profile.replace(sources=fewer)
    stray = Source(field="memory_byte", kind=SourceKind.ASSUMED, ref="nothing")
    with pytest.raises(ValidationError, match="do not exist: memory_byte"):
        profile.replace(sources=(*profile.sources, stray))


@pytest.mark.parametrize("id_", packaged_ids("hardware"))
def test_no_hardware_number_stands_on_a_wildcard(id_: str) -> None:
    """The packaged profiles name a source for each number; ``*`` is for a user's config.json."""
    assert all(source.field != "*" for source in load_hardware(id_).sources)


def test_contradicting_profile_is_refused() -> None:
    with pytest.raises(ValidationError, match="nvls = true needs link_kind = nvlink"):
        load_hardware("rtx_pro_6000").replace(nvls=True)
    with pytest.raises(ValidationError, match="n_experts_per_tok 9 exceeds n_experts 8"):
        load_model("kimi-k2.6").replace(n_experts=8, n_experts_per_tok=9)


def test_kimi_weights_add_up_to_the_published_size() -> None:
    """models.md section 5: routed 570.8 GB, attention 12.3, whole 595 GB, 24.8 MB an expert, KV 70.3 KB a token."""
    model = load_model("kimi-k2.6")
    assert model.routed_bytes == pytest.approx(570.8e9, rel=2e-3)
    assert 2 * model.n_layers * model.attention_params == pytest.approx(12.3e9, rel=1e-2)
    assert model.expert_bytes == pytest.approx(24.8e6, rel=2e-3)
    assert model.weight_bytes == pytest.approx(595e9, rel=1e-3)
    assert model.kv_elements_per_tok_per_layer * model.n_layers * 2 == pytest.approx(70.3e3, rel=1e-3)


def test_verify_rows() -> None:
    candidate = Candidate(
        tp_size=8,
        speculation="tree",
        budget=8,
        topk=4,
        q_len=9,
        max_running_requests=256,
        cuda_graph_max_bs=128,
        attention_backend="triton",
        mem_fraction_static=0.85,
    )
    assert candidate.verify_rows_per_rank == 1152
    assert candidate.replace(attention_dp_size=8).verify_rows_per_rank == 32 * 9
    assert candidate.replace(cuda_graph=False, cuda_graph_max_bs=0).verify_rows_per_rank == 2304
    with pytest.raises(ValidationError, match="q_len 8 must be budget"):
        candidate.replace(q_len=8)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"known_bad": 5.0}, "known_bad 5 must lie above known_good 9"),
        ({"quantity": None}, "needs quantity and known_good"),
        ({"shape": "not_together", "settings": ("cuda_graph=true",)}, "at least two settings"),
        ({"status": "fixed_in"}, "needs fixed_in"),
        ({"evidence": ()}, "at least 1 item"),
        ({"shape": "one_of", "allowed": ()}, "needs quantity and allowed"),
    ],
)
def test_limit_says_what_its_shape_lacks(changes: dict[str, object], message: str) -> None:
    limit = Limit(
        id="X",
        title="x",
        shape="at_most",
        quantity="q_len",
        known_good=9,
        known_bad=13,
        status="established",
        consequence="crash",
        seen_on="here",
        evidence=({"ref": "a run", "outcome": "crash"},),
    )
    with pytest.raises(ValidationError, match=message):
        limit.replace(**changes)
