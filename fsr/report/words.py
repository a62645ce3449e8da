"""Times, ratios and shares as people read them."""

from __future__ import annotations


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
