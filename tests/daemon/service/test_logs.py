"""The log: turned over before it grows, and never more than a few files."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from fsrd.service import logs


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, put back as it was."""
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield root
    for handler in root.handlers:
        if handler not in before:
            handler.close()
    root.handlers[:] = before
    root.setLevel(level)


def test_logs_are_turned_over_and_the_oldest_go(
    tmp_path: Path, root: logging.Logger, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logs, "MOST_BYTES", 2000)
    logs.set_up(tmp_path / "fsrd.log", foreground=False)
    for number in range(300):
        logging.getLogger("fsrd").info("line %d of what happened", number)
    found = sorted(tmp_path.iterdir())
    assert len(found) == logs.KEPT + 1
    assert all(path.stat().st_size <= 2000 for path in found)
    assert "line 299" in (tmp_path / "fsrd.log").read_text()
    assert capsys.readouterr().err == ""
