"""Writes a launch in every form with random layout and quoting, and knows where it put each word."""

from __future__ import annotations

import json
import random
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

__all__ = ["RENDERERS", "Rendered", "commands"]

_SAFE = re.compile(r"[A-Za-z0-9_./:=,+@%-]+")
_LETTERS = string.ascii_letters + string.digits
_ALPHABET = _LETTERS + " \"'\\$#%{}[]():;,=*?!&|<>~`-_./é漢"
_NAMES = [
    "--model-path",
    "--tp",
    "--mem-fraction-static",
    "--served-model-name",
    "--json-model-override-args",
    "--port",
]
_YAML_SPECIAL = {"true", "false", "null", "yes", "no", "on", "off", "y", "n"}


@dataclass
class Rendered:
    """A text, the offsets of the words after the launcher, and how to ask for its form."""

    text: str = ""
    spans: list[tuple[int, int]] = field(default_factory=list)
    name: str = "<text>"

    def put(self, text: str) -> None:
        self.text += text

    def word(self, raw: str) -> None:
        self.spans.append((len(self.text), len(self.text) + len(raw)))
        self.text += raw


values = st.one_of(
    st.from_regex(_SAFE, fullmatch=True), st.integers(-9, 99999).map(str), st.text(alphabet=_ALPHABET, max_size=10)
).filter(lambda value: not value.startswith("--"))


@st.composite
def commands(draw: st.DrawFn) -> list[str]:
    """Words after the launcher: options with and without values, in both styles."""
    words: list[str] = []
    for name in draw(st.lists(st.sampled_from(_NAMES), min_size=1, max_size=5, unique=True)):
        style = draw(st.sampled_from(["bare", "space", "joined"]))
        if style == "bare":
            words.append(f"--enable-{name[2:]}")
        elif style == "space":
            words += [name, draw(values)]
        else:
            words.append(f"{name}={draw(values)}")
    return words


def shell_word(rng: random.Random, word: str, *, single: bool = True) -> str:
    """The word in a random quoting."""
    if _SAFE.fullmatch(word) and rng.random() < 0.7:
        return word
    if len(word) > 1 and rng.random() < 0.3:
        cut = rng.randrange(1, len(word))
        return shell_word(rng, word[:cut], single=single) + shell_word(rng, word[cut:], single=single)
    style = rng.choice(["single", "double", "backslash"] if single else ["double", "backslash"])
    if style == "single" and "'" not in word:
        return f"'{word}'"
    if style == "backslash" and word and all(ord(char) < 128 for char in word):
        return "".join(char if char in _LETTERS else f"\\{char}" for char in word)
    return '"' + re.sub(r'([\\"$`])', r"\\\1", word) + '"'


def _blank(rng: random.Random, indent: str = "") -> str:
    return rng.choice([" ", "  ", f" \\\n{indent}", f" \\\n{indent}    ", "\t"])


def _command(rng: random.Random, out: Rendered, words: Sequence[str], indent: str = "", *, single: bool = True) -> None:
    launcher = ["python3", "-m", "sglang.launch_server"] if rng.random() < 0.7 else ["sglang", "serve"]
    out.put(" ".join(launcher))
    for word in words:
        out.put(_blank(rng, indent))
        out.word(shell_word(rng, word, single=single))


def shell(rng: random.Random, words: Sequence[str]) -> Rendered:
    out = Rendered()
    out.put(rng.choice(["", "#!/bin/bash\n# é comment's\nset -e\n", "export A='x y'\nB=2\n\n", "cd /x && "]))
    out.put(rng.choice(["", "A=1 ", "exec ", "nohup ", "numactl -N 0 ", "env X='y z' ", "time "]))
    _command(rng, out, words)
    out.put(
        rng.choice(["", "\n", " &\n", " > log 2>&1 &\nwait\n", " | tee 'a b'\n", "  # a comment\n", " || exit 1\n"])
    )
    return out


def shell_array(rng: random.Random, words: Sequence[str]) -> Rendered:
    out = Rendered()
    out.put("ARGS=(")
    for word in words:
        out.put(rng.choice([" ", "\n", "\n  # it's a comment\n  ", "\n\t"]))
        out.word(shell_word(rng, word))
    out.put(rng.choice([")", " )", "\n)", " # end\n)"]) + "\n")
    out.put('python3 -m sglang.launch_server "${ARGS[@]}" &\n')
    return out


def docker_run(rng: random.Random, words: Sequence[str]) -> Rendered:
    out = Rendered()
    out.put(
        f"docker run --gpus all{_blank(rng)}-e A='b c' --shm-size=8g{_blank(rng)}lmsysorg/sglang:v0.5.12{_blank(rng)}"
    )
    _command(rng, out, words)
    return out


def quoted_heredoc(rng: random.Random, words: Sequence[str]) -> Rendered:
    out = Rendered()
    out.put("cat > run.sh <<'EOF'\n#!/bin/bash\n")
    _command(rng, out, words)
    out.put("\nEOF\nbash run.sh\n")
    return out


def bash_c(rng: random.Random, words: Sequence[str]) -> Rendered:
    out = Rendered()
    inner = [word.replace("'", '"') for word in words]
    out.put(rng.choice(["bash -c '", "srun -N 1 bash -lc 'cd /x; "]))
    _command(rng, out, inner, single=False)
    out.put("'\n")
    words[:] = inner  # type: ignore[index]
    return out


def _json_word(rng: random.Random, word: str) -> str:
    return json.dumps(word, ensure_ascii=rng.random() < 0.5)


def _yaml_word(rng: random.Random, word: str) -> str:
    style = rng.choice(["plain", "single", "double"])
    plain = re.fullmatch(r"-{0,2}[A-Za-z][A-Za-z0-9_./=-]*", word) and word.lower() not in _YAML_SPECIAL
    if style == "plain" and plain:
        return word
    return "'" + word.replace("'", "''") + "'" if style == "single" else _json_word(rng, word)


def _items(
    rng: random.Random, out: Rendered, words: Sequence[str], writer: Callable[[random.Random, str], str]
) -> None:
    for index, word in enumerate(words):
        out.put(rng.choice([",", ", ", ",\n      "]) if index else "")
        out.word(writer(rng, word))


def dockerfile(rng: random.Random, words: Sequence[str]) -> Rendered:
    out = Rendered(name="Dockerfile")
    out.put('FROM lmsysorg/sglang:v0.5.12\nENV A=1 B="c d"\n# é\n')
    split = rng.random() < 0.5
    out.put('ENTRYPOINT ["python3", "-m", "sglang.launch_server"' + ("]\nCMD [" if split else ", "))
    for index, word in enumerate(words):
        out.put(rng.choice([",", ", ", ", \\\n    "]) if index else "")
        out.word(_json_word(rng, word))
    out.put("]\n")
    return out


def _dollars(word: str) -> str:
    return word.replace("$", "$$")


def _yaml_list(rng: random.Random, out: Rendered, words: Sequence[str], indent: str) -> None:
    if rng.random() < 0.5:
        out.put(" [python3, -m, sglang.launch_server, ")
        _items(rng, out, [_dollars(word) for word in words], _yaml_word)
        out.put("]\n")
        return
    for word in ("python3", "-m", "sglang.launch_server"):
        out.put(f"\n{indent}- {word}")
    for word in words:
        out.put(rng.choice(["", "  # it's a comment"]) + f"\n{indent}- ")
        out.word(_yaml_word(rng, _dollars(word)))
    out.put("\n")


def compose(rng: random.Random, words: Sequence[str]) -> Rendered:
    out = Rendered(name="compose.yaml")
    out.put("services:\n  é:\n    image: lmsysorg/sglang:v0.5.12\n    command:")
    _yaml_list(rng, out, words, "      ")
    out.put("    ipc: host\n")
    return out


def kubernetes(rng: random.Random, words: Sequence[str]) -> Rendered:
    out = Rendered(name="k.yaml")
    out.put("apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n    image: i:1\n    command:")
    _yaml_list(rng, out, words, "    ")
    out.put("    env: [{name: A, value: b}]\n")
    return out


def kubernetes_script(rng: random.Random, words: Sequence[str]) -> Rendered:
    """A shell script in a block, where the substitution of Kubernetes comes first."""
    out = Rendered(name="k.yaml")
    clean = [word.replace("$", "") for word in words]
    out.put('apiVersion: v1\nkind: Pod\nspec:\n  containers:\n  - name: a\n    image: i:1\n    command: ["sh", "-c"]\n')
    out.put(f"    args:\n    - {rng.choice(['|', '|-', '|+'])}\n      set -e\n      exec ")
    _command(rng, out, clean, "      ")
    out.put("\n    env: [{name: A, value: b}]\n")
    words[:] = clean  # type: ignore[index]
    return out


def systemd(rng: random.Random, words: Sequence[str]) -> Rendered:
    out = Rendered(name="a.service")
    out.put("[Service]\nEnvironment=A=1\nExecStart=/usr/bin/python3 -m sglang.launch_server")
    for word in words:
        out.put(rng.choice([" ", "  ", " \\\n    ", " \\\n# it's a comment\n  "]))
        escaped = word.replace("%", "%%").replace("$", "$$")
        plain = _SAFE.fullmatch(word) and rng.random() < 0.7
        out.word(escaped if plain else '"' + escaped.replace("\\", "\\\\").replace('"', '\\"') + '"')
    out.put("\nRestart=no\n")
    return out


def json_list(rng: random.Random, words: Sequence[str]) -> Rendered:
    out = Rendered(name="a.json")
    out.put('{"a": [1, null], "cmd": ["python3", "-m", "sglang.launch_server", ')
    _items(rng, out, words, _json_word)
    out.put("]}")
    return out


def _python_word(rng: random.Random, word: str) -> str:
    if _SAFE.fullmatch(word) and rng.random() < 0.3:
        return f'"""{word}"""'
    return repr(word) if rng.random() < 0.5 else _json_word(rng, word)


def python_list(rng: random.Random, words: Sequence[str]) -> Rendered:
    out = Rendered(name="a.py")
    out.put("import subprocess\n\n# é\ncmd = ['python3', '-m', \"sglang.launch_server\", ")
    _items(rng, out, words, _python_word)
    out.put("]\nsubprocess.run(cmd)\n")
    return out


def argv(rng: random.Random, words: Sequence[str]) -> Rendered:
    out = Rendered(name="<argv>")
    for index, word in enumerate(words):
        out.put(" " if index else "")
        out.word(shell_word(rng, word))
    return out


RENDERERS: dict[str, Callable[[random.Random, list[str]], Rendered]] = {
    "shell": shell,
    "shell array": shell_array,
    "docker run": docker_run,
    "heredoc": quoted_heredoc,
    "bash -c": bash_c,
    "dockerfile": dockerfile,
    "compose": compose,
    "kubernetes": kubernetes,
    "kubernetes script": kubernetes_script,
    "systemd": systemd,
    "json": json_list,
    "python": python_list,
    "argv": argv,
}
"""A renderer may change ``words`` in place where its form cannot hold a character."""
