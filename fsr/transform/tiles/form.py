"""Kernels whose threads go through a loop over lines of two operands, one of their row and one of their column, each on
its own: what stands around the loop, what the threads hand on to it, and what its turns read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from fsr.analysis.calls import INTO, is_load
from fsr.analysis.macros import expanded
from fsr.analysis.types import is_integer
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    KernelForm,
    Member,
    Name,
    Scope,
    Stmt,
    Unary,
    conjuncts,
)  # fmt: skip
from fsr.source.macros import macros
from fsr.source.mapping import substitute, with_blocks
from fsr.source.moved_pointers import with_own_pointers
from fsr.source.narrowing import narrowed
from fsr.source.walk import (
    BUILTINS,
    Block,
    base_name,
    breaks,
    exprs_of,
    fresh,
    identifiers,
    names_assigned,
    names_in,
    names_mentioned,
    opaque_names,
    variables,
    walk_expr,
    walk_exprs,
    walk_stmts,
)  # fmt: skip
from fsr.transform.jam.exits import without_exits
from fsr.transform.jam.extents import divides, guarded_along
from fsr.transform.jam.guarded import Chain, guards, is_whole, owned, plain_kernel
from fsr.transform.sizes import INT_LIMIT, always
from fsr.transform.slices.slices import SlicedBuffer
from fsr.transform.target import Target
from fsr.transform.tiles.harm import divides_wholes, does_harm
from fsr.transform.tiles.limits import lies_within
from fsr.transform.tiles.own_arrays import with_own_arrays
from fsr.transform.tiles.reads import IDS, MOST_WIDTH, Reads, reads_of

_SLACK = 1024  # beyond a loop's bound, what its variable may reach
_FOR_EFFECT = frozenset(["printf", "assert"])


@dataclass(frozen=True)
class Tiled:
    """``chain``: the tests around all that a thread does, with what stands before each; ``before``, ``loop`` and
    ``after``: what it does; ``reads``: of the loop; ``pure``: variables that ids and arguments alone tell, which may be
    declared again; ``counts``: by axis, the argument that tells the number of blocks of before, where the
    tests do not say which threads there are; ``wary``: whether a turn may do harm where there is no thread."""

    target: Target
    chain: Chain
    before: Block
    loop: For
    after: Block
    reads: Reads
    pure: Mapping[str, Declare]
    counts: Mapping[str, str]

    @cached_property
    def steady(self) -> Mapping[Expr, SlicedBuffer]:
        """What a thread reads that stays the same in all turns, of which there is one at least."""
        own = set(variables(self.loop.body)) | {self.loop.var}
        return {e: b for b, e in self.reads.steady if not names_in(e) & own} if has_turns(self) else {}

    @cached_property
    def common(self) -> Mapping[Expr, SlicedBuffer]:
        """What all threads read alike in a turn."""
        own = set(variables(self.target.kernel.body)) - {self.loop.var, *self.uniform}
        return {e: b for b, e in self.reads.common if not names_in(e) & own}

    @cached_property
    def uniform(self) -> Mapping[str, Declare]:
        """The pure variables that are the same in all threads, and may be had without any test."""
        found = {n: s for n, s in self.pure.items() if s.init is not None and is_uniform(self.pure, s.init)}
        own = [lead for lead, test in self.chain if not names_in(test) & set(self.counts.values())]
        first = own[0] if own else self.before
        outside = {s.name for s in first if isinstance(s, Declare)}
        divided = {n for n, s in found.items() if s.init is not None and divides_wholes(self.target, s.init)}
        return {n: s for n, s in found.items() if n in outside or n not in divided}

    @cached_property
    def wary(self) -> bool:
        """Whether a turn may do harm where there is no thread."""
        inits = [init for n in self.needed(names_mentioned(self.loop.body)) if (init := self.pure[n].init) is not None]
        spared = self.reads.places | self.steady.keys() | self.common.keys()
        divided = any(divides_wholes(self.target, e) for e in inits)
        return bool(self.chain) and (divided or does_harm(self.target, self.loop.body, spared))

    @property
    def leads(self) -> Block:
        """What stands before the tests."""
        return tuple(s for lead, _ in self.chain for s in lead)

    @cached_property
    def state(self) -> Sequence[Declare]:
        """The variables that a thread hands on to the loop, or to what follows."""
        inside = names_mentioned((*self.loop.body, *self.after))
        inside |= frozenset().union(*(names_in(e) for e in exprs_of(self.loop)))
        top = [s for s in (*self.leads, *self.before) if isinstance(s, Declare) and s.name not in self.pure]
        return [s for s in top if s.name in inside]

    def needed(self, names: Iterable[str]) -> frozenset[str]:
        """The pure variables among names, and those that they are made of."""
        return needed(self.pure, names)

    def axes_of(self, e: Expr) -> frozenset[str]:
        """Along which axes of the grid an expression of pure variables and arguments differs."""
        return axes_of(self.pure, e)

    def of_one_axis(self, s: Declare) -> frozenset[str]:
        """Along which axes a variable differs that is set once, from what nobody writes; both where that is not so."""
        steady = s.init is not None and not s.dims and s.name not in names_assigned(self.target.kernel.body)
        read = {p.of.param.name for p in self.reads.tiles} | {b.param.name for b, _ in self.reads.steady}
        known = self.pure.keys() | {p.name for p in self.target.kernel.params if not p.is_pointer} | BUILTINS | read
        known |= {n for b, _ in self.reads.steady for n in b.names}
        return self.axes_of(s.init) if steady and s.init is not None and names_in(s.init) <= known else frozenset("xy")


def needed(pure: Mapping[str, Declare], names: Iterable[str]) -> frozenset[str]:
    """The pure variables among names, and those that they are made of."""
    found, todo = set[str](), set(names) & pure.keys()
    while todo:
        found |= todo
        todo = {n for name in todo if (init := pure[name].init) is not None for n in names_in(init)}
        todo = (todo & pure.keys()) - found
    return frozenset(found)


def axes_of(pure: Mapping[str, Declare], e: Expr) -> frozenset[str]:
    """Along which axes of the grid an expression of pure variables and arguments differs."""
    inits = [init for n in needed(pure, names_in(e)) if (init := pure[n].init) is not None]
    ids = frozenset[str]().union(*map(identifiers, (e, *inits)))
    return frozenset(axis for axis in "xy" if ids & IDS[axis])


def is_uniform(pure: Mapping[str, Declare], e: Expr) -> bool:
    """Whether an expression of pure variables and arguments is the same in all threads of the blocks along x and y."""
    ids = IDS["x"] | IDS["y"] | {"threadIdx.z"}
    inits = [init for n in needed(pure, names_in(e)) if (init := pure[n].init) is not None]
    return not any(identifiers(x) & ids for x in (e, *inits))


# ---------------------------------------------------------------- which are


def tiled(target: Target) -> Tiled | None:
    """A kernel with a loop to be tiled; None where there is none. Threads of blocks beyond the grid are no matter of
    it: see :func:`for_factors`."""
    block, kernel = target.block, plain_kernel(target)
    if block is None or block[2] != 1 or kernel is None or _asks_for_grid(kernel.body):
        return None
    plain = expanded(kernel, target.source)
    written = [kernel, *([plain] if plain.body != kernel.body else [])]
    found = (_in_kernel(target, with_own_pointers(one)) for one in written)
    return next((one for one in found if one is not None), None)


def _in_kernel(target: Target, kernel: KernelForm) -> Tiled | None:
    body = without_exits(owned(kernel, target.names), partial(is_whole, target))
    if body is None:
        return None
    body = narrowed(_opened(narrowed(body)))
    whole = replace(target, kernel=replace(kernel, body=body))
    own = set(variables(body))
    if names_assigned(body) - own or own & _named_by_macros(target, body):
        return None  # something of the file would be a thread's own, or what is no variable any more has a name there
    chain, core = guards(whole, body)
    found = (_found(whole, chain, core, at) for at, s in enumerate(core) if isinstance(s, For))
    return next((one for one in found if one is not None), None)


def _named_by_macros(target: Target, body: Block) -> frozenset[str]:
    """What macros that statements call name, beside what they are given."""
    called = [m for m in macros(target.source) if m.params is not None]
    if not {m.name for m in called} & names_mentioned(body):
        return frozenset()
    return frozenset().union(*(opaque_names(m.body) - set(m.params or ()) for m in called))


def for_factors(found: Tiled, target: Target, factors: Mapping[str, int]) -> Tiled:
    """The same where as many blocks along each axis are one, with tests whether there is such a block, unless all or
    the kernel's own tests tell."""
    some = [a for a, n in factors.items() if n > 1 and not divides(target, a, n)]
    counts = {a: fresh(f"blocks_{a}", target.names) for a in some if not (found.chain and guarded_along(target, a))}
    told = [((), Binary("<", Member(Name("blockIdx"), axis), Name(count))) for axis, count in counts.items()]
    return replace(found, chain=(*told, *found.chain), counts=counts)


def _opened(body: Block) -> Block:
    """Statements without braces around some whose variables have no namesakes."""
    names = variables(body)
    single = {n for n in names if names.count(n) == 1}

    def opened(stmts: Block) -> Block:
        found: list[Stmt] = []
        for s in stmts:
            own = {x.name for x in s.body if isinstance(x, Declare)} if isinstance(s, Scope) else set()
            if isinstance(s, Scope) and own <= single:
                found += opened(s.body)
            else:
                found.append(with_blocks(s, opened) if isinstance(s, If) else s)
        return tuple(found)

    return opened(body)


def _asks_for_grid(body: Block) -> bool:
    return any(n.split(".")[0] == "gridDim" for n in identifiers(body))


def _found(target: Target, chain: Chain, core: Block, at: int) -> Tiled | None:
    loop, before, after = core[at], core[:at], core[at + 1 :]
    assert isinstance(loop, For)
    pure = _pure(target, (*(s for lead, _ in chain for s in lead), *before))
    chain = tuple((lead, substitute(test, _flags(pure))) for lead, test in chain)
    tests = [t for _, test in chain for t in conjuncts(test)]
    if not all(_is_pure(target, pure, t) for t in tests):
        return None
    if not _is_counted(target, pure, loop) or not _computes_only(target, loop.body):
        return None
    before, loop = with_own_arrays(before, loop, after)
    target = replace(target, kernel=replace(target.kernel, body=_whole(chain, (*before, loop, *after))))
    reads = reads_of(target, loop)
    if reads is None or not _is_known(target, loop.body, reads):
        return None
    alone = [t for t in tests if len(axes_of(pure, t)) < 2]  # of one axis: others do not tell which lines are read
    for tile in reads.tiles:
        if not (tile.sure and alone == tests) and not lies_within(target, loop, tile, alone):
            return None
    found = Tiled(target, chain, before, loop, after, reads, pure, {})
    if not found.needed(n for e in (loop.start, loop.bound) for n in names_in(e)) <= found.uniform.keys():
        return None
    once = variables(target.kernel.body)
    kept = [*pure, *(s.name for s in found.state)]
    return found if all(once.count(name) == 1 for name in kept) else None


def _whole(chain: Chain, core: Block) -> Block:
    for lead, test in reversed(chain):
        core = (*lead, If(test, core))
    return core


def _pure(target: Target, top: Block) -> dict[str, Declare]:
    """The variables that may be declared again."""
    changed, found = names_assigned(target.kernel.body), dict[str, Declare]()
    for s in top:
        if not isinstance(s, Declare) or s.init is None or s.dims or s.name in changed or "&" in s.type:
            continue
        if set(s.qualifiers) <= {"const", "constexpr"} and _is_pure(target, found, s.init):
            found[s.name] = s
    return found


def _is_pure(target: Target, pure: Collection[str], e: Expr) -> bool:
    """Whether an expression is made of ids, arguments and pure variables alone."""
    own = set(variables(target.kernel.body)) - set(pure)
    if names_in(e) & (own | names_assigned(target.kernel.body)):
        return False
    pointed = [x.operand for x in walk_expr(e) if isinstance(x, Unary) and x.op == "&"]
    for x in walk_expr(e):
        match x:
            case Unary("&", Index(Name())):
                pass  # as a sum of a pointer and an index
            case Index() if any(x is one for one in pointed):
                pass
            case Index() | Unary("*" | "&") | Member(arrow=True):
                return False
            case Call(callee):
                if not isinstance(callee, Name) or not _computes(target, callee.text):
                    return False
            case Member(Name(base)) if base in BUILTINS:
                pass
            case Name(text) if text not in own and not _is_known_name(target, pure, text):
                return False
    return True


def _is_known_name(target: Target, pure: Collection[str], text: str) -> bool:
    params = {p.name for p in target.kernel.params}
    constant = text in target.constants or text in BUILTINS or text in ("true", "false")
    return text in pure or text in params or constant or _computes(target, text)


def _computes(target: Target, name: str) -> bool:
    known = target.functions.only_computes(name) or name in target.type_names
    return known and name.split("::")[-1] not in _FOR_EFFECT


def _flags(pure: Mapping[str, Declare]) -> dict[str, Expr]:
    """Conditions that have names, to be written out in tests: ``const bool inside = x < w && y < h``."""
    return {n: s.init for n, s in pure.items() if s.type.split()[-1] == "bool" and s.init is not None}


def _is_counted(target: Target, pure: Mapping[str, Declare], loop: For) -> bool:
    """Whether a loop counts up to the same end in all threads of the blocks along x and y."""
    if loop.type is None or not is_integer(loop.type) or loop.relation not in ("<", "<="):
        return False
    if (
        not 1 <= (target.poly(loop.step).value or 0) <= MOST_WIDTH
        or loop.var in names_assigned(loop.body)
        or breaks(loop.body)
    ):
        return False
    if not all(_is_pure(target, pure, e) and is_uniform(pure, e) for e in (loop.start, loop.bound)):
        return False
    most = target.largest(loop.bound)
    return most is not None and most <= INT_LIMIT - _SLACK and target.at_least(loop.start, 0)


def _computes_only(target: Target, body: Block) -> bool:
    """Whether a turn changes nothing but the thread's variables, and calls nothing that does more."""
    local = {s.name: s for s in walk_stmts(target.kernel.body) if isinstance(s, Declare)}

    def is_own(e: Expr) -> bool:
        while isinstance(e, Index | Member) and not (isinstance(e, Member) and e.arrow):
            name = e.base.text if isinstance(e, Index) and isinstance(e.base, Name) else None
            if name is not None and not (name in local and local[name].dims):
                return False
            e = e.base
        return isinstance(e, Name) and e.text in local and "&" not in local[e.text].type

    for s in walk_stmts(body):
        if isinstance(s, Assign) and not is_own(s.target):
            return False
        if isinstance(s, Declare) and (s.qualifiers or ("&" in s.type and "const" not in s.type.split())):
            return False
        if isinstance(s, For) and s.type is None and s.var not in local:
            return False
    for e in walk_exprs(body):
        if isinstance(e, Unary) and e.op == "&" and not is_own(e.operand):
            return False
        if isinstance(e, Call) and not is_load(e):
            name = e.callee.text if isinstance(e.callee, Name) else ""
            if not _computes(target, name) and not (name in INTO and name not in target.functions.own):
                return False
    return not any(isinstance(s, ExprStmt) and not isinstance(s.expr, Call) for s in walk_stmts(body))


def _is_known(target: Target, body: Block, reads: Reads) -> bool:
    """Whether memory is read through the given buffers alone, and in arrays of the thread's or of the file's that the
    kernel does not write."""
    local = {s.name: s for s in walk_stmts(target.kernel.body) if isinstance(s, Declare)}
    params = {p.name for p in target.kernel.params if p.is_pointer}
    every = list(walk_stmts(target.kernel.body))
    written = {base_name(s.target) for s in every if isinstance(s, Assign)}
    calls = [e for s in every for x in exprs_of(s) for e in walk_expr(x) if isinstance(e, Call) and not is_load(e)]
    for call in calls:
        name = call.callee.text if isinstance(call.callee, Name) else ""
        written |= set() if _computes(target, name) else names_in(call)

    def is_known(pointer: Expr) -> bool:
        name = base_name(pointer)
        if name is None or name in reads.names:
            return name is not None
        if name in local:
            return bool(local[name].dims) or "*" not in local[name].type
        return name not in params | written

    for e in walk_exprs(body):
        match e:
            case Index(place) | Unary("*", place) | Member(place, arrow=True):
                pass
            case Call(args=(place,)) if is_load(e):
                pass
            case _:
                continue
        if not is_known(place):
            return False
    return True


def has_turns(tiled: Tiled) -> bool:
    """Whether the loop has a turn at least, whatever the sizes."""
    loop, target = tiled.loop, tiled.target
    length = target.size_text(Binary("-", loop.bound, loop.start))
    return length is not None and always(target.contract, f"({length}) >= {1 - (loop.relation == '<=')}")
