"""Whose a process is that NVML lists, where its numbers are those of here and where they are not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fsrd.politeness import numbering
from fsrd.politeness.numbering import OPENING_S, Numbering, computes

ME, CHILD, SECOND = 10, 11, 12


class Container:
    """A container whose processes NVML lists as 7000 and upwards."""

    def __init__(self) -> None:
        self.s, self.computing = 0.0, set[int]()
        self.numbering = Numbering(
            is_nested=True, exists=lambda pid: pid < 100, computing=self.computing.__contains__, clock=lambda: self.s
        )

    def others(self, *listed: int, own: tuple[int, ...] = (ME, CHILD, SECOND), after: float = 0.5) -> set[int]:
        self.s += after
        return self.numbering.others(0, listed, own)


def test_outside_of_containers_a_number_says_whose_it_is() -> None:
    plain = Numbering(is_nested=False, exists=lambda pid: False, computing=lambda pid: True)
    assert plain.others(0, [ME, 7000], [ME]) == {7000}
    same = Numbering(is_nested=True, exists=lambda pid: True, computing=lambda pid: True)
    assert same.others(0, [ME, 42], [ME]) == {42}


def test_in_a_container_what_comes_with_a_run_is_the_runs() -> None:
    box = Container()
    assert box.others(7000) == {7000}  # there before anything of ours
    box.computing.update({CHILD})
    assert box.others(7000) == {7000}  # it has the driver open, and no context yet
    assert box.others(7000, 7001, after=3) == {7000}
    assert box.others(7000, 7001, 7002) == {7000, 7002}  # nothing of ours came with this one
    assert box.others(7000, 7001, 7002, after=3600) == {7000, 7002}


def test_a_run_that_the_list_of_own_processes_does_not_hold_yet_is_known_at_the_next_look() -> None:
    box = Container()
    assert box.others() == set()
    box.computing.update({CHILD})
    assert box.others(7001, own=(ME,)) == {7001}
    assert box.others(7001) == set()
    box.computing.clear()  # it ends, and NVML lists it a moment longer
    assert box.others(7001) == set()
    assert box.others() == set()


def test_a_process_that_never_computes_hides_nobody() -> None:
    box = Container()
    box.computing.update({CHILD})
    assert box.others() == set()
    assert box.others(7005) == set()
    box.computing.update({SECOND})
    assert box.others(7005) == set()
    assert box.others(7005, 7006, after=OPENING_S + 1) == {7006}


def test_own_processes_with_the_driver_open_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = tmp_path / "nvidia-uvm"
    device.touch()
    monkeypatch.setattr(numbering, "COMPUTE", str(device))
    assert not computes(os.getpid())
    with device.open():
        assert computes(os.getpid())
    assert not computes(1 << 22)
