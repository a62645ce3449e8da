"""What inline assembly asks of the compiler."""

from __future__ import annotations

import itertools
from functools import lru_cache

from fsr.source.tokens import Token, assembly_of, tokenize

_REGISTERS = {"h": 1, "r": 1, "f": 1, "l": 2, "d": 2, "q": 4}  # of 32 bits, by constraint (CUDA's inline PTX guide)


@lru_cache(maxsize=64)
def registers_named(source: str) -> int:
    """The most registers of 32 bits that one assembly statement names as operands: they hold values at the same time,
    and the assembler refuses to put them anywhere else. 0 without such statements."""
    tokens = tokenize(source)
    inside = (tokens[at + 1 : close] for _, at, close in assembly_of(tokens) if close is not None)
    return max(map(_operands, inside), default=0)


def _operands(statement: list[Token]) -> int:
    """Registers of a statement's operands: string literals that a bracket follows."""
    names = (t.text.strip('"').lstrip("=+&") for t, after in itertools.pairwise(statement) if after.text == "(")
    return sum(_REGISTERS.get(name, 0) for name in names)
