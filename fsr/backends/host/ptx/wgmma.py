"""Products of warpgroups, whose sums are written long after the statement: calls that are told where they lie."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from fsr.backends.host.ptx.statement import Statement

HEADER = "fsr/wgmma.h"
_TYPES = {"f16": "__half", "bf16": "__nv_bfloat16"}
_WGMMA = re.compile(
    r"wgmma\.mma_async\.sync\.aligned\.m64n(?P<n>\d+)k16\.f32\.(?P<type>bf16|f16)\.(?P=type) "
    r"\{(?P<sums>[%\d, ]*)\}, (?P<a>%\d+), (?P<b>%\d+), 1, 1, 1, (?P<across_a>[01]), (?P<across_b>[01])"
)
_Operands = Sequence[str]


def product(statement: Statement) -> tuple[str, tuple[str, ...]] | None:
    """The call that stands for a statement of one instruction of wgmma's, and its headers; None for all others."""
    text = " ".join(statement.template.split())
    if not text.endswith(";") or ";" in text[:-1]:
        return None
    for pattern, made in _MEANINGS:
        found = re.fullmatch(pattern, text[:-1].rstrip())
        call = made(found, [operand.text for operand in statement.operands]) if found is not None else None
        if call is not None:
            return call, (HEADER,)
    return None


def _wait(found: re.Match[str], operands: _Operands) -> str | None:
    prior = _value(found["prior"], operands)
    return None if prior is None else f"fsr_ptx::wgmma_wait({prior})"


def _value(text: str, operands: _Operands) -> str | None:
    """The C text of an instruction's operand: a number, or ``%`` and one."""
    if text.isdigit():
        return text
    return operands[int(text[1:])] if int(text[1:]) < len(operands) else None


def _product(found: re.Match[str], operands: _Operands) -> str | None:
    values = [_value(x, operands) for x in (*re.findall(r"%\d+", found["sums"]), found["a"], found["b"])]
    count = int(found["n"]) // 2
    if None in values or len(values) != count + 2:
        return None
    sums, (a, b) = [str(x) for x in values[:-2]], values[-2:]
    across = ", ".join("true" if found[x] == "1" else "false" for x in ("across_a", "across_b"))
    name = re.fullmatch(r"(.+)\[0\]", sums[0])
    if name and sums == [f"{name[1]}[{n}]" for n in range(count)]:
        places = f"&({sums[0]})"
    else:
        places = f"{{{', '.join(f'&({x})' for x in sums)}}}"
    return f"fsr_ptx::wgmma<{_TYPES[found['type']]}, {found['n']}, {across}>({places}, {a}, {b})"


_MEANINGS: tuple[tuple[str | re.Pattern[str], Callable[[re.Match[str], _Operands], str | None]], ...] = (
    (r"wgmma\.fence\.sync\.aligned", lambda found, operands: "fsr_ptx::wgmma_fence()"),
    (r"wgmma\.commit_group\.sync\.aligned", lambda found, operands: "fsr_ptx::wgmma_commit()"),
    (r"wgmma\.wait_group\.sync\.aligned (?P<prior>\d+|%\d+)", _wait),
    (_WGMMA, _product),
)
