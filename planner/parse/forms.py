"""Reads text of a known form. Each reader is imported when its form is met."""

from __future__ import annotations

from dataclasses import replace

from planner.parse.model import Form
from planner.parse.setting import MENTION, Collector, Setting
from planner.parse.source import Mapped

__all__ = ["read_form"]

_MOST_SILENT_YAML = 200_000
_YAML_FORMS = (Form.COMPOSE, Form.KUBERNETES, Form.RECIPE)


def read_form(form: Form, text: Mapped, setting: Setting, out: Collector, depth: int = 0) -> None:
    """Adds the launches of ``text`` to ``out``."""
    setting = replace(setting, form=form)
    if form is Form.SHELL:
        _read_shell(text, setting, out, depth)
    elif form is Form.DOCKERFILE:
        from planner.parse.dockerfile import read_dockerfile

        read_dockerfile(text, setting, out, depth)
    elif form is Form.SYSTEMD:
        from planner.parse.systemd import read_unit

        read_unit(text, setting, out, depth)
    elif form is Form.PYTHON:
        from planner.parse.python_source import read_python

        read_python(text, setting, out, depth)
    elif form is Form.JSON:
        _read_json(text, setting, out, depth)
    elif form in _YAML_FORMS:
        _read_yaml(text, setting, out, depth)
    else:
        _read_argv(text, setting, out, depth)


def _read_shell(text: Mapped, setting: Setting, out: Collector, depth: int) -> None:
    from planner.parse.resources import job_facts

    options: list[str] = []
    for line in text.text.split("\n"):
        if line.startswith("#SBATCH"):
            options += line[len("#SBATCH") :].split("#", 1)[0].split()
    out.run_script(text, replace(setting, job=job_facts(options) or setting.job), out, depth)


def _read_json(text: Mapped, setting: Setting, out: Collector, depth: int) -> None:
    from planner.parse.json_tree import JsonFault, read_json
    from planner.parse.trees import read_tree

    try:
        tree = read_json(text)
    except JsonFault as fault:
        at = text.starts[min(fault.index, len(text.text) - 1)] if text.text else None
        out.problem(f"JSON that does not parse: {fault.reason}", at)
        return
    read_tree(tree, setting, out, depth)


def _read_yaml(text: Mapped, setting: Setting, out: Collector, depth: int) -> None:
    from planner.parse.detect import is_template
    from planner.parse.nodes import Scalar
    from planner.parse.trees import read_tree
    from planner.parse.yaml_tree import YamlFault, read_yaml

    if len(text.text) > _MOST_SILENT_YAML and MENTION.search(text.text) is None:
        return
    try:
        documents = read_yaml(text)
    except YamlFault as fault:
        at = None
        if fault.index is not None and text.text:
            at = text.starts[min(max(fault.index, 0), len(text.text) - 1)]
        if is_template(text.text):
            first = text.text.find("{{")
            out.problem("a Helm template is not YAML", text.starts[first], "check the output of `helm template`")
        else:
            out.problem(f"YAML that does not parse: {fault.reason}", at)
        return
    for tree in documents:
        if isinstance(tree, Scalar):
            # A bare command where YAML was expected.
            out.run_script(text, setting, out, depth)
            return
        read_tree(tree, setting, out, depth)


def _read_argv(text: Mapped, setting: Setting, out: Collector, depth: int) -> None:
    from planner.parse.compose import flags_only, split_words
    from planner.parse.launchers import read_words

    words = split_words(replace(text, text=text.text.replace("\\\n", "  ").replace("\n", " ")))
    if words and not read_words(words, setting, out, depth) and words[0].shown.startswith("-"):
        flags_only(words, setting, out, words[0].start)
