"""Nsight Compute's answers, told by a program in its place: a table, refusals, metrics that a GPU lacks, silence."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from fsr.backends.cuda import counters
from fsr.backends.cuda.counters import METRICS, over_launches, read_counters, read_report
from fsr.backends.protocol import Buffer
from fsr.features.schema import Counters
from fsr.records import ConcreteLaunch, Image, Role

LAUNCH = ConcreteLaunch("k", (1, 1, 1), (32, 1, 1), 0, ("x",))
IMAGE = Image("cubin", "sm_90", b"\x7fELF", {"k": "k"}, {})
TABLE = (
    '==PROF== Profiling "k" - 0: 0%....50%....100% - 4 passes\n'
    '"ID","Kernel Name","{}","{}","{}"\n'
    '"","","cycle","%","register/thread"\n'
    '"0","k","1,000","71.5","40"\n'
    '"1","finish","10","2.0","16"\n'
).format(METRICS["cycles"][0], METRICS["dram"][0], METRICS["registers"][0])
REFUSED = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters"


@pytest.fixture
def ncu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a program called ncu on the path; its text is Python that sees its arguments as ``args``."""
    monkeypatch.setattr(counters, "_not_here", set())

    def put(code: str) -> Path:
        program, calls = tmp_path / "ncu", tmp_path / "calls"
        program.write_text(f"#!{sys.executable}\nimport sys\nargs = sys.argv[1:]\n"
                           f"open({str(calls)!r}, 'a').write(' '.join(args) + '\\n')\n{code}\n")  # fmt: skip
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        return calls

    return put


def read():
    return read_counters(IMAGE, [LAUNCH], [Buffer("x", np.ones(8, np.float32), Role.IN)])


def test_the_table_is_read_and_the_clocks_are_left_alone(ncu) -> None:
    calls = ncu(f"print({TABLE!r})")
    counted = read()
    assert (counted.note, counted.never) == ("", False)
    assert counted.counters == Counters(cycles=1010.0, dram=71.5, registers=40.0)
    command = calls.read_text()
    assert "--clock-control=none" in command
    assert "--cache-control=all" in command
    assert "fsr.backends.cuda.replay" in command
    assert all(metric in command for metrics in METRICS.values() for metric in metrics)


def test_metrics_that_the_gpu_lacks_are_left_out_of_a_second_try(ncu) -> None:
    lacking = METRICS["stalled_memory"][0]
    calls = ncu(f"print('==ERROR== Failed to find metric {lacking}' if {lacking!r} in ' '.join(args) else {TABLE!r})")
    assert read().counters is not None
    assert [lacking in line for line in calls.read_text().splitlines()] == [True, False]
    assert read().counters is not None
    assert len(calls.read_text().splitlines()) == 3  # what was learned holds


@pytest.mark.parametrize("said", [REFUSED, "==ERROR== Failed to initialize the profiler: LibraryNotLoaded"])
def test_where_counters_are_not_permitted_a_note_says_so_for_good(ncu, said) -> None:
    ncu(f"print({said!r}); sys.exit(1)")
    counted = read()
    assert counted.counters is None
    assert counted.never
    assert "ncu read no counters: " in counted.note


def test_without_ncu_a_note_says_so_for_good(monkeypatch) -> None:
    monkeypatch.setattr(counters, "find_tool", lambda *_: None)
    counted = read()
    assert counted.never
    assert "ncu is not installed" in counted.note


def test_an_ncu_that_hangs_is_ended(ncu, monkeypatch) -> None:
    monkeypatch.setattr(counters, "TIMEOUT_S", 0.5)
    ncu("import time; time.sleep(60)")
    counted = read()
    assert "did not end within 0.5 s" in counted.note
    assert not counted.never


def test_a_replay_that_fails_is_a_note_and_asked_again() -> None:
    for said in ("replay: out of memory", "==ERROR== The application returned an error code (3)."):
        counted = read_report(f"{said}\n")
        assert counted.counters is None
        assert not counted.never
        assert said in counted.note


def test_launches_are_joined_by_what_a_field_is() -> None:
    rows = [
        {"cycles": 10.0, "instructions": 5.0, "dram": 90.0, "limit_shared": 8.0},
        {"cycles": 100.0, "instructions": 7.0, "dram": 20.0, "limit_shared": 4.0, "registers": 32.0},
    ]
    assert over_launches(rows) == Counters(cycles=110.0, instructions=12.0, dram=20.0, limit_shared=4.0, registers=32.0)
