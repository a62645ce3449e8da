"""Products of warpgroups, whose sums are written long after the statement: calls that are told where they lie."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from fsr.backends.host.ptx.statement import Operand, Statement

HEADER = "fsr/wgmma.h"
_TYPES = {"f16": "__half", "bf16": "__nv_bfloat16"}
_NUMBER = r"-?\d+|%\d+"
_WGMMA = re.compile(
    r"wgmma\.mma_async\.sync\.aligned\.m64n(?P<n>\d+)k16\.f32\.(?P<type>bf16|f16)\.(?P=type) "
    r"\{(?P<sums>[%\d, ]*)\}, ?(?P<a>%\d+|\{[%\d, ]*\}), ?(?P<b>%\d+), ?(?P<keep>1|0|p|%\d+), ?"
    rf"(?P<scale_a>{_NUMBER}), ?(?P<scale_b>{_NUMBER})(?:, ?(?P<across_a>{_NUMBER}))?, ?(?P<across_b>{_NUMBER})"
)
# The predicate that says whether sums are added to.
_KEPT = re.compile(
    r"\{ ?\.reg ?\.pred p; setp\.ne\.b32 p, ?(?P<keep>%\d+), ?0; "
    r"(?P<rest>wgmma\.mma_async[^;]*), ?p,(?P<last>[^;]*); ?\}"
)
_Operands = Sequence[str]


def product(statement: Statement) -> tuple[str, tuple[str, ...]] | None:
    """The call that stands for a statement of one instruction of wgmma's, and its headers; None for all others."""
    text, keep = _spaced(statement.template), ""
    operands = [_float(operand) if operand.constraint == "+r" else operand.text for operand in statement.operands]
    if found := _KEPT.fullmatch(text):
        keep, text = found["keep"], f"{found['rest']}, p,{found['last']};"
    if not text.endswith(";") or ";" in text[:-1]:
        return None
    for pattern, made in _MEANINGS:
        known = re.fullmatch(pattern, text[:-1].rstrip())
        call = made(known, [*operands, keep]) if known is not None else None
        if call is not None:
            return call, (HEADER,)
    return None


def _spaced(text: str) -> str:
    """With one space behind commas and before vectors, and none inside of their braces."""
    text = re.sub(r" ?, ?", ", ", " ".join(text.split()))
    return re.sub(r" ?\{ ?(%\d[%\d, ]*?) ?\}", r" {\1}", text)


def _float(operand: Operand) -> str:
    """A sum that is kept as bits."""
    return f"reinterpret_cast<float&>({operand.text})"


def _wait(found: re.Match[str], operands: _Operands) -> str | None:
    prior = _value(found["prior"], operands)
    return None if prior is None else f"fsr_ptx::wgmma_wait({prior})"


def _value(text: str, operands: _Operands) -> str | None:
    """The C text of an instruction's operand: a number, or ``%`` and one. The last of the operands is none of them."""
    if not text.startswith("%"):
        return text
    return operands[int(text[1:])] if int(text[1:]) < len(operands) - 1 else None


def _product(found: re.Match[str], operands: _Operands) -> str | None:
    registers = found["a"].startswith("{")
    names = [*re.findall(r"%\d+", found["sums"]), *re.findall(r"%\d+", found["a"]), found["b"]]
    values = [_value(x, operands) for x in names]
    count, words = int(found["n"]) // 2, 4 if registers else 1
    way = _way(found, operands)
    if None in values or len(values) != count + words + 1 or registers == bool(found["across_a"]) or way is None:
        return None
    sums, factor, b = [str(x) for x in values[:count]], [str(x) for x in values[count:-1]], values[-1]
    across = [_flag(x, operands) for x in (found["across_a"], found["across_b"]) if x]
    if None in across:
        return None
    kinds = f"{_TYPES[found['type']]}, {found['n']}, {', '.join(map(str, across))}"
    places = f"{{{', '.join(f'&({x})' for x in sums)}}}"
    if registers:
        return f"fsr_ptx::wgmma<{kinds}>({places}, {b}, {{{way or 'true, 1'}, {{{', '.join(factor)}}}}})"
    name = re.fullmatch(r"(.+)\[0\]", sums[0])
    if name and sums == [f"{name[1]}[{n}]" for n in range(count)]:
        places = f"&({sums[0]})"
    return f"fsr_ptx::wgmma<{kinds}>({places}, {factor[0]}, {b}{f', {{{way}}}' if way else ''})"


def _flag(text: str, operands: _Operands) -> str | None:
    value = _value(text, operands)
    return {"1": "true", "0": "false"}.get(str(value), f"({value}) != 0") if value is not None else None


def _way(found: re.Match[str], operands: _Operands) -> str | None:
    """Whether sums are kept, and the sign of products; empty where they are as usual."""
    keep, a, b = operands[-1], *(_value(found[x], operands) for x in ("scale_a", "scale_b"))
    if a is None or b is None or (found["keep"] == "p") != bool(keep):
        return None
    kept = str(_value(keep or found["keep"], operands))
    if (kept, a, b) == ("1", "1", "1"):
        return ""
    return f"({kept}) != 0, (float)(({a}) * ({b}))"


_MEANINGS: tuple[tuple[str | re.Pattern[str], Callable[[re.Match[str], _Operands], str | None]], ...] = (
    (r"wgmma\.fence\.sync\.aligned", lambda found, operands: "fsr_ptx::wgmma_fence()"),
    (r"wgmma\.commit_group\.sync\.aligned", lambda found, operands: "fsr_ptx::wgmma_commit()"),
    (r"wgmma\.wait_group\.sync\.aligned (?P<prior>\d+|%\d+)", _wait),
    (_WGMMA, _product),
)
