"""Shadows of structures held as one value: a structure of their fields' shadows. (Structures of a vector and a float
are returned so, and meet in a phi where branches end.)"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from fsr.backends.host import vectors
from fsr.backends.host.llvm_text import split_arguments

_INSERT = re.compile(r"^(\{ .+? \}) (\S+), (.+) (\S+), (\d+)$")
_EXTRACT = re.compile(r"^(\{ .+? \}) (\S+), (\d+)$")
_SCALAR = re.compile(f"^{vectors.ELEMENT}$")


def shadow_of(type_: str) -> str | None:
    """The type of the shadow of a structure; None of one whose fields are neither scalars nor vectors of them."""
    fields = [f.strip() for f in split_arguments(type_.strip("{} "))]
    kinds = [v.shadow if (v := vectors.of(f)) else "i32" if _SCALAR.match(f) else "" for f in fields]
    return f"{{ {', '.join(kinds)} }}" if kinds and all(kinds) else None


class Aggregates:
    """Instructions on structures, for the function that is being rewritten. ``known``: values whose shadow is one."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.known: set[str] = set()
        phis: dict[str, list[str]] = {}
        for row in function.rows:
            if row is not None and row[2] == "insertvalue" and (found := _INSERT.match(row[3])) and shadow_of(found[1]):
                self.known.add(row[1])
            elif row is not None and row[2] == "phi" and row[3].startswith("{ ") and shadow_of(_type(row[3])):
                phis[row[1]] = re.findall(r"\[ (%\S+), %", row[3])
        self.known |= set(phis)
        while odd := {d for d, values in phis.items() if d in self.known and not self.known.issuperset(values)}:
            self.known -= odd  # what else makes a structure is not followed

    def phi(self, rest: str, name: str, pairs: Sequence[tuple[str, str]]) -> str:
        """A shadow of a phi."""
        ways = ", ".join(f"[ {self._of(value)}, {block} ]" for value, block in pairs)
        return f"  {name} = phi {shadow_of(_type(rest))} {ways}"

    def value(self, op: str, rest: str, dest: str) -> Iterator[str]:
        """The shadow of a field that is taken out or put in; nothing where it is none that is followed."""
        name = self.function.shadow(dest)
        if op == "insertvalue" and dest in self.known and (found := _INSERT.match(rest)):
            type_, held, kind, value, index = found.groups()
            vector = vectors.of(kind)
            shadow = self.function.vectors.shadow(value) if vector else self.function.shadow(value)
            own = f"{vector.shadow if vector else 'i32'} {shadow}"
            yield f"  {name} = insertvalue {shadow_of(type_)} {self._of(held)}, {own}, {index}"
        elif op == "extractvalue" and (found := _EXTRACT.match(rest)) and found[2] in self.known:
            yield f"  {name} = extractvalue {shadow_of(found[1])} {self._of(found[2])}, {found[3]}"

    def _of(self, value: str) -> str:
        followed = value in self.known and value in self.function.tainted
        return str(self.function.shadow(value)) if followed else "zeroinitializer"


def _type(rest: str) -> str:
    return rest[: rest.index("}") + 1]
