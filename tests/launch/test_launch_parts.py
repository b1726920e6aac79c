"""The parts that judge: settings, tasks, the sandbox, looks of a text, progress, watching, workloads."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.diagnose import DecodePoint, LogFacts, redact
from planner.domain import Candidate, LaunchConfig, Outcome
from planner.errors import MissingDataError
from planner.launch.canary import CanaryPlan
from planner.launch.canary_tasks import CodeTask, code_of, long_prompt, tasks
from planner.launch.logpump import Hider, pump
from planner.launch.logwatch import LogWatch, digest
from planner.launch.metrics import Scrape, parse_metrics
from planner.launch.progress import BarUi, PlainUi, make_ui, step_of
from planner.launch.records import Identity, new_observation
from planner.launch.sandbox import refusal, run_functions
from planner.launch.sanity import oddity
from planner.launch.settings import changed_arguments, compare_settings, effective_running, graph_batches
from planner.launch.target import target_from_argv
from planner.launch.watch import Thresholds, Warn, judge, prometheus_rules
from planner.launch.workload_of import from_facts, from_scrapes

INFO = {
    "tp_size": 1, "dp_size": 1, "page_size": 1, "attention_backend": "triton", "kv_cache_dtype": "auto",
    "mem_fraction_static": 0.8, "enable_nccl_nvls": False, "speculative_algorithm": "DFLASH",
    "speculative_num_draft_tokens": 8, "cuda_graph_config": "{'decode': {'backend': 'full', 'bs': [1, 2, 4]}}",
    "internal_states": [{"effective_max_running_requests_per_dp": 4}],
}  # fmt: skip


def test_settings_as_planned(candidate: Candidate) -> None:
    facts = LogFacts(num_tokens_per_req=9, captured_batch_sizes=(1, 2, 4))
    assert compare_settings(candidate, INFO, facts) == ((), ())


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"page_size": 64}, "page_size"),
        ({"attention_backend": "trtllm_mla"}, "attention_backend"),
        ({"decode_attention_backend": "flashinfer"}, "attention_backend"),
        ({"kv_cache_dtype": "fp8_e4m3"}, "kv_cache_dtype"),
        ({"mem_fraction_static": 0.7}, "mem_fraction_static"),
        ({"internal_states": [{"effective_max_running_requests_per_dp": 2}]}, "max_running_requests"),
        ({"cuda_graph_config": {"decode": {"backend": "disabled"}}}, "cuda_graph"),
        ({"cuda_graph_config": json.dumps({"decode": {"backend": "full", "bs": [1, 2]}})}, "cuda_graph_max_bs"),
        ({"speculative_algorithm": None}, "speculation"),
        ({"enable_nccl_nvls": True}, "enable_nccl_nvls"),
        ({"tp_size": 8}, "tp_size"),
        ({"ep_size": 8}, "ep_size"),
    ],
)
def test_settings_that_differ(change: dict[str, object], field: str, candidate: Candidate) -> None:
    wrong, _ = compare_settings(candidate, {**INFO, **change}, LogFacts(num_tokens_per_req=9))
    assert field in [item.field for item in wrong]


def test_width_comes_from_the_capture_line(candidate: Candidate) -> None:
    """Dialects disagree on num_draft_tokens; the captured width does not."""
    wrong, _ = compare_settings(candidate, INFO, LogFacts(num_tokens_per_req=8))
    assert [(item.field, item.expected, item.actual) for item in wrong] == [("q_len", "9", "8")]
    wrong, _ = compare_settings(candidate, {**INFO, "speculative_ddtree_budget": 8}, LogFacts())
    assert wrong == ()


def test_what_is_not_shown_is_said(candidate: Candidate) -> None:
    wrong, hidden = compare_settings(candidate, {"speculative_algorithm": "X"}, None)
    assert wrong == ()
    assert {"max_running_requests", "q_len", "cuda_graph"} <= set(hidden)


def test_attention_dp_workers_add_up() -> None:
    states = [{"effective_max_running_requests_per_dp": 16}] * 4
    assert effective_running({"internal_states": states, "dp_size": 4}) == 64
    assert effective_running({"internal_states": states[:1], "dp_size": 4}) == 64
    assert effective_running({"internal_states": []}) is None
    assert graph_batches({"disable_cuda_graph": True}, None) == ()
    assert graph_batches({}, None) is None


def test_changed_arguments() -> None:
    asked = LaunchConfig(page_size=1, max_running_requests=8, model_path="m", mem_fraction_static=0.8)
    info = {**INFO, "page_size": 64, "model_path": "m", "max_running_requests": 8}
    assert [(item.field, item.actual) for item in changed_arguments(asked, info)] == [
        ("page_size", "64"),
        ("max_running_requests", "4"),
    ]


def test_right_answers_are_right() -> None:
    for task in tasks().values:
        assert task.right(f" {task.answer}\nQ: What")
        assert task.right(f"{task.answer}.")
        assert not task.right(f" {task.answer}1\n")
        assert not task.right("")


SOLUTIONS = {
    "add": " a + b\n",
    "is_even": " n % 2 == 0\n\nprint(1)",
    "reverse_text": " text[::-1]",
    "largest": " max(numbers)\n",
    "square": " x ** 2\n",
}


def test_code_is_run() -> None:
    code = tasks().code
    assert run_functions([(task, code_of(task, SOLUTIONS[task.function])) for task in code]) == [True] * len(code)
    assert run_functions([(task, code_of(task, " None\n")) for task in code]) == [False] * len(code)


HOSTILE = (
    " __import__('os').system('touch /tmp/x')",
    " ().__class__.__bases__",
    " open('/etc/passwd').read()",
    " eval('1')",
    " a + b\n    import os",
    " '{0.__class__}'.format(a)",
    " 9 ** 9 ** 9 ** 9",
    " [0] * 10 ** 12",
    " a + b\n    while True:\n        pass",
    " (lambda f: f(f))(lambda f: f(f))",
    " exit()",
)


@pytest.mark.parametrize("body", HOSTILE)
def test_hostile_code_does_no_harm(body: str) -> None:
    task = next(one for one in tasks().code if one.function == "square")
    good = code_of(task, SOLUTIONS["square"])
    assert run_functions([(task, code_of(task, body)), (task, good)]) == [False, True]


@given(st.text(max_size=200))
def test_any_text_is_code_or_refused(text: str) -> None:
    assert refusal(text) is None or isinstance(refusal(text), str)


def test_body_ends_where_the_indentation_ends() -> None:
    task = CodeTask(prompt="def f(x):\n    return", function="f", calls=())
    assert code_of(task, " 1\n    y = 2\n\ndef g():\n    pass") == "def f(x):\n    return 1\n    y = 2\n\n"


@pytest.mark.parametrize(
    "text",
    [
        " the small parts of it move faster until some leave, and then the rest follows after a while.",
        " red, yellow and blue. Mixing two of them gives green, orange and purple.",
        "41",
        "Der Siedepunkt hängt vom Druck ab – bei niedrigem Druck siedet Wasser früher.",
        "def add(a, b):\n    return a + b\n",
    ],
)
def test_text_that_looks_right(text: str) -> None:
    assert oddity(text) is None


@pytest.mark.parametrize(
    "text",
    ["", "   ", "oooooooooooooooo", "\x00\x01\x02\x03abc\x05\x06", "the " * 40, "ab жш 中文 عر नम ไท ab", "\ufffd" * 9],
)
def test_text_that_looks_broken(text: str) -> None:
    assert oddity(text) is not None


@given(st.text(max_size=100))
def test_any_text_has_a_look(text: str) -> None:
    oddity(text)


def test_long_prompt_has_no_two_equal_lines() -> None:
    lines = long_prompt(500, "Q").splitlines()
    assert len(set(lines[:500])) == 500


def test_batch_below_a_capture_size() -> None:
    assert CanaryPlan(full_batch=100, graph_batches=(1, 2, 64, 128)).below_capture == 63
    assert CanaryPlan(full_batch=4).below_capture == 3
    assert CanaryPlan(full_batch=2, graph_batches=(1, 2)).below_capture is None


def test_progress_lines() -> None:
    line = "Loading safetensors checkpoint shards:  33% Completed | 5/15 [00:10<00:20,  2.0s/it]"
    assert step_of([line]) == ("loading weights", 5, 15)
    line = "Capturing batches (bs=112 avail_mem=20.1 GB):   6%|6         | 2/36 [00:01<00:20]"
    assert step_of(["x", line]) == ("capturing graphs, batch 112", 2, 36)
    assert step_of(["[t] The server is fired up and ready to roll!"]) == ("server says ready", None, None)
    assert step_of(["nothing"]) is None
    out = io.StringIO()
    ui = make_ui(out)
    assert isinstance(ui, PlainUi)
    ui.step("loading", 1, 2)
    ui.step("loading", 2, 2)
    assert out.getvalue() == "  loading 1/2\n"


def test_bar_on_a_terminal() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    ui = make_ui(out)
    assert isinstance(ui, BarUi)
    ui.step("loading weights", 5, 15)
    ui.say("alive: ok [not markup]")
    ui.close()
    assert "alive: ok [not markup]" in out.getvalue()


def test_commit_of_a_build_between_releases() -> None:
    one = new_observation(
        Identity(), target=None, engine_version="0.5.23.dev12+g1a2b3c4d5", outcome=Outcome(cause="ok")
    )
    assert one.engine_commit == "1a2b3c4d5"


def test_pump_and_watch(tmp_path: Path) -> None:
    """Carriage returns become lines, secrets go, a cut last line is kept, and nothing is read twice."""
    import os

    source, target = tmp_path / "in", tmp_path / "log"
    source.write_bytes(b"a\r\nbar 1\rbar 2\rbar 3\n--api-key hunter2\nlast")
    read, write = os.open(source, os.O_RDONLY), os.open(target, os.O_WRONLY | os.O_CREAT)
    assert pump(read, write) == 0
    os.close(read)
    os.close(write)
    assert target.read_text() == "a\nbar 1\nbar 2\nbar 3\n--api-key ***\nlast\n"
    watch = LogWatch(target)
    assert (watch.read(), watch.read()) == (6, 0)
    assert watch.last_line == "last"
    with target.open("a") as stream:
        stream.write("half a")
        stream.flush()
        assert watch.read() == 0
        stream.write(" line\nValueError: no\n")
    assert watch.read() == 2
    assert watch.last_error == "ValueError: no"
    assert str(digest(target)).startswith("sha256:")


@given(st.text(st.sampled_from("0123456789abc-_=: tokenhf_apikey"), max_size=60))
def test_forms_hide_what_redact_hides(text: str) -> None:
    """The memory of harmless forms never lets a secret through: same result as without it, whatever came before."""
    hider = Hider()
    for line in (text.translate(str.maketrans("123456789", "987654321")), text, f"--api-key {text}", text):
        assert hider.hide(line) == redact(line)


def test_window_of_decode_lines(tmp_path: Path) -> None:
    line = "[2026-11-30 08:38:11] Decode batch, #running-req: {}, #token: 84, token usage: 0.02, accept len: 3.50, "
    line += "accept rate: 0.5, cuda graph: True, gen throughput (token/s): 70.00, #queue-req: 0\n"
    path = tmp_path / "log"
    path.write_text(line.format(1))
    watch = LogWatch(path)
    watch.open_window()
    with path.open("a") as stream:
        stream.write(line.format(4) * 3)
    points = watch.close_window()
    assert [(point.running_req, point.accept_len, point.gen_tok_per_s) for point in points] == [(4, 3.5, 70.0)] * 3


def scrape(at_s: float, **values: float) -> Scrape:
    return parse_metrics("".join(f"sglang:{name} {value}\n" for name, value in values.items()), taken_s=at_s)


def both(**change: float) -> tuple[Scrape, Scrape]:
    first = scrape(0, generation_tokens_total=0, num_requests_total=0, spec_verify_calls_total=0, prompt_tokens_total=0)
    after = {"generation_tokens_total": 4010, "num_requests_total": 10, "spec_verify_calls_total": 1000}
    after["num_running_reqs"] = 64
    return first, scrape(10, **{**after, **change})


LIMITS = Thresholds(break_even_accept_len=3.0, tok_per_s_low=300.0, tok_per_s_high=500.0, target_c=64)


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        ({}, None),
        ({"spec_verify_calls_total": 4000}, Warn.ACCEPT_ONE),
        ({"spec_verify_calls_total": 1500}, Warn.LOSING),
        ({"gen_throughput": 200}, Warn.SLOW),
        ({"gen_throughput": 900}, Warn.FAST),
        ({"gen_throughput": 200, "num_running_reqs": 5}, None),
        ({"num_queue_reqs": 65}, Warn.QUEUE),
        ({"token_usage": 0.97}, Warn.KV),
    ],
)
def test_watch_warns(change: dict[str, float], warning: Warn | None) -> None:
    reading = judge(*both(**change), LIMITS)
    assert [kind for kind, _ in reading.warnings] == ([] if warning is None else [warning])


def test_rules_are_yaml_with_the_plan_in_them() -> None:
    from ruamel.yaml import YAML

    loaded = YAML(typ="safe").load(prometheus_rules(LIMITS))
    rules = {rule["alert"]: rule for rule in loaded["groups"][0]["rules"]}
    assert rules["SpeculationLoses"]["expr"].endswith("< 3")
    assert "< 300" in rules["ThroughputBelowPlan"]["expr"]
    assert set(YAML(typ="safe").load(prometheus_rules(Thresholds(speculating=False)))["groups"][0]["rules"][0]) == {
        "alert", "expr", "for", "labels", "annotations",
    }  # fmt: skip


def test_workload_from_counters() -> None:
    first, after = both(prompt_tokens_total=10_000, cached_tokens_total=2_500)
    derived = from_scrapes([first, after])
    load = derived.workload
    assert (load.target_c, load.context_tok, load.output_tok, load.prefix_hit_frac) == (32, 1000, 401, 0.25)
    assert derived.arguments[:2] == ("--target-c", "32")
    with pytest.raises(MissingDataError):
        from_scrapes([scrape(0, num_requests_total=0)])


def test_workload_from_a_log() -> None:
    points = tuple(
        DecodePoint(line=n, at_s=float(n), running_req=8, queue_req=2, gen_tok_per_s=100.0) for n in range(11)
    )
    facts = LogFacts(decode=points, prefill_new_seq=10, prefill_new_tok=900, prefill_cached_tok=100)
    load = from_facts(facts).workload
    assert (load.target_c, load.context_tok, load.output_tok, load.prefix_hit_frac) == (10, 100, 100, 0.1)
    with pytest.raises(MissingDataError):
        from_facts(LogFacts())


def test_target_forms() -> None:
    module = target_from_argv(["py", "-W", "ignore", "-m", "sglang.launch_server", "--port=31", "--host", "0.0.0.0"])
    assert (module.port, module.base_url) == (31, "http://127.0.0.1:31")
    assert module.with_python("/v/python").argv[:3] == ("/v/python", "-m", "sglang.launch_server")
    serve = target_from_argv(["sglang", "serve", "--model-path", "x"])
    assert (serve.python, serve.port) == (None, 30000)
    assert serve.with_python("p").program == ("p", "-m", "sglang.launch_server")
    assert target_from_argv(["--model-path", "x"]).program == ("python", "-m", "sglang.launch_server")
