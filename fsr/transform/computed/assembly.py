"""From the texts of kernels to a candidate: they take the place of the original, one launch after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fsr.computation.computation import KEPT
from fsr.hardware.c_types import BY_DTYPE
from fsr.records import Candidate, Launch, Plan, ScalarArgument, Scratch
from fsr.source.emit import emit_kernel
from fsr.source.entry import beside
from fsr.source.form import KernelForm, OpaqueStmt, Param
from fsr.source.names import indent, settle, words
from fsr.source.rewrite import insert_helpers, insert_includes
from fsr.source.tokens import skeleton
from fsr.transform.collectives import missing_helpers
from fsr.transform.computed.scene import Scene, word
from fsr.transform.plain.names import flat_views, settled_type, with_flat_views

Dim3 = tuple[str, str, str]


@dataclass(frozen=True)
class Written:
    """One kernel: its lines (``$names`` are settled), its launch, the threads a block has, and what it is called
    behind the original's name where it is not alone ('finish'). ``scratch``: buffers of the plan that it takes, under
    their ``$names``."""

    scene: Scene
    lines: Sequence[str]
    grid: Dim3
    block: Dim3
    threads: int
    suffix: str = ""
    scratch: tuple[Scratch, ...] = ()
    blocks: int = 0  # on a multiprocessor at least; 0: as many as fit
    shared_bytes: str = "0"
    before: tuple[str, ...] = ()  # declarations to stand before the kernel, each once
    includes: tuple[str, ...] = ()  # headers that the lines need


def assembled(kernels: Sequence[Written], move: str) -> Candidate:
    """The candidate with these kernels in place of the original's one."""
    kernels = _told_apart(kernels)
    target = kernels[0].scene.target
    source, taken = target.source, words(skeleton(target.source))
    forms, launches = list[KernelForm](), list[Launch]()
    for n, kernel in enumerate(kernels):
        name = target.kernel.name if n == 0 else f"{target.kernel.name}_{kernel.suffix or n + 1}"
        while n and (name in taken or name in {form.name for form in forms}):
            name += "_"
        forms.append(_form(kernel, name, n == 0, taken))
        launches.append(_launch(kernel, name if n else "", taken))
    data = source.encode()
    start, end = target.kernel.span or (0, 0)
    before = [
        text for text in dict.fromkeys(b for kernel in kernels for b in kernel.before) if text not in target.source
    ]
    text = "".join(before) + "\n".join(emit_kernel(form) for form in forms).rstrip("\n")
    changed = data[:start].decode() + text + data[end:].decode()
    wanted = {name for kernel in kernels for name in kernel.scene.helpers if name + "<" in text or name + "(" in text}
    changed = insert_helpers(changed, missing_helpers(changed, wanted))
    changed = insert_includes(changed, dict.fromkeys(h for kernel in kernels for h in kernel.includes))
    old = target.candidate
    plan = _plan(old.plan, launches, kernels, taken)
    return replace(old, source=changed, plan=plan, actions=(*old.actions, move))


def _told_apart(kernels: Sequence[Written]) -> list[Written]:
    """The kernels with one scratch buffer to a name: parts that are made alike, one after the other, call theirs alike,
    of other lengths."""
    known, found = dict[str, Scratch](), list[Written]()
    for kernel in kernels:
        for s in kernel.scratch:
            if known.setdefault(s.name, s) != s:
                other = f"{s.name}_{kernel.scene.position + 1}"
                lines = tuple(word(line, s.name, f"${other}") for line in kernel.lines)
                scratch = tuple(replace(x, name=other) if x.name == s.name else x for x in kernel.scratch)
                kernel = replace(kernel, lines=lines, scratch=scratch)
        found.append(kernel)
    return found


def _plan(old: Plan, launches: Sequence[Launch], kernels: Sequence[Written], taken: frozenset[str]) -> Plan:
    scratch = {settle(f"${s.name}", taken): s for kernel in kernels for s in _scratch(kernel)}
    return replace(
        old, launches=tuple(launches), scratch=(*old.scratch, *(replace(s, name=n) for n, s in scratch.items()))
    )


def _form(kernel: Written, name: str, first: bool, taken: frozenset[str]) -> KernelForm:
    target = kernel.scene.target
    own = tuple(replace(settled_type(p, target), restrict=p.name in target.unaliased) for p, _ in _own(kernel))
    more = tuple(Param("int", settle(called, taken)) for called, _ in _extra(kernel))
    pointers = tuple(Param(f"{BY_DTYPE[s.dtype].spelling} *", settle(f"${s.name}", taken)) for s in _scratch(kernel))
    body = with_flat_views(settle("\n".join(indent(list(kernel.lines))), taken), target)
    bounds = (str(kernel.threads), *([str(kernel.blocks)] if kernel.blocks else []))
    form = replace(
        target.kernel, name=name, params=(*own, *more, *pointers), body=(OpaqueStmt(body.strip()),),
        launch_bounds=bounds,
    )  # fmt: skip
    return form if first else replace(form, template=None)


def _launch(kernel: Written, name: str, taken: frozenset[str]) -> Launch:
    old = kernel.scene.target.launch
    entry = beside(old.entry, name) if name else old.entry
    sizes = tuple(ScalarArgument("int32", size) for _, size in _extra(kernel))
    buffers = tuple(settle(f"${s.name}", taken) for s in _scratch(kernel))
    return Launch(
        entry, kernel.grid, kernel.block, kernel.shared_bytes, (*(a for _, a in _own(kernel)), *sizes, *buffers)
    )


def _scratch(kernel: Written) -> list[Scratch]:
    """The buffers of the plan that the kernel takes: its own, and those kept between parts."""
    kept = [b for b in kernel.scene.part.buffers if b.name.startswith(KEPT)]
    counts = [" * ".join(f"({x})" for x in b.shape) or "1" for b in kept]
    between = [Scratch(b.name.removeprefix(KEPT), b.dtype, n) for b, n in zip(kept, counts, strict=True)]
    return [*kernel.scratch, *between]


def _own(kernel: Written) -> list[tuple[Param, str | ScalarArgument]]:
    """The original's parameters that the kernel takes, and what is passed for them: all of a single kernel's, so that
    its launch stays as it is; of a plan's those that the text mentions."""
    target = kernel.scene.target
    pairs = list(zip(target.kernel.params, target.launch.args, strict=True))
    if len(target.contract.plan.launches) == 1:
        return pairs
    used = words("\n".join(kernel.lines).replace("$", " "))
    flat = {name: called for name, (called, _) in flat_views(target).items()}
    return [(p, a) for p, a in pairs if p.name in used or flat.get(p.name) in used]


def _extra(kernel: Written) -> list[tuple[str, str]]:
    """Names and size expressions of the parameters beside the original's."""
    used = words("\n".join(kernel.lines).replace("$", " "))
    return [(called, size) for size, called in kernel.scene.names.sizes.more.items() if called[1:] in used]
