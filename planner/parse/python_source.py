"""Python files, by ``ast`` and never run: ``Engine(...)`` and ``ServerArgs(...)``, argument lists, command strings."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from typing import TypeGuard

from planner.parse.launchers import read_words
from planner.parse.model import EnvHow, Launcher
from planner.parse.python_values import PythonText, Values
from planner.parse.recipe import KNOWN_KEYS, add_keyed
from planner.parse.setting import MENTION, Collector, EnvItem, KeyedFlag, Setting
from planner.parse.source import Field, Mapped

__all__ = ["read_python"]

_ENGINES = frozenset({"Engine", "ServerArgs", "EngineArgs"})
_DEEPEST = 8
"""Dictionaries inside dictionaries that are followed."""
_SPEAKERS = frozenset(
    {"print", "info", "debug", "warning", "error", "log", "critical", "add_argument", "ArgumentParser"}
)


def read_python(text: Mapped, setting: Setting, out: Collector, depth: int = 0) -> None:
    """Adds the launches of Python source."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.text)
    except SyntaxError as fault:
        source = PythonText(text)
        offset = source.offset(fault.lineno - 1, 0) if fault.lineno else None
        out.problem(f"Python that does not parse: {fault.msg}", offset)
        return
    except (ValueError, RecursionError, MemoryError) as fault:
        out.problem(f"Python that cannot be read ({type(fault).__name__})", None)
        return
    try:
        _Reader(text, setting, out, depth).read(tree)
    except RecursionError:
        out.problem("Python that is nested too deeply", None)


class _Reader:
    def __init__(self, text: Mapped, setting: Setting, out: Collector, depth: int) -> None:
        self.source = PythonText(text)
        self.setting, self.out, self.depth = setting, out, depth
        self.values = Values(self.source)
        self.taken: set[int] = set()

    def read(self, tree: ast.Module) -> None:
        """Adds the launches of a module."""
        self.values.learn(tree)
        env = list(self._environ(tree))
        self.setting = self.setting.with_env(env)
        for node, function in _ordered(tree):
            setting = self.setting.named(function)
            if isinstance(node, ast.Call):
                self._call(node, setting)
            elif isinstance(node, ast.List | ast.Tuple | ast.BinOp):
                self._words(node, setting)
            elif isinstance(node, ast.Dict):
                self._dictionary(node, setting)
            elif isinstance(node, ast.Constant | ast.JoinedStr):
                self._string(node, setting)

    def _call(self, node: ast.Call, setting: Setting) -> None:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _SPEAKERS:
            self.taken.update(id(part) for part in ast.walk(node))
            return
        if name not in _ENGINES or not self._is_engine(node, name):
            return
        flags: list[KeyedFlag] = []
        if node.args and name == "ServerArgs":
            flags.append(KeyedFlag(self._name("model_path", node.args[0]), (self.values.field(node.args[0]),)))
        flags += [flag for keyword in node.keywords for flag in self._keyword(keyword)]
        start, end = self.source.span(node)
        add_keyed(flags, setting, self.out, (start, end), Launcher.ENGINE)
        self.taken.update(id(part) for part in ast.walk(node))

    def _is_engine(self, node: ast.Call, name: str) -> bool:
        if name == "ServerArgs":
            return True
        known = sum(keyword.arg in KNOWN_KEYS for keyword in node.keywords)
        root = node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        return known > 0 or getattr(root, "id", "") in ("sgl", "sglang") or any(k.arg is None for k in node.keywords)

    def _keyword(self, keyword: ast.keyword, depth: int = 0) -> Iterator[KeyedFlag]:
        if keyword.arg is not None:
            yield self._flag(keyword.arg, keyword, keyword.value)
            return
        made = self.values.resolve(keyword.value)
        if _is_dict_call(made) and depth < _DEEPEST:
            for inner in made.keywords:
                yield from self._keyword(inner, depth + 1)
            return
        pairs = self.values.pairs(keyword.value)
        if pairs is None:
            start, end = self.source.span(keyword.value)
            yield KeyedFlag(Field(Mapped("\ufdd1", [start], [end]), start, end), ())
            return
        self.taken.update(id(part) for part in ast.walk(keyword.value))
        for key, value in pairs:
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield self._flag(key.value, key, value)

    def _name(self, name: str, at: ast.expr | ast.keyword) -> Field:
        start, end = self.source.span(at)
        if isinstance(at, ast.keyword):
            end = start + len(name)
        return Field(Mapped.at("--" + name.replace("_", "-"), start, end), start, end, layers=("key",))

    def _flag(self, name: str, at: ast.expr | ast.keyword, value: ast.expr) -> KeyedFlag:
        key = self._name(name, at)
        plain = self.values.literal(value)
        if isinstance(plain, bool) or (plain is None and isinstance(value, ast.Constant)):
            return KeyedFlag(key, () if plain else None)
        if isinstance(value, ast.List | ast.Tuple):
            return KeyedFlag(key, tuple(self.values.field(item) for item in value.elts))
        return KeyedFlag(key, (self.values.field(value),))

    def _words(self, node: ast.List | ast.Tuple | ast.BinOp, setting: Setting) -> None:
        if id(node) in self.taken:
            return
        fields = self.values.words(node)
        if fields is None or not MENTION.search(" ".join(field.shown for field in fields)):
            return
        fields += self.values.appended(node)
        if read_words(fields, setting, self.out, self.depth, site=self.source.span(node)):
            self.taken.update(id(part) for part in ast.walk(node))

    def _dictionary(self, node: ast.Dict, setting: Setting) -> None:
        """A dictionary of engine arguments: at least three of its keys are theirs."""
        if id(node) in self.taken:
            return
        keys = [key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
        if len(keys) != len(node.keys) or sum(key.strip("-").replace("-", "_") in KNOWN_KEYS for key in keys) < 3:
            return
        flags = []
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant):
                flags.append(self._flag(str(key.value).strip("-"), key, value))
        add_keyed(flags, setting, self.out, self.source.span(node), Launcher.ENGINE)
        self.taken.update(id(part) for part in ast.walk(node))

    def _string(self, node: ast.Constant | ast.JoinedStr, setting: Setting) -> None:
        if id(node) in self.taken:
            return
        text = self.values.text(node)
        if text is None or MENTION.search(text.text) is None or " " not in text.text:
            return
        self.taken.update(id(part) for part in ast.walk(node))
        self.out.guess(text, setting, self.depth)

    def _environ(self, tree: ast.Module) -> Iterator[EnvItem]:
        """``os.environ["X"] = "1"``."""
        for node in ast.walk(tree):
            if not isinstance(node, ast.Assign) or len(node.targets) != 1:
                continue
            target = node.targets[0]
            if (
                isinstance(target, ast.Subscript)
                and isinstance(target.value, ast.Attribute)
                and target.value.attr == "environ"
                and isinstance(target.slice, ast.Constant)
                and isinstance(target.slice.value, str)
            ):
                value = self.values.field(node.value)
                yield EnvItem(target.slice.value, value, EnvHow.EXPORT, True, self.source.span(target.slice))


def _is_dict_call(node: ast.expr) -> TypeGuard[ast.Call]:
    """``dict(a=1, **more)``; a first argument would bring keys that are not seen here."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict" and not node.args


def _ordered(tree: ast.Module) -> Iterator[tuple[ast.AST, str | None]]:
    """Nodes outermost first, without docstrings, with the function around them."""
    stack: list[tuple[ast.AST, str | None]] = [(tree, None)]
    while stack:
        node, function = stack.pop()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            function = node.name
        yield node, function
        stack.extend((child, function) for child in reversed(list(ast.iter_child_nodes(node))))
