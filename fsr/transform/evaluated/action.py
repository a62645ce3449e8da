"""partial-evaluation: a kernel whose thread fills a buffer of its own at a position that it carries along (a hash's
context, a bit packer, a small queue) gets a way for the lengths that it is timed at, in which every position is known.

An array that is indexed at run time lies in local memory. Where lengths are numbers the position is one at each step:
loops are worked out turn by turn and calls by what their functions do (partial evaluation, Jones, Gomard and Sestoft
1993), which leaves elements at constant places, and the compiler's scalar replacement makes them registers. Calls that
move no position stay, with the loops of their functions unrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from fsr.analysis.functions import hiding_macros
from fsr.analysis.records import members_of
from fsr.errors import FsrError
from fsr.expressions import evaluate
from fsr.records import Candidate
from fsr.source.form import Binary, Declare, Expr, If, Name, Scope, Stmt, conjunction
from fsr.source.macros import macros
from fsr.source.parse import parse_device_functions
from fsr.source.walk import BUILTINS, Block, kernel_names, names_mentioned, names_written, opaque_names, variables
from fsr.transform.details.function_loops import pragmas, spliced, unrollable
from fsr.transform.evaluated.c_numbers import Number, Unfit, expression, kind_of, literal
from fsr.transform.evaluated.expressions import Evaluation
from fsr.transform.evaluated.places import Elsewhere, Scalar
from fsr.transform.evaluated.places import Scope as Places
from fsr.transform.evaluated.statements import Interpreter
from fsr.transform.plan import rewritten
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, target_of, targets

GAIN = 1.6


@dataclass(frozen=True, slots=True)
class PartialEvaluation:
    """A way for the timed lengths; other lengths take the original's."""

    name: str = "partial-evaluation"
    aims_at: frozenset[str] = frozenset(["latency", "instructions", "compute", "uncoalesced"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """One for each kernel that has such a buffer."""
        for target in targets(subject):
            if evaluated(target) is not None:
                yield Move(self.name, target.region, (), GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with both ways, and pragmas on the loops of what is called."""
        target = target_of(subject, move)
        body = evaluated(target)
        assert body is not None
        made = rewritten(target, move, replace(target.kernel, body=body))
        edits = [(place, place, text) for place, text in pragmas(made.source, unrollable(made))]
        return replace(made, source=spliced(made.source, edits))


def evaluated(target: Target) -> tuple[Stmt, ...] | None:
    """The kernel's body with the way for timed lengths ahead of its own; None where that is not known, or nothing is
    found by a position that is carried along."""
    source, found = target.source, _parted(target.kernel.body, target.source)
    if found is None or target.kernel.template_parameters:
        return None
    head, tail, whole = found
    told = _lengths(target, tail)
    numbers = {m.name: m.body.strip() for m in macros(source) if m.params is None and literal(m.body.strip())}
    made = Evaluation(
        target.functions, target.aliases, numbers, set(target.names) | names_mentioned(target.kernel.body)
    )
    scope = _around(target, head, told, made)
    interpreter = Interpreter(made, source, parse_device_functions(source))
    try:
        interpreter.run(tail, scope)
    except Unfit:
        return None
    if not made.positions or not _plain_names(target, interpreter):
        return None
    used = names_mentioned(made.out)
    way = (*(d for d in made.declared if d.name in used), *made.out)
    test = _test(target, told)
    return whole((Scope(way) if test is None else If(test, way, tail),))


def _parted(body: Block, source: str) -> tuple[Block, Block, Callable[[Block], Block]] | None:
    """What stands before a thread's buffer, what begins with it, and the body with something in that one's place; the
    buffer may be that of the guard that a kernel ends with. None where there is none."""
    at = next((n for n, s in enumerate(body) if _is_buffer(s, source)), None)
    if at is not None:
        head = body[:at]
        return head, body[at:], lambda new: (*head, *new)
    if not body or not isinstance(guard := body[-1], If) or guard.orelse:
        return None
    inner, before = _parted(guard.then, source), body[:-1]
    if inner is None:
        return None
    own, tail, within = inner
    return (*before, *own), tail, lambda new: (*before, replace(guard, then=within(new)))


def _is_buffer(s: Stmt, source: str) -> bool:
    """Whether a statement declares an array, or a structure of numbers."""
    if not isinstance(s, Declare) or s.qualifiers or s.init is not None:
        return False
    return bool(s.dims) or members_of(source, s.type) is not None


def _lengths(target: Target, tail: tuple[Stmt, ...]) -> dict[str, Number]:
    """The whole numbers that the kernel gets and its tail mentions, where they are the same at all timed sizes."""
    found, mentioned = dict[str, Number](), names_mentioned(tail) - names_written(target.kernel.body)
    for p in target.kernel.params:
        kind = None if p.name not in mentioned or p.is_pointer else kind_of(p.type, target.aliases)
        text = None if kind is None else target.size_text(Name(p.name))
        if kind is None or text is None:
            continue
        try:
            values = {evaluate(text, sizes) for sizes in target.contract.timed_sizes()}
        except FsrError:
            continue
        value = values.pop()
        if not values and isinstance(value, int) and kind.range[0] <= value <= kind.range[1]:
            found[p.name] = Number(value, kind)
    return found


def _around(target: Target, head: tuple[Stmt, ...], told: dict[str, Number], made: Evaluation) -> Places:
    """What the names that the tail finds stand for."""
    scope = Places({name: Elsewhere(Name(name)) for name in (*variables(head), *BUILTINS)})
    for p in target.kernel.params:
        scope[p.name] = Elsewhere(Name(p.name))
        if p.name in told:
            made.known[p.name] = told[p.name]
            scope[p.name] = Scalar(Name(p.name), p.name, p.type, told[p.name].kind)
    return scope


def _test(target: Target, told: dict[str, Number]) -> Expr | None:
    """Whether the lengths are those; None where there are none."""
    return conjunction([Binary("==", Name(name), expression(number)) for name, number in told.items()])


def _plain_names(target: Target, interpreter: Interpreter) -> bool:
    """Whether what functions say of the file means the same in the kernel, and no macro hides a variable."""
    forms = [interpreter.functions[name] for name in interpreter.evaluated]
    inside = {n for f in forms for n in variables(f.body)} | {p.name for f in forms for p in f.params}
    own = frozenset(variables(target.kernel.body)) | {p.name for p in target.kernel.params}
    every = kernel_names(target.kernel).union(*map(kernel_names, forms))
    hidden = {n for m in macros(target.source) for n in opaque_names(m.body) - set(m.params or ())}
    made = interpreter.made
    outside = made.free - BUILTINS
    return not (outside & own or hidden & (own | inside) or every & hiding_macros(target.source))
