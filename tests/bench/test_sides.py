"""A side in a process of its own answers, says what went wrong, and never takes the asker with it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fsr.bench.sides import ProcessSide, SideFailureError
from fsr.errors import UsageError


class Counting:
    """What the side holds."""

    def __init__(self, first: int) -> None:
        self.number = first

    def count(self, by: int) -> int:
        self.number += by
        return self.number

    def refuse(self) -> None:
        raise UsageError("not here")

    def fail(self) -> None:
        raise ValueError("of the peer")

    def die(self) -> None:
        print("last words", flush=True)
        os._exit(3)

    def close(self) -> None:
        print("closed", flush=True)


def test_a_side_answers_and_its_faults_are_told(tmp_path: Path):
    side = ProcessSide("tests.bench.test_sides:Counting", 40, tmp_path / "log")
    try:
        assert [side.ask("count", n, limit_s=60) for n in (1, 1)] == [41, 42]
        with pytest.raises(UsageError, match="not here"):
            side.ask("refuse", limit_s=10)
        with pytest.raises(SideFailureError, match="ValueError: of the peer") as told:
            side.ask("fail", limit_s=10)
        assert not told.value.lost
        with pytest.raises(SideFailureError, match=r"ended with 3: (.|\n)*last words"):
            side.ask("die", limit_s=10)
    finally:
        side.close()
