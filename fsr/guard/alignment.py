"""Vector accesses through pointers whose alignment nothing promises, read from the source.

A CPU carries such accesses out, so the host device cannot see them, and a GPU's allocator hides them until a caller
passes a pointer into the middle of an array. The test here is one of text: a kernel parameter cast to a vector pointer
that is wider than the contract promises, in a source that never looks at an address.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fsr.contract.model import Contract
from fsr.hardware.c_types import LANES
from fsr.hardware.dtypes import numpy_dtype
from fsr.records import Candidate, Fault, FaultKind
from fsr.source.tokens import Token, close_angle, close_of, line_of, tokenize
from fsr.testgen.cases import smallest_alignment

_VECTORS = {name: element.bytes * lanes for name, (element, lanes) in LANES.items() if lanes != 3}
_ADDRESS_TYPES = {"uintptr_t", "intptr_t", "size_t", "uint64_t", "ptrdiff_t"}


def unpromised_alignment(candidate: Candidate, baseline: Candidate, contract: Contract) -> Fault | None:
    """The first cast of a kernel parameter to a vector pointer that is wider than every caller promises (kind
    'misaligned'); None when there is none, when the source tests addresses itself, or when the baseline casts too."""
    promises = {a.name: max(a.alignment, numpy_dtype(a.dtype).itemsize) for a in contract.buffers()}
    tokens = [t for t in tokenize(candidate.source) if t.kind != "directive"]
    if _tests_addresses(tokens) or any(_vector_casts(tokenize(baseline.source))):
        return None
    pointers = set(_pointer_parameters(tokens))
    for name, vector, token in _vector_casts(tokens):
        needed = min(16, _VECTORS[vector])
        promised = promises.get(name, smallest_alignment(contract))
        if name in pointers and needed > promised:
            detail = f"{name!r} is read as {vector}, {needed} bytes aligned; callers promise {promised}"
            return Fault(FaultKind.MISALIGNED, detail, line_of(candidate.source, token.start))
    return None


def _vector_casts(tokens: Sequence[Token]) -> Iterator[tuple[str, str, Token]]:
    """(what is cast: its first name, the vector type, where) of every cast to a pointer to a vector."""
    for index, token in enumerate(tokens):
        if token.text == "reinterpret_cast" and index + 1 < len(tokens):
            close = close_angle(tokens, index + 1)
            inside = tokens[index + 2 : close] if close is not None else []
            after = close + 1 if close is not None else len(tokens)
        elif token.text == "(":
            close = close_of(tokens, index)
            inside = tokens[index + 1 : close] if close is not None and close - index <= 4 else []
            after = close + 1 if close is not None else len(tokens)
        else:
            continue
        types = [t.text for t in inside if t.text in _VECTORS]
        if not types or not inside or inside[-1].text != "*":
            continue
        name = next((t.text for t in tokens[after : after + 4] if t.kind == "name"), "")
        if name:
            yield name, types[0], token


def _tests_addresses(tokens: Sequence[Token]) -> bool:
    """Whether the source turns a pointer into a number, or calls a test of alignment."""
    for index, token in enumerate(tokens[:-1]):
        before = tokens[index - 1].text if index else ""
        if token.text in _ADDRESS_TYPES and before in ("(", "<") and tokens[index + 1].text in (")", ">"):
            return True
        if token.kind == "name" and ("aligned" in token.text.lower() or token.text == "alignof"):
            return True
    return False


def _pointer_parameters(tokens: Sequence[Token]) -> Iterator[str]:
    """Names that stand after a star and before a comma or a closing parenthesis, as parameters do."""
    qualifiers = ("__restrict__", "__restrict", "restrict", "const")
    for index in range(2, len(tokens) - 1):
        at = index - 1
        while tokens[at].text in qualifiers:
            at -= 1
        if tokens[index].kind == "name" and tokens[at].text == "*" and tokens[index + 1].text in (",", ")"):
            yield tokens[index].text
