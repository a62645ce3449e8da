"""Folders built once: complete or not there, and gone when nobody used them for long."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from fsr.backends.host.built_once import IDLE_S, MOST_KEPT, built_once


def filled(path: Path) -> None:
    (path / "part").write_text("whole")


def aged(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_a_folder_is_built_once_and_complete_or_not_there(tmp_path: Path) -> None:
    def fails(path: Path) -> None:
        filled(path)
        raise ValueError("no compiler")

    with pytest.raises(ValueError, match="no compiler"):
        built_once(tmp_path / "header-1", fails)
    assert list(tmp_path.iterdir()) == []
    assert (built_once(tmp_path / "header-1", filled) / "part").read_text() == "whole"
    assert built_once(tmp_path / "header-1", fails) == tmp_path / "header-1"
    assert [p.name for p in tmp_path.iterdir()] == ["header-1"]


def test_the_first_process_wins(tmp_path: Path) -> None:
    def late(path: Path) -> None:
        filled(path)
        built_once(tmp_path / "header-1", lambda other: (other / "part").write_text("first") and None)

    assert (built_once(tmp_path / "header-1", late) / "part").read_text() == "first"
    assert [p.name for p in tmp_path.iterdir()] == ["header-1"]


def test_what_nobody_used_for_long_makes_room(tmp_path: Path) -> None:
    """The least recently used beyond the most go; what was used lately stays, and so does what is no such folder."""
    (tmp_path / "units").mkdir()
    aged(tmp_path / "units", 9 * IDLE_S)
    for number in range(MOST_KEPT + 3):
        built_once(tmp_path / f"header-{number}", filled)
    assert len(list(tmp_path.glob("header-*"))) == MOST_KEPT + 3
    for number in range(6):
        aged(tmp_path / f"header-{number}", (10 - number) * IDLE_S)
    (tmp_path / ".building-left").mkdir()
    aged(tmp_path / ".building-left", 2 * IDLE_S)
    built_once(tmp_path / "header-0", filled)  # used again: it stays
    built_once(tmp_path / "runtime-new", filled)
    gone = {f"header-{n}" for n in range(1, 5)}
    wanted = {f"header-{n}" for n in range(MOST_KEPT + 3)} - gone | {"runtime-new", "units"}
    assert {p.name for p in tmp_path.iterdir()} == wanted
