"""assume-aligned: records are read and written whole, where the arrays that they lie in are aligned.

``struct Body { float x, y, z, w; };`` is as aligned as a float, so that compilers copy one by four accesses of four
bytes each. Where a pointer is known to be aligned (``__builtin_assume_aligned``), so are all elements whose size is a
multiple of that, and they make it one access of 16 bytes, of copies as of members one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import gcd

from fsr.analysis.types import bare, resolved
from fsr.hardware.c_types import BY_DTYPE, LANES, element_bytes
from fsr.records import Candidate
from fsr.source.arrays import shared_in_front
from fsr.source.form import Call, Cast, Comment, Declare, Expr, If, Literal, Name, Param, conjunction
from fsr.source.mapping import substitute
from fsr.source.walk import (
    Block,
    contains_opaque,
    fresh,
    names_assigned,
    names_mentioned,
    taken_names,
    variables,
)
from fsr.transform.collectives import missing_helpers
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, target_of, targets

BYTES = 16  # of the widest access
_GAIN = 1.2
_ASSUMES = "__builtin_assume_aligned"


@dataclass(frozen=True, slots=True)
class AssumeAligned:
    """Pointers to records told to be aligned, in a way of its own where the contract does not promise that they are."""

    name: str = "assume-aligned"
    aims_at: frozenset[str] = frozenset(["bandwidth", "instructions", "uncoalesced", "latency"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """One move a kernel that is given records."""
        for target in targets(subject):
            if _records(target) and shared_in_front(target.kernel.body) is not None:
                yield Move(self.name, target.region, (), _GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate; with the kernel's work twice, unless every pointer is promised to be aligned."""
        target = target_of(subject, move)
        records, shared = _records(target), shared_in_front(target.kernel.body)
        assert shared is not None
        rest = tuple(s for s in target.kernel.body if not any(s is one for one in shared))
        taken = set(target.names | taken_names(target.kernel))
        told, own = list[Declare](), dict[str, Expr]()
        for p in records:
            name = fresh(f"{p.name}_aligned", taken)
            taken.add(name)
            assumed = Cast(p.type, Call(Name(_ASSUMES), (Name(p.name), Literal(str(BYTES)))), "static_cast")
            told.append(Declare(f"{p.type}__restrict__ " if p.restrict else p.type, name, assumed))
            own[p.name] = Name(name)
        whole: Block = (*told, *substitute(rest, own))
        asked = [p.name for p in records if target.alignment(p.name) % BYTES]
        test = conjunction([Call(Name("fsr_aligned"), (Name(name),), (str(BYTES),)) for name in asked])
        note = Comment("// aligned records are read and written whole")
        body: Block = (*shared, note, *whole) if test is None else (*shared, note, If(test, whole, rest))
        helpers = missing_helpers(target.source, ("fsr_aligned",) if asked else ())
        return rewritten(target, move, replace(target.kernel, body=body), helpers=helpers)


def _records(target: Target) -> tuple[Param, ...]:
    """The pointers to what the file itself puts together of several numbers, as long as they stay what they are."""
    body = target.kernel.body
    fixed = names_mentioned(body) - names_assigned(body) - set(variables(body))
    if contains_opaque(body) or _ASSUMES in target.source:
        return ()
    return tuple(p for p in target.kernel.params if p.name in fixed and _is_record(p, target))


def _is_record(p: Param, target: Target) -> bool:
    if p.type.count("*") != 1 or "volatile" in p.type:
        return False
    element = resolved(bare(p.type.replace("*", "")), target.aliases)
    if element_bytes(element) is not None or element in ("bool", "void") or element in LANES:
        return False
    found = target.argument(p.name)
    known = None if found is None else BY_DTYPE.get(found.dtype)
    if found is None or known is None or not found.shape:
        return False
    last = found.shape[-1]
    return not last.isdigit() or gcd(int(last) * known.bytes, BYTES) > known.bytes
