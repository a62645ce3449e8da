"""A plan of several launches as one kernel with the arguments of the whole plan, for schedules that write it anew.

What a plan computes knows nothing of its launches. The families that write kernels from it ask for one original, whose
parameters say what sizes, buffers and scalars are called: here it is made. Its body is empty: it is there to be
replaced.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from fsr.contract.model import Contract
from fsr.records import Candidate, Launch, Role, ScalarArgument
from fsr.source.emit import emit_kernel
from fsr.source.entry import function_name
from fsr.source.form import KernelForm, Param
from fsr.source.parse import parse_kernels
from fsr.transform.plain.names import settled_type
from fsr.transform.protocol import Subject
from fsr.transform.target import Target

_INT = "int"


def whole(subject: Subject) -> Subject | None:
    """The subject itself where it has one launch; with one kernel in place of all otherwise. None where a launched
    kernel is not in the text, parameters of one name are of several types, or a launch is repeated."""
    if any(launch.repeated for launch in subject.candidate.plan.launches):
        return None
    if len(subject.candidate.plan.launches) == 1:
        return subject
    made = _merged(subject.candidate, subject.contract)
    return None if made is None else replace(subject, candidate=made, kernels=parse_kernels(made.source))


@lru_cache(maxsize=16)
def _merged(candidate: Candidate, contract: Contract) -> Candidate | None:
    kernels = parse_kernels(candidate.source)
    names = [function_name(launch.entry) for launch in candidate.plan.launches]
    used = [kernels[n] for n in dict.fromkeys(names) if n in kernels]
    if len(used) != len(set(names)) or any(k.span is None for k in used):
        return None
    params: dict[str | ScalarArgument, Param] = {}
    for position, launch in enumerate(candidate.plan.launches):
        target = Target(kernels[names[position]], position, candidate, contract, "kernel")
        for param, arg in _passed(target, launch):
            params[arg] = _chosen(params.get(arg), param, arg, contract)
    if len({p.name for p in params.values()}) != len(params):
        params = {arg: replace(p, name=arg) if isinstance(arg, str) else p for arg, p in params.items()}
    if len({p.name for p in params.values()}) != len(params):
        return None
    name = function_name(contract.entry) if function_name(contract.entry) in names else names[0]
    form = KernelForm(name, tuple(params.values()), (), prefix=kernels[name].prefix)
    entry = candidate.plan.launches[names.index(name)].entry.split("<", 1)[0]
    launch = Launch(entry, ("1", "1", "1"), ("1", "1", "1"), "0", tuple(params))
    source = _replaced(candidate.source, used, form)
    return replace(candidate, source=source, plan=replace(candidate.plan, launches=(launch,), scratch=()))


def _passed(target: Target, launch: Launch) -> Iterator[tuple[Param, str | ScalarArgument]]:
    """What of a launch the whole plan is given: its arguments, and whole numbers that are a size as it is."""
    known = {a.name for a in target.contract.args}
    sizes = {s.name for s in target.contract.sizes}
    for param, arg in zip(target.kernel.params, launch.args, strict=False):
        if arg in known:
            yield settled_type(param, target), arg
        elif isinstance(arg, ScalarArgument) and arg.value in sizes and param.type.split()[-1] == _INT:
            yield replace(param, type=_INT), replace(arg, dtype="int32")


def _chosen(before: Param | None, param: Param, arg: str | ScalarArgument, contract: Contract) -> Param:
    """One parameter for all launches' of an argument: the first one's name; what is written is not const."""
    found = before or param
    written = isinstance(arg, str) and contract.argument(arg).role not in (Role.IN, Role.SCALAR, Role.NULL)
    if written and "const" in found.type.split() and "const" not in param.type.split():
        found = replace(found, type=param.type)
    return found


def _replaced(source: str, kernels: list[KernelForm], form: KernelForm) -> str:
    """The text with one kernel where the last of the others stood, and without those."""
    data = source.encode()
    spans = sorted(k.span for k in kernels if k.span is not None)
    kept, at = list[bytes](), 0
    for start, end in spans:
        kept.append(data[at:start])
        at = end
    code = emit_kernel(form).rstrip("\n").encode()
    return b"".join([*kept, code, data[at:]]).decode()
