"""The plan that a contract states: its launches, what each passes, and its scratch buffers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fsr.contract.fields import Fields, did_you_mean
from fsr.contract.model import Argument
from fsr.expressions import is_floating, replaced
from fsr.hardware.c_types import BY_DTYPE
from fsr.records import NULL, STEP, Launch, Plan, ScalarArgument, Scratch
from fsr.source.signature import Signature


def plan_of(top: Fields, signatures: Mapping[str, Signature], main: str, args: tuple[Argument, ...]) -> Plan:
    """The plan of ``[launch]``, or of a list of them. ``main``: the entry that a launch has by default. Raises
    ContractError."""
    data = top.data.get("launch")
    if data is None:
        raise top.bad(
            "the contract has no [launch]", 'grid = "ceil_div(n, 256)" and block = 256 under [launch]', fix="add it"
        )
    scratch = tuple(_scratch(top, name, value) for name, value in top.table("scratch").items())
    for one in scratch:
        if any(a.name == one.name for a in args):
            raise top.bad(f"{one.name} is an argument and a scratch buffer", "another name", "scratch", one.name,
                          fix="rename the scratch buffer, here and in the args of launches")  # fmt: skip
    if isinstance(data, list):
        known = {a.name for a in args if not a.symbol} | {s.name for s in scratch} | {NULL}
        launches = tuple(_plan_launch(top, d, i, main, signatures, known) for i, d in enumerate(data))
    else:
        fields = Fields(top.raw, data, "launch")
        fields.only(("grid", "block", "shared_bytes", "repeat"))
        launches = (_launch(fields, main, tuple(a.name for a in args if not a.symbol)),)
    if STEP not in top.table("sizes"):
        given = data if isinstance(data, list) else [data]
        launches = tuple(
            _repeated_once(x) if "repeat" in own and not x.repeated else x
            for x, own in zip(launches, given, strict=True)
        )
    flags = tuple(f for f in top.texts("flags", '["--use_fast_math"]') if not f.startswith("-D"))
    return Plan(launches, scratch, flags)


def _launch(fields: Fields, entry: str, args: tuple[str | ScalarArgument, ...]) -> Launch:
    grid, block = (_dimensions(fields, key) for key in ("grid", "block"))
    shared, repeat = fields.expression("shared_bytes", "0") or "0", fields.expression("repeat", "1") or "1"
    return Launch(entry, grid, block, shared, args, repeat)


def _repeated_once(launch: Launch) -> Launch:
    """A launch whose ``repeat`` is 1, as one of several that count down to it, with the number of its repetition."""
    step = {STEP: "0"}
    grid, block = ((replaced(x, step), replaced(y, step), replaced(z, step)) for x, y, z in (launch.grid, launch.block))
    args = (replace(a, value=replaced(a.value, step)) if isinstance(a, ScalarArgument) else a for a in launch.args)
    return replace(launch, grid=grid, block=block, shared_bytes=replaced(launch.shared_bytes, step), args=tuple(args))


def _dimensions(fields: Fields, key: str) -> tuple[str, str, str]:
    if key not in fields.data:
        raise fields.bad(
            f"{fields.title} has no {key}", f'{key} = "ceil_div(n, 256)" or {key} = [16, 16]', fix="add it"
        )
    parts = fields.expressions(key)
    if not 1 <= len(parts) <= 3:
        raise fields.bad(
            f"{key} has {len(parts)} dimensions", "one to three: x, y, z", key, fix=f"write {key} = [16, 16], say"
        )
    x, y, z = (*parts, "1", "1")[:3]
    return x, y, z


def _plan_launch(
    top: Fields, data: Any, index: int, main: str, signatures: Mapping[str, Signature], named: set[str]
) -> Launch:
    fields = Fields(top.raw, data, "launch", index)
    fields.only(("entry", "grid", "block", "shared_bytes", "repeat", "args"))
    named_as = fields.text("entry") or main
    entry, params = signatures[named_as].entry, signatures[named_as].params
    given = fields.data.get("args", [p.name for p in params])
    if not isinstance(given, list) or len(given) != len(params):
        raise fields.bad(
            f"the launch of {entry} passes {len(given) if isinstance(given, list) else given!r} arguments",
            f"{len(params)}: {', '.join(p.name for p in params)}", "args",
            fix="write one for each parameter, in the kernel's order: the name of an argument or scratch buffer, a "
            f'number or an expression, or "{NULL}" for a null pointer',
        )  # fmt: skip
    found: list[str | ScalarArgument] = []
    for arg, param in zip(given, params, strict=True):
        if isinstance(arg, Mapping) and not param.pointer:
            inner = Fields(top.raw, arg, "launch", index, "args")
            inner.only(("dtype", "value"))
            dtype = inner.text("dtype", param.dtype) or "int32"
            value = inner.as_expression(arg.get("value"), "value", floating=is_floating(dtype))
            found.append(ScalarArgument(dtype, value))
        elif isinstance(arg, str) and arg in named and (arg != NULL or param.pointer):
            found.append(arg)
        elif not param.pointer and isinstance(arg, str | int | float):
            dtype = param.dtype or "int32"
            found.append(ScalarArgument(dtype, fields.as_expression(arg, "args", floating=is_floating(dtype))))
        else:
            raise fields.bad(
                f"the launch of {entry} passes {arg!r} for {param.name}", "one of: " + ", ".join(sorted(named)), "args",
                fix=_instead_of(arg, sorted(named)),
            )  # fmt: skip
    return _launch(fields, entry, tuple(found))


def _instead_of(arg: Any, named: list[str]) -> str:
    """What to write for what a launch passes for a pointer."""
    number = arg.get("value") if isinstance(arg, Mapping) else arg
    if str(number) in ("0", "NULL", "nullptr"):
        return f'write "{NULL}" for a null pointer'
    return did_you_mean(str(arg), named)


def _scratch(top: Fields, name: str, data: Any) -> Scratch:
    fields = Fields(top.raw, data, "scratch", name)
    fields.only(("dtype", "count", "zeroed"))
    dtype = fields.text("dtype")
    if dtype not in BY_DTYPE:
        raise fields.bad(
            f"the scratch buffer {name} has the dtype {dtype!r}",
            "one of: " + ", ".join(BY_DTYPE),
            "dtype",
            fix='write dtype = "float32", say',
        )
    count = fields.expression("count")
    if count is None:
        raise fields.bad(
            f"the scratch buffer {name} has no count", 'count = "ceil_div(n, 256)" (elements)', fix="add it"
        )
    return Scratch(name, dtype, count, fields.flag("zeroed"))
