"""The adapter to aiconfigurator-core: message when absent, tables from its files when present."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from planner.data import load_hardware, load_model
from planner.domain import Provenance
from planner.errors import InputError, MissingDataError
from planner.estimate.step_cost import aic
from planner.estimate.step_cost.costs import KernelCosts

HAVE_PACKAGE = importlib.util.find_spec("aiconfigurator_core") is not None


@pytest.mark.skipif(HAVE_PACKAGE, reason="aiconfigurator-core is installed")
def test_without_the_package_the_error_says_what_to_install():
    with pytest.raises(MissingDataError, match=r"pip install plan-config\[aic\]"):
        aic.build_kernel_table("h100_sxm")


FILES = {
    "moe/sglang/0.5.9/moe_perf.parquet": {"latency": [9.0]},
    "moe/sglang/0.5.14/moe_perf.parquet": {
        "moe_dtype": ["int4_wo"] * 5,
        "num_tokens": [1, 2, 4, 4, 3],
        "hidden_size": [64] * 5,
        "inter_size": [32] * 5,
        "topk": [2] * 5,
        "num_experts": [8] * 5,
        "moe_tp_size": [2] * 5,
        "moe_ep_size": [1] * 5,
        "distribution": ["balanced"] * 5,
        "latency": [0.010, 0.020, 0.045, 0.040, 0.7],
    },
    "comm/sglang/0.5.14/custom_allreduce_perf.parquet": {
        "op_name": ["all_reduce"] * 2,
        "backend": ["sglang_graph"] * 2,
        "allreduce_dtype": ["bfloat16"] * 2,
        "num_gpus": [2, 2],
        "message_size": [128, 256],
        "latency": [0.004, 0.005],
    },
    "gemm/sglang/0.5.14/gemm_perf.parquet": {
        "gemm_dtype": ["bfloat16"] * 8,
        "m": [1, 1, 1, 1, 2, 2, 2, 2],
        "n": [32, 32, 64, 64] * 2,
        "k": [32, 64] * 4,
        "latency": [0.001 * i for i in range(1, 9)],
    },
}


@pytest.fixture
def package(monkeypatch, tmp_path):
    for name in FILES:
        file = tmp_path / "toy" / name
        file.parent.mkdir(parents=True)
        file.touch()

    def read_table(path: Path):
        columns = FILES[str(path.relative_to(tmp_path / "toy"))]
        return SimpleNamespace(
            column_names=list(columns), column=lambda name: SimpleNamespace(to_pylist=lambda: columns[name])
        )

    monkeypatch.setattr(aic, "_package", lambda: (tmp_path, SimpleNamespace(read_table=read_table)))


@pytest.mark.usefixtures("package")
def test_the_newest_version_is_read_and_the_fastest_kernel_taken():
    table = aic.build_kernel_table("toy", [(64, 32, 2, 8)])
    curve = table.curve("moe", 64, 32, 2, 8, "sglang", "int4_wo", 2, 1, "balanced")
    assert curve is not None
    np.testing.assert_allclose(curve[0], [1, 2, 4])
    np.testing.assert_allclose(curve[1], [10e-6, 20e-6, 40e-6])


@pytest.mark.usefixtures("package")
def test_message_sizes_become_bytes():
    curve = aic.build_kernel_table("toy").curve("comm", "all_reduce", "sglang_graph", 2)
    assert curve is not None
    np.testing.assert_allclose(curve[0], [256, 512])


@pytest.mark.usefixtures("package")
def test_a_table_of_any_shape_serves_the_model():
    table = aic.build_kernel_table("toy", [(64, 32, 2, 8)])
    model = load_model("kimi-k2.6").replace(hidden_dim=64, expert_ffn_dim=32, n_experts=8, n_experts_per_tok=2)
    costs = KernelCosts(load_hardware("b300"), model, table=table)
    seconds, _, beyond = costs.moe_s(np.array([2.0, 100.0]), 2, 1)
    assert seconds[0] == pytest.approx(model.n_moe_layers * 20e-6)
    assert beyond.tolist() == [False, True]
    assert costs.grounds(2, 1, 1, 2.0)["moe"] is Provenance.TABLE


@pytest.mark.usefixtures("package")
def test_unknown_system_and_unmeasured_shape_are_refused():
    with pytest.raises(InputError, match="toi"):
        aic.build_kernel_table("toi")
    with pytest.raises(InputError, match="no measured MoE kernels of shape"):
        aic.build_kernel_table("toy", [(1, 2, 3, 4)])
