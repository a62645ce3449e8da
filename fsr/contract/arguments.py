"""The arguments that a contract states, held against the parameters of its kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from fsr.contract.by_value import is_structure, refused
from fsr.contract.draft import inline, listed, quoted
from fsr.contract.fields import VALUE_KEYS, Fields, constraints_of, did_you_mean
from fsr.contract.layouts import is_structured, layout_of, with_members_nested
from fsr.contract.model import Argument, Constraints, Size
from fsr.contract.symbols import Symbol, is_symbol
from fsr.errors import ContractError
from fsr.expressions import is_floating
from fsr.hardware.c_types import BY_DTYPE
from fsr.records import Role
from fsr.source.signature import Parameter, Signature

ARG_KEYS = ("dtype", "role", "shape", "value", "alignment", "null", *VALUE_KEYS)
ALL_DTYPES = tuple(BY_DTYPE)


Seen = Callable[[str], Argument | None]  # a parameter as the code shows it, if it does


def arguments_of(
    top: Fields, signatures: Mapping[str, Signature], main: str, sizes: tuple[Size, ...], symbols: Mapping[str, Symbol],
    seen: Seen,
) -> tuple[Argument, ...]:  # fmt: skip
    """Those of ``[args]``, in the kernel's order or, in a plan of several launches, the table's; scalars named like a
    size need no entry. Raises ContractError, which shows an entry that is missing as it is ``seen``."""
    params_ = {p.name for one in signatures.values() for p in one.params}
    told = with_members_nested(top.table("args"))
    table = {n: v for n, v in told.items() if n in params_ or not is_symbol(n, v, symbols)}
    is_plan = isinstance(top.data.get("launch"), list)
    if is_plan:
        names, params = list(table), dict[str, Parameter]()
        for name, param in _passed(top.data["launch"], signatures, main):
            before = params.setdefault(name, param)
            if before.const and not param.const and _is_written(table.get(name)):
                params[name] = param  # one kernel reads it, another writes it
        for name, param in params.items():  # nothing in the plan writes it: harmless to say
            if isinstance(table.get(name), dict) and table[name].get("role") == Role.INOUT.value:
                params[name] = replace(param, const=False)
        known = {n: params[n] for n in table if n in params}
        for name, data in table.items():
            if name not in params and isinstance(data, dict) and "dtype" not in data:
                raise Fields(top.raw, top.data).bad(
                    f"the contract names the argument {name!r}, which no launch passes and no kernel of the plan has",
                    "one of: " + ", ".join(params), "args", name, fix=did_you_mean(name, list(params)),
                )  # fmt: skip
    else:
        known = {p.name: p for p in signatures[main].params}
        names = list(known)
        for name in table:
            if name not in known:
                raise Fields(top.raw, top.data).bad(
                    f"the contract names the argument {name!r}, which {signatures[main].kernel} does not have",
                    "one of: " + (", ".join(names) or "none, the kernel has no parameters"),
                    "args", name, fix=did_you_mean(name, names),
                )  # fmt: skip
    for name in names:
        taken = known.get(name)
        if taken is not None and is_structure(taken) and "dtype" not in (table.get(name) or {}):
            kernel = next(one for one in signatures.values() if taken in one.params)
            raise refused(kernel.kernel, taken, top.raw.where("args", name), why=kernel.why_whole(taken.name))
    size_names = {s.name for s in sizes} | top.table("sizes").keys()
    return tuple(_arg(top, name, table.get(name), known.get(name), size_names, seen) for name in names)


def _passed(launches: list[Any], signatures: Mapping[str, Signature], main: str) -> Iterator[tuple[str, Parameter]]:
    """What launches pass by name, with the parameter that takes it; a launch that does not say passes each parameter by
    its own name. Then the parameters by theirs, for what none passes."""
    for launch in launches:
        taken = signatures.get(launch.get("entry") or main) if isinstance(launch, dict) else None
        if taken is not None:
            names = launch.get("args") or [p.name for p in taken.params]
            yield from ((n, p) for n, p in zip(names, taken.params, strict=False) if isinstance(n, str))
    for taken in signatures.values():
        yield from ((p.name, p) for p in taken.params)


def _is_written(data: Any) -> bool:
    """Whether a contract says that a buffer is written."""
    return isinstance(data, dict) and data.get("role") in (Role.OUT.value, Role.INOUT.value)


def _arg(top: Fields, name: str, data: Any, param: Parameter | None, sizes: set[str], seen: Seen) -> Argument:
    implicit = param is not None and not param.pointer and name in sizes
    if data is None and not implicit:
        raise ContractError(
            f"the contract says nothing of the argument {name!r} ({param.type if param else '?'})",
            expected=f"an entry in [args]: {_example(name, param, sizes, seen)}",
            where=top.raw.where("args"),
            fix="add it",
        )
    fields = Fields(top.raw, {} if data is None else data, "args", name)
    structured = is_structured(data, param)
    if not structured:
        if param is not None and param.pointer and any(isinstance(v, Mapping) for v in fields.data.values()):
            raise _no_members(fields, param)
        fields.only(ARG_KEYS)
    if fields.flag("null"):
        return _null(fields, param)
    if structured and param is not None:
        return _structured(fields, param)
    if implicit and "values" in fields.data:
        raise fields.bad(f"{name} is a size, and has values", "min and max of the size", "values",
                         fix="remove values, or give the size another name")  # fmt: skip
    dtype = _dtype(fields, param)
    role = _role(fields, param)
    value = fields.limit("value", name if implicit else None, floating=is_floating(dtype))
    shape: tuple[str, ...] = ()
    if role is Role.SCALAR:
        constraints = constraints_of(fields, is_floating(dtype))
        _require_single(fields, constraints)
    else:
        if "shape" not in fields.data:
            null = "; for a pointer that callers pass as null: null = true" if "value" in fields.data else ""
            raise fields.bad(
                f"the buffer {name} has no shape", f'shape = ["rows", "cols"], outermost first{null}', fix="add it"
            )
        shape = fields.expressions("shape")
        # every element holds the value on entry: outputs that the caller clears
        constraints, value = constraints_of(fields, is_floating(dtype), value), None
    alignment = _alignment(fields)
    assert not isinstance(value, tuple)
    promised = param.alignment if param is not None and param.pointer else 0
    return Argument(name, dtype, role, shape, value, max(alignment, promised), constraints)


def _no_members(fields: Fields, param: Parameter) -> ContractError:
    """The error where members are said of what has none that can be."""
    if param.dtype is None and "dtype" not in fields.data:
        return _unknown(fields, param)
    member = next(key for key, value in fields.data.items() if isinstance(value, Mapping))
    return fields.bad(
        f"{fields.title} says something of {member!r}, and its elements ({param.type}) are numbers of one type",
        "low and high for all, or lists with one for each along the last extent", member,
        fix="say low = [...] and high = [...]",
    )  # fmt: skip


def _unknown(fields: Fields, param: Parameter | None) -> ContractError:
    kind = f"the type {param.type!r}" if param else "no known type"
    why = f": {param.why}" if param is not None and param.why else ""
    return fields.bad(
        f"the argument {fields.keys[-1]} has {kind}, which fsr cannot make values of{why}",
        "a number, a pointer to numbers or structures of them, or dtype = ... to say what the pointer holds",
        fix="add dtype, or wrap the kernel in one with plain parameters",
    )  # fmt: skip


def _structured(fields: Fields, param: Parameter) -> Argument:
    """A buffer of structures with members of several types."""
    layout, role, name = layout_of(fields, param), _role(fields, param), str(fields.keys[-1])
    if "shape" not in fields.data:
        raise fields.bad(
            f"the buffer {name} has no shape", 'shape = ["n"], how many structures there are', fix="add it"
        )
    dtype, shape = f"uint{8 * layout.word}", (*fields.expressions("shape"), str(layout.bytes // layout.word))
    return Argument(name, dtype, role, shape, alignment=max(_alignment(fields), layout.alignment), layout=layout)


def _alignment(fields: Fields) -> int:
    """What callers promise beyond the type's; 0 for nothing."""
    found = fields.count("alignment", 0) or 0
    if found & (found - 1) or found > 256:
        raise fields.bad(
            f"the alignment of {fields.keys[-1]} is {found}", "a power of two up to 256", "alignment",
            fix="write alignment = 16, say",
        )  # fmt: skip
    return found


def _require_single(fields: Fields, constraints: Constraints) -> None:
    """Refuse of a scalar what only a buffer has."""
    for key in ("low", "high", "value"):
        if isinstance(fields.data.get(key), list):
            raise fields.bad(
                f"{fields.title}: {key} is {fields.data[key]!r}, and {fields.keys[-1]} is one number",
                "lists for buffers and __constant__ arrays only", key, fix=f"say one {key}",
            )  # fmt: skip
    if constraints.offsets is not None:
        raise fields.bad(
            f"the scalar {fields.keys[-1]} has offsets",
            "offsets on pointers to integers only",
            "offsets",
            fix="remove offsets; say its value, or low and high",
        )
    if constraints.shares:
        raise fields.bad(f"the scalar {fields.keys[-1]} has shares", "shares of arrays only", "shares",
                         fix="remove shares: each of its values is tested")  # fmt: skip
    if "shape" in fields.data:
        raise fields.bad(
            f"the scalar {fields.keys[-1]} has a shape", "shape on pointers only", "shape", fix="remove shape"
        )


def _null(fields: Fields, param: Parameter | None) -> Argument:
    """A pointer that callers pass as null. There is no memory of which more could be said. Raises ContractError."""
    name, others = str(fields.keys[-1]), [key for key in fields.data if key != "null"]
    if param is not None and not param.pointer:
        raise fields.bad(f"{name} ({param.type}) is no pointer and is said to be null", "null on pointers only", "null",
                         fix=f'remove null; for a number that is always 0: {name} = {{value = 0}}')  # fmt: skip
    if others:
        raise fields.bad(
            f"{name} is null, and the contract says its {', '.join(others)} too",
            f"{name} = {{null = true}} alone: a null pointer has no memory to speak of", others[0],
            fix=f"remove {', '.join(others)}, or null where callers pass memory",
        )  # fmt: skip
    return Argument(name, (param.dtype if param is not None else None) or "uint8", Role.NULL)


def _example(name: str, param: Parameter | None, sizes: set[str], seen: Seen) -> str:
    if param is None or param.pointer:
        if (shown := seen(name)) is not None:
            return f"{name} = {inline([('role', quoted(shown.role.value)), ('shape', listed(shown.shape))])}"
        const = param is None or param.const
        role, more = ("in", "") if const else ("?", '; role: "out" (written only) or "inout"')
        of = f" (sizes: {', '.join(sorted(sizes))})" if sizes else ""
        return (
            f'{name} = {{role = "{role}", shape = ["?"]}}, with the extents in the place of "?" that the kernel\'s '
            + (f"indices run over, outermost first{of}; the code does not show them{more}")
        )
    size = next(iter(sorted(sizes)), "n")
    if param.dtype and "int" in param.dtype:
        return f'{name} = {{value = "{size}"}} where it is a size, else its limits: {name} = {{low = 0, high = 100}}'
    return f"{name} = {{low = 0, high = 1}}"


def _dtype(fields: Fields, param: Parameter | None) -> str:
    """The dtype stated, checked against the parameter's; the parameter's when none is stated."""
    stated = fields.text("dtype")
    if stated is not None and stated not in ALL_DTYPES:
        raise fields.bad(
            f"the dtype {stated!r} is unknown", "one of: " + ", ".join(ALL_DTYPES), "dtype",
            fix=did_you_mean(stated, ALL_DTYPES),
        )  # fmt: skip
    own = param.dtype if param is not None else None
    declared = own if param is not None and not param.record else None
    if stated is not None and declared is not None and stated != declared:
        raise fields.bad(
            f"the contract says that {fields.keys[-1]} is {stated}; the kernel declares {param.type if param else ''}",
            declared, "dtype", fix="leave dtype out, or correct it",
        )  # fmt: skip
    dtype = stated or own
    if dtype is None:
        raise _unknown(fields, param)
    return dtype


def _role(fields: Fields, param: Parameter | None) -> Role:
    stated = fields.text("role")
    roles = tuple(r.value for r in Role if r is not Role.NULL)
    name = fields.keys[-1]
    if stated is not None and stated not in roles:
        fix = did_you_mean(stated, roles) if stated != Role.NULL.value else "for a null pointer: null = true, no role"
        raise fields.bad(f"the role of {name} is {stated!r}", "one of: " + ", ".join(roles), "role", fix=fix)
    if stated is None and param is not None and param.pointer and fields.data.keys() == {"value"}:
        raise fields.bad(
            f"{name} ({param.type}) is a pointer, and the contract says its value alone",
            f"for a pointer that callers pass as null: {name} = {{null = true}}; else its role and shape, and value "
            "as what every element holds",
            "value", fix="say which of the two it is",
        )  # fmt: skip
    if param is not None and not param.pointer:
        if stated not in (None, "scalar"):
            raise fields.bad(
                f"{name} is passed by value and has the role {stated!r}", "scalar", "role", fix="remove role"
            )
        return Role.SCALAR
    if stated is None and param is not None and param.const:
        return Role.IN
    if stated is None:
        kind = param.type if param else "buffer"
        raise fields.bad(
            f"the role of {name} ({kind}) is not stated",
            '"in", "out" (written only) or "inout"',
            fix='add role = "in" where it is only read, "out" where every element is written and none read before',
        )
    if stated == "scalar" and param is not None:
        raise fields.bad(
            f"{name} is a pointer and has the role 'scalar'",
            "in, out or inout",
            "role",
            fix='write role = "in", "out" (written only) or "inout"',
        )
    if stated in ("out", "inout") and param is not None and param.const:
        raise fields.bad(
            f"{name} is a pointer to const and has the role {stated!r}",
            '"in"',
            "role",
            fix="remove role, or the const where the kernel writes through it",
        )
    return Role(stated)
