"""Makes a flag table from SGLang's source: names, aliases, types, choices, defaults. No help texts, nothing is run.

Two forms of declaration are read: annotated fields with argument metadata (0.5.15 and later keep nearly all flags
there), and ``parser.add_argument`` calls inside ``add_cli_args`` (all flags up to 0.5.13, the special ones later).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from planner.engine.flag_table import FlagKind, FlagSpec, FlagTable, FlagType
from planner.engine.source_reader import SUPPRESS, UNKNOWN, ClassValue, EnumMember, Module, Opaque, SourceReader
from planner.errors import InputError

__all__ = ["extract_flags"]

_SERVER_ARGS = "sglang.srt.server_args"
_TYPES = {
    "int": FlagType.INT,
    "float": FlagType.FLOAT,
    "str": FlagType.STR,
    "human_readable_int": FlagType.HUMAN_INT,
    "json.loads": FlagType.JSON,
    "json_list_type": FlagType.JSON,
    "nullable_str": FlagType.NULLABLE_STR,
    "parse_cuda_graph_config_arg": FlagType.JSON,
    "parse_cuda_graph_backend_arg": FlagType.STR,
}


def extract_flags(sources: Mapping[str, str], *, version: str, released: str) -> FlagTable:
    """Flag table of the wheel whose Python files are ``sources`` (path inside the wheel -> text).

    Raises:
        InputError: the wheel has no ``sglang/srt/server_args.py`` with ``add_cli_args`` (it is not SGLang).
    """
    reader = SourceReader(sources)
    module = reader.module(_SERVER_ARGS)
    if module is None:
        raise InputError("not an SGLang wheel: it has no sglang/srt/server_args.py")
    owner = reader.lookup(module, "ServerArgs")
    if not isinstance(owner, ClassValue):
        owner = next((ClassValue(module, node) for node in module.classes() if node.name == "ServerArgs"), owner)
    method = next(
        (
            node
            for node in (owner.node.body if isinstance(owner, ClassValue) else ())
            if isinstance(node, ast.FunctionDef) and node.name == "add_cli_args"
        ),
        None,
    )
    if not isinstance(owner, ClassValue) or method is None:
        raise InputError("not an SGLang wheel: ServerArgs.add_cli_args was not found in sglang/srt/server_args.py")
    fields = _ordered(reader, dict(_fields(reader, owner)))
    flags = [spec for name, (where, node) in fields.items() if (spec := _from_field(reader, where, name, node))]
    defaults = {
        name: _plain(_default(reader, where, node)) for name, (where, node) in fields.items() if node.value is not None
    }
    flags += _from_calls(reader, module, method, defaults)
    return FlagTable(
        version=version,
        released=released,
        flags=tuple(flags),
        fields=tuple(sorted((name, None if value is UNKNOWN else value) for name, value in defaults.items())),
    )


def _fields(reader: SourceReader, owner: ClassValue) -> Iterator[tuple[str, tuple[Module, ast.AnnAssign]]]:
    """Annotated fields of ServerArgs and of the classes that it is assembled from, in the engine's order."""
    groups = reader.lookup(owner.module, "_INPUT_NAMESPACES")
    owners = [group for group in groups if isinstance(group, ClassValue)] if isinstance(groups, list) else []
    for source in [owner, *owners]:
        for node in source.node.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield node.target.id, (source.module, node)


def _ordered(reader: SourceReader, fields: dict[str, Any]) -> dict[str, Any]:
    """Fields in the order of the engine's constructor where it states one (its parser lists flags in that order)."""
    module = reader.module("sglang.srt.arg_groups.field_order")
    order = reader.lookup(module, "POSITIONAL_FIELD_ORDER") if module is not None else []
    known = [name for name in order if name in fields] if isinstance(order, list) else []
    return {name: fields[name] for name in [*known, *(name for name in fields if name not in set(known))]}


def _default(reader: SourceReader, module: Module, node: ast.AnnAssign) -> Any:
    return reader.evaluate(node.value, module, {}) if node.value is not None else UNKNOWN


def _from_field(reader: SourceReader, module: Module, name: str, node: ast.AnnAssign) -> FlagSpec | None:
    """The flag that the engine derives from one annotated field, by its documented mapping."""
    annotation = node.annotation
    if not (isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) in ("A", "Annotated")):
        return None
    assert isinstance(annotation.slice, ast.Tuple)
    declared, *extras = annotation.slice.elts
    meta: dict[str, ast.expr] | None = None
    for extra in extras:
        if isinstance(extra, ast.Call) and ast.unparse(extra.func) == "Arg":
            meta = {keyword.arg: keyword.value for keyword in extra.keywords if keyword.arg}
            break
        if isinstance(extra, (ast.Constant, ast.JoinedStr, ast.BinOp)):
            meta = {}
            break
    if meta is None or (_get(reader, module, meta, "no_cli") is True):
        return None
    cli_name = _get(reader, module, meta, "cli_name") or "--" + name.replace("_", "-")
    names = [cli_name, *(_get(reader, module, meta, "aliases") or ())]
    default = _default(reader, module, node)
    common: dict[str, Any] = {
        "names": tuple(names),
        "dest": name,
        "default": _plain(default) if node.value is not None else None,
        "required": node.value is None,
    }
    if "action" in meta:
        return _with_action(reader, module, meta["action"], meta, common)
    inner = _strip_optional(declared)
    text = ast.unparse(inner)
    choices = _choices(_get(reader, module, meta, "choices"))
    parser = meta.get("type_parser")
    if isinstance(inner, ast.Subscript) and text.startswith("Literal["):
        values = inner.slice.elts if isinstance(inner.slice, ast.Tuple) else [inner.slice]
        literals = [reader.evaluate(value, module, {}) for value in values]
        kind = FlagType.INT if literals and isinstance(literals[0], int) else FlagType.STR
        return FlagSpec(kind=FlagKind.VALUE, type=kind, choices=choices or _choices(literals), **common)
    if isinstance(inner, ast.Subscript) and text.split("[")[0] in ("List", "list") and parser is None:
        nargs = _get(reader, module, meta, "nargs") or "+"
        element = ast.unparse(inner.slice)
        return FlagSpec(
            kind=FlagKind.LIST, type=_TYPES.get(element, FlagType.STR), nargs=nargs, choices=choices, **common
        )
    if text == "bool":
        return FlagSpec(kind=FlagKind.TRUE, type=FlagType.BOOL, **{**common, "required": False})
    kind_text = ast.unparse(parser) if parser is not None else text
    nargs = _get(reader, module, meta, "nargs")
    return FlagSpec(
        kind=FlagKind.VALUE if nargs in (None, "?") else FlagKind.LIST,
        type=_TYPES.get(kind_text, FlagType.STR),
        nargs=nargs,
        const=_plain(_get(reader, module, meta, "const")),
        choices=choices,
        **common,
    )


def _strip_optional(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) in ("Optional", "typing.Optional"):
        return node.slice
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = [side for side in (node.left, node.right) if ast.unparse(side) != "None"]
        if len(sides) == 1:
            return sides[0]
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Union" and isinstance(node.slice, ast.Tuple):
        sides = [side for side in node.slice.elts if ast.unparse(side) != "None"]
        if len(sides) == 1:
            return sides[0]
    return node


def _get(reader: SourceReader, module: Module, meta: Mapping[str, ast.expr], key: str) -> Any:
    if key not in meta:
        return None
    value = reader.evaluate(meta[key], module, {})
    return None if value is UNKNOWN else value


def _choices(value: Any) -> tuple[str | int, ...] | None:
    if not isinstance(value, list) or UNKNOWN in value:
        return None
    plain = [item.value if isinstance(item, EnumMember) else item for item in value]
    return tuple(dict.fromkeys(item for item in plain if isinstance(item, (str, int))))


def _plain(value: Any) -> Any:
    if isinstance(value, EnumMember):
        return value.value
    if isinstance(value, (Opaque, ClassValue)) or value is UNKNOWN:
        return None
    return value


def _with_action(
    reader: SourceReader, module: Module, action: ast.expr, meta: Mapping[str, ast.expr], common: Mapping[str, Any]
) -> FlagSpec:
    """A flag with an action of its own; what the deprecated ones do is stated in the engine's argparse_actions.py."""
    text = ast.unparse(action).removeprefix("argparse.").strip("'\"")
    values = dict(common)
    if text in ("store_true", "DeprecatedStoreTrueAction") and "default" not in meta and values["default"] is None:
        values["default"] = False
    replacement = _get(reader, module, meta, "new_flag")
    choices = _choices(_get(reader, module, meta, "choices"))
    type_text = ast.unparse(meta["type"]) if "type" in meta else "str"
    if text == "store_true":
        return FlagSpec(kind=FlagKind.TRUE, type=FlagType.BOOL, **{**values, "required": False})
    if text == "store_false":
        return FlagSpec(kind=FlagKind.FALSE, type=FlagType.BOOL, **{**values, "required": False})
    if text == "BooleanOptionalAction":
        names = tuple(values["names"])
        values["names"] = names + tuple(f"--no-{name[2:]}" for name in names if name.startswith("--"))
        return FlagSpec(kind=FlagKind.BOOL_OPTIONAL, type=FlagType.BOOL, **{**values, "required": False})
    if text == "LoRAPathAction":
        nargs = _get(reader, module, meta, "nargs") or "*"
        return FlagSpec(kind=FlagKind.LIST, type=FlagType.STR, nargs=nargs, **values)
    if text == "DeprecatedStoreTrueAction":
        return FlagSpec(kind=FlagKind.TRUE, type=FlagType.BOOL, deprecated=replacement or "", **values)
    if text == "DeprecatedStoreConstAction":
        const = _plain(_get(reader, module, meta, "const_value"))
        takes_value = "nargs" in meta
        kind = FlagKind.CONST_OF_VALUE if takes_value else FlagKind.CONST
        return FlagSpec(
            kind=kind, type=FlagType.STR, const=const, choices=choices, deprecated=replacement or "", **values
        )
    if text == "DeprecatedAction":
        message = _get(reader, module, meta, "error_message")
        kind = FlagKind.REFUSED if "error_message" in meta else FlagKind.IGNORED
        return FlagSpec(kind=kind, type=FlagType.BOOL, deprecated=message or "", **values)
    # DeprecatedAliasStoreAction and plain "store"
    nargs = _get(reader, module, meta, "nargs")
    kind = FlagKind.LIST if nargs in ("+", "*") else FlagKind.VALUE
    deprecated = (replacement or "") if text == "DeprecatedAliasStoreAction" else None
    return FlagSpec(
        kind=kind,
        type=_TYPES.get(type_text, FlagType.STR),
        nargs=nargs,
        choices=choices,
        const=_plain(_get(reader, module, meta, "const")),
        deprecated=deprecated,
        **values,
    )


def _from_calls(
    reader: SourceReader, module: Module, method: ast.FunctionDef, defaults: Mapping[str, Any]
) -> list[FlagSpec]:
    """Flags of the ``add_argument`` calls in ``add_cli_args``, the lines of a local ``if`` not counted."""
    found = []
    local: dict[str, Any] = {}
    for statement in method.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            value = reader.evaluate(statement.value, module, local)
            local[statement.targets[0].id] = value
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)):
            continue
        call = statement.value
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument"):
            continue
        names = tuple(name for arg in call.args if isinstance(name := reader.evaluate(arg, module, local), str))
        meta = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg and keyword.arg != "help"}
        first = next((name for name in names if name.startswith("--")), names[0])
        dest = _get(reader, module, meta, "dest") or first.lstrip("-").replace("-", "_")
        default, known = None, False
        if "default" in meta:
            default, known = _call_default(reader, module, meta["default"], local, defaults)
        common = {
            "names": names,
            "dest": dest,
            "default": _plain(default) if known else None,
            "required": _get(reader, module, meta, "required") is True,
        }
        if default == SUPPRESS:
            common["default"] = defaults.get(dest)
        choices_node = meta.pop("choices", None)
        action = meta.pop("action", ast.Constant("store"))
        choices = _choices(reader.evaluate(choices_node, module, local)) if choices_node is not None else None
        spec = _with_action(reader, module, action, meta, common)
        found.append(spec.replace(choices=choices) if choices is not None else spec)
    return found


def _call_default(
    reader: SourceReader, module: Module, node: ast.expr, local: Mapping[str, Any], defaults: Mapping[str, Any]
) -> tuple[Any, bool]:
    """Default of one call: a constant, ``ServerArgs.field`` or ``_declared_default("field")``."""
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "ServerArgs":
        return defaults.get(node.attr), node.attr in defaults
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "_declared_default":
        name = reader.evaluate(node.args[0], module, local)
        return defaults.get(name), name in defaults
    value = reader.evaluate(node, module, local)
    return value, value is not UNKNOWN
