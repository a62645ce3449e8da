"""Both kernels, the memory between them, and their launches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from fsr.analysis.threads import AXES
from fsr.analysis.types import bare, number_type
from fsr.hardware.c_types import BY_SPELLING
from fsr.records import Candidate, Launch, ScalarArgument, Scratch
from fsr.source.entry import beside
from fsr.source.form import (
    Assign,
    Binary,
    Comment,
    Declare,
    Expr,
    For,
    Index,
    KernelForm,
    Literal,
    Member,
    Name,
    Param,
    Stmt,
    Ternary,
    number,
)  # fmt: skip
from fsr.source.mapping import substitute
from fsr.source.names import words
from fsr.source.rewrite import replace_kernel
from fsr.source.walk import Block, fresh, names_mentioned, variables
from fsr.transform.plan import along
from fsr.transform.protocol import Move
from fsr.transform.target import Target
from fsr.transform.thread_number import thread_number
from fsr.transform.two_stage.folds import Ends, Fold, State
from fsr.transform.two_stage.merge import renamed
from fsr.transform.two_stage.turns import Turns

_AHEAD = "#pragma unroll 4"  # parts that are read at once


@dataclass(frozen=True)
class TwoStage:
    """A kernel that may be cut: its ``target``, ``turns`` and ``ends``, and the ``free`` axis of the grid."""

    target: Target
    turns: Turns
    ends: Ends
    free: str


class _Text:
    """The text of one of both kernels for a number of parts."""

    def __init__(self, found: TwoStage, parts: int) -> None:
        self.found, self.parts = found, parts
        self.target, self.turns, self.ends = found.target, found.turns, found.ends
        self.kernel = self.target.kernel
        self.taken = set(self.target.names) | {n for s in self.ends.states for n in (s.own, s.kept)}
        self.each, self.at, self.part = (self.fresh(n) for n in ("turns_each", "kept_at", "part"))
        self.threads = self.target.threads or 1

    def fresh(self, wanted: str) -> str:
        """A name that nothing has yet."""
        found = fresh(wanted, self.taken)
        self.taken.add(found)
        return found

    def params(self, const: str) -> tuple[Param, ...]:
        """Those of either kernel."""
        kept = (Param(f"{const}{s.type} *", s.kept, restrict=True) for s in self.ends.states)
        return (*self.kernel.params, *kept, Param("int", self.each))

    # ------------------------------------------------------------ the first kernel

    def first(self, name: str) -> KernelForm:
        """Each part's turns, and what each thread has of them."""
        loop, part = self.turns.loop, Member(Name("blockIdx"), self.found.free)
        type_ = bare(loop.type or "int")
        first, end, last = (self.fresh(f"{word}_{loop.var}") for word in ("first", "end", "last"))
        width = Binary("*", Name(self.each), loop.step)
        bound = self.turns.bound
        shared = replace(loop, start=Name(first), bound=Name(last), relation="<")
        body: tuple[Stmt, ...] = (
            *_without_shared(self.turns.before),
            Comment(f"// a run of this thread's turns, one of {self.parts} along {self.found.free}"),
            Declare(f"const {type_}", first, Binary("+", loop.start, Binary("*", part, width))),
            Declare(f"const {type_}", end, Binary("+", Name(first), width)),
            Declare(f"const {type_}", last, Ternary(Binary("<", Name(end), bound), Name(end), bound)),
            shared,
            Declare("const int", self.at, self._place(part)),
            *(self._keeps(s) for s in self.ends.first),
        )
        body = _without_unused(body, self.turns.before)
        return replace(self.kernel, name=name, params=self.params(""), body=body)

    def _place(self, part: Expr | None) -> Expr:
        """The element of a thread's state in a part, or in the first one."""
        assert self.target.block is not None
        axes = [axis for axis, extent in zip(AXES, self.target.launch.grid, strict=True) if extent != "1"]
        row: Expr | None = None  # blocks by number, x first
        for axis in reversed(axes):
            own = Member(Name("blockIdx"), axis)
            row = own if row is None else Binary("+", Binary("*", row, Member(Name("gridDim"), axis)), own)
        if row is not None:
            row = Binary("*", row, number(self.parts))
        if part is not None:
            row = part if row is None else Binary("+", row, part)
        thread = thread_number(self.target.block)
        return thread if row is None else Binary("+", Binary("*", row, number(self.threads)), thread)

    def _keeps(self, s: Stmt) -> Stmt:
        """A statement that keeps a state, as one that writes memory."""
        kept = {x.kept for x in self.ends.states}
        if isinstance(s, Assign) and isinstance(s.target, Name) and s.target.text in kept:
            return replace(s, target=Index(s.target, Name(self.at)))
        return s

    # ------------------------------------------------------------ the second kernel

    def second(self) -> KernelForm:
        """The parts' states merged, and all that came behind the turns."""
        loop, step = self.turns.loop, self.turns.loop.step
        first, filled, one = self.fresh(f"first_{loop.var}"), self.fresh("parts"), Literal("1")
        type_ = bare(loop.type or "int")
        left = Binary("-", Binary("-", self.turns.bound, Name(first)), one)
        count = Binary("+", Binary("/", left, Binary("*", Name(self.each), step)), one)
        some = Ternary(Binary("<", Name(first), self.turns.bound), count, Literal("0"))
        own = [Declare(s.type, s.own, Index(Name(s.kept), Name(self.at))) for s in self.ends.states]
        merging: list[Stmt] = []
        for fold in self.ends.folds:
            merging += self._merges(fold)
        body: tuple[Stmt, ...] = (
            *self.turns.before,
            Comment("// what the parts of this thread's turns came to, merged in their order"),
            Declare("const int", self.at, self._place(None)),
            *own,
            Declare(f"const {type_}", first, loop.start),
            Declare(f"const {type_}", filled, some),
            For("int", self.part, one, "<", Name(filled), one, tuple(merging), pragmas=(_AHEAD,)),
            *self.ends.second,
        )
        return replace(self.kernel, params=self.params("const "), body=_without_unused(body, self.turns.before))

    def _merges(self, fold: Fold) -> Block:
        others = {s.own: self.fresh(f"next_{s.key}") for s in fold.states}
        names = {n: own if mine else others[own] for n, (own, mine) in fold.sides.items()}
        at = Binary("+", Name(self.at), Binary("*", Name(self.part), number(self.threads)))
        merge = self._apart(renamed(fold.merge, names), names)
        read = (Declare(f"const {s.type}", others[s.own], Index(Name(s.kept), at)) for s in fold.states)
        return (*read, *merge)

    def _apart(self, merge: Block, names: dict[str, str]) -> Block:
        """A merge whose own variables have names that no other merge has."""
        own = dict.fromkeys(n for n in variables(merge) if n not in names.values())
        many = len(self.ends.folds) > 1
        return substitute(merge, {n: Name(self.fresh(n)) for n in own}) if many else merge


def cut(found: TwoStage, move: Move) -> Candidate:
    """The candidate of two launches in the place of one."""
    target, parts = found.target, int(move.param("parts"))
    candidate = target.candidate
    entry = target.launch.entry
    name = fresh(f"{target.kernel.name}_parts", words(candidate.source))
    kernels = [_Text(found, parts).first(name), _Text(found, parts).second()]
    scratch = _scratch(found, parts)
    launches = list(candidate.plan.launches)
    each = ScalarArgument("int32", found.turns.each(parts))
    args = (*target.launch.args, *(s.name for s in scratch), each)
    templated = entry[entry.index("<") :] if "<" in entry else ""
    shared_out = Launch(
        beside(entry, name) + templated,
        along(target.launch.grid, found.free, str(parts)),
        target.launch.block,
        "0",
        args,
    )
    launches[target.position : target.position + 1] = [shared_out, replace(target.launch, args=args)]
    plan = replace(candidate.plan, launches=tuple(launches), scratch=(*candidate.plan.scratch, *scratch))
    source = replace_kernel(candidate.source, target.kernel, kernels)
    return replace(candidate, source=source, plan=plan, actions=(*candidate.actions, move.name))


def kept_elements(target: Target, parts: int) -> str:
    """How many elements of a state there are, as a size expression."""
    return " * ".join([*(f"({g})" for g in target.launch.grid if g != "1"), f"{parts * (target.threads or 1)}"])


def _scratch(found: TwoStage, parts: int) -> tuple[Scratch, ...]:
    target = found.target
    taken = {s.name for s in target.candidate.plan.scratch} | {a.name for a in target.contract.args}

    def one(state: State) -> Scratch:
        name = fresh(state.kept, taken)
        taken.add(name)
        dtype = BY_SPELLING[number_type(state.type, target.aliases)].dtype
        return Scratch(name, dtype, kept_elements(target, parts))

    return tuple(map(one, found.ends.states))


def _without_shared(stmts: Block) -> Iterable[Stmt]:
    return (s for s in stmts if not (isinstance(s, Declare) and "__shared__" in s.qualifiers))


def _without_unused(body: Block, before: Block) -> Block:
    """The statements without plain variables, of those in front of the turns, that nothing mentions."""
    droppable = {id(s) for s in before if isinstance(s, Declare) and not s.qualifiers and not s.dims}
    kept = list[Stmt](body)
    for s in reversed(body):
        if id(s) in droppable and isinstance(s, Declare):
            rest = [x for x in kept if x is not s]
            if s.name not in names_mentioned(rest):
                kept = rest
    return tuple(kept)
