"""Which workers a run gets."""

from __future__ import annotations

import os

import pytest

from fsr.errors import UsageError
from fsr.workers.select import open_workers


def test_one_compile_worker_a_core_and_one_for_the_device() -> None:
    workers = open_workers(None, None, "host")
    assert workers.size("compile") == len(os.sched_getaffinity(0))
    assert workers.size("device") == 1


def test_as_many_as_asked_for() -> None:
    assert open_workers(3, None, "host").size("compile") == 3


def test_none_is_refused() -> None:
    with pytest.raises(UsageError, match="0 compile workers") as caught:
        open_workers(0, None, "host")
    assert caught.value.where == "--workers"
