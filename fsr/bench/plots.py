"""Plots of a benchmark, by matplotlib, which is imported here only."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from fsr.bench.results import Record
from fsr.errors import MissingToolError

_NAIVE, _PEER, _LINE = "#4477aa", "#ee6677", "#666666"  # of Tol's palette for the colour-blind


def draw(records: Collection[Record], folder: Path) -> list[Path]:
    """Write speedup.svg, and roofline.svg where rates were measured. Raises MissingToolError without matplotlib."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plot
    except ImportError as error:
        raise MissingToolError(
            f"matplotlib cannot be imported ({error})", expected="it, for the plots", fix="pip install 'fsr[bench]'"
        ) from error
    made = [_speedups(plot, records, folder / "speedup.svg")]
    placed = [r for r in records if r.flops and r.bytes and r.flops_per_s and r.copy_bytes_per_s and r.times_ns]
    if placed:
        made.append(_roofline(plot, placed, folder / "roofline.svg"))
    return made


def _speedups(plot: Any, records: Collection[Record], path: Path) -> Path:
    shown = sorted((r for r in records if r.speedup), key=lambda r: r.speedup or 0.0)
    figure, axes = plot.subplots(figsize=(8, 1.5 + 0.25 * len(shown)), layout="constrained")
    places = range(len(shown))
    axes.scatter([r.speedup for r in shown], places, color=_NAIVE, label="over the naive kernel")
    compared = [(r.against_peer, i) for i, r in enumerate(shown) if r.against_peer]
    if compared:
        axes.scatter(*zip(*compared, strict=True), color=_PEER, marker="D", label="over the best peer")
    axes.axvline(1.0, color=_LINE, linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks(list(places), [r.workload for r in shown])
    axes.set_xlabel("speed-up" + (" (predicted)" if any(r.basis == "predicted" for r in shown) else ""))
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(path)
    plot.close(figure)
    return path


def _roofline(plot: Any, records: Collection[Record], path: Path) -> Path:
    """Operations a second over operations a byte that must move, under the two measured ceilings."""
    first = next(iter(records))
    assert first.copy_bytes_per_s and first.flops_per_s  # draw() chose those that have them  # noqa: PT018
    figure, axes = plot.subplots(figsize=(8, 6), layout="constrained")
    points = []
    for record in records:
        assert record.flops and record.bytes  # noqa: PT018
        points.append((record.flops / record.bytes, record))
    low, high = min(x for x, _ in points) / 2, max(x for x, _ in points) * 2
    ridge = first.flops_per_s / first.copy_bytes_per_s
    ends = sorted({low, min(max(ridge, low), high), high})
    axes.plot(ends, [min(x * first.copy_bytes_per_s, first.flops_per_s) / 1e9 for x in ends], color=_LINE)
    for name, colour, marker in (("naive", _LINE, "o"), ("winner", _NAIVE, "o"), ("peer", _PEER, "D")):
        reached = [
            (x, r.flops / time_ns)
            for x, r in points
            if r.flops and (time_ns := r.times_ns.get((r.best_peer or "") if name == "peer" else name))
        ]
        if reached:
            axes.scatter(*zip(*reached, strict=True), color=colour, marker=marker, s=18, label=name)
    for x, record in points:
        if record.flops and "winner" in record.times_ns:
            axes.annotate(record.workload, (x, record.flops / record.times_ns["winner"]), fontsize=6)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("operations a byte that must move")
    axes.set_ylabel("GFLOP/s; the line: measured copy rate and FP32 peak")
    axes.legend(loc="lower right")
    figure.savefig(path)
    plot.close(figure)
    return path
