"""Which words start an engine, wherever they stand in a command."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from planner.parse.containers import is_container_run, read_container_run
from planner.parse.model import EnvHow, Launcher
from planner.parse.resources import job_facts, merge_jobs
from planner.parse.setting import MENTION, Collector, Draft, EnvItem, Setting
from planner.parse.source import Field

__all__ = ["assignment", "read_words"]

_MODULES = {
    "sglang.launch_server": Launcher.LAUNCH_SERVER,
    "dynamo.sglang": Launcher.DYNAMO,
    "sglang_router.launch_router": Launcher.ROUTER,
    "sglang_router.launch_server": Launcher.ROUTER,
    "sglang.srt.disaggregation.mini_lb": Launcher.ROUTER,
    "sglang.srt.disaggregation.launch_lb": Launcher.ROUTER,
}
_SERVE_MODULES = frozenset({"sglang", "sglang.cli", "sglang.cli.main"})
_SPEAKER_WORDS = """
echo printf grep egrep fgrep rg pgrep pkill kill killall ps pip pip3 which type sed awk man wc head tail less
more find ls test [ [[ git apt apt-get curl wget alias read return exit trap mkdir rm cp mv chmod touch pushd
cd
"""
_SPEAKERS = frozenset(_SPEAKER_WORDS.split())
"""Commands that talk about a launch without starting one."""
_WRAPPERS = frozenset({"sudo", "exec", "nohup", "time", "setsid", "command", "builtin"})
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ash", "ksh"})
_JOB_COMMANDS = frozenset({"srun", "sbatch", "salloc"})
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=")
_PYTHON = re.compile(r"(?:.*/)?(?:python|pypy)[\d.]*t?(?:\.exe)?$")
_COMMAND_OPTION = re.compile(r"-[a-zA-Z]*c$")


def assignment(word: Field, how: EnvHow, skip: int = 0) -> EnvItem | None:
    """The variable that a ``NAME=value`` word sets, reading from its ``skip``-th character on."""
    chars = word.chars[skip:]
    match = _ASSIGNMENT.match(chars.text)
    if match is None:
        return None
    value = chars[match.end() :]
    start, end = chars.span(match.end(), len(chars.text)) if value.text else (word.end, word.end)
    name_at = chars.span(0, match.end() - 1)
    if not start <= end:
        start, end = word.start, word.end
    quoted = any(layer in ("shell-double", "shell-single") for layer in value.layers)
    # A quoted value is edited as the whole word, so its place is the word.
    if quoted:
        start, end = word.start, word.end
    return EnvItem(match.group(1), Field(value, start, end, word.by_default, layers=word.layers), how, name_at=name_at)


def read_words(words: Sequence[Field], setting: Setting, out: Collector, depth: int = 0, site: object = None) -> bool:
    """Finds the launch in a command and adds it; returns whether there was one.

    Args:
        words: the command after expansion.
        setting: what surrounds it.
        out: where launches go.
        depth: how many scripts the command is nested in.
        site: identifies the command across branches.
    """
    at = 0
    while at < len(words):
        shown = words[at].shown
        base = shown.rsplit("/", 1)[-1]
        if at == 0 and base in _SPEAKERS:
            return False
        if base in _WRAPPERS and at + 1 < len(words) and words[at + 1].shown.rsplit("/", 1)[-1] in _SPEAKERS:
            return False
        if base == "env":
            at, setting = _read_env(words, at + 1, setting)
            continue
        if base in _JOB_COMMANDS:
            setting = _read_job(words[at + 1 :], setting)
        elif base in ("mpirun", "mpiexec"):
            setting = setting.with_env(_mpi_env(words[at + 1 :]))
        elif base in _SHELLS and (script := _shell_script(words, at + 1)) is not None:
            before = len(out.drafts)
            out.script(script.chars, setting, depth)
            return len(out.drafts) > before
        elif base == "eval" and at + 1 < len(words):
            return _run_joined(words[at + 1 :], setting, out, depth)
        elif is_container_run(words, at):
            words, setting = read_container_run(words, at, setting)
            at = 0
            continue
        found = _launcher(words, at)
        if found is not None:
            launcher, first, after = found
            program, argv = tuple(words[first:after]), tuple(words[after:])
            out.add(Draft(launcher, program, argv, setting, words[first].start, words[-1].end, site=site))
            return True
        at += 1
    return _run_strings(words, setting, out, depth)


def _launcher(words: Sequence[Field], at: int) -> tuple[Launcher, int, int] | None:
    """The launcher whose last word is ``words[at]``: its kind, its first word and the first word after it."""
    text = words[at].text
    if text is None:
        return None
    before = words[at - 1].text if at else None
    if before == "-m":
        first = at - 1 - (at > 1 and _is_python(words[at - 2]))
        module = text
        if module in _MODULES:
            return _MODULES[module], first, at + 1
        if module.startswith("dynamo.sglang."):
            return Launcher.DYNAMO, first, at + 1
        if module in _SERVE_MODULES and at + 1 < len(words) and words[at + 1].text == "serve":
            return Launcher.SERVE, first, at + 2
        return None
    if text == "serve" and before is not None and before.rsplit("/", 1)[-1] == "sglang" and at >= 1:
        return Launcher.SERVE, at - 1, at + 1
    if text.endswith("sglang/launch_server.py") or (
        text.rsplit("/", 1)[-1] == "launch_server.py" and at and _is_python(words[at - 1])
    ):
        return Launcher.LAUNCH_SERVER, at - bool(at and _is_python(words[at - 1])), at + 1
    if text.rsplit("/", 1)[-1] in ("sglang-router", "sglang_router") and not at:
        return Launcher.ROUTER, at, at + 1
    return None


def _is_python(word: Field) -> bool:
    return word.text is None or _PYTHON.match(word.text) is not None


def _read_env(words: Sequence[Field], at: int, setting: Setting) -> tuple[int, Setting]:
    items = []
    while at < len(words):
        shown = words[at].shown
        if shown in ("-u", "--unset", "-C", "--chdir") and at + 1 < len(words):
            at += 2
        elif shown.startswith("-") and shown != "-m":
            at += 1
        elif (item := assignment(words[at], EnvHow.PREFIX)) is not None:
            items.append(item)
            at += 1
        else:
            break
    return at, setting.with_env(items)


def _shell_script(words: Sequence[Field], at: int) -> Field | None:
    """The script of ``bash -lc SCRIPT``."""
    while at + 1 < len(words) and words[at].shown.startswith(("-", "+")):
        if _COMMAND_OPTION.fullmatch(words[at].shown):
            return words[at + 1]
        at += 2 if words[at].shown in ("-o", "+o", "-O") else 1
    return None


def _run_joined(words: Sequence[Field], setting: Setting, out: Collector, depth: int) -> bool:
    from planner.parse.source import Mapped, join

    parts: list[Mapped] = []
    for word in words:
        if parts:
            parts.append(Mapped.at(" ", word.start, word.start))
        parts.append(word.chars)
    before = len(out.drafts)
    out.script(join(parts), setting, depth)
    return len(out.drafts) > before


def _run_strings(words: Sequence[Field], setting: Setting, out: Collector, depth: int) -> bool:
    """A command string inside another command: ``ssh host "python -m ..."``, ``sbatch --wrap="..."``."""
    before = len(out.drafts)
    for word in words:
        shown = word.shown
        if (" " in shown or "\n" in shown) and MENTION.search(shown) is not None:
            match = re.match(r"--?[a-z][\w-]*=", shown)
            out.guess(word.chars[match.end() if match else 0 :], setting, depth)
    return len(out.drafts) > before


def _read_job(words: Sequence[Field], setting: Setting) -> Setting:
    options: list[str] = []
    for index, word in enumerate(words):
        shown = word.shown
        if not shown.startswith("-") and (not options or not words[index - 1].shown.startswith("-")):
            break
        options.append(shown)
        name, _, _ = shown.partition("=")
        if name == "--container-image" and word.text is not None:
            from planner.parse.containers import with_image

            setting = with_image(setting, word, len("--container-image="))
        if name == "--export" and word.text is not None:
            at, items = len("--export="), []
            for part in word.text[at:].split(","):
                piece = replace(word, chars=word.chars[at : at + len(part)])
                if (item := assignment(piece, EnvHow.EXPORT)) is not None:
                    items.append(item)
                at += len(part) + 1
            setting = setting.with_env(items)
    return replace(setting, job=merge_jobs(setting.job, job_facts(options)))


def _mpi_env(words: Sequence[Field]) -> list[EnvItem]:
    items = []
    for index, word in enumerate(words[:-1]):
        if word.shown in ("-x", "-env", "-genv") and (item := assignment(words[index + 1], EnvHow.PREFIX)) is not None:
            items.append(item)
    return items
