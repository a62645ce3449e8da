"""Kernels that were read with a structure's members as parameters, with their own parameters again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from fsr.records import Candidate, ParameterBlock, Plan
from fsr.source.dynamic_shared import without_sizes
from fsr.source.entry import function_name
from fsr.source.flattening import FlatKernel, FlatParameter
from fsr.source.items import Item, flat, parameters_at, parse_items, strip_head
from fsr.source.tokens import Token, close_of, renamed, split_commas, tokenize


def folded(source: str, kernels: Iterable[FlatKernel], *, unchanged: bool = True, checked: bool = False) -> str:
    """The kernels of a unit that still have the parameters that they were read with, with the original's.

    ``unchanged``: those too whose text nobody touched. ``checked``: to be compiled: the compiler is asked whether
    members lie where they are passed, and every line stays the line that it is."""
    apart = " " if checked else "\n    "
    for kernel in kernels:
        item = _found(source, kernel)
        if item is None:
            continue
        text = source[item.start : item.end]
        if _same(text, kernel.flat):
            own = without_sizes(kernel.original) if unchanged else text
            opening = (_opening(own) or 0) if unchanged else 0
        else:
            own, opening = _with_own_parameters(text, (item.body or 0) - item.start, kernel, apart)
        if checked and opening:
            own = own[:opening] + " " + " ".join(_asserted(kernel)) + own[opening:]
        source = source[: item.start] + own + source[item.end :]
    return source


def fits(source: str, kernel: FlatKernel) -> bool:
    """Whether a unit holds the kernel with the parameters that it was read with."""
    return _found(source, kernel) is not None


def as_handed_out(candidate: Candidate, plan: Plan, entry: str, kernels: Sequence[FlatKernel]) -> list[FlatKernel]:
    """The kernels of a candidate that are handed out with the original's parameters, and so are compiled, tested and
    timed with them. The entry is, where it is launched as ``plan`` says; else it gets a name of its own and takes the
    members from its launcher."""
    launched_alike = candidate.plan.launches == plan.launches and candidate.plan.scratch == plan.scratch
    main = function_name(entry)
    return [
        k for k in kernels
        if k.measured and (launched_alike or _bare(k) != main) and fits(candidate.source, k)
    ]  # fmt: skip


def blocks_of(plan: Plan, kernels: Iterable[FlatKernel]) -> dict[str, ParameterBlock]:
    """Where the arguments of a plan's launches lie among the parameters of kernels that take structures."""
    by_name = {_bare(k): k for k in kernels}
    found = {launch.entry: by_name.get(function_name(launch.entry)) for launch in plan.launches}
    return {entry: _block(kernel) for entry, kernel in found.items() if kernel is not None}


def _block(kernel: FlatKernel) -> ParameterBlock:
    offsets = [o for p in kernel.params for o in ([m.offset for m in p.members] or [p.start])]
    return ParameterBlock(tuple(offsets), tuple((p.start, p.bytes) for p in kernel.params))


def _bare(kernel: FlatKernel) -> str:
    return kernel.name.rpartition("::")[2]


def _found(source: str, kernel: FlatKernel) -> Item | None:
    """The kernel's definition, where its parameters have the names that they were read with."""
    for item in flat(parse_items(source, strict=False)):
        if item.kind == "function" and item.names[-1:] == (_bare(kernel),) and item.body is not None:
            text = source[item.start : item.end]
            if [name for name, _, _ in _parameters(text, item.body - item.start)] == list(kernel.names):
                return item
    return None


def _parameters(text: str, body: int) -> list[tuple[str, int, int]]:
    """Name, start and end of each parameter; [] where they cannot be told."""
    tokens = [t for t in tokenize(text) if t.start < body]
    first = len(tokens) - len(strip_head(tokens))
    at = parameters_at(tokens[first:])
    close = close_of(tokens, first + at) if at is not None and tokens[first + at].text == "(" else None
    if at is None or close is None:
        return []
    parts = split_commas(tokens[first + at + 1 : close])
    return [(_name(part), part[0].start, part[-1].end) for part in parts if part]


def _name(part: Sequence[Token]) -> str:
    return next((t.text for t in reversed(part) if t.kind == "name"), "")


def _same(text: str, other: str) -> bool:
    def plain(text: str) -> str:
        return "\n".join(line.rstrip() for line in text.strip().split("\n"))

    return plain(text) in (plain(other), plain(without_sizes(other)))


def _opening(text: str) -> int | None:
    """The place behind the brace that opens a function's body."""
    items = [i for i in parse_items(text, strict=False) if i.kind == "function" and i.body is not None]
    return None if not items or items[0].body is None else items[0].body + 1


def _with_own_parameters(text: str, body: int, kernel: FlatKernel, apart: str) -> tuple[str, int]:
    """The text with the original's parameters, and the place behind the brace of its body. ``apart``: what stands
    before each statement that is put in."""
    listed = _parameters(text, body)
    named = {t.text for t in tokenize(text[body:]) if t.kind == "name"}
    declared, statements, at = list[str](), list[str](), 0
    for param in kernel.params:
        own = listed[at : at + max(1, len(param.members))]
        at += len(own)
        if not param.members:
            declared.append(text[own[0][1] : own[0][2]])
            continue
        name = _free(param.name, named | set(kernel.names))
        declared.append(renamed(param.declared, param.name, name))
        for (flat_name, start, end), member in zip(own, param.members, strict=True):
            if flat_name in named:
                cast = _cast(text[start:end], flat_name, member.type)
                statements.append(f"{text[start:end]} = {cast}{name}.{member.path};")
    head = text[: listed[0][1]] + ", ".join(declared)
    behind = text[listed[-1][2] : body + 1]
    inside = "".join(apart + line for line in statements)
    return head + behind + inside + text[body + 1 :], len(head) + len(behind)


def _cast(declared: str, name: str, own: str) -> str:
    """What a member is cast with where a move has given its parameter another type."""
    qualifiers = r"\b(?:const|volatile|__restrict__|__restrict|restrict)\b|\s"
    type_ = re.sub(rf"\b{name}\b", "", declared)
    if re.sub(qualifiers, "", type_) == re.sub(qualifiers, "", own):
        return ""
    return f"({re.sub(r'__restrict__|__restrict', '', type_).strip()})"


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _asserted(kernel: FlatKernel) -> Iterable[str]:
    """What the compiler is asked of the structures' layout."""
    for param in kernel.params:
        if param.members:
            yield from _asserted_of(param)


def _asserted_of(param: FlatParameter) -> Iterable[str]:
    places = {m.path: m.offset - param.start for m in param.members}
    yield layout_asserted(param.type, param.bytes, param.alignment, places)


def layout_asserted(type_: str, size: int, alignment: int | None, places: Mapping[str, int]) -> str:
    """What asks the compiler whether a structure is so many bytes and its members lie at these ``places``."""
    told = [f"sizeof({type_}) == {size}"]
    told += [f"alignof({type_}) == {alignment}"] if alignment is not None else []
    told += [f"__builtin_offsetof({type_}, {path}) == {offset}" for path, offset in places.items()]
    return f'static_assert({" && ".join(told)}, "fsr: {type_} has another layout than it was read with");'


def with_first_statement(source: str, kernel: str, statement: str) -> str:
    """A unit with a statement at the head of a kernel's body, on the line of its brace; as it is without such."""
    for item in flat(parse_items(source, strict=False)):
        if item.kind == "function" and item.names[-1:] == (kernel,) and item.body is not None:
            return f"{source[: item.body + 1]} {statement}{source[item.body + 1 :]}"
    return source
