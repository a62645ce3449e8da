"""The members that a structure's declaration has, as far as they can be passed to a kernel one by one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fsr.hardware.c_types import BY_DTYPE
from fsr.source.entry import template_parameters
from fsr.source.integers import integer_of
from fsr.source.tokens import Token, close_angle, close_of, spelt, split_commas
from fsr.source.types import resolve_dtype

_RECORDS = frozenset(("struct", "class", "union"))
_WORD = re.compile(r"(?<!::)\b[A-Za-z_]\w*")
_ALIGNS = ("alignas", "__align__", "__builtin_align__")
_SKIPPED = frozenset(("using", "typedef", "friend", "static", "constexpr", "static_assert", "enum", "template"))


class NotPlain(Exception):  # noqa: N818  # not an error of fsr's: the caller says what follows
    """Why a structure's members cannot be passed one by one. ``absent``: its declaration was not found."""

    def __init__(self, why: str, *, absent: bool = False) -> None:
        super().__init__(why)
        self.absent = absent


@dataclass(frozen=True, slots=True)
class Declaration:
    """A member: ``stars`` pointers to ``type``, and the extents of an array as written."""

    name: str
    type: str
    stars: int = 0
    extents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """A declaration. ``alignment``: stated, in bytes, else 1. ``constructors``: it has some, so that braces mean those.
    ``assignable``: one is made without arguments, and its members can be assigned to. ``meanings``: what names stand
    for inside, template parameters and types of its own. ``base``: the one structure that it is derived from."""

    name: str
    members: tuple[Declaration, ...]
    alignment: int = 1
    constructors: bool = False
    assignable: bool = True
    constant_calls: frozenset[str] = frozenset()
    meanings: Mapping[str, str] = field(default_factory=dict)
    base: str = ""

    def meaning(self, type_: str) -> str:
        """A type with the names that have a meaning inside replaced."""
        for _ in range(8):  # a name of its own for a name of the template's
            before, type_ = type_, re.sub(_WORD, lambda word: self.meanings.get(word[0], word[0]), type_)
            if type_ == before:
                break
        return type_


def members_of(tokens: Sequence[Token], name: str, given: Sequence[str]) -> Record:
    """A record's members, ``given`` its template arguments. Raises NotPlain for what a caller cannot pass in parts: a
    union, bit-fields, virtual functions, bases, members that are private, references, pointers to functions."""
    meanings = _template(tokens, name, given)
    start = next((i for i, t in enumerate(tokens) if t.text in _RECORDS and not _in_template(tokens, i)), None)
    brace = next((i for i, t in enumerate(tokens) if t.text == "{"), None)
    if start is None or brace is None or brace < start:
        raise NotPlain(f"{name} is no structure")
    if tokens[start].text == "union":
        raise NotPlain(f"{name} is a union")
    base = _base(tokens[start:brace], name)
    close = close_of(tokens, brace)
    reading = _Body(name, private=tokens[start].text == "class", meanings=meanings)
    reading.read(tokens[brace + 1 : close])
    alignment = _alignment(tokens[:brace], name, meanings)
    assignable = reading.bare or not reading.constructors
    return Record(
        name, tuple(reading.members), alignment, reading.constructors, assignable and not reading.fixed,
        frozenset(reading.constant), reading.meanings, base,
    )  # fmt: skip


def _in_template(tokens: Sequence[Token], at: int) -> bool:
    """Whether a word stands in ``template <...>`` (``class T``)."""
    if not tokens or tokens[0].text != "template":
        return False
    return at < (close_angle(tokens, 1) or 0)


def _template(tokens: Sequence[Token], name: str, given: Sequence[str]) -> dict[str, str]:
    if not tokens or tokens[0].text != "template":
        if given:
            raise NotPlain(f"{name} is given template arguments and is no template")
        return {}
    bound = dict[str, str]()
    for at, parameter in enumerate(template_parameters(tokens)):
        if parameter.pack:
            raise NotPlain(f"{name} is a template of any number of arguments")
        if at >= len(given) and not parameter.default:
            raise NotPlain(f"{name} is given {len(given)} template arguments")
        bound[parameter.name] = given[at] if at < len(given) else parameter.default
    return bound


def _base(head: Sequence[Token], name: str) -> str:
    """The type that a structure is derived from; '' for none."""
    at = next((i for i, t in enumerate(head) if t.text == ":"), None)
    if at is None:
        return ""
    parts = split_commas(head[at + 1 :])
    words = [t for t in parts[0] if t.text != "public"]
    private = head[0].text == "class" and len(words) == len(parts[0])
    if len(parts) > 1 or private or {"virtual", "private", "protected"} & {t.text for t in words}:
        raise NotPlain(f"{name} is derived from others, or not publicly")
    return spelt(words)


def _alignment(head: Sequence[Token], name: str, meanings: Mapping[str, str]) -> int:
    """The bytes of ``alignas(16)``, ``__align__(16)``, ``__attribute__((aligned(2 * sizeof(T))))``; 1 where nothing is
    said."""
    for at, token in enumerate(head[:-1]):
        attribute = token.text == "__attribute__" and [t.text for t in head[at + 1 : at + 4]] == ["(", "(", "aligned"]
        first = at + 3 if attribute else at
        if (attribute or token.text in _ALIGNS) and first + 1 < len(head) and head[first + 1].text == "(":
            stated = spelt(head[first + 2 : close_of(head, first + 1)])
            found = _bytes(stated, meanings)
            if found is None or found & (found - 1):
                raise NotPlain(f"{name} is aligned to {stated!r}, which is no number here")
            return max(1, found)
        if token.text in ("__attribute__", "[") and at + 1 < len(head) and head[at + 1].text in ("(", "["):
            raise NotPlain(f"{name} has attributes that fsr does not read")
    return 1


def _bytes(stated: str, meanings: Mapping[str, str]) -> int | None:
    """A number of bytes in which sizes of numbers may stand; None for what is none."""

    def size(found: re.Match[str]) -> str:
        dtype, lanes = resolve_dtype(meanings.get(found[1], found[1]))
        return found[0] if dtype is None else str(BY_DTYPE[dtype].bytes * lanes)

    return integer_of(re.sub(r"sizeof\s*\(\s*([\w ]+?)\s*\)", size, stated), {})


class _Body:
    def __init__(self, name: str, *, private: bool, meanings: dict[str, str]) -> None:
        self.name, self.private, self.meanings = name, private, meanings
        self.members: list[Declaration] = []
        self.constructors = self.bare = self.fixed = False  # bare: one without arguments; fixed: a member is const
        self.constant, self.changing = set[str](), set[str]()

    def read(self, tokens: Sequence[Token]) -> None:
        at = 0
        while at < len(tokens):
            text = tokens[at].text
            if text in ("public", "private", "protected") and at + 1 < len(tokens) and tokens[at + 1].text == ":":
                self.private, at = text != "public", at + 2
                continue
            end, body = self._end(tokens, at)
            self.declaration(list(tokens[at:end]), body=body)
            at = end + 1
            if body and at < len(tokens) and tokens[at].text == ";":
                at += 1
        self.constant -= self.changing

    def _end(self, tokens: Sequence[Token], at: int) -> tuple[int, bool]:
        """Where a declaration ends, and whether with the body of a function."""
        index, called = at, False
        while index < len(tokens):
            text = tokens[index].text
            if text == ";":
                return index, False
            if text in ("(", "[", "{"):
                close = close_of(tokens, index) or len(tokens) - 1
                called = called or text == "("
                if text == "{" and (called and "=" not in [t.text for t in tokens[at:index]]):
                    return close, True
                index = close
            index += 1
        return index, False

    def declaration(self, part: list[Token], *, body: bool) -> None:
        texts = [t.text for t in part]
        if not texts:
            return
        if "virtual" in texts:
            raise NotPlain(f"{self.name} has virtual functions")
        if texts[0] == "using" and "=" in texts:
            self.meanings[texts[1]] = spelt(part[3:])
            return
        if texts[0] == "typedef" and len(texts) > 2 and not {"(", "[", "{", "<"} & set(texts):
            self.meanings[texts[-1]] = spelt(part[1:-1])
            return
        stop = next((i for i, x in enumerate(texts) if x in ("=", "(", "{")), len(texts))
        if texts[0] in _SKIPPED or "static" in texts[:stop]:  # no part of what is passed
            return
        if texts[0] in _RECORDS and "{" in texts:
            raise NotPlain(f"{self.name} holds a {texts[0]} that is declared inside it")
        if "operator" in texts or self._is_function(part):
            self._function(texts, body)
            return
        if self.private:
            raise NotPlain(f"{self.name} has private members")
        self._variables(part)

    def _is_function(self, part: Sequence[Token]) -> bool:
        texts = [t.text for t in part]
        stop = texts.index("=") if "=" in texts else texts.index("{") if "{" in texts else len(texts)
        opening = next((i for i, x in enumerate(texts[:stop]) if x == "(" and not _attribute(texts, i)), None)
        if opening is None:
            return False
        if opening + 1 < len(texts) and texts[opening + 1] == "*":
            raise NotPlain(f"{self.name} has a pointer to a function")
        return True

    def _function(self, texts: Sequence[str], body: bool) -> None:
        opening = next((i for i, x in enumerate(texts) if x == "(" and not _attribute(texts, i)), 0)
        name = "operator" if "operator" in texts else texts[opening - 1] if opening else ""
        if name == self.name and "~" not in texts[:opening]:
            close = next((i for i in range(opening, len(texts)) if texts[i] == ")"), opening)
            own = texts[opening + 1 : close]
            deleted = texts[-1] == "delete"
            self.constructors = self.constructors or texts[-1] != "default"
            self.bare = self.bare or (not deleted and ("=" in own if own and own != ["void"] else True))
        elif name != self.name:
            stop = texts.index("{") if "{" in texts else len(texts)
            (self.constant if opening < stop and texts[stop - 1] == "const" else self.changing).add(name)

    def _variables(self, part: Sequence[Token]) -> None:
        pieces = split_commas(list(part))
        base: str | None = None
        for piece in pieces:
            texts = [t.text for t in piece]
            stop = next((i for i, x in enumerate(texts) if x in ("=", "{")), len(texts))
            if ":" in texts[:stop]:
                raise NotPlain(f"{self.name} has bit-fields")
            if "&" in texts[:stop]:
                raise NotPlain(f"{self.name} has a reference")
            if {"mutable", "volatile"} & set(texts):
                raise NotPlain(f"{self.name} has members that are {'mutable' if 'mutable' in texts else 'volatile'}")
            if "alignas" in texts or "__align__" in texts:
                raise NotPlain(f"{self.name} has members with an alignment of their own")
            bracket = next((i for i, x in enumerate(texts[:stop]) if x == "["), stop)
            words = [t for t in piece[:bracket] if t.text not in ("__restrict__", "__restrict", "restrict", "struct")]
            if not words or words[-1].kind != "name":
                raise NotPlain(f"{self.name} has a member that fsr cannot read: {' '.join(texts)[:40]!r}")
            stars = [i for i, t in enumerate(words) if t.text == "*"]
            self.fixed = self.fixed or "const" in texts[texts.index("*") if "*" in texts[:bracket] else 0 : bracket]
            if base is None:
                base = " ".join(_spelt_words(words[: stars[0]] if stars else words[:-1]))
            extents = tuple(self.meant(text) for text in _extents(piece[bracket:stop]))
            self.members.append(Declaration(words[-1].text, base, len(stars), extents))

    def meant(self, extent: str) -> str:
        """An extent with template parameters as their arguments."""
        return re.sub(r"[A-Za-z_]\w*", lambda word: self.meanings.get(word[0], word[0]), extent)


def _attribute(texts: Sequence[str], at: int) -> bool:
    return at > 0 and texts[at - 1] in ("alignas", "__align__", "__attribute__", "decltype", "sizeof")


def _extents(tokens: Sequence[Token]) -> tuple[str, ...]:
    found, at = list[str](), 0
    while at < len(tokens) and tokens[at].text == "[":
        close = close_of(tokens, at) or len(tokens) - 1
        found.append(spelt(tokens[at + 1 : close]))
        at = close + 1
    return tuple(found)


def _spelt_words(tokens: Sequence[Token]) -> list[str]:
    """The words of a type; what belongs to one name (``ns::Vec<float>``) together."""
    found = list[str]()
    for at, token in enumerate(tokens):
        joined = token.kind != "name" and token.kind != "number"
        if found and (joined or tokens[at - 1].text in ("::", "<", ",")):
            found[-1] += token.text
        else:
            found.append(token.text)
    return found
