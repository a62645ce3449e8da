"""What a kernel calls the sizes, buffers, scalars and dimensions of a computation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from fsr.computation.computation import Computation
from fsr.computation.expression import Affine
from fsr.contract.flags import asked_of
from fsr.errors import ContractError
from fsr.expressions import evaluate_int, fingerprint, names, to_c
from fsr.hardware.c_types import BY_DTYPE, LANES
from fsr.records import Role, ScalarArgument
from fsr.source.entry import template_arguments
from fsr.source.form import Param
from fsr.source.names import indent, settle, words
from fsr.source.tokens import skeleton
from fsr.source.types import plain_type
from fsr.transform.plain.c_text import TYPES, NotPlain, Writer
from fsr.transform.target import Target


@dataclass(frozen=True)
class Sizes:
    """What sizes are called in a kernel: by its integer parameters, flags and positions by their own. ``more``: those
    that no parameter says."""

    target: Target
    more: dict[str, str] = field(default_factory=dict)

    def _values(self, text: str) -> tuple[object, ...] | None:
        try:
            known = [*(s.name for s in self.target.contract.sizes), *sorted(asked_of(self.target.contract))]
            return fingerprint(text, known)
        except (ContractError, ZeroDivisionError):
            return None

    def text(self, size: str) -> str:
        """C text of a size expression, a number where it has one value only. Raises NotPlain."""
        fixed = {s.name: s.minimum for s in self.target.contract.sizes if s.minimum == s.maximum}
        try:
            return str(evaluate_int(size, fixed))
        except (ContractError, ZeroDivisionError):
            wanted = self._values(size)
        if wanted is None:
            raise NotPlain(size)
        for name, value in self._parameters():
            if self._values(value) == wanted:
                return name
        if words(size) & asked_of(self.target.contract):
            return self._reckoned(size)
        return self.more.setdefault(size, f"$extent{len(self.more)}")

    def _reckoned(self, size: str) -> str:
        """A size that no launch could be told, as the kernel makes it of what it is given. Raises NotPlain."""
        if size.isidentifier():
            raise NotPlain(f"{size}, which is known to a launch only")
        return f"({to_c(size, {name: self.text(name) for name in names(size)})})"

    def _parameters(self) -> Iterator[tuple[str, str]]:
        for p, arg in zip(self.target.kernel.params, self.target.launch.args, strict=True):
            if isinstance(arg, ScalarArgument):
                yield p.name, arg.value
                continue
            found = [a for a in self.target.contract.args if a.name == arg and a.role is Role.SCALAR]
            if found and found[0].value is not None and found[0].dtype.startswith(("int", "uint")):
                yield p.name, found[0].value
            elif found and found[0].name in asked_of(self.target.contract):
                yield p.name, found[0].name


class Names:
    """``sizes``: as the kernel's parameters say them; ``names``: of buffers, scalars, and values between statements;
    ``extents``: of each buffer, as C text; ``writer``: of expressions. Dimensions are ``$`` and their name. Raises
    NotPlain where a size is no whole number of known ones."""

    def __init__(self, c: Computation, target: Target) -> None:
        self.c, self.sizes = c, Sizes(target)
        scalars = {
            a: p.name for p, a in zip(target.kernel.params, target.launch.args, strict=True) if isinstance(a, str)
        }
        made = {s.target: "$" + s.target[1:] for s in c.statements if s.target.startswith("_")}
        constants = {a.name: _symbol(a.symbol, target.source) for a in target.contract.symbols()}
        passed = {arg: param for param, arg in target.passed.items()}
        kept = {b.name: b.name for b in c.buffers if b.name.startswith("$")}
        self.names = {**constants, **scalars, **passed, **made, **kept}
        called = {name: flat for name, (flat, _) in flat_views(target).items()}
        self.names = {buffer: called.get(name, name) for buffer, name in self.names.items()}
        self.extents = {b.name: tuple(map(self.sizes.text, b.shape)) for b in c.buffers if not b.name.startswith("_")}
        domains = {d for s in c.statements for d in s.domain}
        single = {n: x for n, x in domains if sum(n == other for other, _ in domains) == 1}
        self.writer = Writer(self.affine, self.extents, self.names, self._by, domain=single)

    def _by(self, by: str | int) -> str:
        return str(by) if isinstance(by, int) else self.sizes.text(by)

    def affine(self, a: Affine) -> str:
        """C text of sizes and dimensions."""
        parts = []
        for name, k in a.terms:
            text = self.sizes.text(name) if name in self.c.sizes or not name.isidentifier() else f"${name}"
            parts.append(text if k == 1 else f"-{text}" if k == -1 else f"{k} * {text}")
        if a.constant or not parts:
            parts.append(str(a.constant))
        return " + ".join(parts).replace("+ -", "- ")


def _symbol(name: str, source: str) -> str:
    """What the elements of a ``__constant__`` variable are called: of one that is no array too, and of one of several
    extents, whose elements have one number."""
    last = re.escape(name.rpartition("::")[2])
    array = re.search(rf"__constant__[^;]*\b{last}\s*((?:\[[^;\]]*\]\s*)+)", source)
    extents = 0 if array is None else array[1].count("[")
    return name if extents == 1 else f"(&{name}{'[0]' * extents})"


def flat_views(target: Target) -> dict[str, tuple[str, str]]:
    """Parameters that point to built-in vectors, as float4, to records of the file, or to a type that a template tells,
    whose elements the contract counts: what the elements are called, and the line that says so."""
    found = dict[str, tuple[str, str]]()
    for param in target.kernel.params:
        pointee = plain_type(param.type.split("*")[0], target.aliases)
        element = pointee if pointee in LANES else None
        argument = None if element is None else target.argument(param.name)
        if element is None and "*" in param.type and ("::" in param.type or _of_records(pointee, target.source)):
            argument = target.argument(param.name)
        elif element is None or argument is None or argument.dtype != LANES[element][0].dtype:
            continue
        if argument is None or argument.dtype not in BY_DTYPE:
            continue
        flat = settle(f"${param.name}_elements", words(skeleton(target.source)))
        kind = ("const " if "const" in param.type.split("*")[0] else "") + BY_DTYPE[argument.dtype].spelling
        found[param.name] = flat, f"{kind} *{flat} = reinterpret_cast<{kind} *>({param.name});"
    return found


def _of_records(pointee: str, source: str) -> bool:
    """Whether a type is a ``struct`` or ``union`` that the file defines."""
    name = re.escape(re.sub(r"\b(?:const|volatile|struct|union)\b", " ", pointee).strip())
    before = r"\b(?:struct|union|class)\s+(?:(?:__align__|alignas|__attribute__)\s*\([^{;]*\)\s*)?"
    return re.search(rf"{before}{name}\s*(?:final\s*)?[:{{]|\}}\s*{name}\s*;", source) is not None


def with_flat_views(text: str, target: Target) -> str:
    """A kernel's body below the lines for the elements that it names."""
    lines = [line for flat, line in flat_views(target).values() if re.search(rf"\b{flat}\b", text)]
    return "\n".join([*indent(lines), text])


def _bound(text: str, arguments: Mapping[str, str]) -> str:
    """A part of a type with template parameters as what an entry gives for them."""
    return re.sub(r"\b[A-Za-z_]\w*", lambda m: arguments.get(m[0], m[0]), text)


def settled_type(param: Param, target: Target) -> Param:
    """A parameter whose type is a template's as what it is in this launch, also where it is made of one
    (``typename vec4<T>::Type``)."""
    types = {name for kind, name in target.kernel.template_parameters if kind in ("typename", "class")}
    words_ = param.type.replace("*", " * ").split()
    argument = next((a for a in target.contract.args if a.name == target.passed.get(param.name)), None)
    if argument is None or argument.dtype not in TYPES:
        return param
    names_ = (name for _, name in target.kernel.template_parameters)
    bound = dict(zip(names_, template_arguments(target.launch.entry), strict=False))
    known = [TYPES[argument.dtype] if word in types else _bound(word, bound) for word in words_]
    return replace(param, type=" ".join(known)) if known != words_ else param
