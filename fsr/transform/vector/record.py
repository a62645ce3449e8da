"""One access of 8 or 16 bytes for elements that lie side by side and that a thread reads or writes one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fsr.records import Candidate
from fsr.source.form import Assign, Binary, Call, Cast, Declare, Expr, If, Index, Literal, Member, Name, Stmt, Unary
from fsr.source.mapping import map_expr, map_own_exprs, with_blocks
from fsr.source.walk import Block, fresh, taken_names
from fsr.transform.collectives import missing_helpers
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, target_of, targets
from fsr.transform.vector.side_by_side import Finder, Pack

BYTES = (16, 8, 4)
GAIN = 1.15
_WHAT = {"all": (True, True), "reads": (True, False), "writes": (False, True)}


@dataclass(frozen=True, slots=True)
class VectorizeRecord:
    """A thread's neighbouring elements in one access, where its index is a multiple of their number."""

    name: str = "vectorize-record"
    aims_at: frozenset[str] = frozenset(["bandwidth", "instructions", "uncoalesced", "latency"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """The widest packs of all that is read and written, of one of them, and narrower ones."""
        for target in targets(subject):
            known = {target.kernel.body}
            for most in BYTES if _packed(target, BYTES[0], "all") not in known else ():  # it has the others' too
                for what in _WHAT:
                    body = _packed(target, most, what)
                    if body not in known:
                        known.add(body)
                        yield Move(self.name, target.region, (("bytes", most), ("what", what)), GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with packs, and its own accesses where a pointer is not aligned."""
        target = target_of(subject, move)
        body = _packed(target, int(move.param("bytes")), str(move.param("what")))
        helpers = missing_helpers(target.source, ("fsr_aligned", "fsr_pack"))
        return rewritten(target, move, replace(target.kernel, body=body), helpers=helpers)


def _packed(target: Target, most: int, what: str) -> Block:
    reads, writes = _WHAT[what]
    return _Writer(target, Finder(target, most, reads, writes)).of(target.kernel.body)


class _Writer:
    """Writes packs into blocks, with names that are free."""

    def __init__(self, target: Target, finder: Finder) -> None:
        self.finder, self.taken = finder, set(target.names | taken_names(target.kernel))

    def of(self, block: Block) -> Block:
        """The statements with their packs, and those nested in them."""
        packs = [(p, self._fresh(p)) for p in self.finder.packs(block)]
        done = list[Stmt]()
        for at, s in enumerate(block):
            reading, writing = dict[Expr, Expr](), dict[Expr, Expr]()
            for p, name in packs:
                if p.first <= at <= p.last:
                    (writing if p.writes else reading).update((e, _lane(name, n)) for e, n in p.lanes)
            for p, name in packs:
                if p.first == at:
                    done += _loaded(p, name) if not p.writes else [Declare(_type(p), name)]
            done.append(_in_packs(with_blocks(s, self.of), reading, writing))
            for p, name in packs:
                if p.last == at and p.writes:
                    done.append(_stored(p, name))
        return tuple(done)

    def _fresh(self, p: Pack) -> str:
        name = fresh(f"{p.array}_{'to' if p.writes else 'v'}", self.taken)
        self.taken.add(name)
        return name


def _in_packs(s: Stmt, reading: Mapping[Expr, Expr], writing: Mapping[Expr, Expr]) -> Stmt:
    """A statement that reads elements from packs and leaves what it sets in them."""

    def value(e: Expr) -> Expr:
        return map_expr(e, change)

    def change(e: Expr) -> Expr:
        match e:
            case Call(_, (Unary("&", inner),)) if inner in reading.values():
                return inner
        return reading.get(e, e)

    if not isinstance(s, Assign):
        return map_own_exprs(s, change) if reading else s
    target, op, right = s.target, s.op, value(s.value)
    if op != "=" and target in reading:  # what it had is read from a pack
        op, right = "=", Binary(op.removesuffix("="), reading[target], right)
    return Assign(writing.get(target, target), op, right)


def _lane(name: str, n: int) -> Expr:
    return Index(Member(Name(name), "v"), Literal(str(n)))


def _type(p: Pack) -> str:
    return f"fsr_pack<{p.element}, {p.width}>"


def _at_start(p: Pack, qualifier: str) -> Expr:
    """The pack in memory."""
    start = p.start.args[0] if isinstance(p.start, Call) else Unary("&", p.start)
    return Unary("*", Cast(f"{qualifier}{_type(p)} *", start, "reinterpret_cast"))


def _aligned(p: Pack) -> Expr:
    return Call(Name("fsr_aligned"), (Name(p.array),), (str(p.bytes * p.width),))


def _loaded(p: Pack, name: str) -> list[Stmt]:
    whole = _at_start(p, "const ")
    if p.promised:
        return [Declare(f"const {_type(p)}", name, whole)]
    single = {n: Assign(_lane(name, n), "=", e) for e, n in p.lanes}
    each = tuple(single[n] for n in sorted(single))
    return [Declare(_type(p), name), If(_aligned(p), (Assign(Name(name), "=", whole),), each)]


def _stored(p: Pack, name: str) -> Stmt:
    whole = Assign(_at_start(p, ""), "=", Name(name))
    if p.promised:
        return whole
    each = tuple(Assign(e, "=", _lane(name, n)) for e, n in sorted(p.lanes, key=lambda lane: lane[1]))
    return If(_aligned(p), (whole,), each)
