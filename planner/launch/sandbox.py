"""Runs functions that a model wrote, without trusting them.

Three fences: only a small part of Python's syntax and no name with two underscores, no attribute beyond a list of plain
methods and no import; a namespace of harmless built-ins; and a process of its own with limits on CPU time, memory,
files and processes.
"""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence

from planner.launch import sandbox_child
from planner.launch.canary_tasks import CodeTask

__all__ = ["refusal", "run_functions"]

_NODES = (
    ast.Module, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AugAssign, ast.For, ast.While,
    ast.If, ast.IfExp, ast.Expr, ast.Pass, ast.Break, ast.Continue, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.Compare,
    ast.Call, ast.keyword, ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.List, ast.Tuple,
    ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp, ast.comprehension, ast.Lambda,
    ast.JoinedStr, ast.FormattedValue, ast.Starred, ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
)  # fmt: skip
_METHODS = frozenset(
    [
        "append",
        "extend",
        "insert",
        "pop",
        "remove",
        "reverse",
        "sort",
        "copy",
        "count",
        "index",
        "join",
        "split",
        "strip",
        "lstrip",
        "rstrip",
        "lower",
        "upper",
        "title",
        "replace",
        "startswith",
        "endswith",
        "isdigit",
        "isalpha",
        "isalnum",
        "islower",
        "isupper",
        "keys",
        "values",
        "items",
        "get",
        "add",
        "union",
        "intersection",
        "difference",
        "update",
        "setdefault",
    ]
)
_SOURCE_LIMIT = 4000
_WALL_LIMIT_S = 20.0


def refusal(source: str) -> str | None:
    """Why the source may not run; None: it may."""
    if len(source) > _SOURCE_LIMIT:
        return "too long"
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return f"not Python: {type(error).__name__}"
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            return f"{type(node).__name__} is not allowed"
        if isinstance(node, ast.Attribute) and node.attr not in _METHODS:
            return f"attribute {node.attr} is not allowed"
        if isinstance(node, ast.Name) and "__" in node.id:
            return f"name {node.id} is not allowed"
        if isinstance(node, ast.FunctionDef) and (node.decorator_list or "__" in node.name):
            return "decorators and special names are not allowed"
    return None


def run_functions(pairs: Sequence[tuple[CodeTask, str]]) -> list[bool]:
    """For each (task, source): whether the function gives every result. One child process runs them all, in order."""
    orders = [
        None
        if refusal(source) is not None
        else {"source": source, "function": task.function, "calls": [[list(args), want] for args, want in task.calls]}
        for task, source in pairs
    ]
    runnable = [order for order in orders if order is not None]
    results = iter(_run(runnable))
    return [next(results, False) if order is not None else False for order in orders]


def _run(orders: Sequence[Mapping[str, object]]) -> list[bool]:
    """Results in order. Each function has its own time limit; when the child dies, the rest runs in a new one."""
    results: list[bool] = []
    while len(results) < len(orders):
        child = [sys.executable, "-I", "-S", "-c", inspect.getsource(sandbox_child)]
        process = subprocess.Popen(
            child,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PYTHONIOENCODING": "utf-8"},
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(json.dumps(orders[len(results) :]), timeout=_WALL_LIMIT_S)
        except subprocess.TimeoutExpired as late:
            process.kill()
            process.communicate()
            output = late.stdout.decode() if isinstance(late.stdout, bytes) else late.stdout or ""
        answered = [line == "RIGHT" for line in output.splitlines() if line in ("RIGHT", "WRONG")]
        results += answered[: len(orders) - len(results)]
        if len(results) < len(orders) and process.returncode != 0:
            results.append(False)
    return results
