"""Our picture of the engine against the engine itself: parser, resolution, and every argv that we emit."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from planner.data import load_drafter, load_hardware, load_model
from planner.domain import Speculation
from planner.engine.argv import read_argv, split_program
from planner.engine.dialects import DIALECTS, get_dialect
from planner.engine.emit import emit_launch
from planner.engine.flag_table import FlagKind
from planner.engine.flags import flag_table
from planner.errors import InputError
from tests.contract.client import RealEngine
from tests.contract.launches import MACHINES, named
from tests.engine.candidates import Wanted, wanted
from tests.engine.expected import cases, concrete, differences, folder_of, recorded_answer, symbolic
from tests.engine.strategies import launches
from tests.engine.test_argv import command_lines

pytestmark = pytest.mark.contract
LAUNCHES = 600
"""Generated launches for each version: 1,200 in all, beside the named ones on each machine."""
_NO_CHECK = list(HealthCheck)


def test_the_version_is_the_one_asked_for(engine: RealEngine) -> None:
    assert engine.version in ("0.5.12.post1", "0.5.23")


def test_flag_table_is_the_parser(engine: RealEngine) -> None:
    """Names, destinations, choices, defaults, in the parser's order (which decides what a prefix may match)."""
    table = flag_table(engine.version)
    theirs = {tuple(action["names"]): action for action in engine.actions()}
    assert [tuple(flag.names) for flag in table.flags] == list(theirs)
    for flag in table.flags:
        action = theirs[flag.names]
        assert action["dest"] == flag.dest
        assert bool(action["required"]) == flag.required
        if flag.kind in (FlagKind.VALUE, FlagKind.LIST):
            choices = sorted(map(str, flag.choices)) if flag.choices is not None else None
            assert action["choices"] == choices, flag.names
            assert action["nargs"] == flag.nargs, flag.names


def test_generated_launches_resolve_alike(engine: RealEngine) -> None:
    """Field by field, errors included; a difference is shrunk by Hypothesis to the smallest launch that shows it."""
    count = {"launches": 0, "refused": 0}

    @settings(max_examples=LAUNCHES, deadline=None, suppress_health_check=_NO_CHECK, database=None)
    @given(launches(engine.version))
    def compare(launch: tuple[str, list[str]]) -> None:
        hw, argv = launch
        answer = engine.resolve(hw, argv)
        count["launches"] += 1
        count["refused"] += answer["error"] is not None
        found = differences(engine.version, hw, argv, answer)
        assert not found, (hw, symbolic(argv), found)

    compare()
    assert count["launches"] >= LAUNCHES
    assert 0.1 < count["refused"] / count["launches"] < 0.9


@pytest.mark.parametrize("hw", MACHINES)
def test_named_launches_resolve_alike(engine: RealEngine, hw: str) -> None:
    for name, argv in named(engine.version).items():
        expanded = concrete(argv)
        assert differences(engine.version, hw, expanded, engine.resolve(hw, expanded)) == {}, name


def test_a_process_without_cuda_resolves_alike(engine: RealEngine) -> None:
    if engine.version != "0.5.23":
        pytest.skip("0.5.12.post1 does not ask torch for CUDA where resolution depends on it")

    @settings(max_examples=150, deadline=None, suppress_health_check=_NO_CHECK, database=None)
    @given(launches(engine.version))
    def compare(launch: tuple[str, list[str]]) -> None:
        hw, argv = launch
        answer = engine.resolve(hw, argv, without_cuda=True)
        found = differences(engine.version, hw, argv, answer, cuda_visible=False)
        assert not found, (hw, symbolic(argv), found)

    compare()


def test_recorded_answers_are_still_the_engines(engine: RealEngine) -> None:
    """The normal suite leans on the record: it must not drift from the engine."""
    for case in cases(engine.version)[::9]:
        answer = engine.resolve(case["hw"], concrete(case["argv"]))
        recorded = recorded_answer(engine.version, case)
        if "error" in recorded:
            assert answer["error"]["type"] == recorded["error"]["type"], case["name"]
            continue
        different = {
            name
            for name, value in recorded["effective"].items()
            if answer["effective"].get(name, value) != value and name != "random_seed"
        }
        assert different == set(), case["name"]


def test_command_lines_are_read_alike(engine: RealEngine) -> None:
    """Abbreviations, wrong values and strangers: the engine's parser stops exactly where ours does."""

    @settings(max_examples=300, deadline=None, suppress_health_check=_NO_CHECK, database=None)
    @given(command_lines(engine.version, faults=True))
    def compare(argv: list[str]) -> None:
        argv = ["--model-path", "x", *argv]
        error = engine.parse(argv)
        problems = read_argv(argv, version=engine.version).problems
        assert bool(problems) == (error is not None), (argv, error, problems)

    compare()


def _emitted(wish: Wanted, version: str) -> tuple[str, ...] | None:
    """argv for the version, or None where that version cannot express the candidate."""
    try:
        launch = emit_launch(
            wish.candidate,
            hardware=load_hardware(wish.hw),
            model=load_model("kimi-k2.6").replace(model_path=folder_of("kimi-int4")),
            drafter=load_drafter("kimi-k2.6-dflash").replace(model_path=folder_of("draft-dflash")),
            context_length=32768,
            engine_version=version,
            dialect=wish.dialect,
        )
    except InputError:
        return None
    return split_program(launch.argv)[1]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_emitted_argv_parses_in_the_engine_of_its_dialect(engine: RealEngine, dialect: str) -> None:
    """The upstream parser and, in a shim, the flags that the dialect declares."""
    speaks = get_dialect(dialect)
    flags = tuple((flag.name, flag.type.value) for flag in speaks.flags)
    parsed = []

    @settings(max_examples=40, deadline=None, suppress_health_check=_NO_CHECK, database=None)
    @given(wanted(versions=(engine.version,), dialects=(dialect,)))
    def compare(wish: Wanted) -> None:
        argv = _emitted(wish, engine.version)
        if argv is not None:
            parsed.append(wish.candidate.speculation)
            assert engine.parse(list(argv), flags) is None, argv

    compare()
    forms = {Speculation.OFF, Speculation.CHAIN} | ({Speculation.TREE} if speaks.has_tree else set())
    assert forms <= set(parsed)


def test_emitted_chains_resolve_in_the_engine_to_what_was_planned(engine: RealEngine) -> None:
    count = 0

    @settings(max_examples=60, deadline=None, suppress_health_check=_NO_CHECK, database=None)
    @given(wanted(versions=(engine.version,), dialects=("upstream",)))
    def compare(wish: Wanted) -> None:
        nonlocal count
        argv = _emitted(wish, engine.version)
        assert argv is not None
        answer = engine.resolve(wish.hw, list(argv))
        assert answer["error"] is None, (argv, answer["error"])
        count += 1
        planned: dict[str, Any] = {
            "tp_size": wish.candidate.tp_size,
            "max_running_requests": wish.candidate.max_running_requests,
            "mem_fraction_static": wish.candidate.mem_fraction_static,
            "page_size": wish.candidate.page_size,
            "attention_backend": wish.candidate.attention_backend,
            "ep_size": wish.candidate.ep_size,
            "enable_nccl_nvls": wish.candidate.enable_nccl_nvls,
            "cuda_graph_backend_decode": "full" if wish.candidate.cuda_graph else "disabled",
        }
        if wish.candidate.speculation is Speculation.CHAIN:
            planned["speculative_num_draft_tokens"] = wish.candidate.q_len
        assert {name: answer["effective"][name] for name in planned} == planned

    compare()
    assert count >= 60


def test_a_registered_ddtree_resolves_to_what_was_planned(engine: RealEngine) -> None:
    """0.5.23 has a door for further algorithms: with DDTREE registered, our trees of the field build go through."""
    if engine.version != "0.5.23":
        pytest.skip("0.5.12.post1 has no such door")
    engine.ask(register_ddtree=True)
    count = 0

    @settings(max_examples=60, deadline=None, suppress_health_check=_NO_CHECK, database=None)
    @given(wanted(versions=(engine.version,), dialects=("field",)))
    def compare(wish: Wanted) -> None:
        nonlocal count
        argv = _emitted(wish, engine.version)
        if argv is None or wish.candidate.speculation is not Speculation.TREE:
            return
        count += 1
        answer = engine.resolve(wish.hw, list(argv))
        assert answer["error"] is None, (argv, answer["error"])
        planned = {
            "speculative_algorithm": "DDTREE",
            "speculative_num_draft_tokens": wish.candidate.q_len,
            "speculative_eagle_topk": wish.candidate.topk,
            "page_size": 1,
            "attention_backend": "triton",
            "disable_overlap_schedule": True,
            "max_running_requests": wish.candidate.max_running_requests,
        }
        assert {name: answer["effective"][name] for name in planned} == planned

    compare()
    assert count >= 10
