"""Times, ratios and shares as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def time_text(time_ns: float) -> str:
    """'842 ns', '12.3 µs', '1.52 ms', '2.1 s'."""
    for limit, unit, scale in ((1e3, "ns", 1.0), (1e6, "µs", 1e3), (1e9, "ms", 1e6)):
        if time_ns < limit:
            return f"{time_ns / scale:.3g} {unit}"
    return f"{time_ns / 1e9:.3g} s"


def ratio_text(ratio: float) -> str:
    """'1.04x', '12.3x'."""
    return f"{ratio:.2f}x" if ratio < 10 else f"{ratio:.1f}x"


def duration_text(seconds: float) -> str:
    """'42 s', '3 min 20 s'."""
    whole = max(0, round(seconds))
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"


def number_text(count: int, thing: str) -> str:
    """'1 winner', '2 winners'."""
    return f"{count} {thing}{'s' * (count != 1)}"


def roofline_text(found: Mapping[str, Any]) -> str:
    """Where a time stands on the roofline, from the result's record: the cold fraction, and without what the L2 may
    keep."""
    words = f"{100 * found['fraction']:.0f} % of this device's copy rate, every input and every output counted once"
    if found.get("kept_bytes"):
        words += f"; {100 * found['drained_fraction']:.0f} % without the outputs that the L2 may keep"
    return words


def bottleneck_text(cause: Mapping[str, Any]) -> str:
    """One cause with what shows it: 'latency, 61 %: 12 of 64 warps run on an SM at a time'."""
    code = f" ({cause['code']})" if cause.get("code") else ""
    return f"{cause['name']}, {100 * cause['share']:.0f} %: {cause['evidence']}{code}"


def defect_text(action: str, counts: Mapping[str, int]) -> str:
    """That candidates of one of fsr's own actions were not what they should have been, and whose fault that is."""
    return f"candidates that fsr made with {action} ({counts_text(counts)}): a fault of fsr, none of your kernel"


def model_text(name: str, told: Mapping[str, Any]) -> str:
    """What a model did and cost: '10 answers, 6 refused (4 prose, 2 unchanged), 4120 tokens, 8 s, $0.004'."""
    refused = told["refused"]
    parts = [f"{told['answers'] + told['replayed']} answers"]
    if refused:
        parts.append(f"{sum(refused.values())} of no use ({counts_text(refused)})")
    if told["failures"]:
        parts.append(f"{told['failures']} failures")
    parts += [f"{told['tokens_in'] + told['tokens_out']} tokens", duration_text(told["seconds"])]
    if told["dollars"]:
        parts.append(f"${told['dollars']:.4g}")
    if told["dollars_a_gain"]:
        parts.append(f"${told['dollars_a_gain']:.4g} a gain")
    return f"{name}: {', '.join(parts)}" + (f"; rests: {told['rests']}" if told["rests"] else "")


_REFUSED = {"invalid": "refused before they ran", "wrong": "refused by the tests"}


def rejected_text(counts: Mapping[str, int]) -> str:
    """What became of candidates that were not taken: '2 slow, 1 refused by the tests'. Words that could be taken as
    said of the original are said of them."""
    return counts_text({_REFUSED.get(name, name): count for name, count in counts.items()})


def counts_text(counts: Mapping[str, int]) -> str:
    """'2 wrong, 1 not compiled'."""
    return ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
