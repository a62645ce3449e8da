"""``__constant__`` variables that host code fills, as arguments of a contract: what the declarations say of them."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fsr.contract.fields import VALUE_KEYS, Fields, constraints_of, did_you_mean
from fsr.contract.host import HostScope, constants, to_expression
from fsr.contract.layouts import layout_of, with_members_nested
from fsr.contract.model import Argument
from fsr.errors import ContractError
from fsr.expressions import evaluate_int, is_floating
from fsr.hardware.c_types import BY_DTYPE
from fsr.records import Role
from fsr.source.constants import ConstantVariable, as_constants, constant_variables
from fsr.source.declared_members import NotPlain
from fsr.source.file import KernelFile
from fsr.source.macros import expand
from fsr.source.signature import Parameter
from fsr.source.structures import Structure, Structures

CONSTANT_BYTES = 65536  # CUDA's constant memory


@dataclass(frozen=True, slots=True)
class Symbol:
    """A variable and its shape; ``shape`` None where an extent is no number. ``structure``: of which it is one, or
    several, with that of float64 for narrower floating members, where that is known; ``unread``: members that nothing
    asks for."""

    variable: ConstantVariable
    shape: tuple[str, ...] | None
    structure: Structure | None = None
    wide: Structure | None = None
    unread: frozenset[str] = frozenset()

    @property
    def clear(self) -> bool:
        """Whether values can be drawn for it without being told more: an integer may be an index or a size."""
        return self.shape is not None and is_floating(self.variable.dtype or "")

    def argument(self, name: str) -> Argument:
        """The argument, of any values."""
        return Argument(name, self.variable.dtype or "", Role.IN, self.shape or (), symbol=self.variable.name)


def symbols_of(file: KernelFile, entries: Sequence[str], told: Collection[str] = ()) -> dict[str, Symbol]:
    """The variables without initialiser that the kernels' cut holds, by name with namespaces; ``__device__`` ones where
    they are ``told`` of."""
    words = frozenset(["__constant__", *(["__device__"] if told else [])])
    if not any(words & (p.item.head | p.item.uses) for p in file.pieces):
        return {}
    text = expand(as_constants(file.cut(*entries).text, told))
    variables = constant_variables(text)
    scope = HostScope(values={name: str(value) for name, value in constants(file).items()})
    found = {v.name: Symbol(v, _shape(v, scope), *_structures(file, v)) for v in variables}
    return {name: replace(one, unread=_unread(one, text)) for name, one in found.items()}


def _unread(symbol: Symbol, text: str) -> frozenset[str]:
    paths = [leaf.path for leaf in symbol.structure.leaves] if symbol.structure is not None else []
    names = {path: re.split(r"[.\[]", path)[0] for path in paths}
    return frozenset(path for path, name in names.items() if not re.search(rf"(?:\.|->)\s*{name}\b", text))


def _structures(file: KernelFile, variable: ConstantVariable) -> tuple[Structure | None, Structure | None]:
    """That of a variable whose type is no number, as it is and widened."""
    found = list[Structure | None]()
    for widened in (False, True) if variable.dtype is None else ():
        read = Structures(file.pieces, tuple(variable.name.split("::")[:-1]), frozenset(), widened=widened)
        try:
            found.append(read.read(variable.type))
        except NotPlain:
            found.append(None)
    plain, wide = found or (None, None)
    return (None, None) if plain is None or any(leaf.pointer for leaf in plain.leaves) else (plain, wide)


def clear_symbols(file: KernelFile, entry: str, params: set[str]) -> tuple[list[Argument], list[str]]:
    """Those of a kernel without a contract whose declarations say enough, and the names of the others."""
    clear, unclear = list[Argument](), list[str]()
    for full, symbol in symbols_of(file, [entry]).items():
        short = full.rpartition("::")[2]
        if symbol.clear and short not in params:
            clear.append(symbol.argument(short))
        else:
            unclear.append(short)
    return clear, unclear


def named(symbols: Mapping[str, Symbol], name: str) -> Symbol | None:
    """The variable of that name, with its namespaces or, where there is but one, without."""
    found = [s for n, s in symbols.items() if n == name] or [
        s for n, s in symbols.items() if n.rpartition("::")[2] == name
    ]
    return found[0] if len(found) == 1 else None


def _shape(variable: ConstantVariable, scope: HostScope) -> tuple[str, ...] | None:
    extents = []
    for text in variable.extents:
        found = to_expression(text, scope)
        try:
            extents.append(str(evaluate_int(found or "", {})))
        except ContractError:
            return None
    lanes = (str(variable.lanes),) if variable.lanes > 1 else ()
    return (*extents, *lanes) or ("1",)


def told_variables(args: Mapping[str, Any], params: set[str]) -> set[str]:
    """The names of variables that the entries of [args] may speak of."""
    others = {name: data for name, data in args.items() if name not in params}
    return {str(data.get("symbol", name)) if isinstance(data, Mapping) else name for name, data in others.items()}


def is_symbol(name: str, data: Any, symbols: Mapping[str, Symbol]) -> bool:
    """Whether an entry of [args] that names no parameter speaks of a ``__constant__`` variable."""
    return (isinstance(data, Mapping) and "symbol" in data) or named(symbols, name) is not None


def stated_symbols(
    top: Fields, params: set[str], sizes: set[str], symbols: Mapping[str, Symbol]
) -> tuple[Argument, ...]:
    """The ``__constant__`` variables that host code fills: those of [args], and others whose declaration says enough.

    Raises ContractError."""
    told_of = with_members_nested(top.table("args"))
    table = {n: v for n, v in told_of.items() if n not in params and is_symbol(n, v, symbols)}
    found = [_symbol(top, name, data, symbols, sizes) for name, data in table.items()]
    told = {argument.symbol for argument in found}
    for name, symbol in symbols.items():
        if name in told:
            continue
        short = name.rpartition("::")[2]
        if symbol.clear and short not in params:
            found.append(symbol.argument(short))
            continue
        size = next(iter(sorted(sizes)), "n")
        entry = f'an entry in [args]: {short} = {{symbol = "{name}", value = "{size}"}}, or low and high'
        if symbol.structure is not None:
            first = symbol.structure.leaves[0].path
            entry = f"a table [args.{short}] with a line for each member: {first} = {{low = 0, high = 1}}"
        raise ContractError(
            f"the contract says nothing of the __constant__ variable {name!r} ({symbol.variable.type}), "
            "which host code fills",
            expected=entry,
            where=top.raw.where("args"), fix="add it",
        )  # fmt: skip
    total = sum(math.prod(map(int, a.shape)) * BY_DTYPE[a.dtype].bytes for a in found)
    if total > CONSTANT_BYTES:
        raise top.bad(
            f"the __constant__ variables take {total} bytes",
            f"at most {CONSTANT_BYTES}",
            "args",
            fix="correct the shapes that are stated: CUDA has no more",
        )
    return tuple(found)


def _symbol(top: Fields, name: str, data: Any, symbols: Mapping[str, Symbol], sizes: set[str]) -> Argument:
    fields = Fields(top.raw, data, "args", name)
    wanted = fields.text("symbol", name) or name
    symbol = named(symbols, wanted)
    structured = symbol is not None and symbol.structure is not None and "dtype" not in data
    if not structured:
        fields.only(("symbol", "dtype", "role", "shape", "value", *VALUE_KEYS))
    if symbol is None:
        raise fields.bad(
            f"{name} stands for the symbol {wanted!r}, which is no __constant__ variable without initialiser that the "
            "kernel uses",
            "one of: " + (", ".join(symbols) or "none, there are no such variables"), "symbol",
            fix=did_you_mean(wanted, list(symbols)),
        )  # fmt: skip
    if fields.text("role", "in") != "in":
        raise fields.bad(
            f"the __constant__ variable {name} has the role {fields.text('role')!r}",
            '"in"',
            "role",
            fix="remove role: kernels cannot write it",
        )
    if structured:
        return _of_structures(top, name, data, symbol)
    dtype = fields.text("dtype") or symbol.variable.dtype
    if dtype not in BY_DTYPE:
        raise fields.bad(
            f"the __constant__ variable {name} has the type {symbol.variable.type!r}, which fsr cannot make values of",
            "dtype and shape to say what it holds", fix="add dtype and shape",
        )  # fmt: skip
    shape = fields.expressions("shape") if "shape" in fields.data else symbol.shape
    if shape is None or not all(text.isdigit() for text in shape):
        raise fields.bad(
            f"the shape of the __constant__ variable {name} is not known",
            "shape = [17], numbers",
            "shape",
            fix="write the numbers that its declaration comes to",
        )
    own = name if not symbol.variable.extents and name in sizes else None
    constraints = constraints_of(fields, is_floating(dtype), fields.limit("value", own, floating=is_floating(dtype)))
    if not is_floating(dtype) and (constraints.low is None or constraints.high is None):
        raise fields.bad(
            f"the integers of the __constant__ variable {name} have no limits",
            "low and high, or value",
            fix=f'write {name} = {{low = 0, high = 100}}, or {name} = {{value = "n"}}',
        )
    return Argument(name, dtype, Role.IN, tuple(shape), None, 0, constraints, symbol.variable.name)


def _of_structures(top: Fields, name: str, data: Mapping[str, Any], symbol: Symbol) -> Argument:
    """A variable that is a structure, or an array of them, with what is said of its members."""
    fields = Fields(top.raw, {k: v for k, v in data.items() if k not in ("symbol", "role")}, "args", name)
    variable, structure = symbol.variable, symbol.structure
    assert structure is not None
    pointed = Parameter(
        name, variable.type, None, 1, pointer=False, const=True, line=0, structure=structure, wide=symbol.wide
    )
    layout = layout_of(fields, pointed)
    count = symbol.shape if variable.extents else ("1",)
    if count is None or ("shape" in data and fields.expressions("shape") != count):
        raise fields.bad(
            f"the __constant__ variable {name} is of {variable.type}, and how many "
            + ("its declaration says" if count else "there are is no number"),
            "members alone", "shape", fix="remove shape, or say dtype and shape of all its words",
        )  # fmt: skip
    whole = (f for f in layout.fields if not is_floating(f.dtype) and f.path not in symbol.unread)
    free = [f.path for f in whole if f.constraints.high is None or f.constraints.low is None]
    if free:
        raise fields.bad(
            f"the integers {', '.join(free[:6])} of the __constant__ variable {name} have no limits",
            "low and high, or value, of each", fix=f'write {free[0]} = {{low = 0, high = 100}}, or {{value = "n"}}',
        )  # fmt: skip
    shape = (*count, str(layout.bytes // layout.word))
    return Argument(name, f"uint{8 * layout.word}", Role.IN, shape, symbol=variable.name, layout=layout)
