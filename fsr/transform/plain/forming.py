"""From the text of a plain kernel to one of the source: with the original's parameters, in its place or before it."""

from __future__ import annotations

from dataclasses import replace

from fsr.records import Candidate, Launch, ScalarArgument
from fsr.source.emit import emit_kernel
from fsr.source.entry import beside
from fsr.source.form import KernelForm, OpaqueStmt, Param
from fsr.source.names import indent, settle, words
from fsr.source.parse import parse_kernels
from fsr.source.tokens import skeleton
from fsr.transform.plain.kernel import Plain
from fsr.transform.plain.names import settled_type, with_flat_views
from fsr.transform.target import Target


def formed(target: Target, plain: Plain) -> tuple[KernelForm, tuple[ScalarArgument, ...]]:
    """The target's kernel with that body, and what is passed for the parameters that it has beside its own."""
    taken = words(skeleton(target.source))
    lines = indent([line for line in plain.body.splitlines() if line])
    text = with_flat_views(settle("\n".join(lines), taken), target).strip()
    more = tuple(Param("int", settle(name, taken)) for name, _ in plain.parameters)
    own = tuple(settled_type(p, target) for p in target.kernel.params)
    form = replace(target.kernel, body=(OpaqueStmt(text),), launch_bounds=(), params=(*own, *more))
    return form, tuple(ScalarArgument("int32", size) for _, size in plain.parameters)


def with_before(made: Candidate, target: Target, before: Plain, called: str) -> Candidate:
    """What was written in a target's place with a launch before it, of a kernel that is ``called`` so beside its own
    name: one that sets what it adds to, say."""
    form, args = formed(target, before)
    name = f"{form.name}_{called}"
    while name in words(skeleton(made.source)):
        name += "_"
    launch = target.launch
    first = Launch(beside(launch.entry, name), before.grid, before.block, "0", (*launch.args, *args))
    launches = (*made.plan.launches[: target.position], first, *made.plan.launches[target.position :])
    text = emit_kernel(replace(form, name=name, template=None)).rstrip("\n")
    span = parse_kernels(made.source)[form.name].span
    assert span is not None
    raw = made.source.encode()
    source = f"{raw[: span[1]].decode()}\n\n{text}{raw[span[1] :].decode()}"
    return replace(made, source=source, plan=replace(made.plan, launches=launches))
