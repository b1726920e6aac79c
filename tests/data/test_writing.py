"""Files are whole or absent; devices and links are written through, never replaced."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from planner.data.writing import write_atomically


def test_a_file_keeps_its_mode_or_takes_the_one_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "a"
    write_atomically(file, "one\r\n")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o640)
    write_atomically(file, "two\n", mode=None)
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("two\n", 0o640)
    assert os.listdir(tmp_path) == ["a"]


def test_a_pipe_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    """As root, a rename onto /dev/null takes the device away from the whole machine."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(pipe, "text\n")
        assert os.read(reader, 100) == b"text\n"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_failure_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a"
    file.write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(file, "new")
    assert file.read_text() == "old"
    assert os.listdir(tmp_path) == ["a"]
