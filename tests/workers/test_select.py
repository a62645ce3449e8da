"""Which workers a run gets."""

from __future__ import annotations

import os

import pytest

from fsr.errors import UsageError
from fsr.workers.select import open_workers


def test_one_compile_worker_a_core_and_one_for_the_device() -> None:
    workers = open_workers(None, None)
    assert workers.size("compile") == len(os.sched_getaffinity(0))
    assert workers.size("device") == 1


def test_as_many_as_asked_for() -> None:
    assert open_workers(3, None).size("compile") == 3


def test_none_is_refused() -> None:
    with pytest.raises(UsageError, match="0 compile workers") as caught:
        open_workers(0, None)
    assert caught.value.where == "--workers"


def test_several_gpus_are_driven_through_ray_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    from fsr.workers import select

    asked = []
    monkeypatch.setattr("fsr.workers.ray.ray_workers", lambda *args: asked.append(args))
    monkeypatch.setattr(select.importlib.util, "find_spec", lambda name: object())
    open_workers(2, None, ["GPU-a0"])
    assert asked == []
    open_workers(2, None, ["GPU-a0", "GPU-b0"])
    open_workers(2, "local", ["GPU-a0"])
    open_workers(2, "local")
    assert asked == [(2, 2, ["GPU-a0", "GPU-b0"]), (2, 1, ["GPU-a0"]), (2, 1, ())]


def test_without_ray_processes_of_this_machine_drive_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from fsr.workers import select

    monkeypatch.setattr(select.importlib.util, "find_spec", lambda name: None)
    assert open_workers(2, None, ["GPU-a0", "GPU-b0"]).size("device") == 2
