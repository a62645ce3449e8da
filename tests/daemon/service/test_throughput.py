"""Two devices share a folder of kernels; benchmarks/daemon_throughput.py measures it on GPUs, with what is run here."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from benchmarks.daemon_throughput import compared
from fsrd.config import RunTable
from fsrd.service.devices import Slot
from tests.daemon.stand_in import COMMAND, kernel


def test_eight_kernels_are_shared_by_two_devices_and_each_is_refined_once(tmp_path: Path) -> None:
    (tmp_path / "given").mkdir()
    kernels = [kernel(tmp_path / "given", f"k{n}", "work 0.2") for n in range(8)]
    slots = (Slot("cuda:0", "H200"), Slot("cuda:1", "H200"))
    found = compared(kernels, slots, tmp_path / "out", RunTable(), COMMAND)
    for count in ("1", "2"):
        rows = found[count]["kernels"]
        assert sorted(row["kernel"] for row in rows) == [f"k{n}.cu" for n in range(8)]
        assert {row["status"] for row in rows} == {"improved"}
    on = Counter(row["device"] for row in found["2"]["kernels"])
    assert set(on) == {"cuda:0", "cuda:1"}
    assert min(on.values()) >= 2
    assert json.loads((tmp_path / "out" / "daemon_throughput.json").read_text())["ratio"] == found["ratio"]
