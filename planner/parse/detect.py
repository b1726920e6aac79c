"""Which form a text has: by its name where that says it, otherwise by its first lines."""

from __future__ import annotations

import re

from planner.parse.model import Form

__all__ = ["ALIASES", "form_named", "form_of", "is_template"]

ALIASES = {
    "bash": Form.SHELL,
    "sh": Form.SHELL,
    "shell": Form.SHELL,
    "docker-run": Form.SHELL,
    "docker": Form.SHELL,
    "slurm": Form.SHELL,
    "sbatch": Form.SHELL,
    "dockerfile": Form.DOCKERFILE,
    "compose": Form.COMPOSE,
    "docker-compose": Form.COMPOSE,
    "k8s": Form.KUBERNETES,
    "kubernetes": Form.KUBERNETES,
    "lws": Form.KUBERNETES,
    "systemd": Form.SYSTEMD,
    "yaml": Form.RECIPE,
    "yaml-recipe": Form.RECIPE,
    "recipe": Form.RECIPE,
    "python": Form.PYTHON,
    "json": Form.JSON,
    "argv": Form.ARGV,
}
"""Names by which a form can be asked for."""
# Patterns stay text until a text asks for them: most files say their form by the first ending.
_ENDINGS = (
    (r"\.(?:sh|bash|zsh|ksh|sbatch|slurm|srun|env\.sh)(?:\.txt)?$", Form.SHELL),
    (r"\.(?:service|socket)$|\.service\.d/[^/]+\.conf$", Form.SYSTEMD),
    (r"(?:^|/)(?:[\w.-]*\.)?(?:Dockerfile|Containerfile|dockerfile)(?:\.[\w.-]+)?$", Form.DOCKERFILE),
    (r"(?:^|/)(?:docker-)?compose[\w.-]*\.ya?ml$", Form.COMPOSE),
    (r"\.ya?ml$", Form.RECIPE),
    (r"\.pyw?$", Form.PYTHON),
    (r"\.json$", Form.JSON),
)
_TEMPLATE = r"\{\{-?\s*(?:\.|\$|if\b|range\b|with\b|include\b|define\b|end\b|template\b|toYaml\b|-?\s*/\*)"
_YAML_LINE = r"""(?m)^[ ]*(?:-[ ]+)?["']?[\w./-]+["']?[ ]*:(?:[ ]|$)"""
_COMMAND_WORD = r"(?m)^\s*(?:\w+=\S*\s+)*(?:exec |nohup |sudo )?(?:python|sglang |docker |podman |srun |numactl )"
_PYTHON_LINE = r"(?m)^(?:from [\w.]+ import |import [\w.]+(?: as \w+)?$|def \w+\(|class \w+|\w+ = \w+[\w.]*\()"


def form_named(name: str) -> Form | None:
    """The form of an option's value, or None when there is no such form."""
    return ALIASES.get(name.lower())


def is_template(text: str) -> bool:
    """Whether a text is a Helm template, which is no YAML before it is rendered."""
    return re.search(_TEMPLATE, text) is not None


def form_of(name: str, text: str) -> Form | None:
    """The form of a file, or None when nothing says it."""
    for ending, form in _ENDINGS:
        if re.search(ending, name):
            return _yaml_form(text) if form is Form.RECIPE else form
    head = text[:20_000]
    first = head.lstrip("\ufeff \t\r\n")
    if first.startswith("#!"):
        return Form.PYTHON if "python" in first.split("\n", 1)[0] else Form.SHELL
    if re.search(r"^\s*\[(?:Service|Unit|Install)\]\s*$", head, re.MULTILINE):
        return Form.SYSTEMD
    if re.match(r"(?:\s*#[^\n]*\n)*\s*(?:ARG\s+\w+[^\n]*\n\s*)*FROM\s+\S+", head):
        return Form.DOCKERFILE
    if first[:1] in ("{", "[") and '"' in first[:200] and not re.match(r"\[\[?\s+", first):
        return Form.JSON
    if re.search(_PYTHON_LINE, head) and not re.search(_COMMAND_WORD, head):
        return Form.PYTHON
    line = next((line for line in first.split("\n") if line.strip() and not line.lstrip().startswith("#")), "")
    if line.strip() == "---" or (re.match(_YAML_LINE, line) and not re.match(_COMMAND_WORD, line)):
        return _yaml_form(text)
    if line.lstrip().startswith("--") and not re.search(r"^\s*--- ", line):
        return Form.ARGV
    return Form.SHELL if first else None


def _yaml_form(text: str) -> Form:
    if re.search(r"^services\s*:", text, re.MULTILINE) and not re.search(r"^kind\s*:", text, re.MULTILINE):
        return Form.COMPOSE
    if re.search(r"^\s*kind\s*:", text, re.MULTILINE) or re.search(
        r"^\s*(?:-\s*)?(?:containers|initContainers)\s*:", text, re.MULTILINE
    ):
        return Form.KUBERNETES
    return Form.RECIPE
