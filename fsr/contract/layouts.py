"""Buffers of structures whose members are of several types: what a contract says of each member."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fsr.contract.fields import VALUE_KEYS, Fields, constraints_of
from fsr.contract.members import Variable, require_known, said
from fsr.contract.model import Constraints, Field, Layout
from fsr.expressions import is_floating
from fsr.source.signature import Parameter

BUFFER_KEYS = ("role", "shape", "alignment", "null", "value")
MEMBER_KEYS = ("value", *VALUE_KEYS)


def is_structured(data: Any, param: Parameter | None) -> bool:
    """Whether an argument is a buffer of such structures, and the contract does not say what else it is read as."""
    return param is not None and param.structure is not None and isinstance(data, Mapping) and "dtype" not in data


def with_members_nested(table: Mapping[str, Any]) -> dict[str, Any]:
    """``"pairs.weight" = {...}`` as ``weight`` of ``pairs``."""
    found = dict[str, Any]()
    for name, value in table.items():
        first, dot, rest = name.partition(".")
        before = found.get(first, {})
        if dot and isinstance(before, Mapping):
            found[first] = {**before, rest: value}
        elif isinstance(value, Mapping) and isinstance(before, Mapping):
            found[first] = {**before, **value}
        else:
            found[name] = value
    return found


def layout_of(fields: Fields, param: Parameter) -> Layout:
    """The structure with what is said of its members. Raises ContractError for members that there are not, and for what
    is said of all of it and cannot be."""
    structure, name = param.structure, str(fields.keys[-1])
    assert structure is not None
    told = {key: value for key, value in fields.data.items() if isinstance(value, Mapping)}
    wrong = next((key for key in fields.data if key not in told and key not in BUFFER_KEYS), None)
    known = tuple(leaf.path for leaf in structure.leaves)
    if wrong is not None:
        raise fields.bad(
            f"{name} has the key {wrong!r}, and its elements are structures ({param.type})",
            f"{', '.join(BUFFER_KEYS)}, and a table for a member: {known[0]} = {{low = 0, high = 1}}", wrong,
            fix=f'say it of a member: "{name}.{known[0]}" = {{{wrong} = ...}}, or say dtype for elements of one type',
        )  # fmt: skip
    variable = Variable(name, "", param.type, {}, known)
    require_known(fields.raw, variable, told)
    wide = {leaf.path: leaf.offset for leaf in param.wide.leaves} if param.wide is not None else {}
    each = {"value": fields.data["value"]} if "value" in fields.data else {}
    numbers = tuple(
        Field(leaf.path, leaf.dtype or "", leaf.offset, wide.get(leaf.path, -1),
              _constraints(fields, told, leaf.path, str(leaf.dtype), known, each))
        for leaf in structure.leaves
    )  # fmt: skip
    size = param.wide.bytes if param.wide is not None else 0
    return Layout(structure.type, structure.bytes, structure.alignment, numbers, size)


def _constraints(
    fields: Fields, told: Mapping[str, Any], path: str, dtype: str, known: tuple[str, ...], each: Mapping[str, Any]
) -> Constraints:
    """What is said of one number. ``each``: of all that nothing else is said of."""
    spec, keys = said(told, path, known)
    own = Fields(fields.raw, each if spec is None else spec, *fields.keys, *keys)
    own.only(MEMBER_KEYS)
    floating = is_floating(dtype)
    value = own.limit("value", floating=floating)
    for key in ("low", "high", "value"):
        if isinstance(own.data.get(key), list):
            raise own.bad(
                f"{own.title}: {key} is {own.data[key]!r}", f"one {key}, or a list with one for each number", key,
                fix=f"say one {key}, or as many as there are",
            )  # fmt: skip
    return constraints_of(own, floating, value)
