"""Columns in: defaults, checks, immutability."""

from __future__ import annotations

import numpy as np
import pytest

from planner.errors import InputError
from planner.estimate.step_cost import StepBatch, attention_backend_code


def test_absent_columns_are_a_plain_autoregressive_step():
    batch = StepBatch.from_columns(running=[1, 2, 3])
    assert batch.n_rows == 3
    assert batch.q_len.tolist() == [1, 1, 1]
    assert batch.speculation.tolist() == [0, 0, 0]
    assert batch.cuda_graph.all()
    assert batch.prompt_tok.tolist() == [0, 0, 0]


def test_columns_cannot_be_written():
    batch = StepBatch.from_columns(running=[1.0, 2.0])
    with pytest.raises(ValueError, match="read-only"):
        batch.running[0] = 5
    with pytest.raises(ValueError, match="read-only"):
        batch.take([0]).running[0] = 5


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        ({"qlen": 9}, "qlen: no such column"),
        ({"running": [1, 2], "q_len": [1, 2, 3]}, "one length"),
        ({"running": float("nan")}, "running: must be finite"),
        ({"tp_size": 0}, "tp_size: must be finite and above zero"),
        ({"context_tok": -1}, "context_tok"),
    ],
)
def test_bad_columns_are_named(columns, text):
    with pytest.raises(InputError, match=text):
        StepBatch.from_columns(**columns)


def test_unknown_backends_share_a_code():
    assert attention_backend_code("triton") == 1
    assert attention_backend_code("something_new") == attention_backend_code("default") == 0
    assert np.isscalar(attention_backend_code("fa3"))
