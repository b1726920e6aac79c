"""``plan-config fit``: files in, report and calibration out, nothing half-written on bad input."""

from __future__ import annotations

import builtins
import json
import os
from pathlib import Path

import pytest

from planner.domain import Candidate, Observation, Speculation
from planner.estimate.step_cost import read_calibration

CSV = """\
# one server, three concurrencies
id,tp_size,concurrency,q_len,kind,draft,context_tok,output_tok,accept_len,attention_backend,nvls,step_s,topk
off-1,8,1,1,off,none,1024,1024,,triton,true,0.0070,
off-32,8,32,1,off,none,1024,1024,,triton,true,0.0165,

tree-1,8,1,9,tree,kimi-k2.6-dflash,1024,1024,4.4,triton,true,0.0155,4
tree-32,8,32,9,tree,kimi-k2.6-dflash,1024,1024,4.6,triton,true,0.0455,4
"""
HERE = ("--hw", "b300", "--model", "kimi-k2.6")
SERVER = {
    "version": "0.5.23",
    "model_path": "/models/Kimi-K2.6",
    "device": "cuda",
    "tp_size": 8,
    "dp_size": 1,
    "attention_backend": "triton",
    "max_running_requests": 128,
    "cuda_graph_config": {"decode": {"backend": "full", "max_bs": 128}},
    "kv_cache_dtype": "auto",
}
RECORD = {
    "request_rate": float("inf"),
    "max_concurrency": 32,
    "completed": 256,
    "total_input_tokens": 256 * 1024,
    "total_output_tokens": 256 * 1024,
    "mean_e2e_latency_ms": 17_200.0,
    "mean_ttft_ms": 320.5,
    "mean_tpot_ms": 16.6,
    "concurrency": 30.1,
    "accept_length": None,
    "server_info": SERVER,
}


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    path.write_text(CSV, encoding="utf-8")
    return path


def bench(tmp_path: Path, *records: dict[str, object]) -> Path:
    """JSON lines as the client writes them: ``request_rate`` is the non-JSON token Infinity."""
    path = tmp_path / "bench.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def test_without_out_it_prints_and_writes_nothing(run, csv):
    ran = run("fit", csv, *HERE)
    assert ran.code == 0
    assert "PARAMETERS" in ran.out
    assert "RESIDUALS" in ran.out
    assert "DOMAIN" in ran.out
    assert "nothing was written" in ran.err
    assert os.listdir(csv.parent) == ["runs.csv"]


def test_lines_of_the_file_stand_in_the_report(run, csv):
    """The line is the file's own, comments and blank lines counted."""
    ran = run("fit", csv, *HERE)
    assert f"tree-32  {csv}:7" in ran.out


def test_a_calibration_is_written_whole(run, csv):
    out = csv.parent / "my.json"
    ran = run("fit", csv, *HERE, "--drafter", "kimi-k2.6-dflash", "--out", out)
    assert ran.code == 0
    calibration = read_calibration(out.read_text(encoding="utf-8"))
    assert len(calibration.rows) == 4
    assert calibration.source == "runs.csv, on top of field notes FN-01, FN-02, FN-03"
    assert sorted(os.listdir(csv.parent)) == ["my.json", "runs.csv"]
    assert out.stat().st_mode & 0o777 == 0o644


def test_json_is_the_report(run, csv):
    body = json.loads(run("fit", csv, *HERE, "--format", "json").out)
    assert body["hardware"] == "b300"
    assert {row["label"] for row in body["residuals"]} == {"off-1", "off-32", "tree-1", "tree-32"}
    assert all(abs(row["residual_frac"]) < 0.1 for row in body["residuals"])


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_figure_is_drawn(run, csv, ending):
    plot = csv.parent / f"residuals.{ending}"
    ran = run("fit", csv, *HERE, "--plot", plot)
    assert ran.code == 0
    assert plot.stat().st_size > 5000
    assert plot.read_bytes().startswith(b"\x89PNG" if ending == "png" else b"<?xml")


def test_without_matplotlib_the_text_is_written_all_the_same(run, csv, monkeypatch):
    real = builtins.__import__

    def without(name: str, *args: object, **more: object) -> object:
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    out, plot = csv.parent / "my.json", csv.parent / "p.png"
    ran = run("fit", csv, *HERE, "--plot", plot, "--out", out)
    assert ran.code == 0
    assert "pip install plan-config[plots]" in ran.err
    assert "RESIDUALS" in ran.out
    assert out.exists()
    assert not plot.exists()


def test_benchmark_lines_are_read(run, tmp_path):
    """Infinity is no JSON, and time per token is that of all tokens: (17200 - 320.5) / 1023 = 16.5 ms."""
    path = bench(tmp_path, RECORD, {**RECORD, "max_concurrency": 1, "mean_e2e_latency_ms": 7500.0})
    assert "Infinity" in path.read_text(encoding="utf-8")
    body = json.loads(run("fit", path, *HERE, "--format", "json").out)
    first, second = body["residuals"]
    assert first["measured_s"] == pytest.approx(0.0165, rel=1e-6)
    assert (first["concurrency"], second["concurrency"], first["line"], second["line"]) == (32, 1, 1, 2)


def test_graphs_that_the_configuration_switches_off_are_eager(run, tmp_path):
    """``disable_cuda_graph`` stays false when the backend of decode graphs is ``disabled``."""
    eager = {**SERVER, "disable_cuda_graph": False, "cuda_graph_config": {"decode": {"backend": "disabled"}}}
    path = bench(tmp_path, {**RECORD, "server_info": eager, "mean_e2e_latency_ms": 50_000.0})
    out = tmp_path / "my.json"
    assert run("fit", path, *HERE, "--out", out).code == 0
    assert read_calibration(out.read_text(encoding="utf-8")).rows[0].row["cuda_graph"] is False


def test_a_benchmark_of_another_model_is_left_out(run, tmp_path):
    """A line of a small model on a CPU would bend every parameter."""
    tiny = {**SERVER, "model_path": "models/tiny", "device": "cpu"}
    ran = run("fit", bench(tmp_path, {**RECORD, "server_info": tiny}), *HERE)
    assert ran.code == 2
    assert "1 left out: model models/tiny on a cpu" in ran.err


def test_ledger_and_its_export_give_the_same_fit_and_not_twice_the_data(run, tmp_path):
    from planner.launch.ledger import Ledger

    candidate = Candidate(
        tp_size=8,
        speculation=Speculation.OFF,
        max_running_requests=128,
        cuda_graph_max_bs=128,
        attention_backend="triton",
        mem_fraction_static=0.85,
    )
    runs = [
        Observation(
            id=f"run-{clients}",
            hardware="b300",
            model="kimi-k2.6",
            engine_version="0.5.23",
            candidate=candidate,
            concurrency=clients,
            context_tok=1024,
            output_tok=1024,
            tpot_s=tpot_s,
            source="test",
        )
        for clients, tpot_s in ((1, 0.0072), (32, 0.0170))
    ]
    database, lines = tmp_path / "ledger.sqlite", tmp_path / "ledger.jsonl"
    with Ledger(database, create=True) as ledger:
        ledger.append(runs)
    lines.write_text("".join(one.model_dump_json(exclude_defaults=True) + "\n" for one in runs), encoding="utf-8")
    parameters = [
        json.loads(run("fit", path, *HERE, "--format", "json").out)["parameters"] for path in (database, lines)
    ]
    assert parameters[0] == parameters[1]
    both = run("fit", database, lines, *HERE)
    assert both.code == 2
    assert "observation run-1 is in" in both.err


BAD = [
    ("step_s in ms", CSV.replace("0.0070", "7.0"), ":3: step_s: off-1: a step of 7 s", "is it in ms (0.007 s)?"),
    ("twice", CSV + CSV.splitlines()[-1] + "\n", ":8: step_s:", "are one observation given twice"),
    ("contradiction", CSV + CSV.splitlines()[-1].replace("0.0455", "0.08"), ":8: step_s:", "contradict each other"),
    ("above the cap", CSV.replace(",4.6,", ",9.4,"), ":7: accept_len: tree-32: 9.4 is above its cap", "q_len counts"),
    ("not a number", CSV.replace("0.0455", "fast"), ":7: step_s: tree-32: 'fast' is not a number", ""),
    ("a cell too few", CSV.replace("0.0455,4", "0.0455"), ":7: 12 cells, the header has 13", "still needs its comma"),
    ("milliseconds column", CSV.replace("step_s", "step_ms"), ":2: no column step_s", "'step_ms' is there"),
    ("misspelt column", CSV.replace("concurrency", "concurency"), "unknown field", "write concurrency"),
    ("empty", "", ": an empty file", "CSV or JSON lines"),
    ("header alone", CSV.splitlines()[1] + "\n", ": no observations", ""),
    ("half a JSON line", '{"concurrency": 1, "step_s": 0.007}\n{"concurr', ":2: not JSON", "one JSON object a line"),
    ("JSON list", "[1, 2]", ":1: not a JSON object but a list", ""),
    ("bad observation", '{"outcome": {"cause": "ok"}, "id": "a"}', ":1: hardware: missing", ""),
    ("bad benchmark", '{"mean_tpot_ms": null, "completed": 0}', ":1: mean_tpot_ms: mean_tpot_ms must be a number", ""),
]


@pytest.mark.parametrize(("text", "place", "way_out"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_bad_files_are_told_with_place_and_way_out(run, tmp_path, text, place, way_out):
    path, out = tmp_path / "runs.csv", tmp_path / "my.json"
    path.write_text(text, encoding="utf-8")
    ran = run("fit", path, *HERE, "--drafter", "kimi-k2.6-dflash", "--out", out)
    assert ran.code == 2
    assert ran.out == ""
    assert place in ran.err
    assert way_out in ran.err
    assert all(line.startswith("plan-config: ") for line in ran.err.splitlines())
    assert os.listdir(tmp_path) == ["runs.csv"]


def test_mixed_bonus_counting_is_refused_at_its_line(run, tmp_path):
    lines = CSV.splitlines()
    flags = ["", ",bonus_counted", ",", ",", "", ",true", ",false"]
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(line + flag for line, flag in zip(lines, flags, strict=True)) + "\n", encoding="utf-8")
    ran = run("fit", path, *HERE, "--drafter", "kimi-k2.6-dflash")
    assert ran.code == 2
    assert "some points do not count the bonus token and others count it: they are not pooled" in ran.err


def test_all_faults_of_all_arguments_come_at_once(run, tmp_path, csv):
    ran = run(
        "fit", csv, tmp_path / "no.csv", "--hw", "b30", "--out", tmp_path / "no" / "my.json", "--plot", "figure.txt"
    )
    assert ran.code == 2
    for text in ("--hw: unknown hardware 'b30'", "--model: missing", "does not exist", "no.csv: cannot be read"):
        assert text in ran.err
    assert "--plot: not a figure format" in ran.err


def test_the_output_is_no_input(run, csv):
    ran = run("fit", csv, *HERE, "--out", csv)
    assert ran.code == 2
    assert "is one of the inputs" in ran.err
    assert csv.read_text(encoding="utf-8") == CSV


def test_an_old_calibration_stays_whole_when_the_fit_is_refused(run, csv):
    out = csv.parent / "my.json"
    out.write_text("old", encoding="utf-8")
    csv.write_text(CSV.replace("0.0070", "7.0"), encoding="utf-8")
    assert run("fit", csv, *HERE, "--out", out).code == 2
    assert out.read_text(encoding="utf-8") == "old"


def test_steps_that_really_are_that_long_are_taken_with_the_switch(run, csv):
    csv.write_text(CSV.replace("0.0070", "7.0"), encoding="utf-8")
    assert run("fit", csv, *HERE, "--units-checked").code == 0


def test_a_binary_file_and_a_folder_are_refused(run, tmp_path):
    binary = tmp_path / "a.bin"
    binary.write_bytes(bytes(range(256)))
    assert "not UTF-8 text" in run("fit", binary, *HERE).err
    assert "cannot be read: Is a directory" in run("fit", tmp_path, *HERE).err


def test_a_calibration_is_no_observation(run, csv):
    out = csv.parent / "my.json"
    run("fit", csv, *HERE, "--out", out)
    ran = run("fit", out, *HERE)
    assert ran.code == 2
    assert "this is a calibration: give it to --calibration" in ran.err


@pytest.mark.parametrize(
    ("server", "record", "expected"),
    [
        (
            {"speculative_algorithm": "DDTREE", "speculative_ddtree_budget": 8, "speculative_num_draft_tokens": 8},
            {"accept_length": 4.4},
            {"kind": "tree", "q_len": 9, "accept_len": 4.4, "bonus_counted": True},
        ),
        (
            {"speculative_algorithm": "EAGLE3", "speculative_eagle_topk": 4, "speculative_num_draft_tokens": 16},
            {"accept_length": 3.3},
            {"kind": "tree", "q_len": 16, "topk": 4, "draft": "eagle3"},
        ),
        (
            {"speculative_algorithm": "NEXTN", "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 4},
            {"accept_length": 2.4},
            {"kind": "chain", "q_len": 4, "draft": "nextn"},
        ),
        ({"dp_size": 4}, {}, {"concurrency": 8, "kind": "off"}),
        ({"dp_size": 8, "enable_dp_attention": True}, {}, {"concurrency": 32, "attention_dp_size": 8}),
        ({"max_running_requests": 16}, {}, {"concurrency": 16}),
        ({}, {"completed": 8}, {"concurrency": 8}),
        ({}, {"max_concurrency": None}, {"concurrency": 30.1}),
        ({"kv_cache_dtype": "fp8_e4m3", "decode_attention_backend": "fa3"}, {}, {"kv_dtype": "fp8_e4m3"}),
    ],
)
def test_the_launch_is_read_from_the_server(server, record, expected):
    from planner.estimate.step_cost.ledger import row_of_benchmark

    row = row_of_benchmark({**RECORD, **record, "server_info": {**SERVER, **server}})
    assert {name: row.get(name) for name in expected} == expected


def test_speculation_of_unknown_length_is_refused():
    from planner.errors import InputError
    from planner.estimate.step_cost.ledger import row_of_benchmark

    with pytest.raises(InputError, match="the length of a step is not known"):
        row_of_benchmark({**RECORD, "accept_length": 3, "server_info": {**SERVER, "speculative_algorithm": "NGRAM"}})
