"""Scratch memory that a run can do without: what a thread writes for its point it hands on in a variable."""

from __future__ import annotations

from dataclasses import dataclass

from fsr.analysis.accesses import element
from fsr.analysis.types import bare
from fsr.records import Scratch
from fsr.source.form import Expr, Name, Unary
from fsr.source.mapping import map_exprs
from fsr.source.walk import Block, nodes
from fsr.transform.fuse.runs import Run
from fsr.transform.fuse.steps import Step
from fsr.transform.protocol import Subject

_NUMBERS = frozenset(("char", "short", "int", "long", "unsigned", "signed", "float", "double", "size_t", "bool"))


@dataclass(frozen=True)
class Value:
    """A scratch buffer as a variable. ``type``: of its elements, without const."""

    scratch: Scratch
    type: str

    @property
    def initial(self) -> str:
        """What it holds before it is set."""
        kind = self.type.split()
        if kind in (["float"], ["double"]):
            return "0.0f" if kind == ["float"] else "0.0"
        return "0" if set(kind) <= _NUMBERS else "{}"


def values_of(subject: Subject, run: Run) -> dict[str, Value]:
    """The buffers of the plan that nothing but the run touches, one element of which is all that a thread asks for."""
    found = dict[str, Value]()
    for scratch in subject.candidate.plan.scratch:
        users = {i for i, one in enumerate(subject.candidate.plan.launches) if scratch.name in one.args}
        touches = run.by_buffer.get(scratch.name, [])
        places = {t.place for t in touches}
        (place, *others) = places or {None}
        if not users or not users <= set(run.positions) or others or place is None or not place.fixed:
            continue
        turns = any(name.startswith("@turn") for name, _ in place.digits)
        if turns or any(t.kind == "atomic" for t in touches) or scratch.name not in run.written:
            continue
        kinds = {bare(p.type) for s in run.steps for p in s.target.kernel.params
                 if s.target.passed.get(p.name) == scratch.name}  # fmt: skip
        if len(kinds) == 1 and all(_may_be_values(s, scratch.name) for s in run.steps):
            found[scratch.name] = Value(scratch, kinds.pop())
    return found


def _may_be_values(step: Step, buffer: str) -> bool:
    kernel = step.target.kernel
    names = [name for name, passed in step.target.passed.items() if passed == buffer]
    return len(names) < 2 and all(
        name not in kernel.macro_words and with_value(kernel.body, name) is not None for name in names
    )


def with_value(body: Block, parameter: str) -> Block | None:
    """Statements with a variable for the elements that a pointer is used for; None where it is used in another way."""
    count, own = 0, frozenset({parameter})

    def change(e: Expr) -> Expr:
        nonlocal count
        if element(e, own) is None:
            return e
        count += 1
        return Name(parameter)

    changed = map_exprs(body, change)
    left = sum(isinstance(n, Name) and n.text == parameter for n in nodes(changed))
    pointed = any(isinstance(n, Unary) and n.op in "&*" and n.operand == Name(parameter) for n in nodes(changed))
    return None if left != count or pointed else changed
