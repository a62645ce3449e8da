"""What a schedule looks at: one part of a computation, and what the kernel to be written calls everything."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Any, TypeVar

from fsr.computation.computation import Computation
from fsr.computation.data_rows import has_data_rows
from fsr.computation.expression import (
    Affine,
    Case,
    Expr,
    Fold,
    Load,
    Number,
    Op,
    children,
    distinct,
    names_in,
    written_length,
)
from fsr.computation.printing import affine_text
from fsr.computation.types import type_of
from fsr.contract.flags import at_their_ends
from fsr.contract.model import Contract
from fsr.errors import ContractError
from fsr.expressions import evaluate
from fsr.hardware.c_types import BY_DTYPE
from fsr.hardware.gpus import Target as Gpu
from fsr.hardware.gpus import closest_target
from fsr.records import Candidate
from fsr.source.parse import parse_kernels
from fsr.transform.computed.in_part import in_part
from fsr.transform.computed.in_turn import in_turn
from fsr.transform.computed.interleaved import by_components, by_planes, by_records, by_sums
from fsr.transform.computed.joining import joined
from fsr.transform.computed.kept_operands import operands_kept
from fsr.transform.computed.last_lines import by_last_lines
from fsr.transform.computed.magnitude import holds
from fsr.transform.computed.parts import Part, cuts_of, name_of, value_of
from fsr.transform.computed.planes_as_records import planes_as_records
from fsr.transform.computed.scattering import scattering
from fsr.transform.computed.segments import segmented
from fsr.transform.computed.set_aside import set_aside
from fsr.transform.computed.staging import staged
from fsr.transform.computed.wrapped import unwrapped
from fsr.transform.plain.c_text import LONGEST_LINE, TYPES, NotPlain, Writer, bare
from fsr.transform.plain.names import Names
from fsr.transform.plain.whole_plan import whole
from fsr.transform.protocol import Subject
from fsr.transform.sizes import always
from fsr.transform.target import Target, targets

_INT = 2**31 - 1
_MANY_TIMES = 8  # two weights to a byte are two elements for one, words of eight are eight
_BEYOND = 1 << 20  # so far behind the end of a line no thread begins
_T = TypeVar("_T")


@dataclass(frozen=True)
class Scene:
    """One part of what a target computes, to be made by a kernel. ``position``: of the part among the others."""

    target: Target
    part: Part
    position: int
    wide: bool  # whether some buffer has more elements than an int counts
    gpu: Gpu = field(compare=False)
    helpers: set[str] = field(default_factory=set, compare=False)  # those that the text written so far calls
    found: dict[object, Any] = field(
        default_factory=dict, compare=False
    )  # what was thought out about it, by what it is
    narrow: bool = False  # whether dimensions are told by an int all the same

    @cached_property
    def names(self) -> Names:
        """What sizes, buffers and scalars are called."""
        found = Names(self.part.computation, self.target)
        if self.wide and self.index == "int":
            large = (b.name for b in self.part.buffers if self.most(_count(b.shape)) > _INT)
            found.writer = replace(found.writer, wide=frozenset(large))
        return found

    def narrowed(self) -> Scene:
        """The scene with an int for each dimension, where each has that few elements: only the place of an element of
        a large buffer is reckoned in 64 bits then."""
        extents = {*(x for _, x in self.part.domain), *(x for b in self.part.buffers for x in b.shape)}
        fits = all(self.most(x) + _BEYOND <= _INT for x in extents)
        return replace(self, narrow=True) if self.wide and fits else self

    def once(self, what: object, think: Callable[[], _T]) -> _T:
        """What is thought of a scene, the first time that it is asked for."""
        if what not in self.found:
            self.found[what] = think()
        return self.found[what]  # type: ignore[no-any-return]

    def own(self, buffer: str) -> str:
        """A buffer's name as that of a variable that belongs to it, to be settled."""
        return "$" + re.sub(r"\W+", "_", self.names.names[buffer]).strip("_")  # of a variable of constant memory: (&c)

    @property
    def index(self) -> str:
        """The C type of an index."""
        return "long long" if self.wide and not self.narrow else "int"

    def size(self, text: str) -> str:
        """C text of a size expression, signed. Raises NotPlain."""
        found = self.names.sizes.text(text)
        if found.isdigit():
            return f"{found}LL" if self.index != "int" else found
        types = {p.name: p.type for p in self.target.kernel.params}
        return found if types.get(found, "int") in ("int", "const int") else f"({self.index}){found}"

    def as_index(self, text: str) -> str:
        """C text of an index of the type of indices, where arguments of another type are in it."""
        wide = {p.name for p in self.target.kernel.params if p.type not in ("int", "const int")}
        named = set(re.findall(rf"(?<!\({self.index}\))\b[A-Za-z_]\w*", text))
        return f"({self.index})({text})" if wide & named else text

    def most(self, text: str) -> float:
        """The value of a size expression at the largest sizes."""
        return _most(self.target.contract, text)

    def timed(self, text: str) -> int:
        """The value of a size expression at the first timed sizes, and the ends of positions."""
        contract = self.target.contract
        return max(1, int(evaluate(text, at_their_ends(contract, contract.timed_sizes()[0]))))

    def same(self, one: str, other: str) -> bool:
        """Whether two size expressions are equal at any sizes, however they are written (``256 * n`` and ``256*n``)."""
        return one == other or always(self.target.contract, f"({one}) == ({other})")

    def shape(self, buffer: str) -> tuple[str, ...]:
        """A buffer's extents as size expressions."""
        return next(b.shape for b in self.part.buffers if b.name == buffer)

    def text(self, e: Expr, held: Mapping[Expr, str] | None = None) -> str:
        """An expression as C text, without brackets around all of it. ``held``: what stands in a variable already.
        Raises NotPlain."""
        if written_length(e, held or {}) > LONGEST_LINE:  # no part is shorter than a character
            raise NotPlain("nobody reads so long a line")
        return bare(replace(self.names.writer, held=held or {}).text(e))

    def named(self, exprs: Sequence[Expr], held: Mapping[Expr, str]) -> tuple[list[str], dict[Expr, str]]:
        """Declarations of what stands in the expressions several times, and ``held`` with it."""
        known, lines, sure = dict(held), list[str](), surely(exprs)
        for e in repeated(exprs, set(held)):
            if not self.harmless(e, sure):
                continue
            name = f"$t{len(lines) + 1}"
            lines.append(f"const {TYPES[type_of(e)]} {name} = {self.text(e, known)};")
            known[e] = name
        return lines, known

    def harmless(self, e: Expr, sure: Set[Expr]) -> bool:
        """Whether a part of expressions may be computed before it is known that it is wanted: it is in any case, being
        in ``sure`` (see :func:`surely`), or what it reads is there at every point. A neighbour beyond the edge is
        neither."""
        return e in sure or all(x in sure or self._inside(x) for x in loads_in([e]))

    @cached_property
    def folds_stay_inside(self) -> bool:
        """Whether every fold may be reckoned at every point: it is in any case, or reads what is there at every one."""
        for s in self.part.whole:
            value, sure = value_of(s), surely([value_of(s)])
            for fold in (e for e in distinct(value) if isinstance(e, Fold) and e not in sure and not e.inside):
                dims = {n: affine_text(x) for n, x in fold.dims}
                if not all(x in sure or self._inside(x, dims) for x in loads_in([fold])):
                    return False
        return True

    def _inside(self, load: Load, more: Mapping[str, str] | None = None) -> bool:
        """Whether a read is within its buffer at every point; ``more``: extents of further dimensions."""
        extents, shape = {**dict(self.part.domain), **(more or {})}, self.shape(load.buffer)

        def within(index: Expr, extent: str) -> bool:
            match index:
                case Number(Affine((), constant), _):
                    return extent.isdigit() and 0 <= constant < int(extent)
            return extents.get(name_of(index) or "") == extent

        return all(map(within, load.indices, shape))

    def assigned(self, pairs: Sequence[tuple[str, Expr]], held: Mapping[Expr, str]) -> list[str]:
        """Statements that set each place to its value, all values as they are before; what stands in them several times
        gets a name first."""
        lines, known = self.named([value for _, value in pairs], held)
        texts = [self.text(value, known) for _, value in pairs]
        if any(place in later for n, (place, _) in enumerate(pairs) for later in texts[n + 1 :]):
            for n, (_, value) in enumerate(pairs):
                lines.append(f"const {TYPES[type_of(value)]} $value{n + 1} = {texts[n]};")
            texts = [f"$value{n + 1}" for n in range(len(pairs))]
        return [*lines, *(f"{place} = {text};" for (place, _), text in zip(pairs, texts, strict=True))]

    def element(self, load: Load, held: Mapping[Expr, str] | None = None) -> str:
        """The lvalue of an element."""
        writer: Writer = replace(self.names.writer, held=held or {})
        return f"{self.names.names[load.buffer]}[{writer.flat(load.buffer, load.indices)}]"


def repeated(exprs: Sequence[Expr], held: set[Expr]) -> list[Expr]:
    """The operations that stand in the expressions more than once, smallest first; none within what is held."""
    counts: dict[Expr, int] = {}

    def visit(e: Expr) -> None:
        if e in held:
            return
        if isinstance(e, Op | Load) and (not isinstance(e, Load) or e.indices):
            counts[e] = counts.get(e, 0) + 1
            if counts[e] > 1:
                return
        for part in children(e):
            visit(part)

    for one in exprs:
        visit(one)
    order = {e: n for n, e in enumerate(postorder(exprs))}
    return sorted((e for e, n in counts.items() if n > 1 and type_of(e) in TYPES), key=order.__getitem__)


def surely(exprs: Iterable[Expr]) -> set[Expr]:
    """The parts of expressions that are computed whichever way their conditions turn out."""
    found = set[Expr]()
    left = list(exprs)
    while left:
        e = left.pop()
        if e in found:
            continue
        found.add(e)
        if not isinstance(e, Case):
            left += e.args[:1] if isinstance(e, Op) and e.name == "select" else children(e)
    return found


def postorder(exprs: Iterable[Expr]) -> dict[Expr, None]:
    """Expressions and all beneath them, each once and after what is beneath it."""
    found = dict[Expr, None]()

    def visit(e: Expr) -> None:
        if e not in found:
            for part in children(e):
                visit(part)
            found[e] = None

    for one in exprs:
        visit(one)
    return found


def cuttings(subject: Subject) -> list[tuple[Scene, ...]]:
    """Ways to cut what the original computes into parts, each with a scene for every part in the order in which they
    must run; empty where it is not known, or cannot be told by maps, folds and scans."""
    computation = subject.free
    if computation is None:
        return []
    return list(_cuttings(subject.candidate, subject.contract, computation, subject.target))


@lru_cache(maxsize=16)
def _cuttings(
    candidate: Candidate, contract: Contract, computation: Computation, gpu: str
) -> tuple[tuple[Scene, ...], ...]:
    subject = whole(Subject(candidate, parse_kernels(candidate.source), contract))
    target = None if subject is None else next(iter(targets(subject)), None)
    if target is None or _aliased(computation, contract) or has_data_rows(computation):
        return ()  # a row of data is told as all entries, most of which are another row's
    if any(s.kind == "scatter" for s in computation.statements):
        return tuple(_cut_apart(computation, target, contract, gpu))

    def same(one: str, other: str) -> bool:
        return always(contract, f"({one}) == ({other})")

    def at_most(one: str, other: str) -> bool:
        return always(contract, f"({one}) <= ({other})")

    found = []
    ways = (
        *segmented(computation, same),
        *by_records(computation),
        *by_planes(computation),
        *by_components(computation),
    )
    ways = (*ways, *by_last_lines(computation, same), *in_part(computation, at_most), computation)
    flat = list(unwrapped(computation, partial(always, contract)))
    aside = [told for one in (computation, *flat) for told in set_aside(one)]
    records = [told for one in (*by_components(computation), computation) for told in planes_as_records(one)]
    kept = operands_kept(computation, same, partial(holds, contract), partial(_is_usual, contract, computation))
    last = (*aside, *records, *by_sums(computation), *kept)
    for told in (*ways, *in_turn(computation), *staged(computation), *flat, *last):
        found += _cut(told, target, contract, gpu)
    return tuple(way for n, way in enumerate(found) if way not in found[:n])


def _cut(computation: Computation, target: Target, contract: Contract, gpu: str) -> list[tuple[Scene, ...]]:
    return _scenes(computation, cuts_of(computation), target, contract, gpu)


def _cut_apart(computation: Computation, target: Target, contract: Contract, gpu: str) -> list[tuple[Scene, ...]]:
    """Ways with a part for what is added where data tells, behind all others."""
    found = scattering(computation)
    if found is None:
        return []
    rest, added = found
    made = any(not s.target.startswith("_") for s in rest.statements)
    ways = [[*way, *added] for way in (cuts_of(rest) if made else [[]])]
    return _scenes(computation, ways, target, contract, gpu)


def _scenes(
    computation: Computation, ways: Iterable[Sequence[Part]], target: Target, contract: Contract, gpu: str
) -> list[tuple[Scene, ...]]:
    real = [b for b in computation.buffers if not b.name.startswith("_")]
    wide = any(_most(contract, _count(b.shape)) > _INT for b in real)
    found = []
    for parts in ways:
        scenes = tuple(
            Scene(target, joined(part, lambda x: _most(contract, x) <= _INT), n, wide, closest_target(gpu))
            for n, part in enumerate(parts)
        )
        try:
            assert all(scene.names for scene in scenes)
        except NotPlain:
            continue
        found.append(scenes)
    return found


def _is_usual(contract: Contract, computation: Computation, shape: Sequence[str]) -> bool:
    """Whether a buffer of that shape has not many times the elements of those that there are, at the timed sizes."""
    real = [b.shape for b in computation.buffers if not b.name.startswith("_")]
    known = at_their_ends(contract, contract.timed_sizes()[-1])
    most = max((float(evaluate(_count(s), known)) for s in real), default=0.0)
    return float(evaluate(_count(shape), known)) <= _MANY_TIMES * most


def _count(shape: Sequence[str]) -> str:
    return " * ".join(f"({x})" for x in shape) or "1"


def _most(contract: Contract, size: str) -> float:
    try:
        return float(evaluate(size, at_their_ends(contract, {s.name: s.maximum for s in contract.sizes})))
    except ContractError:
        return math.inf


def _aliased(c: Computation, contract: Contract) -> bool:
    """Whether callers may pass two of the buffers as one."""
    return any(len(set(group) & {b.name for b in c.buffers}) > 1 for group in contract.aliasing)


# ---------------------------------------------------------------- reads


def loads_in(exprs: Iterable[Expr]) -> list[Load]:
    """The reads of elements, each once, in order."""
    return list(dict.fromkeys(e for one in exprs for e in distinct(one) if isinstance(e, Load) and e.indices))


def along(load: Load, dim: str) -> bool:
    """Whether neighbours along a dimension are neighbours in memory: it is the last index and no other's part."""
    return name_of(load.indices[-1]) == dim and not any(dim in names_in(i) for i in load.indices[:-1])


def plain(load: Load) -> bool:
    """Whether every index is one of dimensions and sizes alone."""
    return all(isinstance(i, Number) for i in load.indices)


def bytes_of(load: Load) -> int:
    """Bytes of the element that is read."""
    return BY_DTYPE[load.dtype].bytes


def word(text: str, old: str, new: str) -> str:
    """A text with one ``$name`` replaced."""
    return re.sub(rf"\${old}\b", lambda _: new, text)
