"""From TOML values to a Contract, given the kernels' signatures: the format of docs/contract.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fsr.contract.fields import VALUE_KEYS, Fields, constraints_of, did_you_mean
from fsr.contract.model import Argument, Contract, Size, Tolerance
from fsr.contract.passing import misfit, scalar_dtypes
from fsr.contract.read import RawContract
from fsr.contract.symbols import Symbol, is_symbol, stated_symbols, symbols_of
from fsr.errors import ContractError, FsrError
from fsr.files import Unreadable, read_file
from fsr.given import latest, why_no_define
from fsr.hardware.c_types import BY_DTYPE
from fsr.records import Launch, Plan, Role, ScalarArgument, Scratch
from fsr.source.file import KernelFile
from fsr.source.signature import Parameter, Signature, signature

TOP_KEYS = ("entry", "sizes", "args", "launch", "scratch", "tolerance", "reference", "aliasing", "flags",
            "include_dirs", "defines")  # fmt: skip
ARG_KEYS = ("dtype", "role", "shape", "value", "alignment", *VALUE_KEYS)
ALL_DTYPES = tuple(BY_DTYPE)


def build(raw: RawContract, file: KernelFile, entry: str | None) -> Contract:
    """The contract that a block or sidecar states, but for folders and macros (:func:`stated_defines`), which the file
    is read with. ``entry`` overrides the block's own.

    Raises ContractError (or SourceError for the kernel itself) with the line of the offending key. What needs
    evaluating is checked in :func:`fsr.contract.validate.validate`.
    """
    top = Fields(raw, raw.data)
    top.only(TOP_KEYS)
    main, signatures = _signatures(top, file, entry)
    sizes = _sizes(top)
    symbols = symbols_of(file, list(signatures))
    params = {p.name for one in signatures.values() for p in one.params}
    args = (
        *_args(top, signatures, main, sizes, symbols),
        *stated_symbols(top, params, {s.name for s in sizes}, symbols),
    )
    plan = _plan(top, signatures, main, args)
    _require_fitting(top, plan, args, signatures)
    return Contract(
        entry=main,
        sizes=sizes,
        args=args,
        plan=plan,
        tolerance=_tolerance(top),
        reference=_reference(top, file),
        aliasing=_aliasing(top, args),
        origin=raw.origin,
    )


def _require_fitting(top: Fields, plan: Plan, args: tuple[Argument, ...], signatures: Mapping[str, Signature]) -> None:
    scalars = scalar_dtypes(args)
    for index, launch in enumerate(plan.launches):
        if why := misfit(launch, signatures[launch.entry], scalars):
            keys = ("launch", index, "args") if isinstance(top.data.get("launch"), list) else ("args",)
            raise top.bad(why, "numbers of the width and kind that the kernel takes", *keys, fix="correct the dtype")


def stated_folders(raw: RawContract, folder: Path) -> tuple[str, ...]:
    """The folders of includes that a contract names, from the kernel file's ``folder``. Raises ContractError for one
    that is not there."""
    top = Fields(raw, raw.data)
    found = _texts(top, "include_dirs", '["include", "../common"]')
    for name in found:
        if not (folder / name).is_dir():
            raise top.bad(
                f"the folder of includes {name!r} does not exist", f"a folder, from {folder or Path()}", "include_dirs"
            )
    return found


def stated_defines(raw: RawContract) -> tuple[str, ...]:
    """The macros that a contract names, in ``defines`` or as -D among its ``flags``. Raises ContractError."""
    top = Fields(raw, raw.data)
    found = _texts(top, "defines", '["BLOCK=128", "FAST"]')
    for text in found:
        if why := why_no_define(text):
            raise top.bad(f"the macro {text!r} cannot be used: {why}", "NAME or NAME=VALUE", "defines")
    flags = _texts(top, "flags", '["--use_fast_math"]')
    return latest((*found, *(flag[2:].strip() for flag in flags if flag.startswith("-D"))))


def _texts(top: Fields, key: str, example: str) -> tuple[str, ...]:
    value = top.data.get(key, [])
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise top.bad(f"{key} is {value!r}", f"a list of texts, for example {example}", key)
    return tuple(value)


def _signatures(top: Fields, file: KernelFile, entry: str | None) -> tuple[str, dict[str, Signature]]:
    """The entry, and the signature of every kernel that is launched; errors stand at the key that names it."""
    launches = top.data.get("launch")
    tables = launches if isinstance(launches, list) else []
    named: list[tuple[str, tuple[str | int, ...]]] = []
    for index, table in enumerate(tables):
        text = Fields(top.raw, table, "launch", index).text("entry")
        if text is not None:
            named.append((text, ("launch", index, "entry")))
    stated = entry or top.text("entry")
    first: tuple[str | None, tuple[str | int, ...]] = (stated, ("entry",)) if stated or not named else named[0]
    found: dict[str, Signature] = {}
    main = ""
    for text, keys in (first, *named):
        try:
            chosen = file.choose(text)
            found.setdefault(chosen, signature(file, chosen))
        except FsrError as fault:
            if text is not None and text != entry:
                fault.where = top.raw.where(*keys)
            raise
        main = main or chosen
    return main, found


# ---------------------------------------------------------------- sizes


def _sizes(top: Fields) -> tuple[Size, ...]:
    return tuple(_size(top, name, value) for name, value in top.table("sizes").items())


def _size(top: Fields, name: str, value: Any) -> Size:
    if isinstance(value, int) and not isinstance(value, bool):
        value = {"min": value, "max": value}
    fields = Fields(top.raw, value, "sizes", name)
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise fields.bad(f"the size name {name!r} is no identifier", "letters, digits and underscores")
    fields.only(("min", "max", "timed"))
    timed = fields.integers("timed")
    low = fields.count("min", 1) or 0
    high = fields.count("max", max(timed, default=None) if timed else None)
    if high is None:
        raise fields.bad(
            f"the size {name} has neither max nor timed", f"{name} = {{min = 0, max = 1024, timed = 1024}}"
        )
    timed = timed or (high,)
    if low > high:
        raise fields.bad(f"the size {name} goes from {low} to {high}", "min at most max", "min")
    for one in timed:
        if not low <= one <= high:
            raise fields.bad(f"the size {name} is timed at {one}", f"a value from {low} to {high}", "timed")
    return Size(name, low, high, timed)


# ---------------------------------------------------------------- arguments


def _args(
    top: Fields, signatures: Mapping[str, Signature], main: str, sizes: tuple[Size, ...], symbols: Mapping[str, Symbol]
) -> tuple[Argument, ...]:
    params_ = {p.name for one in signatures.values() for p in one.params}
    table = {n: v for n, v in top.table("args").items() if n in params_ or not is_symbol(n, v, symbols)}
    is_plan = isinstance(top.data.get("launch"), list)
    params: dict[str, Parameter] = {}
    for one in signatures.values():
        for param in one.params:
            params.setdefault(param.name, param)
    if is_plan:
        names = list(table)
        known = {**{n: params[n] for n in table if n in params}}
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
    size_names = {s.name for s in sizes}
    return tuple(_arg(top, name, table.get(name), known.get(name), size_names, signatures[main]) for name in names)


def _arg(top: Fields, name: str, data: Any, param: Parameter | None, sizes: set[str], owner: Signature) -> Argument:
    implicit = param is not None and not param.pointer and name in sizes
    if data is None and not implicit:
        raise ContractError(
            f"the contract says nothing of the argument {name!r} ({param.type if param else '?'})",
            expected=f"an entry in [args]: {_example(name, param, sizes)}",
            where=top.raw.where("args"),
            fix="add it",
        )
    fields = Fields(top.raw, {} if data is None else data, "args", name)
    fields.only(ARG_KEYS)
    dtype, lanes = _dtype(fields, param)
    role = _role(fields, param)
    value = fields.expression("value", name if implicit else None)
    constraints = constraints_of(fields)
    shape: tuple[str, ...] = ()
    if role is not Role.SCALAR:
        if "shape" not in fields.data:
            raise fields.bad(
                f"the buffer {name} has no shape", 'shape = ["rows", "cols"], outermost first', fix="add it"
            )
        shape = fields.expressions("shape")
        if value is not None:  # every element holds it on entry: outputs that the caller clears
            constraints, value = replace(constraints, low=value, high=value), None
    elif "shape" in fields.data:
        raise fields.bad(f"the scalar {name} has a shape", "shape on pointers only", "shape")
    alignment = fields.count("alignment", 0) or 0
    if alignment & (alignment - 1) or alignment > 256:
        raise fields.bad(f"the alignment of {name} is {alignment}", "a power of two up to 256", "alignment")
    return Argument(name, dtype, role, shape, value, max(alignment, _natural(dtype, lanes)), constraints)


def _example(name: str, param: Parameter | None, sizes: set[str]) -> str:
    size = next(iter(sorted(sizes)), "n")
    if param is None or param.pointer:
        role = "in" if param is None or param.const else "out"
        return f'{name} = {{role = "{role}", shape = ["{size}"]}}'
    return (
        f'{name} = {{value = "{size}"}}' if param.dtype and "int" in param.dtype else f"{name} = {{low = 0, high = 1}}"
    )


def _dtype(fields: Fields, param: Parameter | None) -> tuple[str, int]:
    """The dtype stated, checked against the parameter's; the parameter's when none is stated."""
    stated = fields.text("dtype")
    if stated is not None and stated not in ALL_DTYPES:
        raise fields.bad(
            f"the dtype {stated!r} is unknown", "one of: " + ", ".join(ALL_DTYPES), "dtype",
            fix=did_you_mean(stated, ALL_DTYPES),
        )  # fmt: skip
    own = param.dtype if param is not None else None
    if stated is not None and own is not None and stated != own:
        raise fields.bad(
            f"the contract says that {fields.keys[-1]} is {stated}; the kernel declares {param.type if param else ''}",
            own, "dtype", fix="leave dtype out, or correct it",
        )  # fmt: skip
    dtype = stated or own
    if dtype is None:
        kind = f"the type {param.type!r}" if param else "no known type"
        raise fields.bad(
            f"the argument {fields.keys[-1]} has {kind}, which fsr cannot make values of",
            "a number, a pointer to numbers, or dtype = ... to say what the pointer holds",
            fix="add dtype, or wrap the kernel in one with plain parameters",
        )
    return dtype, param.lanes if param is not None and stated is None else 1


def _natural(dtype: str, lanes: int) -> int:
    """Bytes of alignment that the type itself promises beyond its element: 16 for float4; 0 for plain types."""
    if lanes == 1:
        return 0
    return BY_DTYPE[dtype].bytes * (4 if lanes == 4 else 2 if lanes == 2 else 1)


def _role(fields: Fields, param: Parameter | None) -> Role:
    stated = fields.text("role")
    roles = tuple(r.value for r in Role)
    name = fields.keys[-1]
    if stated is not None and stated not in roles:
        raise fields.bad(
            f"the role of {name} is {stated!r}", "one of: " + ", ".join(roles), "role", fix=did_you_mean(stated, roles)
        )
    if param is not None and not param.pointer:
        if stated not in (None, "scalar"):
            raise fields.bad(f"{name} is passed by value and has the role {stated!r}", "scalar", "role")
        return Role.SCALAR
    if stated is None and param is not None and param.const:
        return Role.IN
    if stated is None:
        kind = param.type if param else "buffer"
        raise fields.bad(
            f"the role of {name} ({kind}) is not stated",
            '"in", "out" (written only) or "inout"',
            fix='add role = "out"',
        )
    if stated == "scalar" and param is not None:
        raise fields.bad(f"{name} is a pointer and has the role 'scalar'", "in, out or inout", "role")
    if stated in ("out", "inout") and param is not None and param.const:
        raise fields.bad(f"{name} is a pointer to const and has the role {stated!r}", '"in"', "role")
    return Role(stated)


# ---------------------------------------------------------------- launches


def _plan(top: Fields, signatures: Mapping[str, Signature], main: str, args: tuple[Argument, ...]) -> Plan:
    data = top.data.get("launch")
    if data is None:
        raise top.bad(
            "the contract has no [launch]", 'grid = "ceil_div(n, 256)" and block = 256 under [launch]', fix="add it"
        )
    scratch = tuple(_scratch(top, name, value) for name, value in top.table("scratch").items())
    for one in scratch:
        if any(a.name == one.name for a in args):
            raise top.bad(f"{one.name} is an argument and a scratch buffer", "another name", "scratch", one.name)
    if isinstance(data, list):
        known = {a.name for a in args if not a.symbol} | {s.name for s in scratch}
        launches = tuple(_plan_launch(top, d, i, main, signatures, known) for i, d in enumerate(data))
    else:
        fields = Fields(top.raw, data, "launch")
        fields.only(("grid", "block", "shared_bytes"))
        launches = (_launch(fields, main, tuple(a.name for a in args if not a.symbol)),)
    flags = tuple(f for f in _texts(top, "flags", '["--use_fast_math"]') if not f.startswith("-D"))
    return Plan(launches, scratch, flags)


def _launch(fields: Fields, entry: str, args: tuple[str | ScalarArgument, ...]) -> Launch:
    grid, block = (_dimensions(fields, key) for key in ("grid", "block"))
    return Launch(entry, grid, block, fields.expression("shared_bytes", "0") or "0", args)


def _dimensions(fields: Fields, key: str) -> tuple[str, str, str]:
    if key not in fields.data:
        raise fields.bad(
            f"{fields.title} has no {key}", f'{key} = "ceil_div(n, 256)" or {key} = [16, 16]', fix="add it"
        )
    parts = fields.expressions(key)
    if not 1 <= len(parts) <= 3:
        raise fields.bad(f"{key} has {len(parts)} dimensions", "one to three: x, y, z", key)
    x, y, z = (*parts, "1", "1")[:3]
    return x, y, z


def _plan_launch(
    top: Fields, data: Any, index: int, main: str, signatures: Mapping[str, Signature], named: set[str]
) -> Launch:
    fields = Fields(top.raw, data, "launch", index)
    fields.only(("entry", "grid", "block", "shared_bytes", "args"))
    entry = fields.text("entry") or main
    params = signatures[entry].params
    given = fields.data.get("args", [p.name for p in params])
    if not isinstance(given, list) or len(given) != len(params):
        raise fields.bad(
            f"the launch of {entry} passes {len(given) if isinstance(given, list) else given!r} arguments",
            f"{len(params)}: {', '.join(p.name for p in params)}", "args",
        )  # fmt: skip
    found: list[str | ScalarArgument] = []
    for arg, param in zip(given, params, strict=True):
        if isinstance(arg, Mapping):
            inner = Fields(top.raw, arg, "launch", index, "args")
            inner.only(("dtype", "value"))
            dtype = inner.text("dtype", param.dtype) or "int32"
            found.append(ScalarArgument(dtype, inner.as_expression(arg.get("value"), "value")))
        elif isinstance(arg, str) and arg in named:
            found.append(arg)
        elif not param.pointer and isinstance(arg, str | int | float):
            found.append(ScalarArgument(param.dtype or "int32", fields.as_expression(arg, "args")))
        else:
            raise fields.bad(
                f"the launch of {entry} passes {arg!r} for {param.name}", "one of: " + ", ".join(sorted(named)), "args",
                fix=did_you_mean(str(arg), sorted(named)),
            )  # fmt: skip
    return _launch(fields, entry, tuple(found))


def _scratch(top: Fields, name: str, data: Any) -> Scratch:
    fields = Fields(top.raw, data, "scratch", name)
    fields.only(("dtype", "count", "zeroed"))
    dtype = fields.text("dtype")
    if dtype not in ALL_DTYPES:
        raise fields.bad(
            f"the scratch buffer {name} has the dtype {dtype!r}", "one of: " + ", ".join(ALL_DTYPES), "dtype"
        )
    count = fields.expression("count")
    if count is None:
        raise fields.bad(
            f"the scratch buffer {name} has no count", 'count = "ceil_div(n, 256)" (elements)', fix="add it"
        )
    return Scratch(name, dtype, count, fields.flag("zeroed"))


# ---------------------------------------------------------------- the rest


def _tolerance(top: Fields) -> Tolerance:
    fields = Fields(top.raw, top.table("tolerance"), "tolerance")
    fields.only(("rtol", "atol", "sum_length", "exact"))
    exact = fields.flag("exact")
    if exact and len(fields.data) > 1:
        raise fields.bad("the tolerance is exact and has limits as well", "exact = true alone, or the limits", "exact")
    return Tolerance(fields.number("rtol"), fields.number("atol"), fields.expression("sum_length"), exact)


def _reference(top: Fields, file: KernelFile) -> str | None:
    text = top.text("reference")
    if text is None:
        return None
    match = re.fullmatch(r"([\w./-]+\.py):([A-Za-z_]\w*)", text)
    if not match:
        raise top.bad(f"the reference is {text!r}", '"module.py:function", the file beside the kernel', "reference")
    path: Path = file.path.parent / match[1]
    try:
        tree = ast.parse(read_file(path).decode())
    except (Unreadable, SyntaxError, ValueError, RecursionError, MemoryError) as reason:
        raise top.bad(
            f"the reference {path} cannot be used: {reason}", "a Python file beside the kernel", "reference"
        ) from None
    functions = [n.name for n in tree.body if isinstance(n, ast.FunctionDef)]
    if match[2] not in functions:
        raise top.bad(
            f"the reference {match[1]} has no function {match[2]!r}", "one of: " + (", ".join(functions) or "none"),
            "reference", fix=did_you_mean(match[2], functions),
        )  # fmt: skip
    return text


def _aliasing(top: Fields, args: tuple[Argument, ...]) -> tuple[tuple[str, ...], ...]:
    value = top.data.get("aliasing", [])
    buffers = [a.name for a in args if a.role is not Role.SCALAR and not a.symbol]
    if not isinstance(value, list) or any(not isinstance(g, list) or len(g) < 2 for g in value):
        raise top.bad(f"aliasing is {value!r}", 'groups of two buffers or more: [["x", "y"]]', "aliasing")
    for name in (n for group in value for n in group):
        if name not in buffers:
            raise top.bad(
                f"aliasing names {name!r}, which is no buffer", "one of: " + ", ".join(buffers), "aliasing",
                fix=did_you_mean(str(name), buffers),
            )  # fmt: skip
    return tuple(tuple(group) for group in value)
