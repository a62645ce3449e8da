"""Plots are drawn where matplotlib is."""

from __future__ import annotations

from pathlib import Path

import pytest

from fsr.bench.plots import draw
from fsr.bench.results import Record


def test_two_plots_where_rates_were_measured(tmp_path: Path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'fsr[bench]'")
    record = Record(
        "fast", "maps", "improved", "measured", 60.0, times_ns={"naive": 4e3, "winner": 1e3, "torch": 5e2},
        bytes=2e6, flops=1e6, copy_bytes_per_s=4e12, flops_per_s=6e13,
    )  # fmt: skip
    made = draw([record], tmp_path)
    assert [path.name for path in made] == ["speedup.svg", "roofline.svg"]
    assert all("<svg" in path.read_text() for path in made)
