"""argv in and out: against Python's own argparse, round trips, and every kind of fault with its place."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.domain import LaunchConfig
from planner.engine.argv import ArgvFault, read_argv, split_program, write_argv
from planner.engine.flag_table import FlagKind, FlagSpec, FlagType
from planner.engine.flags import flag_table, flag_versions
from planner.engine.spelling import dest_in_version, field_of_dest
from planner.errors import InputError

VERSIONS = ("0.5.11", "0.5.12.post1", "0.5.13", "0.5.15.post1", "0.5.16", "0.5.23")
_WRITABLE = (FlagKind.VALUE, FlagKind.LIST, FlagKind.TRUE, FlagKind.BOOL_OPTIONAL)


def _number(text: str) -> int:
    factors = {"Ki": 2**10, "Mi": 2**20, "k": 10**3, "M": 10**6}
    for suffix, factor in factors.items():
        if text.endswith(suffix):
            head = text.removesuffix(suffix)
            return int(head) * factor if suffix.endswith("i") else round(float(head) * factor)
    return int(text)


_CONVERT: dict[FlagType, Any] = {
    FlagType.INT: int,
    FlagType.FLOAT: float,
    FlagType.HUMAN_INT: _number,
    FlagType.JSON: json.loads,
    FlagType.STR: str,
    FlagType.NULLABLE_STR: lambda text: None if text in ("", "None") else text,
}


@cache
def reference(version: str) -> argparse.ArgumentParser:
    """Python's parser with the flags of the table: an independent reading of the same facts."""
    parser = argparse.ArgumentParser(add_help=True)
    for flag in flag_table(version).flags:
        if flag.kind in (FlagKind.VALUE, FlagKind.LIST):
            parser.add_argument(
                *flag.names,
                dest=flag.dest,
                type=_CONVERT[flag.type],
                nargs=flag.nargs,
                choices=flag.choices,
                default=argparse.SUPPRESS,
                const=flag.const if flag.nargs == "?" else None,
            )
        elif flag.kind is FlagKind.BOOL_OPTIONAL:
            positive = [name for name in flag.names if not name.startswith("--no-")]
            parser.add_argument(
                *positive, dest=flag.dest, action=argparse.BooleanOptionalAction, default=argparse.SUPPRESS
            )
        else:
            parser.add_argument(*flag.names, dest=flag.dest, action="store_true", default=argparse.SUPPRESS)
    return parser


def by_argparse(version: str, argv: list[str]) -> dict[str, Any] | None:
    """What argparse reads, or None where it stops."""
    with contextlib.redirect_stderr(io.StringIO()):
        try:
            return vars(reference(version).parse_args(argv))
        except SystemExit:
            return None


def _good(flag: FlagSpec) -> st.SearchStrategy[str]:
    if flag.choices is not None:
        return st.sampled_from([str(choice) for choice in flag.choices])
    return {
        FlagType.INT: st.integers(-3, 10**6).map(str),
        FlagType.FLOAT: st.floats(0, 100).map(str),
        FlagType.HUMAN_INT: st.sampled_from(["4096", "16k", "2Ki", "1M", "1.5k"]),
        FlagType.JSON: st.sampled_from(["{}", '{"a": 1}', "[1, 2]"]),
        FlagType.NULLABLE_STR: st.sampled_from(["a", "b/c"]),
    }.get(flag.type, st.text("abcz/.:_ 09", min_size=1, max_size=8))


@st.composite
def command_lines(draw: st.DrawFn, version: str, *, faults: bool) -> list[str]:
    """Flags of the version with values; with ``faults`` also prefixes, wrong values and strangers."""
    table = flag_table(version)
    pool = [flag for flag in table.flags if flag.kind in _WRITABLE and flag.dest != "cuda_graph_config"]
    if not faults:  # a deprecated alias may take a value that the flag itself refuses
        pool = [flag for flag in pool if flag.deprecated is None]
    argv: list[str] = []
    for flag in draw(st.lists(st.sampled_from(pool), max_size=6)):
        name = draw(st.sampled_from(flag.names))
        if faults and draw(st.integers(0, 3)) == 0:
            name = name[: draw(st.integers(4, len(name)))]
        if flag.kind in (FlagKind.TRUE, FlagKind.BOOL_OPTIONAL):
            argv.append(name)
            continue
        count = 1 if flag.kind is FlagKind.VALUE else draw(st.integers(1, 3))
        if faults and draw(st.integers(0, 9)) == 0:
            count = draw(st.integers(0, 2))
        wrong = faults and draw(st.integers(0, 9)) == 0
        values = [
            draw(st.sampled_from(["", "x", "-1", "1.5", "none", "9k"]) if wrong else _good(flag)) for _ in range(count)
        ]
        if count == 1 and draw(st.booleans()):
            argv.append(f"{name}={values[0]}")
        else:
            argv += [name, *values]
    if faults and draw(st.integers(0, 9)) == 0:
        argv.insert(
            draw(st.integers(0, len(argv))), draw(st.sampled_from(["--no-such-flag", "stray", "--enforce-eager"]))
        )
    return argv


def as_argparse(version: str, launch: LaunchConfig) -> dict[str, Any]:
    """Our reading under argparse's names and types."""
    table = flag_table(version)
    found: dict[str, Any] = {}
    for field, value in launch.given().items():
        dest = dest_in_version(field, table)
        assert dest is not None
        flag = table.by_dest[dest]
        if isinstance(value, tuple):
            found[dest] = [float(item) if flag.type is FlagType.FLOAT else item for item in value]
        else:
            found[dest] = json.loads(value) if flag.type is FlagType.JSON and isinstance(value, str) else value
    return found


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_reads_what_argparse_reads_and_stops_where_it_stops(version: str, data: st.DataObject) -> None:
    argv = data.draw(command_lines(version, faults=True))
    theirs = by_argparse(version, argv)
    read = read_argv(argv, version=version)
    assert bool(read.problems) == (theirs is None), (read.problems, theirs)
    if theirs is not None:
        assert as_argparse(version, read.launch) == {name: value for name, value in theirs.items() if value is not None}


@pytest.mark.parametrize("version", VERSIONS)
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_round_trip_in_whole_names(version: str, data: st.DataObject) -> None:
    read = read_argv(data.draw(command_lines(version, faults=False)), version=version)
    assert not read.problems
    written = write_argv(read.launch, version=version)
    again = read_argv(written, version=version)
    assert again.launch == read.launch
    assert not again.problems
    assert not again.abbreviated
    assert not again.repeated


def test_the_versions_are_the_packaged_ones() -> None:
    assert [name for name in flag_versions() if name in VERSIONS] == list(VERSIONS)


FAULTS: list[tuple[str, list[str], ArgvFault, int, str]] = [
    ("0.5.23", ["--cuda-graph-max-bs", "8"], ArgvFault.AMBIGUOUS_PREFIX, 0, "--cuda-graph-max-bs-decode"),
    ("0.5.12.post1", ["--cuda-graph-max-bs-decode", "8"], ArgvFault.UNKNOWN_FLAG, 0, "0.5.23"),
    ("0.5.23", ["--max-model-len", "4096"], ArgvFault.VLLM_FLAG, 0, "--context-length"),
    (
        "0.5.23",
        ["--trust-remote-code", "--max-runing-requests", "8"],
        ArgvFault.UNKNOWN_FLAG,
        1,
        "--max-running-requests",
    ),
    ("0.5.23", ["--page-size", "one"], ArgvFault.BAD_TYPE, 0, "invalid int value"),
    ("0.5.23", ["--attention-backend", "fa9"], ArgvFault.BAD_CHOICE, 0, "choose from"),
    ("0.5.23", ["--tp-size"], ArgvFault.MISSING_VALUE, 0, "expected one argument"),
    ("0.5.23", ["--disable-cuda-graph", "true"], ArgvFault.UNEXPECTED_VALUE, 1, "unrecognized arguments"),
    ("0.5.23", ["--disable-cuda-graph=true"], ArgvFault.UNEXPECTED_VALUE, 0, "ignored explicit argument"),
    ("0.5.23", ["--cuda-graph-config", "{"], ArgvFault.BAD_TYPE, 0, "JSON"),
    ("0.5.23", ["--speculative-ddtree-budget", "8"], ArgvFault.UNKNOWN_FLAG, 0, "unrecognized"),
]


@pytest.mark.parametrize(("version", "argv", "fault", "index", "words"), FAULTS)
def test_fault_with_its_place(version: str, argv: list[str], fault: ArgvFault, index: int, words: str) -> None:
    problems = read_argv(argv, version=version).problems
    assert [(problem.fault, problem.index) for problem in problems] == [(fault, index)]
    assert words in str(problems[0])


def test_all_faults_are_told_at_once() -> None:
    problems = read_argv(["--tp-size", "x", "--page-size", "y", "--nope"], version="0.5.23").problems
    assert [problem.index for problem in problems] == [0, 2, 4]


def test_an_abbreviation_is_read_and_named() -> None:
    read = read_argv(["--mem-frac", "0.8", "--tp", "4"], version="0.5.23")
    assert read.launch.mem_fraction_static == 0.8
    assert read.launch.tp_size == 4
    assert read.abbreviated == {"--mem-frac": "--mem-fraction-static", "--tp": "--tp-size"}


def test_an_unknown_value_is_kept_as_unknown_and_not_written() -> None:
    read = read_argv(["--tp-size", None, "--page-size", "1"], version="0.5.23")
    assert read.launch.unknown == {"tp_size"}
    assert read.launch.page_size == 1
    assert not read.problems
    with pytest.raises(InputError, match="not known"):
        write_argv(read.launch, version="0.5.23")


def test_the_last_of_repeated_flags_counts() -> None:
    read = read_argv(["--tp-size", "4", "--tensor-parallel-size", "8"], version="0.5.23")
    assert read.launch.tp_size == 8
    assert read.repeated == ("tp_size",)
    assert read.index["tp_size"] == 2


def test_one_launch_in_the_spelling_of_each_version() -> None:
    launch = LaunchConfig(model_path="m", cuda_graph_max_bs_decode=24)
    assert "--cuda-graph-max-bs-decode" in write_argv(launch, version="0.5.23")
    assert "--cuda-graph-max-bs" in write_argv(launch, version="0.5.12.post1")
    for version in VERSIONS:
        assert read_argv(write_argv(launch, version=version), version=version).launch == launch


def test_an_option_that_the_version_lacks_is_an_error_before_it_is_written() -> None:
    launch = LaunchConfig(model_path="m", flashinfer_allreduce_fusion_backend="auto", speculative_ddtree_budget=8)
    with pytest.raises(InputError) as caught:
        write_argv(launch, version="0.5.11")
    assert [problem.field for problem in caught.value.problems] == [
        "flashinfer_allreduce_fusion_backend",
        "speculative_ddtree_budget",
    ]


def test_a_dialect_adds_its_flags() -> None:
    argv = ["--speculative-algorithm", "DDTREE", "--speculative-ddtree-budget", "12"]
    read = read_argv(argv, version="0.5.13", dialect="pr29907")
    assert not read.problems
    assert read.launch.speculative_ddtree_budget == 12
    assert list(write_argv(read.launch, version="0.5.13", dialect="pr29907")) == argv
    assert read_argv(argv, version="0.5.13").problems


@pytest.mark.parametrize(
    ("command", "rest"),
    [
        (["python3", "-m", "sglang.launch_server", "--tp", "8"], ("--tp", "8")),
        (["sglang", "serve", "--tp", "8"], ("--tp", "8")),
        (["/opt/venv/bin/sglang", "serve", "--tp", "8"], ("--tp", "8")),
        (["--tp", "8"], ("--tp", "8")),
    ],
)
def test_the_program_is_taken_off(command: list[str], rest: tuple[str, ...]) -> None:
    program, arguments = split_program(command)
    assert arguments == rest
    assert [*program, *arguments] == command


def test_fields_of_old_and_new_parsers_meet() -> None:
    for version in VERSIONS:
        table = flag_table(version)
        for flag in table.flags:
            assert dest_in_version(field_of_dest(flag.dest, table), table) == flag.dest
