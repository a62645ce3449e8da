"""Kernels that take structures by value, read as kernels that take their members one by one.

Everything behind the reading then sees plain parameters: tests, features, lifting and all moves. What is compiled of
such a kernel, and handed out, has the original's parameters again (:mod:`fsr.source.folding`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fsr.source.declared_members import NotPlain
from fsr.source.entry import function_name
from fsr.source.items import parameters_at, parse_items, strip_head
from fsr.source.launches import HostLaunch
from fsr.source.pieces import Piece, global_words
from fsr.source.structures import Leaf, Structure, Structures
from fsr.source.tokens import Token, close_angle, close_of, spelt, split_commas, tokenize
from fsr.source.types import resolve_dtype
from fsr.source.uses_of_structures import Uses, uses_of


@dataclass(frozen=True, slots=True)
class FlatMember:
    """A member that a kernel uses, under the ``name`` that it has as a parameter; ``path`` from the structure.
    ``offset``: of the parameter block, in bytes. ``used``: False for one that stands for a structure of which nothing
    is used."""

    name: str
    path: str
    type: str
    offset: int
    pointer: bool
    dtype: str | None = None
    used: bool = True


@dataclass(frozen=True, slots=True)
class FlatParameter:
    """A parameter of the original, as ``declared``; a structure has ``members``, ``known`` are all its paths. ``start``
    and ``bytes``: of the parameter block; bytes 0 for a type whose size is not known."""

    name: str
    declared: str
    type: str = ""
    members: tuple[FlatMember, ...] = ()
    known: tuple[str, ...] = ()
    start: int = 0
    bytes: int = 0
    alignment: int = 1


@dataclass(frozen=True, slots=True)
class FlatKernel:
    """A kernel as written (``original``) and as it is read (``flat``)."""

    name: str
    original: str
    flat: str
    params: tuple[FlatParameter, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Its parameters as it is read."""
        return tuple(n for p in self.params for n in ([m.name for m in p.members] or [p.name]))

    @property
    def taken(self) -> frozenset[tuple[str, int, str]]:
        """The members that it is passed, as another form of it must take them."""
        return frozenset((self.name, at, m.path) for at, p in enumerate(self.params) for m in p.members)

    @property
    def measured(self) -> bool:
        """Whether it is known where each parameter lies."""
        return all(p.bytes for p in self.params)

    def structure(self, name: str) -> FlatParameter | None:
        """The structure that a parameter of the original is; None for any other."""
        return next((p for p in self.params if p.name == name and p.members), None)


@dataclass(frozen=True, slots=True)
class Flattened:
    """The pieces of a file with their kernels flat; the kernels that were changed, and why others were not: by kernel
    and parameter."""

    pieces: tuple[Piece, ...]
    kernels: tuple[FlatKernel, ...] = ()
    refused: tuple[tuple[str, str, str], ...] = ()


def flattened(pieces: tuple[Piece, ...], wanted: frozenset[tuple[str, int, str]] = frozenset()) -> Flattened:
    """The pieces, with every kernel that takes structures reading as if it took their members. ``wanted``: members that
    are taken whether they are used or not: a kernel's name, the number of its parameter, and the path."""
    words = global_words(pieces)
    found, kernels, refused = list(pieces), list[FlatKernel](), list[tuple[str, str, str]]()
    for at, piece in enumerate(pieces):
        if piece.item.kind != "function" or not piece.item.head & words or piece.item.body is None:
            continue
        head = _Head.of(piece)
        if head is None or not (suspects := head.suspects()):
            continue
        try:
            flat, kernel = _Flattening(pieces, piece, head, wanted).done(suspects)
        except _Refused as why:
            refused.append((piece.qualified(), why.parameter, str(why)))
        else:
            kernels.append(kernel)
            found[at] = flat
    return Flattened(tuple(found), tuple(kernels), tuple(refused))


def with_members_passed(launches: Iterable[HostLaunch], kernels: Sequence[FlatKernel]) -> tuple[HostLaunch, ...]:
    """Launches with an argument for each parameter that their kernels are read with."""
    by_name = {k.name.rpartition("::")[2]: k for k in kernels}

    def passed(launch: HostLaunch) -> HostLaunch:
        kernel = by_name.get(function_name(launch.entry))
        if kernel is None or len(launch.args) != len(kernel.params):
            return launch
        pairs = zip(launch.args, kernel.params, strict=True)
        args = (a for arg, p in pairs for a in ([f"{arg}.{m.path}" for m in p.members] or [arg]))
        return replace(launch, args=tuple(args))

    return tuple(map(passed, launches))


class _Refused(Exception):  # noqa: N818
    def __init__(self, parameter: str, why: str) -> None:
        super().__init__(why)
        self.parameter = parameter


@dataclass(frozen=True)
class _Head:
    """A kernel's text and where its parameters stand in it. ``open_types``: its template parameters."""

    text: str
    tokens: Sequence[Token]
    params: Sequence[Sequence[Token]]
    open_types: frozenset[str]
    body: int  # index of the token that opens it

    @classmethod
    def of(cls, piece: Piece) -> _Head | None:
        """None where the parameters do not stand in the text as they are."""
        tokens, text = tokenize(piece.raw), piece.raw
        start = (piece.item.body or 0) - piece.item.start
        body = next((i for i, t in enumerate(tokens) if t.start >= start and t.text == "{"), None)
        if body is None:
            return None
        first = len(tokens) - len(strip_head(tokens))
        at = parameters_at(tokens[first:body])
        if at is None or tokens[first + at].text != "(":
            return None
        close = close_of(tokens, first + at)
        if close is None or any(t.kind == "directive" for t in tokens[first + at : close]):
            return None
        params = [p for p in split_commas(tokens[first + at + 1 : close]) if [t.text for t in p] != ["void"]]
        return cls(text, tokens, params, _template_names(tokens), body)

    def suspects(self) -> list[int]:
        """The parameters that may be structures: no pointers, no numbers, no types of the template."""
        found = []
        for at, part in enumerate(self.params):
            texts = [t.text for t in _declared(part)]
            if len(texts) < 2 or _declared(part)[-1].kind != "name" or {"*", "&", "[", "("} & set(texts):
                continue
            type_ = " ".join(texts[:-1])
            dtype, lanes = resolve_dtype(type_)
            if (dtype is None or lanes > 1) and not (len(texts) == 2 and texts[0] in self.open_types):
                found.append(at)
        return found


class _Flattening:
    def __init__(
        self, pieces: Sequence[Piece], piece: Piece, head: _Head, wanted: frozenset[tuple[str, int, str]]
    ) -> None:
        self.pieces, self.piece, self.head = pieces, piece, head
        bare = piece.item.names[-1]
        self.wanted = {(at, path) for name, at, path in wanted if name.rpartition("::")[2] == bare}
        self.structures = Structures(pieces, piece.namespaces, head.open_types)
        self.taken = {t.text for t in head.tokens if t.kind == "name"} | {n for p in pieces for n in p.item.names}
        self.edits: list[tuple[int, int, str]] = []
        self.first: list[str] = []  # statements at the head of the body

    def done(self, suspects: Sequence[int]) -> tuple[Piece, FlatKernel]:
        params, offset, known = list[FlatParameter](), 0, True
        for at, part in enumerate(self.head.params):
            declared = self.head.text[part[0].start : part[-1].end]
            name = _declared(part)[-1].text
            found = FlatParameter(name, declared)
            if at in suspects:
                found = self.parameter(part, name, at) or found
            size, alignment = (found.bytes, found.alignment) if found.members else self.plain(part)
            known = known and size > 0
            offset = -(-offset // max(1, alignment)) * max(1, alignment)
            members = tuple(replace(m, offset=offset + m.offset) for m in found.members)
            params.append(replace(found, members=members, start=offset, bytes=size if known else 0))
            offset += size
        if not any(p.members for p in params):
            raise _Refused(_declared(self.head.params[suspects[0]])[-1].text, "")
        opening = self.head.tokens[self.head.body].end
        if self.first:
            self.edits.append((opening, opening, " " + " ".join(self.first)))
        text = edited(self.head.text, self.edits)
        flat = _as_piece(self.piece, text)
        return flat, FlatKernel(self.piece.qualified(), self.piece.text, flat.text, tuple(params))

    def plain(self, part: Sequence[Token]) -> tuple[int, int]:
        """Bytes of a parameter that is no structure, and its alignment; 0 for what is not known."""
        texts = [t.text for t in _declared(part)]
        if {"*", "["} & set(texts):
            return 8, 8
        dtype, lanes = resolve_dtype(" ".join(texts[:-1]), self.structures.aliases)
        if dtype is None or lanes > 1:
            return 0, 1
        from fsr.hardware.c_types import BY_DTYPE

        return BY_DTYPE[dtype].bytes, BY_DTYPE[dtype].bytes

    def parameter(self, part: Sequence[Token], name: str, at: int) -> FlatParameter | None:
        """A structure's members as parameters; None for what is another name of a number."""
        words = [t for t in _declared(part)[:-1] if t.text not in ("const", "__grid_constant__", "volatile")]
        type_ = " ".join(t.text for t in words) if "<" not in {t.text for t in words} else spelt(words)
        dtype, lanes = resolve_dtype(type_, self.structures.aliases)
        if dtype is not None and lanes == 1:
            return None
        try:
            structure = self.structures.read(type_)
        except NotPlain as why:
            raise _Refused(name, str(why)) from None
        uses = uses_of(self.pieces, self.head.tokens, self.head.body, name, type_, structure)
        read = uses.read | {path for n, path in self.wanted if n == at}
        wanted = [leaf for leaf in structure.leaves if uses.whole or leaf.path in read]
        used = bool(wanted)
        wanted = wanted or [next((leaf for leaf in structure.leaves if not leaf.pointer), structure.leaves[0])]
        members = tuple(self.member(name, leaf, used) for leaf in wanted)
        self.rewrite(part, uses, members)
        if uses.whole:
            self.first.append(_put_together(name, structure, members, uses))
        return FlatParameter(
            name, self.head.text[part[0].start : part[-1].end], type_, members,
            tuple(leaf.path for leaf in structure.leaves), 0, structure.bytes, structure.alignment,
        )  # fmt: skip

    def fresh(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def member(self, name: str, leaf: Leaf, used: bool) -> FlatMember:
        own = self.fresh(f"{name}_{_as_word(leaf.path)}")
        return FlatMember(own, leaf.path, leaf.type, leaf.offset, leaf.pointer, leaf.dtype, used)

    def rewrite(self, part: Sequence[Token], uses: Uses, members: Sequence[FlatMember]) -> None:
        listed = ", ".join(f"{m.type}{'' if m.type.endswith('*') else ' '}{m.name}" for m in members)
        self.edits.append((part[0].start, part[-1].end, listed))
        by_path = {m.path: m.name for m in members}
        if not uses.all_through_it:
            self.edits += [(start, end, by_path[path]) for start, end, path in uses.places]


def _put_together(name: str, structure: Structure, members: Sequence[FlatMember], uses: Uses) -> str:
    """The statement that makes a local structure of the members."""
    type_ = structure.type
    if structure.initialiser:
        values = iter(m.name for m in members)
        made = re.sub("@", lambda _: next(values), structure.initialiser)
        return f"{'' if uses.all_through_it else 'const '}{type_} {name} = {made};"
    if not structure.assignable:
        raise _Refused(name, f"the kernel uses {name} as a whole, and {type_} has constructors that take arguments")
    return f"{type_} {name}; " + " ".join(f"{name}.{m.path} = {m.name};" for m in members)


def _declared(part: Sequence[Token]) -> Sequence[Token]:
    """A parameter without its default."""
    texts = [t.text for t in part]
    return part[: texts.index("=")] if "=" in texts else part


def _template_names(tokens: Sequence[Token]) -> frozenset[str]:
    if not tokens or tokens[0].text != "template":
        return frozenset()
    close = close_angle(tokens, 1) or 1
    parts = split_commas(tokens[2:close])
    names = (next((t.text for t in reversed(p[: _equals(p)]) if t.kind == "name"), "") for p in parts)
    return frozenset(names)


def _equals(part: Sequence[Token]) -> int:
    return next((i for i, t in enumerate(part) if t.text == "="), len(part))


def _as_word(path: str) -> str:
    return re.sub(r"\W+", "_", path).strip("_")


def edited(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    """A text with ranges replaced."""
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _as_piece(piece: Piece, text: str) -> Piece:
    """The piece with another text; it stands where it stood, and needs what it needed: it is compiled as it was."""
    found = parse_items(text, strict=False)[0]
    start = piece.item.start
    body = None if found.body is None else found.body + start
    uses = found.uses | piece.item.uses
    item = replace(found, start=start, end=piece.item.end, body=body, uses=uses)
    return replace(piece, item=item, decided=text)


__all__ = ["FlatKernel", "FlatMember", "FlatParameter", "Flattened", "Leaf", "edited", "flattened"]
