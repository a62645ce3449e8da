"""A kernel file and its local includes as one sequence of pieces, in the order the compiler sees them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fsr.errors import SourceError
from fsr.files import Unreadable, read_file
from fsr.source.items import CONTAINERS, Item, parse_items, standing_for
from fsr.source.tokens import line_of

DEVICE_WORDS = frozenset((
    "__global__", "__device__", "__constant__", "__shared__", "__managed__", "constexpr", "consteval",
))  # fmt: skip
MOST_NESTED = 500
_NESTS = re.compile(r"[({\[)}\]]|^[ \t]*#[ \t]*(?:if|endif)\w*", re.MULTILINE)
_INCLUDE = re.compile(r'#\s*include\s*(?:"(?P<local>[^"]+)"|<(?P<system>[^>]+)>)')


@dataclass(frozen=True, slots=True)
class SourceText:
    """One file: its text (bytes that are not UTF-8 survive as surrogates) and its items."""

    path: Path
    text: str
    items: tuple[Item, ...]

    def where(self, offset: int) -> str:
        """``file:line`` of an offset."""
        return f"{self.path}:{line_of(self.text, offset)}"


@dataclass(frozen=True, slots=True)
class Piece:
    """An item that is no container, the file it stands in, and the containers around it, outermost first.

    ``via``: the #include items of the kernel file that brought it here, () for the kernel file itself. ``decided``: its
    text with branches blank that are not compiled and names of pointers written out in its head, as many lines as in
    the file; empty where nothing was decided in it.
    """

    source: SourceText
    item: Item
    scope: tuple[Item, ...] = ()
    scope_heads: tuple[str, ...] = ()
    via: tuple[Item, ...] = ()
    decided: str = ""

    @property
    def raw(self) -> str:
        """What is compiled of its text; places in its body and in the file differ by as much everywhere."""
        return self.decided or self.source.text[self.item.start : self.item.end]

    @property
    def text(self) -> str:
        """The text with plain newlines and without undecodable bytes (those can stand only in comments)."""
        plain = normalised(self.raw)
        return "\n".join(line.rstrip() for line in plain.split("\n")) if self.decided else plain

    @property
    def where(self) -> str:
        """``file:line``."""
        return self.source.where(self.item.start)

    def where_at(self, offset: int) -> str:
        """``file:line`` of a place in :attr:`raw`, which has the file's lines."""
        line = line_of(self.source.text, self.item.start) + self.raw.count("\n", 0, offset)
        return f"{self.source.path}:{line}"

    def qualified(self) -> str:
        """The declared name with its namespaces: ``ns::k``."""
        return "::".join([*self.namespaces, *self.item.names])

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The names of the namespaces around it, outermost first."""
        return tuple(name for scope in self.scope if scope.kind == "namespace" for name in scope.names)


_C_HEADERS = """assert complex ctype errno fenv float inttypes iso646 limits locale math malloc memory pthread setjmp
signal stdarg stdbool stddef stdint stdio stdlib string strings time unistd wchar wctype"""
C_HEADERS = frozenset(f"{name}.h" for name in _C_HEADERS.split())


def normalised(text: str) -> str:
    """Plain newlines, and a ``?`` for every byte that was not UTF-8."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return re.sub("[\ud800-\udfff]", "?", plain)


def read_source(path: Path) -> SourceText:
    """Read and scan one file. Raises SourceError when it cannot be read or is no text."""
    try:
        data = read_file(path)
    except Unreadable as fault:
        raise SourceError(
            f"the kernel file cannot be read: {fault.why}",
            expected="a readable CUDA source file",
            where=str(path),
            fix="check the path and the permissions",
        ) from None
    if b"\0" in data:
        raise SourceError(
            "the kernel file holds NUL bytes: it is a binary, or text in UTF-16",
            expected="CUDA source as UTF-8 text",
            where=str(path),
            fix="name the .cu file, or convert it: iconv -f UTF-16 -t UTF-8",
        )
    return scan(path, data.decode("utf-8", "surrogateescape"))


def scan(path: Path, text: str) -> SourceText:
    """A text as a scanned source. Raises SourceError where a bracket never closes."""
    if (deep := _nesting(text)) > MOST_NESTED:
        raise SourceError(
            f"brackets or conditionals are nested {deep} deep", expected=f"at most {MOST_NESTED}", where=str(path),
            fix="simplify what generated this file",
        )  # fmt: skip
    return SourceText(path, text, parse_items(text, str(path)))


def _nesting(text: str) -> int:
    """How deep brackets and conditionals go, those in comments and strings counted too."""
    deepest = depth = 0
    for found in _NESTS.finditer(text):
        word = found[0].lstrip("# \t")
        depth = max(0, depth + (1 if word in "({[" or word.startswith("if") else -1))
        deepest = max(deepest, depth)
    return deepest


def include_target(item: Item, source: SourceText) -> tuple[str, bool]:
    """What an #include names and whether in quotes; ('', False) for a computed include."""
    match = _INCLUDE.match(source.text[item.start : item.end])
    if not match:
        return "", False
    return match["local"] or match["system"], match["local"] is not None


def resolve_include(item: Item, source: SourceText, search: Sequence[Path]) -> Path | None:
    """The local file that an #include names: beside the including file (of one in angle brackets last, since its build
    may name that folder; C's own are the compiler's), then in ``search``; None if neither.

    Folders of a CUDA toolkit are passed over: compilers have their own."""
    name, quoted = include_target(item, source)
    if not name:
        return None
    own = [folder for folder in search if not (folder / "cuda_runtime.h").is_file()]
    toolkit = (source.path.parent / "cuda_runtime.h").is_file()
    beside = [] if not quoted and (toolkit or name in C_HEADERS) else [source.path.parent]
    folders = [*beside, *own] if quoted else [*own, *beside]
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def flatten(source: SourceText, search: Sequence[Path] = ()) -> tuple[Piece, ...]:
    """Every piece of a file with its local includes expanded, each file once."""
    return tuple(_Flattening(search, {source.path.resolve()}).of(source, source.items, (), (), ()))


@dataclass(frozen=True)
class _Flattening:
    """``seen``: files that were read already; each is read once, as under ``#pragma once``."""

    search: Sequence[Path]
    seen: set[Path]

    def of(
        self, source: SourceText, items: Sequence[Item], scope: tuple[Item, ...], heads: tuple[str, ...],
        via: tuple[Item, ...],
    ) -> Iterator[Piece]:  # fmt: skip
        for item in items:
            if item.kind == "include":
                target = resolve_include(item, source, self.search)
                if target is not None:
                    if target.resolve() not in self.seen:
                        self.seen.add(target.resolve())
                        inner = read_source(target)
                        yield from self.of(inner, inner.items, scope, heads, (*via, item))
                    continue
            if item.body is not None and item.kind in CONTAINERS:
                head = " ".join(source.text[item.start : item.body].split())
                yield from self.of(source, item.children, (*scope, item), (*heads, head), via)
            else:
                yield Piece(source, item, scope, heads, via)


def device_words(pieces: Sequence[Piece]) -> frozenset[str]:
    """The words that mark device code here: CUDA's own, and macros that stand for them (``#define DEV __device__``)."""
    return standing_for((p.item for p in pieces), DEVICE_WORDS)


def global_words(pieces: Sequence[Piece]) -> frozenset[str]:
    """As :func:`device_words`, for ``__global__`` alone."""
    return standing_for((p.item for p in pieces), frozenset({"__global__"}))
