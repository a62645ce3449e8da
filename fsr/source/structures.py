"""Structures and vectors that kernels take by value: the members that can be passed one by one, and where they lie."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fsr.hardware.c_types import BY_DTYPE, LANES, ElementType
from fsr.source.conditionals import taken
from fsr.source.declared_members import Declaration, NotPlain, Record, members_of
from fsr.source.integers import integer_of, integers
from fsr.source.macros import macros_of
from fsr.source.pieces import Piece
from fsr.source.tokens import Token, close_angle, spelt, split_commas, tokenize
from fsr.source.types import aliases_of, plain_type, resolve_dtype

MOST_MEMBERS = 512  # passed one by one; a table of more belongs into a buffer
_POINTER_BYTES = 8
_NOISE = frozenset(("const", "volatile", "struct", "class", "typename", "__grid_constant__", "register"))


@dataclass(frozen=True, slots=True)
class Leaf:
    """A member that is a number or a pointer. ``path``: ``a.b[1].c``. ``type``: as a parameter has it, without name.
    ``offset``: bytes from the structure's beginning; ``dtype``: None for what is no number, and for a pointer."""

    path: str
    type: str
    offset: int
    bytes: int
    pointer: bool = False
    dtype: str | None = None


@dataclass(frozen=True, slots=True)
class Structure:
    """What a parameter's type holds, and its size and alignment in bytes. ``initialiser``: how one is put together with
    braces, ``@`` for each leaf in order; '' where it has constructors. ``assignable``: whether one can be made without
    arguments and given its members one by one. ``constant_calls``: member functions that leave it as it is."""

    type: str
    leaves: tuple[Leaf, ...]
    bytes: int
    alignment: int
    initialiser: str
    assignable: bool = True
    constant_calls: frozenset[str] = frozenset()


class Structures:
    """Reads the structures that a file's pieces declare. ``within``: the namespaces of who asks. ``open_types``: names
    that stand for types which are not known here, template parameters. ``widened``: as they are where every floating
    number is a double (fsr.testgen.widen); vectors of narrower ones have no such form that is known."""

    def __init__(
        self, pieces: Sequence[Piece], within: tuple[str, ...], open_types: frozenset[str], *, widened: bool = False
    ) -> None:
        self.widened = widened
        self.pieces, self.within, self.open_types = pieces, within, open_types
        self.defined = {p.item.names[0] for p in pieces if p.item.kind == "define" and p.item.names}
        self.aliases = aliases_of(((p.item.kind, p.text, p.namespaces) for p in pieces), within)
        self._integers: Mapping[str, int] | None = None
        self._depth = 0

    def read(self, type_: str) -> Structure:
        """The structure or vector of that name. Raises NotPlain, in words."""
        name, given = self._named(type_)
        if (vector := _vector(name)) is not None:
            return self._of_vector(type_, *vector)
        found = self._declaration(name)
        if found is None:
            raise NotPlain(f"its type {name} is declared in no file that fsr has read", absent=True)
        record = members_of(found, name.rpartition("::")[2], given)
        if self._depth > 8:
            raise NotPlain(f"{name} holds structures more than 8 deep")
        self._depth += 1
        try:
            return self._of_record(type_, record)
        finally:
            self._depth -= 1

    # ------------------------------------------------------------ parts

    def _of_vector(self, type_: str, element: ElementType, count: int, alignment: int) -> Structure:
        if self.widened and _is_narrow(element):
            raise NotPlain(f"{type_} has no form of doubles")
        leaves = tuple(
            Leaf(axis, element.spelling, at * element.bytes, element.bytes, dtype=element.dtype)
            for at, axis in enumerate("xyzw"[:count])
        )
        made = "{" + ", ".join("@" * count) + "}"
        return Structure(type_, leaves, element.bytes * count, alignment, made)

    def _of_record(self, type_: str, record: Record) -> Structure:
        leaves, parts, offset, alignment = list[Leaf](), list[str](), 0, record.alignment
        braces, assignable = not (record.constructors or record.base), record.assignable
        if record.base:
            base = self.read(record.meaning(record.base))
            if base.leaves[-1].offset + base.leaves[-1].bytes != base.bytes:
                raise NotPlain(f"{record.name} is derived from {record.base}, which ends in bytes that nothing fills")
            leaves += base.leaves
            offset, alignment = base.bytes, max(alignment, base.alignment)
            assignable = assignable and base.assignable
        for member in record.members:
            inner = self._of_member(member, record)
            alignment, offset = max(alignment, inner.alignment), _up(offset, inner.alignment)
            braces, assignable = braces and bool(inner.initialiser), assignable and inner.assignable
            parts.append(inner.initialiser)
            for place in range(count := self._count(member)):
                at = offset + place * inner.bytes
                path = member.name + _subscripts(place, [self._extent(d) for d in member.extents])
                for leaf in inner.leaves:
                    full = path + ("" if not leaf.path else leaf.path if leaf.path[0] == "[" else f".{leaf.path}")
                    leaves.append(replace(leaf, path=full, offset=at + leaf.offset))
                if len(leaves) > MOST_MEMBERS:
                    raise NotPlain(f"{record.name} has more than {MOST_MEMBERS} members and elements")
            if member.extents:
                parts[-1] = "{" + ", ".join([inner.initialiser] * count) + "}"
            offset += count * inner.bytes
        if not leaves:
            raise NotPlain(f"{record.name} has no members")
        whole = "{" + ", ".join(parts) + "}" if braces else ""
        size = _up(offset, alignment)
        return Structure(type_, tuple(leaves), size, alignment, whole, assignable, record.constant_calls)

    def _of_member(self, member: Declaration, record: Record) -> Structure:
        """One element of a member."""
        spelling = record.meaning(member.type)
        if member.stars:
            text = f"{spelling} {'*' * member.stars}"
            return _single(Leaf("", text, 0, _POINTER_BYTES, pointer=True))
        dtype, lanes = resolve_dtype(spelling, self.aliases)
        if dtype is not None and lanes == 1:
            known = BY_DTYPE["float64"] if self.widened and _is_narrow(BY_DTYPE[dtype]) else BY_DTYPE[dtype]
            plain = spelling if spelling == member.type else known.spelling
            return _single(Leaf("", _unqualified(plain), 0, known.bytes, dtype=known.dtype))
        if set(re.findall(r"\w+", spelling)) & self.open_types:
            raise NotPlain(f"its member {member.name} is of a type that the kernel's template leaves open ({spelling})")
        try:
            return self.read(spelling)
        except NotPlain as why:
            if why.absent:
                raise NotPlain(f"its member {member.name} is of type {spelling}, which is no number") from None
            raise NotPlain(f"its member {member.name}: {why}") from None

    def _count(self, member: Declaration) -> int:
        count = 1
        for extent in member.extents:
            count *= self._extent(extent)
        if not 1 <= count <= MOST_MEMBERS:
            raise NotPlain(f"its member {member.name} is an array of {count} elements, more than {MOST_MEMBERS}")
        return count

    def _extent(self, text: str) -> int:
        if self._integers is None:
            self._integers = integers("\n".join(p.text for p in self.pieces if p.item.kind in ("define", "variable")))
        value = integer_of(text, dict(self._integers))
        if value is None:
            raise NotPlain(f"an array in it has the extent {text!r}, which is no number here")
        return value

    def _named(self, type_: str) -> tuple[str, tuple[str, ...]]:
        """A type's name and template arguments, aliases followed."""
        for _ in range(16):
            tokens = [t for t in tokenize(type_) if t.text not in _NOISE]
            at = next((i for i, t in enumerate(tokens) if t.text == "<"), None)
            if at is not None:
                close = close_angle(tokens, at) or len(tokens) - 1
                return spelt(tokens[:at]), tuple(spelt(p) for p in split_commas(tokens[at + 1 : close]))
            name = spelt(tokens)
            told = self.aliases.get(name) or self._templated_alias(name)
            if told is None or told == name:
                return plain_type(name, {}), ()
            type_ = told
        return type_, ()

    def _templated_alias(self, name: str) -> str | None:
        """What ``typedef Vec3<float> name;`` stands for."""
        for piece in self.pieces:
            if piece.item.kind == "alias" and name.rpartition("::")[2] in piece.item.names and "{" not in piece.text:
                tokens = tokenize(piece.text)
                if tokens[0].text == "typedef" and not {"(", "*", "["} & {t.text for t in tokens}:
                    return spelt(tokens[1:-2])
        return None

    def _declaration(self, name: str) -> list[Token] | None:
        """The tokens of the record's declaration."""
        bare = name.rpartition("::")[2]
        found = [
            p for p in self.pieces
            if p.item.kind in ("record", "alias") and bare in p.item.names and "{" in p.text
            and "::".join((*p.namespaces, bare)).endswith(name)
        ]  # fmt: skip
        nearest = [p for p in found if self.within[: len(p.namespaces)] == p.namespaces] or found
        if not nearest:
            return None
        if len({p.text for p in nearest}) > 1:
            raise NotPlain(f"{name} is declared {len(nearest)} times, in ways that differ")
        text = nearest[0].text
        if any("#" in p.text and "pack" in p.text for p in self.pieces if p.item.kind == "directive"):
            raise NotPlain("#pragma pack stands in the file")
        tokens = tokenize(text)
        macros = {m.name for m in macros_of(tokenize("\n".join(
            p.text for p in self.pieces if p.item.kind == "define")))} if self.defined else set()  # fmt: skip
        return [t for t in taken(tokens, self.defined) if not (t.text in macros and _is_attribute(t.text))]


def _is_attribute(word: str) -> bool:
    """Whether a macro's name looks like what stands before a member function (HOST_DEVICE)."""
    return word.isupper() and bool(re.search(r"HOST|DEVICE|INLINE|HD|API|EXPORT", word))


def _vector(name: str) -> tuple[ElementType, int, int] | None:
    """Element, count and alignment in bytes of a built-in vector; None for anything else."""
    if name in ("dim3", "uint3"):
        return BY_DTYPE["uint32"], 3, 4
    found = LANES.get(name)
    if found is None:
        single = LANES.get(f"{name[:-1]}2") if name.endswith("1") else None
        return None if single is None else (single[0], 1, single[0].bytes)
    element, count = found
    return element, count, min(16, element.bytes * (1 if count == 3 else count))


def _is_narrow(element: ElementType) -> bool:
    return "float" in element.dtype and element.bytes < 8


def _single(leaf: Leaf) -> Structure:
    return Structure(leaf.type, (leaf,), leaf.bytes, leaf.bytes, "@")


def _unqualified(text: str) -> str:
    return " ".join(word for word in text.split() if word not in ("const", "volatile"))


def _up(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


def _subscripts(place: int, extents: Sequence[int]) -> str:
    """``[1][2]`` of the sixth element of a [2][3]."""
    found = list[str]()
    for extent in reversed(extents):
        found.insert(0, f"[{place % extent}]")
        place //= extent
    return "".join(found)
