"""Files that somebody named: plain ones of a sensible size, everything else told in words and at once."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from fsr.files import MOST_BYTES, Unreadable, read_file


def test_a_plain_file_and_a_link_to_one(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"text")
    (tmp_path / "b").symlink_to("a")
    assert read_file(tmp_path / "a") == read_file(str(tmp_path / "b")) == b"text"


def made(tmp_path: Path, kind: str) -> Path:
    path = tmp_path / kind
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "loop":
            path.symlink_to(kind)
        case "dangling":
            path.symlink_to("nowhere")
        case "endless":
            path.symlink_to("/dev/zero")
        case "large":
            with path.open("wb") as file:
                file.truncate(MOST_BYTES + 1)
        case "socket":
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(str(path))
    return path


@pytest.mark.parametrize(
    ("kind", "why", "absent"),
    [
        ("absent", "No such file", True), ("fifo", "a named pipe", False), ("folder", "a folder", False),
        ("loop", "symbolic links", False), ("dangling", "No such file", False), ("endless", "a device", False),
        ("large", "8,388,609 bytes, more than 8,388,608", False), ("socket", "", False), ("a\0b", "a NUL", False),
    ],
)  # fmt: skip
def test_anything_else_is_told(tmp_path: Path, kind: str, why: str, absent: bool) -> None:
    with pytest.raises(Unreadable) as told:
        read_file(made(tmp_path, kind))
    assert why in told.value.why
    assert told.value.absent is absent


def test_a_larger_limit_may_be_asked_for(tmp_path: Path) -> None:
    assert len(read_file(made(tmp_path, "large"), None)) == MOST_BYTES + 1
