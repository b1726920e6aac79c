"""YAML documents as trees with places, by ruamel.yaml's composer: nothing is constructed or run."""

from __future__ import annotations

import warnings
from typing import Any

from planner.parse.nodes import Listing, Mapping, Scalar, Tree, align
from planner.parse.source import Mapped

__all__ = ["YamlFault", "read_yaml"]

_STYLES = {None: "plain", "": "plain", "'": "single", '"': "double", "|": "block", ">": "block"}
_KINDS = {"int": "int", "float": "float", "bool": "bool", "null": "null"}


class YamlFault(Exception):
    """Text that is not YAML: a reason and the index where it shows."""

    def __init__(self, reason: str, index: int | None) -> None:
        super().__init__(reason)
        self.reason, self.index = reason, index


def read_yaml(text: Mapped) -> list[Tree]:
    """The documents of a YAML stream, each alias as the tree it names.

    Raises:
        YamlFault: the text is not YAML.
    """
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    reader = YAML(typ="safe", pure=True)
    documents: list[Tree] = []
    builder = _Builder(text)
    try:
        with warnings.catch_warnings():
            # An anchor that is set twice is worth a warning to the library, and no fault.
            warnings.simplefilter("ignore")
            for node in reader.compose_all(text.text):
                if node is not None:
                    documents.append(builder.tree(node))
    except MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        raise YamlFault(fault.problem or fault.context or "malformed", mark.index if mark else None) from None
    except YAMLError as fault:
        position = getattr(fault, "position", None)
        reason = getattr(fault, "reason", None) or str(fault).strip().splitlines()[0]
        raise YamlFault(reason, position if isinstance(position, int) else None) from None
    except RecursionError:
        raise YamlFault("nested too deeply", None) from None
    except (ValueError, IndexError, AttributeError, TypeError, AssertionError, KeyError) as fault:
        # The scanner has inputs on which it fails with an error of its own; to a user that is malformed text too.
        raise YamlFault(f"malformed ({type(fault).__name__})", None) from None
    return documents


class _Builder:
    def __init__(self, text: Mapped) -> None:
        self.text = text
        self.made: dict[int, Tree] = {}
        self.kept: list[Any] = []

    def tree(self, node: Any) -> Tree:
        """The tree of a composed node; one tree for each node, however often it is named."""
        known = self.made.get(id(node))
        if known is not None:
            return known
        self.kept.append(node)
        if node.id == "scalar":
            made: Tree = self.scalar(node)
            self.made[id(node)] = made
            return made
        start, end = self._offsets(node)
        if node.id == "sequence":
            listing = Listing([], start, end)
            self.made[id(node)] = listing
            listing.items = [self.tree(item) for item in node.value]
            return listing
        mapping = Mapping([], start, end)
        self.made[id(node)] = mapping
        mapping.own = [
            (key, self.tree(value)) for name, value in node.value if isinstance(key := self.tree(name), Scalar)
        ]
        return mapping

    def scalar(self, node: Any) -> Scalar:
        """A leaf with aligned text."""
        start, end = node.start_mark.index, node.end_mark.index
        raw = self.text.text[start:end]
        style = _STYLES.get(node.style, "plain")
        if style == "block":
            raw = raw.rstrip("\n") + "\n"
        value = align(raw, start, str(node.value), style, ())
        first, last = self._offsets(node)
        layers = (f"yaml-{style}", *self.text.layers)
        kind = _KINDS.get(str(node.tag).rsplit(":", 1)[-1], "str")
        return Scalar(self._through(value, layers), kind, first, last, (f"whole-{layers[0]}", *self.text.layers))

    def _through(self, value: Mapped, layers: tuple[str, ...]) -> Mapped:
        """Maps places in the YAML text to places in the file."""
        text = self.text
        if isinstance(text.starts, range) and text.starts[:1] == range(1):
            return Mapped(value.text, value.starts, value.ends, layers)
        last = len(text.text) - 1
        starts = [text.starts[min(at, last)] for at in value.starts] if last >= 0 else []
        ends = [text.ends[min(max(at - 1, 0), last)] for at in value.ends] if last >= 0 else []
        return Mapped(value.text, starts, ends, layers)

    def _offsets(self, node: Any) -> tuple[int, int]:
        start, end = node.start_mark.index, node.end_mark.index
        text = self.text
        if not text.text:
            return 0, 0
        first = text.starts[start] if start < len(text.text) else text.ends[-1]
        return first, max(first, text.ends[end - 1] if end > start else first)
