"""A kernel's parameters with their types worked out: typedefs, macros and template arguments are followed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fsr.errors import SourceError
from fsr.hardware.c_types import BY_DTYPE
from fsr.source.conditionals import taken
from fsr.source.declared_members import NotPlain
from fsr.source.entry import template_arguments, template_parameters
from fsr.source.file import KernelFile
from fsr.source.items import parameters_at, strip_head
from fsr.source.macros import qualifying
from fsr.source.pieces import Piece
from fsr.source.structures import Structure, Structures
from fsr.source.tokens import Token, close_of, spelt, split_commas, tokenize
from fsr.source.types import aliases_of, resolve_dtype

MOST_BYTES = 32_764  # of all parameters together: "Formal parameter space overflowed", says NVRTC 13 of one more


@dataclass(frozen=True, slots=True)
class Parameter:
    """One kernel parameter. ``dtype``: NumPy name or 'bfloat16', of one lane; None when the type is none that fsr
    can make values of (a texture, ``void *``, a struct of several types). ``lanes``: 4 for float4 and for a struct of
    four floats. ``const``: the pointee is. ``alignment``: bytes, that its type promises beyond its element's; 0 for
    none. ``record``: it points to structures, whose elements ``dtype`` tells. ``structure``: what it points to where
    members are of several types, or end in bytes that nothing fills; ``wide``: that with float64 for narrower floating
    members, where that is known; ``why``: why neither is known of what is no number."""

    name: str
    type: str
    dtype: str | None
    lanes: int
    pointer: bool
    const: bool
    line: int
    alignment: int = 0
    record: bool = False
    structure: Structure | None = None
    wide: Structure | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Signature:
    """A kernel as declared. ``template``: its template parameter names, with what the entry gives for them.
    ``entry``: the expression that it was asked for by. ``whole``: structures that could not be taken apart, and why."""

    kernel: str
    params: tuple[Parameter, ...]
    template: tuple[tuple[str, str], ...]
    where: str
    entry: str
    whole: tuple[tuple[str, str], ...] = ()

    def why_whole(self, name: str) -> str:
        """Why a structure was not taken apart; '' where nothing is known of that."""
        return next((why for param, why in self.whole if param == name), "")

    def param(self, name: str) -> Parameter | None:
        """The parameter of that name, if any."""
        return next((p for p in self.params if p.name == name), None)


def signature(file: KernelFile, entry: str) -> Signature:
    """The signature of the kernel that ``entry`` names, its template parameters bound by the entry's arguments.

    Raises SourceError when there is no such kernel, a template argument is missing, a parameter has no name, a macro
    makes some, or there are more than CUDA passes.
    """
    piece = file.find(entry)
    defined = {p.item.names[0] for p in file.pieces if p.item.kind == "define" and p.item.names}
    tokens = _head(taken(tokenize(piece.raw), defined))
    nothing = qualifying(file.text)
    tokens = [t for t in tokens if t.kind != "name" or t.text not in nothing]
    bound = _bind_template(tokens, entry, piece)
    declared = ((p.item.kind, p.text, p.namespaces) for p in file.pieces)
    aliases = {**aliases_of(declared, piece.namespaces), **bound}
    head = strip_head(tokens)
    opening = parameters_at(head) or 0
    inside = head[opening + 1 : close_of(head, opening)]
    parts = [part for part in split_commas(inside) if [t.text for t in part] != ["void"]]
    made = next((part[0].text for part in parts if len(part) == 1 and part[0].text in defined), None)
    if made is not None:
        raise SourceError(
            f"a macro, {made}, makes parameters of {piece.qualified()}", expected="parameters in the kernel's own head",
            where=piece.where, fix=f"write what {made} stands for there",
        )  # fmt: skip
    params = tuple(_parameter(part, piece, aliases) for part in parts)
    if any(map(_points_to_structures, params)):
        structures = [Structures(file.pieces, piece.namespaces, frozenset(), widened=w) for w in (False, True)]
        params = tuple(_of_elements(p, structures, bound) if _points_to_structures(p) else p for p in params)
    least = sum(8 if p.pointer else p.lanes for p in params)
    if least > MOST_BYTES:
        raise SourceError(
            f"{piece.qualified()} has {len(params):,} parameters, {least:,} bytes or more",
            expected=f"at most {MOST_BYTES:,} bytes, what CUDA passes to a kernel", where=piece.where,
            fix="pass one pointer to what the parameters hold",
        )  # fmt: skip
    whole = tuple((p.name, why) for p in params if (why := file.why_not_flat(piece.qualified(), p.name)))
    return Signature(piece.qualified(), params, tuple(bound.items()), piece.where, entry, whole)


def _head(tokens: Sequence[Token]) -> Sequence[Token]:
    """What stands before the body. Of branches that share one, the brace that opens it may stand in any."""
    at = 0
    while at < len(tokens) and tokens[at].text != "{":
        at = (close_of(tokens, at) or at) + 1 if tokens[at].text in ("(", "[") else at + 1
    return tokens[:at]


def _bind_template(tokens: Sequence[Token], entry: str, piece: Piece) -> dict[str, str]:
    given = template_arguments(entry)
    if not tokens or tokens[0].text != "template":
        if given:
            raise SourceError(
                f"the entry {entry!r} has template arguments, but {piece.qualified()} is no template",
                expected=piece.qualified(), where=piece.where, fix="write the name alone",
            )  # fmt: skip
        return {}
    bound, parameters = dict[str, str](), template_parameters(tokens)
    for index, parameter in enumerate(parameters):
        if parameter.pack:
            bound[parameter.name] = ", ".join(given[index:])
        elif index < len(given):
            bound[parameter.name] = given[index]
        elif parameter.default:
            bound[parameter.name] = parameter.default
        else:
            such = ", ".join([*given, *(_such(p.text) for p in parameters[index:] if not p.default)])
            raise SourceError(
                f"the kernel {piece.qualified()} is a template, and the entry {entry!r} gives no {parameter.name}",
                expected=f"an entry such as {piece.qualified()}<...> for "
                f"template <{', '.join(p.text for p in parameters)}>",
                where=piece.where,
                fix=f'name the instance in the contract, for example entry = "{piece.qualified()}<{such}>", or with '
                f"--entry '{piece.qualified()}<{such}>', which shows what else is open",
            )
    return bound


def _such(parameter: str) -> str:
    """An argument that a template parameter may have: a type, a truth, or a number."""
    first = parameter.split()[0]
    return "float" if first in ("typename", "class") else "true" if first == "bool" else "256"


def _parameter(tokens: Sequence[Token], piece: Piece, aliases: Mapping[str, str]) -> Parameter:
    texts = [t.text for t in tokens]
    equals = texts.index("=") if "=" in texts else len(texts)
    part = list(tokens[:equals])
    array = next((i for i, t in enumerate(part) if t.text == "["), None)
    before = part[:array] if array is not None else part
    names = [i for i, t in enumerate(before) if t.kind == "name"]
    where = piece.where_at(tokens[0].start if tokens else 0)
    if not names or names[-1] != len(before) - 1 or (len(names) == 1 and len(before) == 1):
        raise SourceError(
            f"the parameter {' '.join(texts)!r} of {piece.qualified()} has no name",
            expected="a name for every parameter", where=where, fix="give it a name",
        )  # fmt: skip
    name = before[-1].text
    words = [t.text for t in before[:-1]]
    stars = words.count("*") + (array is not None)
    type_text = spelt(before[:-1]) + (" *" if array is not None else "")
    first_star = words.index("*") if "*" in words else len(words)
    dtype, lanes = (
        resolve_dtype(" ".join(words[:first_star]), aliases) if stars <= 1 and "&" not in words else (None, 1)
    )
    line = int(where.rsplit(":", 1)[1])
    alignment = BY_DTYPE[dtype].bytes * {4: 4, 2: 2}.get(lanes, 1) if dtype is not None and lanes > 1 else 0
    return Parameter(name, type_text, dtype, lanes, stars > 0, "const" in words[:first_star], line, alignment)


def _points_to_structures(param: Parameter) -> bool:
    """Whether it may be a pointer to structures: one, and to no number."""
    return param.dtype is None and param.type.count("*") == 1 and "&" not in param.type


def _of_elements(param: Parameter, structures: Sequence[Structures], bound: Mapping[str, str]) -> Parameter:
    """A pointer to structures as one to the elements that these hold, if they hold nothing else and of one type.
    ``structures``: as they are, and widened."""
    pointee = re.sub(r"\w+", lambda word: bound.get(word[0], word[0]), param.type.partition("*")[0])
    try:
        found = structures[0].read(pointee)
    except NotPlain as why:
        return replace(param, why=str(why))
    dtypes = {leaf.dtype for leaf in found.leaves}
    dtype = dtypes.pop() if len(dtypes) == 1 else None
    if dtype is None or sum(leaf.bytes for leaf in found.leaves) != found.bytes:
        if any(leaf.pointer for leaf in found.leaves):
            return replace(param, alignment=found.alignment, why="it holds pointers")
        try:
            wide = structures[1].read(pointee)
        except NotPlain:
            wide = None
        return replace(param, alignment=found.alignment, structure=found, wide=wide)
    more = found.alignment if found.alignment > BY_DTYPE[dtype].bytes else 0
    return replace(param, dtype=dtype, lanes=len(found.leaves), alignment=more, record=True)
