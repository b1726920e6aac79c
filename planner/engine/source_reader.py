"""Reads constants out of Python source without importing it: enough of an interpreter for argument declarations.

A flag table must be made from any wheel on a machine that has neither torch nor a GPU, so nothing of the wheel is run.
Expressions are evaluated over the syntax tree; what cannot be known without running code becomes :data:`UNKNOWN`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from planner.errors import InputError

__all__ = ["SUPPRESS", "UNKNOWN", "Module", "Opaque", "SourceReader", "Unknown"]


class Unknown:
    """Value that only running the code would give."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()
SUPPRESS = "==SUPPRESS=="
"""What ``argparse.SUPPRESS`` is."""
_MAX_DEPTH = 40


class Opaque:
    """A name that is known but is not a constant: a function, a class of a library."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Opaque({self.name})"


class EnumMember:
    """Member of an enumeration."""

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.value = value


class ClassValue:
    """A class of the wheel: its assignments are looked up on demand."""

    def __init__(self, module: Module, node: ast.ClassDef) -> None:
        self.module = module
        self.node = node

    @property
    def name(self) -> str:
        return self.node.name


class FunctionValue:
    """A function of the wheel."""

    def __init__(self, module: Module, node: ast.FunctionDef) -> None:
        self.module = module
        self.node = node

    @property
    def name(self) -> str:
        return self.node.name


class Module:
    """Top-level names of one source file (the bodies of ``if`` and ``try`` at top level included)."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.tree = ast.parse(text)
        self.names: dict[str, ast.stmt | tuple[str, str]] = {}
        self.cache: dict[str, Any] = {}
        self._collect(self.tree.body)

    def _collect(self, body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                self.names[node.name] = node
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.names[target.id] = node
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                self.names[node.target.id] = node
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                for alias in node.names:
                    self.names[alias.asname or alias.name] = (node.module, alias.name)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    self.names[alias.asname or alias.name.split(".")[0]] = (alias.name, "")
            elif isinstance(node, ast.If):
                self._collect(node.orelse)
                self._collect(node.body)
            elif isinstance(node, ast.Try):
                self._collect(node.body)

    def classes(self) -> list[ast.ClassDef]:
        return [node for node in self.tree.body if isinstance(node, ast.ClassDef)]


class SourceReader:
    """Evaluates expressions over ``sources``: file path inside the wheel -> text."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self._modules: dict[str, Module | None] = {}

    def module(self, name: str) -> Module | None:
        """The module of that dotted name, or None when the wheel does not carry it.

        Raises:
            InputError: its text is not Python of this interpreter.
        """
        if name not in self._modules:
            path = name.replace(".", "/")
            text = self._sources.get(f"{path}.py", self._sources.get(f"{path}/__init__.py"))
            try:
                self._modules[name] = Module(name, text) if text is not None else None
            except SyntaxError as error:
                raise InputError(f"{path}.py cannot be read as Python: {error.msg} (line {error.lineno})") from None
        return self._modules[name]

    def lookup(self, module: Module, name: str, depth: int = 0) -> Any:
        """Value of a top-level name."""
        if name in module.cache:
            return module.cache[name]
        if depth > _MAX_DEPTH or name not in module.names:
            return _BUILTINS.get(name, UNKNOWN)
        module.cache[name] = UNKNOWN  # a cycle ends here
        node = module.names[name]
        value: Any = UNKNOWN
        if isinstance(node, tuple):
            origin, attribute = node
            other = self.module(origin)
            if attribute == "":
                value = other if other is not None else Opaque(origin)
            elif other is not None:
                value = self.lookup(other, attribute, depth + 1)
                if value is UNKNOWN and self.module(f"{origin}.{attribute}") is not None:
                    value = self.module(f"{origin}.{attribute}")
            else:
                value = Opaque(f"{origin}.{attribute}")
        elif isinstance(node, ast.ClassDef):
            value = ClassValue(module, node)
        elif isinstance(node, ast.FunctionDef):
            value = FunctionValue(module, node)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            value = self.evaluate(node.value, module, {}, depth + 1)
        module.cache[name] = value
        return value

    def class_attribute(self, owner: ClassValue, name: str, depth: int = 0) -> Any:
        """Value of a class-level assignment; a member when the class is an enumeration."""
        for node in owner.node.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                target, expression = node.targets[0].id, node.value
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                target, expression = node.target.id, node.value
            else:
                continue
            if target == name:
                value = self.evaluate(expression, owner.module, {}, depth + 1)
                return EnumMember(name, value) if self.is_enum(owner) else value
        return UNKNOWN

    def is_enum(self, owner: ClassValue) -> bool:
        return any("Enum" in ast.unparse(base) for base in owner.node.bases)

    def enum_members(self, owner: ClassValue) -> list[EnumMember]:
        members = []
        for node in owner.node.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                members.append(EnumMember(node.targets[0].id, self.evaluate(node.value, owner.module, {})))
        return members

    def evaluate(self, node: ast.expr, module: Module, local: Mapping[str, Any], depth: int = 0) -> Any:
        """Value of an expression, or :data:`UNKNOWN`."""
        if depth > _MAX_DEPTH:
            return UNKNOWN
        method = getattr(self, f"_eval_{type(node).__name__.lower()}", None)
        return method(node, module, local, depth + 1) if method else UNKNOWN

    def _eval_constant(self, node: ast.Constant, *_: Any) -> Any:
        return node.value

    def _eval_name(self, node: ast.Name, module: Module, local: Mapping[str, Any], depth: int) -> Any:
        return local[node.id] if node.id in local else self.lookup(module, node.id, depth)

    def _eval_list(
        self, node: ast.List | ast.Tuple | ast.Set, module: Module, local: Mapping[str, Any], depth: int
    ) -> Any:
        values: list[Any] = []
        for item in node.elts:
            if isinstance(item, ast.Starred):
                inner = self.evaluate(item.value, module, local, depth)
                if inner is UNKNOWN:
                    return UNKNOWN
                values.extend(inner)
            else:
                values.append(self.evaluate(item, module, local, depth))
        return values

    _eval_tuple = _eval_list
    _eval_set = _eval_list

    def _eval_dict(self, node: ast.Dict, module: Module, local: Mapping[str, Any], depth: int) -> Any:
        result: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                inner = self.evaluate(value, module, local, depth)
                if isinstance(inner, dict):
                    result.update(inner)
            else:
                name = self.evaluate(key, module, local, depth)
                if isinstance(name, (str, int)):
                    result[name] = self.evaluate(value, module, local, depth)
        return result

    def _eval_unaryop(self, node: ast.UnaryOp, module: Module, local: Mapping[str, Any], depth: int) -> Any:
        value = self.evaluate(node.operand, module, local, depth)
        if value is UNKNOWN:
            return UNKNOWN
        if isinstance(node.op, ast.USub):
            return -value
        return (not value) if isinstance(node.op, ast.Not) else UNKNOWN

    def _eval_binop(self, node: ast.BinOp, module: Module, local: Mapping[str, Any], depth: int) -> Any:
        left = self.evaluate(node.left, module, local, depth)
        right = self.evaluate(node.right, module, local, depth)
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        numbers = isinstance(left, (int, float)) and isinstance(right, (int, float))
        if isinstance(node.op, ast.Add) and (numbers or (isinstance(left, list) and isinstance(right, list))):
            return left + right
        if not numbers:
            return UNKNOWN
        operations = {ast.Mult: left * right, ast.Sub: left - right}
        if right:
            operations[ast.FloorDiv] = left // right
            operations[ast.Div] = left / right
        if isinstance(node.op, ast.Pow) and abs(right) < 64:
            return left**right
        return operations.get(type(node.op), UNKNOWN)

    def _eval_attribute(self, node: ast.Attribute, module: Module, local: Mapping[str, Any], depth: int) -> Any:
        owner = self.evaluate(node.value, module, local, depth)
        if isinstance(owner, ClassValue):
            return self.class_attribute(owner, node.attr, depth)
        if isinstance(owner, Module):
            return self.lookup(owner, node.attr, depth)
        if isinstance(owner, EnumMember):
            return {"name": owner.name, "value": owner.value}.get(node.attr, UNKNOWN)
        if isinstance(owner, Opaque):
            full = f"{owner.name}.{node.attr}"
            return SUPPRESS if full == "argparse.SUPPRESS" else Opaque(full)
        return UNKNOWN

    def _eval_listcomp(
        self, node: ast.ListComp | ast.GeneratorExp, module: Module, local: Mapping[str, Any], depth: int
    ) -> Any:
        if len(node.generators) != 1:
            return UNKNOWN
        loop = node.generators[0]
        items = self._iterable(self.evaluate(loop.iter, module, local, depth))
        if items is UNKNOWN or loop.ifs or not isinstance(loop.target, ast.Name):
            return UNKNOWN
        return [self.evaluate(node.elt, module, {**local, loop.target.id: item}, depth) for item in items]

    _eval_generatorexp = _eval_listcomp

    def _iterable(self, value: Any) -> Any:
        if isinstance(value, ClassValue) and self.is_enum(value):
            return self.enum_members(value)
        if isinstance(value, dict):
            return list(value)
        return value if isinstance(value, list) else UNKNOWN

    def _eval_subscript(self, node: ast.Subscript, module: Module, local: Mapping[str, Any], depth: int) -> Any:
        owner = self.evaluate(node.value, module, local, depth)
        index = self.evaluate(node.slice, module, local, depth)
        if isinstance(owner, list) and isinstance(index, int) and -len(owner) <= index < len(owner):
            return owner[index]
        return owner.get(index, UNKNOWN) if isinstance(owner, dict) and isinstance(index, str) else UNKNOWN

    def _eval_call(self, node: ast.Call, module: Module, local: Mapping[str, Any], depth: int) -> Any:
        if isinstance(node.func, ast.Attribute):
            owner = self.evaluate(node.func.value, module, local, depth)
            if isinstance(owner, dict) and node.func.attr in ("keys", "values"):
                return list(owner.keys() if node.func.attr == "keys" else owner.values())
            if isinstance(owner, str) and node.func.attr in ("lower", "upper") and not node.args:
                return getattr(owner, node.func.attr)()
            if isinstance(owner, Opaque) and owner.name.startswith("sys"):
                return None  # sys.modules.get(...): nothing is imported here
        function = self.evaluate(node.func, module, local, depth)
        if isinstance(function, FunctionValue) and not node.args and not node.keywords:
            return self._call(function, depth)
        if (
            isinstance(function, Opaque)
            and function.name in ("list", "set", "frozenset", "sorted", "tuple")
            and node.args
        ):
            items = self._iterable(self.evaluate(node.args[0], module, local, depth))
            return sorted(items) if function.name == "sorted" and items is not UNKNOWN else items
        if isinstance(function, Opaque) and function.name.endswith("field"):
            for keyword in node.keywords:
                if keyword.arg == "default_factory":
                    if isinstance(keyword.value, ast.Lambda):
                        return self.evaluate(keyword.value.body, module, local, depth)
                    return {"list": [], "dict": {}}.get(ast.unparse(keyword.value), UNKNOWN)
                if keyword.arg == "default":
                    return self.evaluate(keyword.value, module, local, depth)
        return UNKNOWN

    def _call(self, function: FunctionValue, depth: int) -> Any:
        """Result of a function without parameters that only assigns, branches on None and returns."""
        local: dict[str, Any] = {}

        def run(body: list[ast.stmt]) -> tuple[bool, Any]:
            for node in body:
                if isinstance(node, ast.ImportFrom) and node.module:
                    other = self.module(node.module)
                    for alias in node.names:
                        found = self.lookup(other, alias.name, depth) if other is not None else UNKNOWN
                        local[alias.asname or alias.name] = found
                elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    local[node.targets[0].id] = self.evaluate(node.value, function.module, local, depth)
                elif isinstance(node, ast.If):
                    done, value = run(node.body if self.truth(node.test, function.module, local) else node.orelse)
                    if done:
                        return done, value
                elif isinstance(node, ast.Return):
                    value = self.evaluate(node.value, function.module, local, depth) if node.value else None
                    return True, value
            return False, None

        return run(function.node.body)[1]

    def truth(self, test: ast.expr, module: Module, local: Mapping[str, Any]) -> bool:
        """Whether a test holds; an unknown one counts as false (the plain environment)."""
        if isinstance(test, ast.Compare) and len(test.ops) == 1:
            left = self.evaluate(test.left, module, local)
            right = self.evaluate(test.comparators[0], module, local)
            if UNKNOWN in (left, right):
                return False
            same = left is right if isinstance(test.ops[0], (ast.Is, ast.IsNot)) else left == right
            return same if isinstance(test.ops[0], (ast.Is, ast.Eq)) else not same
        value = self.evaluate(test, module, local)
        return value is not UNKNOWN and bool(value)


_BUILTINS: dict[str, Any] = {
    name: Opaque(name) for name in ("list", "set", "frozenset", "sorted", "tuple", "int", "str", "float")
}
