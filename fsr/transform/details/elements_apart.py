"""Where elements that one thread touches of one memory lie, by what pointers into it were set to: whether two of them
are never the same one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from fsr.analysis.polynomial import Poly, constant
from fsr.analysis.types import bare
from fsr.hardware.dtypes import numpy_dtype
from fsr.source.form import Binary, Cast, Declare, Expr, Index, Name, Unary
from fsr.source.types import resolve_dtype
from fsr.transform.sizes import always
from fsr.transform.target import Target

_DEEPEST = 8  # pointers made of pointers


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes of one memory: ``base`` is a shared array or a parameter, ``start`` how far behind its beginning."""

    base: str
    start: Poly
    length: int


@dataclass(frozen=True)
class Apart:
    """What a kernel declares, for one of its launches. ``declared``: by name; those declared twice are not followed."""

    target: Target
    declared: Mapping[str, Sequence[Declare]]

    def span(self, array: str, where: tuple[Poly, ...]) -> Span | None:
        """The bytes of an element; None where they cannot be told."""
        size, begin = self._size(array), self._begin(array)
        strides = self._strides(array, len(where))
        if size is None or begin is None or strides is None:
            return None
        base, start = begin
        for index, stride in zip(where, strides, strict=True):
            start = start + index * constant(stride * size)
        return Span(base, start, size)

    def apart(self, one: Span | None, other: Span | None) -> bool:
        """Whether no byte is part of both, at all sizes, of one thread's at a time."""
        if one is None or other is None or one.base != other.base:
            return False
        text = self._text(one.start - other.start)
        if text is None:
            return False
        return any(
            always(self.target.contract, f"({text}) {test}") for test in (f">= {other.length}", f"<= -{one.length}")
        )

    def _text(self, distance: Poly) -> str | None:
        """A distance as a size expression; None where it depends on more, as on the thread's place."""
        axes = dict(zip("xyz", self.target.launch.block, strict=True))
        terms = []
        for symbols, count in distance.terms:
            texts = [axes[s[-1]] if s.startswith("blockDim.") else self.target.size_text(Name(s)) for s in symbols]
            if None in texts:
                return None
            terms.append(" * ".join([str(count), *(f"({text})" for text in texts)]))
        return " + ".join(terms) or "0"

    # ------------------------------------------------------------ names

    def _own(self, name: str) -> Declare | None:
        found = self.declared.get(name, ())
        return found[0] if len(found) == 1 else None

    def _size(self, name: str) -> int | None:
        """Bytes of an element of an array, or of what a pointer points at."""
        own = self._own(name)
        type_ = own.type if own is not None else next((p.type for p in self.target.kernel.params if p.name == name), "")
        return self._bytes(type_)

    def _bytes(self, type_: str) -> int | None:
        dtype, lanes = resolve_dtype(bare(type_), self.target.aliases)
        whole = dtype is not None and bare(type_) not in self.target.type_names - self.target.aliases.keys()
        return numpy_dtype(dtype).itemsize * lanes if whole and dtype is not None else None

    def _strides(self, name: str, count: int) -> list[int] | None:
        """Elements from one to the next along each index."""
        own = self._own(name)
        if own is None or not own.dims:
            return [1] if count == 1 else None
        inner = [self.target.poly(d).value for d in own.dims[1:]]
        if count != len(own.dims) or None in inner:
            return None
        return [prod(n for n in inner[at:] if n is not None) for at in range(count)]

    def _begin(self, name: str, depth: int = 0) -> tuple[str, Poly] | None:
        """The memory that a name leads to, and how many bytes behind its beginning."""
        own = self._own(name)
        if own is None:
            single = any(p.name == name and p.is_pointer for p in self.target.kernel.params)
            steady = name not in self.target.known.changed and not self.declared.get(name)
            return (name, Poly()) if single and steady else None
        if own.dims:
            return (name, Poly()) if "__shared__" in own.qualifiers else None
        if own.init is None or "*" not in own.type or name in self.target.known.changed or depth > _DEEPEST:
            return None
        return self._address(own.init, depth)

    def _address(self, e: Expr, depth: int) -> tuple[str, Poly] | None:
        match e:
            case Name(text):
                return self._begin(text, depth + 1)
            case Cast(_, operand):
                return self._address(operand, depth)
            case Binary("+", left, right):
                return self._moved(left, right, depth)
            case Unary("&", Index(base, index)):
                return self._moved(base, index, depth)
        return None

    def _moved(self, pointer: Expr, by: Expr, depth: int) -> tuple[str, Poly] | None:
        """So many elements behind what a pointer points at."""
        begin, size, distance = self._address(pointer, depth), self._pointed(pointer), self.target.poly(by)
        known = self.target.known
        if begin is None or size is None or distance.depends_on(known.changed | known.loops):
            return None  # it may have been another number then
        return begin[0], begin[1] + distance * constant(size)

    def _pointed(self, pointer: Expr) -> int | None:
        """Bytes of an element of what a pointer points at; None for what has rows, too."""
        match pointer:
            case Name(text):
                own = self._own(text)
                return self._size(text) if own is None or len(own.dims) < 2 else None
            case Cast(type_, _):
                return self._bytes(type_) if type_.count("*") == 1 else None
            case Binary("+", left, _):
                return self._pointed(left)
            case Unary("&", Index(base, _)):
                return self._pointed(base)
        return None
