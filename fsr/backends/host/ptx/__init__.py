"""Inline PTX that the host device executes: asm statements become C++ on the same lines, in terms of the functions of
``fsr/emulator/include/fsr/ptx_*.h``. What a statement says is read from its own text, so that what is executed here is
what the GPU is told. One that is not understood becomes a message of the compiler that names the instruction.
"""

from __future__ import annotations

import re

from fsr.backends.host.ptx.refusal import RefusedError
from fsr.backends.host.ptx.statement import Statement, statements
from fsr.backends.host.ptx.translate import translate
from fsr.backends.host.ptx.wgmma import product

_LONGEST = 300  # of a message, characters


def rewrite_ptx(source: str, blanked: str) -> tuple[str, tuple[str, ...]]:
    """The text with asm statements replaced, and the headers that it needs then. ``blanked``: the same text with spaces
    in place of comments and of what is between quotes."""
    parts, end, headers, macros = list[str](), 0, dict[str, None](), _macros(blanked)
    for statement in statements(source, blanked):
        text, needed = _replaced(statement, macros | _parameters(blanked, statement.start))
        if not text:
            continue
        headers |= dict.fromkeys(needed)
        parts += [source[end : statement.start], text, statement.lines]
        end = statement.stop
    return "".join([*parts, source[end:]]), tuple(headers)


def _macros(blanked: str) -> set[str]:
    """The names that the preprocessor would replace in what is written here."""
    return set(re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", blanked, re.MULTILINE))


def _parameters(blanked: str, at: int) -> set[str]:
    """Those of the macro in whose definition a place lies."""
    start = at
    while (start := blanked.rfind("\n", 0, start)) > 0 and blanked[start - 1] == "\\":
        pass
    found = re.match(r"\s*#[ \t]*define[ \t]+\w+\(([^()]*)\)", blanked[start + 1 : at])
    return set(re.findall(r"\w+", found[1])) if found else set()


def _replaced(statement: Statement, macros: set[str]) -> tuple[str, tuple[str, ...]]:
    if statement.unread:
        return _message(RefusedError("asm", statement.unread)), ()
    if statement.template.strip() and ";" not in statement.template:
        return "", ()  # no PTX: a declaration's name for the assembler, or what the compiler refuses whole
    try:
        return product(statement) or translate(statement, macros)
    except RefusedError as refused:
        return _message(refused), ()


def _message(refused: RefusedError) -> str:
    what = refused.what.replace("\\", "").replace('"', "'")[:100]
    why = f": {refused.why}"[:_LONGEST].replace("\\", "").replace('"', "'") if refused.why else ""
    return f'static_assert(false, "fsr host device: inline PTX ({what}) is not executed on the CPU{why}")'
