"""The evidence of a failed test in words: which case it was, and what was wrong there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CASE = ("case", "sizes", "family", "seed")
_MISMATCH = ("argument", "kind", "index", "got", "expected", "worst_error", "bound", "wrong", "of")
_TOLD = frozenset((*_CASE, *_MISMATCH, "unlimited"))  # of which the remark speaks


def failure_lines(evidence: Mapping[str, Any]) -> list[str]:
    """A line for the case, one for what was wrong, and one for each thing beside. What is no failed test is
    told key by key."""
    known = {key: value for key, value in evidence.items() if value is not None}
    if "case" not in known or not isinstance(known.get("sizes"), Mapping):
        return [_line(key, value) for key, value in known.items()]
    sizes = ", ".join(f"{name}={value}" for name, value in known["sizes"].items()) or "the fixed sizes"
    lines = [_line("case", f"{known['case']}: {sizes}; values {known.get('family')!r}, seed {known.get('seed')}")]
    if "argument" in known:
        lines.append(_line("wrong", _mismatch(known)))
    elif "kind" in known:
        at = f" (line {known['line']})" if "line" in known else ""
        lines.append(_line("fault", f"{known['kind']}: {known.pop('detail', '')}{at}"))
        known.pop("line", None)
    return lines + [_line(key, value) for key, value in known.items() if key not in _TOLD]


def _mismatch(known: Mapping[str, Any]) -> str:
    place = f"{known['argument']}[{', '.join(map(str, known['index']))}]" if known["index"] else known["argument"]
    share = f"{known['wrong']} of {known['of']} elements"
    if known["kind"] == "unwritten":
        # By what it holds, which a small type may hold by chance.
        held = "" if isinstance(known["got"], str) else f" (it is {_number(known['got'])})"
        never = f"{place} was never written, or from outside a buffer{held}"
        return f"{never}, expected {_number(known['expected'])} ({share})"
    off = ""
    if known["kind"] == "value" and known["bound"] != 0 and not isinstance(known["worst_error"], str):
        off = f"off by {known['worst_error']:.3g}, allowed {_number(known['bound'], 3)}; "
    return f"{place} is {_number(known['got'])}, expected {_number(known['expected'])} ({off}{share})"


def _number(value: float | str, digits: int = 17) -> str:
    """As short as tells it from its neighbours: whole numbers without a point, NaN and infinities as they are spelt."""
    if isinstance(value, str):
        return value
    return f"{value:.{digits}g}" if value.is_integer() else f"{value:.{min(digits, 9)}g}"


def _line(key: str, value: object) -> str:
    return f"  {key:<12} {value}"
