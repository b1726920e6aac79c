"""Words of a launch that the reader once lost, so that a flag after them was never judged."""

from __future__ import annotations

import pytest

from planner.parse import parse_text

HEAD = "python3 -m sglang.launch_server --model-path m"

CASES = [
    pytest.param("a.sh", f"{HEAD} `# ranks` --tp 8\n", ["--model-path", "m", "--tp", "8"], id="comment in backticks"),
    pytest.param(
        "a.sh",
        f"{HEAD} `# ränge` \\\n  --tp 8 `#` \\\n  --port 1\n",
        ["--model-path", "m", "--tp", "8", "--port", "1"],
        id="comments in backticks between continued lines",
    ),
    pytest.param("a.sh", f"{HEAD} $(# ranks\n) --tp 8\n", ["--model-path", "m", "--tp", "8"], id="comment in $( )"),
    pytest.param("a.sh", f"{HEAD} `cat ranks` --tp 8\n", ["--model-path", "m", None, "--tp", "8"], id="a command"),
    pytest.param(
        "a.sh",
        f"NOW=`date` # see `# this`\n{HEAD} --tp 8 # and `# that`\n",
        ["--model-path", "m", "--tp", "8"],
        id="backticks inside comments",
    ),
    pytest.param(
        "a.py",
        'args = dict(model_path="m", tp_size=8)\nsgl.Engine(**args)\n',
        ["--model-path", "m", "--tp-size", "8"],
        id="dict call",
    ),
    pytest.param(
        "a.py",
        'base = dict(model_path="m")\nsgl.Engine(**dict(tp_size=8, **base))\n',
        ["--tp-size", "8", "--model-path", "m"],
        id="dict call in a dict call",
    ),
]


@pytest.mark.parametrize(("name", "text", "argv"), CASES)
def test_no_word_is_lost(name: str, text: str, argv: list[str | None]) -> None:
    parsed = parse_text(text, name=name)
    assert [[token.text for token in launch.argv] for launch in parsed.launches] == [argv]


def test_a_dict_of_itself_ends() -> None:
    parsed = parse_text("a = dict(**a)\nsgl.Engine(**a)\n", name="a.py")
    assert not parsed.problems
