"""Profiles and limits by id, by file, or (models) by a folder with a Hugging Face ``config.json``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

from planner.data.files import list_names, read_text
from planner.data.toml_source import TomlSource, parse_toml, read_toml
from planner.data.validate import build
from planner.domain import DrafterProfile, HardwareProfile, Limit, ModelProfile
from planner.errors import InputError, Problem, nearest_hint

__all__ = [
    "load_drafter",
    "load_hardware",
    "load_limits",
    "load_model",
    "packaged_ids",
    "read_drafter",
    "read_hardware",
    "read_limits",
    "read_model",
]

Kind = Literal["hardware", "model", "drafter"]
_P = TypeVar("_P", HardwareProfile, ModelProfile, DrafterProfile)

_PLACES: dict[Kind, tuple[str, str]] = {
    "hardware": ("hardware_profiles", ""),
    "model": ("planner.data", "models"),
    "drafter": ("planner.data", "drafters"),
}


def packaged_ids(kind: Kind) -> list[str]:
    """Sorted ids of the profiles that ship with the planner."""
    package, folder = _PLACES[kind]
    return [name.removesuffix(".toml") for name in list_names(folder, ".toml", package=package)]


def load_hardware(ref: str | Path | HardwareProfile) -> HardwareProfile:
    """A hardware profile by id or alias, or from a TOML file.

    Raises:
        InputError: unknown id (with the nearest names), or faults in the file.
    """
    return ref if isinstance(ref, HardwareProfile) else _load("hardware", HardwareProfile, ref, read_hardware)


def load_model(ref: str | Path | ModelProfile) -> ModelProfile:
    """A model profile by id or alias, from a TOML file, or from a folder (or file) ``config.json``.

    Raises:
        InputError: unknown id (with the nearest names), faults in the file, or keys that config.json lacks.
    """
    return ref if isinstance(ref, ModelProfile) else _load("model", ModelProfile, ref, read_model)


def load_drafter(ref: str | Path | DrafterProfile) -> DrafterProfile:
    """A drafter profile by id or alias, from a TOML file, or from a folder with ``config.json``."""
    return ref if isinstance(ref, DrafterProfile) else _load("drafter", DrafterProfile, ref, read_drafter)


def load_limits(files: Sequence[str | Path] = ()) -> tuple[Limit, ...]:
    """The built-in limits and those of ``files``; a file's limit replaces a built-in one of the same id.

    Raises:
        InputError: every fault of every file at once.
    """
    limits = {limit.id: limit for limit in _builtin_limits()}
    problems: list[Problem] = []
    for file in files:
        try:
            limits |= {limit.id: limit for limit in read_limits(Path(file))}
        except InputError as error:
            problems.extend(error.problems)
    if problems:
        raise InputError(problems)
    return tuple(limits.values())


def read_hardware(path: Path) -> HardwareProfile:
    """A hardware profile from a TOML file."""
    source = read_toml(path)
    profile = build(HardwareProfile, source.data, source=source)
    tables = [name.removesuffix(".npz") for name in list_names("kernels", ".npz")]
    if profile.kernel_tables is not None and profile.kernel_tables not in tables:
        raise InputError(
            [
                Problem(
                    f"no kernel table {profile.kernel_tables!r} is packaged",
                    file=source.name,
                    line=source.line_of(("kernel_tables",)),
                    field="kernel_tables",
                    value=profile.kernel_tables,
                    hint=f"{nearest_hint(profile.kernel_tables, tables)}; leave it out to use the data sheet alone",
                )
            ]
        )
    return profile


def read_model(path: Path) -> ModelProfile:
    """A model profile from a TOML file, or from a folder (or file) ``config.json``."""
    if path.is_dir() or path.suffix == ".json":
        from planner.data.hf_config import model_from_hf_config, read_hf_config

        return model_from_hf_config(read_hf_config(path), folder=path if path.is_dir() else path.parent)
    source = read_toml(path)
    return build(ModelProfile, source.data, source=source)


def read_drafter(path: Path) -> DrafterProfile:
    """A drafter profile from a TOML file, or from a folder (or file) ``config.json``."""
    if path.is_dir() or path.suffix == ".json":
        from planner.data.hf_config import drafter_from_hf_config, read_hf_config

        return drafter_from_hf_config(read_hf_config(path), folder=path if path.is_dir() else path.parent)
    source = read_toml(path)
    return build(DrafterProfile, source.data, source=source)


def read_limits(path: Path) -> tuple[Limit, ...]:
    """All limits of a TOML file.

    Raises:
        InputError: faults of form, unknown quantities, or an id that stands twice.
    """
    return _limits_of(read_toml(path))


def _limits_of(source: TomlSource) -> tuple[Limit, ...]:
    problems: list[Problem] = []
    for key in source.data.keys() - {"schema_version", "limit"}:
        problems.append(
            Problem(
                "unknown key",
                file=source.name,
                line=source.line_of((key,)),
                field=key,
                hint=nearest_hint(key, ["schema_version", "limit"]),
            )
        )
    entries = source.data.get("limit", [])
    if not isinstance(entries, list) or not entries:
        problems.append(Problem("no [[limit]] entry", file=source.name, hint="see docs/limits.md for the form"))
        raise InputError(problems)
    if source.data.get("schema_version", 1) != 1:
        problems.append(
            Problem(
                f"unknown schema_version {source.data['schema_version']!r}",
                file=source.name,
                line=source.line_of(("schema_version",)),
                hint="this planner reads schema_version = 1",
            )
        )
    limits: dict[str, Limit] = {}
    for index, entry in enumerate(entries):
        try:
            limit = build(Limit, entry, source=source, at=("limit", index))
        except InputError as error:
            problems.extend(error.problems)
            continue
        if limit.id in limits:
            problems.append(
                Problem(
                    f"the id {limit.id} stands twice",
                    file=source.name,
                    line=source.line_of(("limit", index, "id")),
                    field="id",
                    hint="give each limit its own id",
                )
            )
        problems.extend(
            Problem(message, file=source.name, line=source.line_of(("limit", index, field)), field=field, hint=hint)
            for field, message, hint in limit.unknown_names()
        )
        limits[limit.id] = limit
    if problems:
        raise InputError(problems)
    return tuple(limits.values())


@cache
def _builtin_limits() -> tuple[Limit, ...]:
    return tuple(
        limit
        for name in list_names("limits", ".toml")
        for limit in _limits_of(parse_toml(read_text(f"limits/{name}"), name=name))
    )


@cache
def _packaged(kind: Kind, id_: str) -> TomlSource:
    package, folder = _PLACES[kind]
    if package == "planner.data":
        text = read_text(f"{folder}/{id_}.toml")
    else:
        from importlib import resources

        text = resources.files(package).joinpath(f"{id_}.toml").read_text(encoding="utf-8")
    return parse_toml(text, name=f"{package}/{id_}.toml")


def _load(kind: Kind, type_: type[_P], ref: str | Path, read: Callable[[Path], _P]) -> _P:
    text = str(ref)
    ids = packaged_ids(kind)
    if text in ids:
        return _build_packaged(kind, type_, text)
    if isinstance(ref, Path) or text.endswith((".toml", ".json")) or Path(text).is_dir():
        return read(Path(ref))
    word = text.lower()
    named = [id_ for id_ in ids if word in {str(name).lower() for name in _packaged(kind, id_).data.get("aliases", ())}]
    if named:
        return _build_packaged(kind, type_, named[0])
    option = {"hardware": "--hw", "model": "--model", "drafter": "--drafter"}[kind]
    files = "a TOML file" if kind == "hardware" else "a TOML file, or a folder with config.json"
    hint = f"{nearest_hint(text, sorted(ids))}; {option} also takes the path of {files}"
    raise InputError([Problem(f"unknown {kind} {text!r}", field=option, value=text, hint=hint)])


def _build_packaged(kind: Kind, type_: type[_P], id_: str) -> _P:
    source = _packaged(kind, id_)
    return build(type_, source.data, source=source)
