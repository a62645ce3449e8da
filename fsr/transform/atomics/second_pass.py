"""A second launch that folds what the blocks of the first one left in scratch buffers, in a fixed order."""

from __future__ import annotations

from dataclasses import replace

from fsr.hardware.c_types import BY_SPELLING
from fsr.records import Candidate, Launch, ScalarArgument, Scratch
from fsr.source.emit import emit_kernel
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Declare,
    Expr,
    For,
    If,
    Index,
    KernelForm,
    Literal,
    Member,
    Name,
    Param,
    Stmt,
    number,
)  # fmt: skip
from fsr.source.parse import parse_kernels
from fsr.transform.atomics.element_kernel import ElementKernel
from fsr.transform.atomics.gather import Gathering
from fsr.transform.atomics.global_atomics import Target

THREADS = 256
_OPERATORS = {"Add": "+", "Sub": "-", "And": "&", "Or": "|", "Xor": "^"}


def with_second_pass(candidate: Candidate, kernel: ElementKernel, gathering: Gathering) -> Candidate:
    """The candidate with scratch buffers for the first launch and a launch of one block that finishes."""
    form = kernel.target.kernel
    name = f"{form.name}_finish"
    launches = list(candidate.plan.launches)
    first = launches[kernel.target.position]
    blocks = f"({first.grid[0]})"
    taken = {s.name for s in candidate.plan.scratch} | {a.name for a in kernel.target.contract.args}
    scratch = []
    for target in gathering.fixed:
        buffer = gathering.local(target, "partial")
        while buffer in taken:
            buffer += "_"
        scratch.append(Scratch(buffer, BY_SPELLING[target.type].dtype, f"max(1, {blocks})"))
    buffers = tuple(s.name for s in scratch)
    launches[kernel.target.position] = replace(first, args=(*first.args, *buffers))
    finish = _finish(name, form, gathering)
    second = Launch(
        name, ("1", "1", "1"), (str(THREADS), "1", "1"), "0",
        (*first.args, *buffers, ScalarArgument("int32", first.grid[0])),
    )  # fmt: skip
    launches.insert(kernel.target.position + 1, second)
    plan = replace(candidate.plan, launches=tuple(launches), scratch=(*candidate.plan.scratch, *scratch))
    return replace(candidate, source=_beside(candidate.source, form.name, finish), plan=plan)


def _beside(source: str, name: str, finish: KernelForm) -> str:
    """The source with the second kernel right after the first."""
    span = parse_kernels(source)[name].span
    assert span is not None
    raw = source.encode()
    return raw[: span[1]].decode() + "\n\n" + emit_kernel(finish).rstrip("\n") + raw[span[1] :].decode()


def _finish(name: str, form: KernelForm, gathering: Gathering) -> KernelForm:
    """The kernel of one block: it takes the parameters of the first, the scratch buffers and their length."""
    count = gathering.named("partial_count").text
    body: list[Stmt] = list(gathering.loop.kernel.before)
    for target in gathering.fixed:
        body += _folding(target, gathering, count)
    params = tuple(replace(p, restrict=False) for p in gathering.params())
    return KernelForm(
        name, (*params, Param("int", count)), tuple(body), launch_bounds=(str(THREADS),), prefix=form.prefix
    )


def _folding(target: Target, gathering: Gathering, count: str) -> list[Stmt]:
    here, thread = Name(gathering.local(target, "here")), Member(Name("threadIdx"), "x")
    k = gathering.named("k")
    partial = Index(Name(gathering.local(target, "partial")), k)
    fold = Assign(here, "=", target.folded(here, partial))
    out = Index(Name(target.pointer), target.index)
    folded: Expr = Call(Name(f"fsr_block_{target.fold}"), (here,), (str(THREADS),))
    operator = _OPERATORS.get(target.operation)
    new = Binary(operator, out, here) if operator else Call(Name(target.fold), (out, here))
    return [
        Declare(target.type, here.text, Literal(target.identity)),
        For("int", k.text, thread, "<", Name(count), number(THREADS), (fold,)),
        Assign(here, "=", folded),
        If(Binary("==", thread, Literal("0")), (Assign(out, "=", new),)),
    ]
