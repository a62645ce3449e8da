"""Inline PTX that the host device executes: asm statements of single instructions with a host meaning become calls of
functions in ``fsr/emulator/include/fsr/wgmma.h``, on the same lines. What a statement says is read from its own text,
so that what is executed here is what the GPU is told. All others stay, for the compiler to refuse.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

HEADER = "fsr/wgmma.h"
_ASM = re.compile(r"\b(?:asm|__asm__|__asm)\b\s*(?:(?:volatile|__volatile__)\b\s*)*\(")
_STRING = re.compile(r'"[^"]*"')
_OPERAND = re.compile(r'"[^"]*" ?\( ?(?P<text>.*?) ?\)')
_TYPES = {"f16": "__half", "bf16": "__nv_bfloat16"}
_WGMMA = re.compile(
    r"wgmma\.mma_async\.sync\.aligned\.m64n(?P<n>\d+)k16\.f32\.(?P<type>bf16|f16)\.(?P=type) "
    r"\{(?P<sums>[%\d, ]*)\}, (?P<a>%\d+), (?P<b>%\d+), 1, 1, 1, (?P<across_a>[01]), (?P<across_b>[01])"
)
Operands = Sequence[str]


def rewrite_ptx(source: str, blanked: str) -> str:
    """The text with those statements replaced; it needs HEADER then, which nothing else does. ``blanked``: the same
    with spaces in place of comments and of what is between quotes."""
    parts, end = list[str](), 0
    for found in _ASM.finditer(blanked):
        stop = _close(blanked, found.end())
        statement = None if stop is None else _statement(source, blanked, found.end(), stop - 1)
        call = None if statement is None else _call(*statement)
        if stop is None or call is None:
            continue
        parts += [source[end : found.start()], call, "\n" * source.count("\n", found.start(), stop)]
        end = stop
    return "".join([*parts, source[end:]])


def _close(blanked: str, at: int) -> int | None:
    """Behind the bracket that closes the one before ``at``; None when it never closes."""
    depth = 1
    for place in re.finditer(r"[()]", blanked[at:]):
        depth += 1 if place[0] == "(" else -1
        if depth == 0:
            return at + place.end()
    return None


def _statement(source: str, blanked: str, start: int, stop: int) -> tuple[str, list[str]] | None:
    """The one instruction of an asm statement, and its operands; None where it holds another number of them."""
    sections = [*_split(blanked, start, stop, ":"), (stop, stop), (stop, stop)]
    template = blanked[slice(*sections[0])]
    if template.replace('"', "").strip():
        return None
    text = "".join(source[start + a + 1 : start + b - 1] for a, b in (m.span() for m in _STRING.finditer(template)))
    text = " ".join(re.sub(r"\\[nt]", " ", text).split())
    places = [one for section in sections[1:3] for one in _split(blanked, *section, ",")]
    operands = [_OPERAND.fullmatch(" ".join(source[a:b].split())) for a, b in places if blanked[a:b].strip()]
    if not text.endswith(";") or ";" in text[:-1] or None in operands:
        return None
    return text[:-1].rstrip(), [x["text"] for x in operands if x is not None]


def _split(blanked: str, start: int, stop: int, mark: str) -> list[tuple[int, int]]:
    """The places of what stands between marks outside of brackets."""
    places, depth = [start], 0
    for at in range(start, stop):
        depth += (blanked[at] in "([{") - (blanked[at] in ")]}")
        if depth == 0 and blanked[at] == mark:
            places.append(at + 1)
    return [(a, b - 1) for a, b in zip(places, [*places[1:], stop + 1], strict=True)]


def _call(instruction: str, operands: Operands) -> str | None:
    """The call that stands for an instruction; None where it has no host meaning."""
    for pattern, made in _MEANINGS:
        found = re.fullmatch(pattern, instruction)
        if found is not None:
            return made(found, operands)
    return None


def _wait(found: re.Match[str], operands: Operands) -> str | None:
    prior = _value(found["prior"], operands)
    return None if prior is None else f"fsr_ptx::wgmma_wait({prior})"


def _value(text: str, operands: Operands) -> str | None:
    """The C text of an instruction's operand: a number, or ``%`` and one."""
    if text.isdigit():
        return text
    return operands[int(text[1:])] if int(text[1:]) < len(operands) else None


def _product(found: re.Match[str], operands: Operands) -> str | None:
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


_MEANINGS: tuple[tuple[str | re.Pattern[str], Callable[[re.Match[str], Operands], str | None]], ...] = (
    (r"fence\.proxy\.async(?:\.shared::cta)?", lambda found, operands: "fsr_ptx::proxy_fence()"),
    (r"wgmma\.fence\.sync\.aligned", lambda found, operands: "fsr_ptx::wgmma_fence()"),
    (r"wgmma\.commit_group\.sync\.aligned", lambda found, operands: "fsr_ptx::wgmma_commit()"),
    (r"wgmma\.wait_group\.sync\.aligned (?P<prior>\d+|%\d+)", _wait),
    (_WGMMA, _product),
)
