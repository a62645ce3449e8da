"""The table of a benchmark, in Markdown."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from fsr.bench import summary as aims
from fsr.bench.kernels import NAIVE
from fsr.bench.results import WINNER, Record
from fsr.bench.summary import Summary, summed_up

_HEAD = ("workload", "sizes", "naive us", "winner us", "speed-up", "best peer us", "against it", "copy rate",
         "fp32 peak", "what was done")  # fmt: skip
_LONGEST = 160


def table(records: Collection[Record]) -> str:
    """Where, the figures over all, and a line a workload."""
    lines = [f"`fsr bench`: {where(records)}", "", *figures(summed_up(records)), ""]
    lines += [f"| {' | '.join(_HEAD)} |", "|" + "---|" * len(_HEAD)]
    lines += [f"| {' | '.join(row(r))} |" for r in sorted(records, key=lambda r: (r.family, r.workload))]
    lines += missed(records)
    failed = [(r.workload, peer, why) for r in records for peer, why in r.failures.items()]
    if failed:
        lines += ["", "Contenders without a time:", ""]
        lines += [f"- {workload}, {peer}: {_plain(why)}" for workload, peer, why in sorted(failed)]
    return "\n".join(lines) + "\n"


def where(records: Collection[Record]) -> str:
    """Hardware, versions and budget in a line."""
    told = []
    for record in records:
        device = record.device
        if device:
            name = f"{device.get('name')} ({device.get('target') or device.get('arch')})"
            told.append(f"{name}, {record.basis} times, {record.budget_s:g} s a workload")
    versions = dict.fromkeys(f"torch {r.versions['torch']}" for r in records if r.versions.get("torch"))
    return "; ".join(dict.fromkeys(told)) + "".join(f", {v}" for v in versions) if told else "no device answered"


def figures(summary: Summary) -> list[str]:
    """The figures over all, each with what is aimed at."""
    told = [
        f"- {summary.count} workloads, {summary.improved} improved"
        + (f", failed: {', '.join(summary.failed)}" if summary.failed else ""),
        f"- over the naive kernels: {_times(summary.over_naive)} in the geometric mean ({summary.basis}; aim "
        f"{aims.OVER_NAIVE:g}×; a failure counts as 1)",
    ]
    if summary.compared:
        told.append(
            f"- against the best peer of {summary.compared}: {_times(summary.against_peer)} in the geometric mean "
            f"(aim {aims.AGAINST_PEER:g}×), {len(summary.behind)} behind what is aimed at for each"
        )
    if summary.streaming:
        told.append(
            f"- memory-bound ones over 100 MB ({summary.streaming}): {_percent(summary.copy_share)} of the copy rate "
            f"in the median (aim {_percent(aims.COPY_SHARE)})"
        )
    return told


def missed(records: Collection[Record]) -> list[str]:
    """Every workload that misses an aim, by how much, and what the search says of it."""
    by_name, summary = {r.workload: r for r in records}, summed_up(records)
    told = [
        f"- {name}: {_times(r.against_peer)} of {r.best_peer}, aimed at {r.least:g}; {_why(r)}"
        for name in summary.behind
        for r in (by_name[name],)
    ]
    told += [
        f"- {name}: {_percent(by_name[name].copy_share)} of the copy rate; {_why(by_name[name])}"
        for name in summary.slow
    ]
    return ["", "Short of what is aimed at:", "", *told] if told else []


def _why(record: Record) -> str:
    return _plain(record.detail or record.refine.get("why") or record.status)


def row(record: Record) -> list[str]:
    """A line of the table."""
    times, peer = record.times_ns, record.best_peer
    done = ", ".join((record.refine.get("best") or {}).get("actions", []))
    return [
        record.workload, _sizes(record.sizes), _us(times.get(NAIVE)), _us(times.get(WINNER)), _times(record.speedup),
        _peers(times, peer), _times(record.against_peer),
        _percent(record.copy_share), _percent(record.peak_share),
        _plain(record.detail or done or record.refine.get("why") or record.status),
    ]  # fmt: skip


def _sizes(sizes: Mapping[str, int]) -> str:
    return " ".join(f"{name}={value}" for name, value in sizes.items()) or "-"


def _peers(times: Mapping[str, float], best: str | None) -> str:
    """The best peer's time, then the others'."""
    if best is None:
        return "-"
    others = [f"{name} {_us(time)}" for name, time in times.items() if name not in (NAIVE, WINNER, best)]
    return f"{_us(times[best])} ({'; '.join([best, *others])})"


def _us(time_ns: float | None) -> str:
    return "-" if time_ns is None else f"{time_ns / 1e3:,.1f}"


def _times(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f}×"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.0f} %"


def _plain(text: str) -> str:
    said = " ".join(str(text).split()).replace("|", "/")
    return said if len(said) <= _LONGEST else said[: _LONGEST - 3] + "..."
