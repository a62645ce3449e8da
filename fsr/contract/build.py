"""From TOML values to a Contract, given the kernels' signatures: the format of docs/contract.md."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fsr.contract.arguments import arguments_of
from fsr.contract.derived import derived_sizes, is_derived
from fsr.contract.fields import Fields, did_you_mean
from fsr.contract.launches import plan_of
from fsr.contract.layouts import with_members_nested
from fsr.contract.model import Argument, Contract, Inputs, Size, Tolerance
from fsr.contract.passing import misfit, scalar_dtypes
from fsr.contract.read import RawContract
from fsr.contract.symbols import stated_symbols, symbols_of, told_variables
from fsr.errors import FsrError
from fsr.files import Unreadable, read_file
from fsr.given import latest, why_no_define
from fsr.records import Plan, Role
from fsr.source.file import KernelFile
from fsr.source.signature import Signature, signature

TOP_KEYS = ("entry", "sizes", "args", "launch", "scratch", "tolerance", "reference", "inputs", "aliasing", "flags",
            "include_dirs", "defines")  # fmt: skip


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
    named = derived_sizes(raw)
    params = {p.name for one in signatures.values() for p in one.params}
    symbols = symbols_of(file, list(signatures), told_variables(with_members_nested(top.table("args")), params))
    args = (
        *arguments_of(top, signatures, main, sizes, symbols, _seen_in(file, main, sizes)),
        *stated_symbols(top, params, {s.name for s in sizes}, symbols),
    )
    plan = plan_of(top, signatures, main, args)
    _require_fitting(top, plan, args, signatures)
    return Contract(
        entry=main,
        sizes=sizes,
        args=args,
        plan=plan,
        tolerance=_tolerance(top),
        reference=_function(top, "reference", file),
        aliasing=_aliasing(top, args),
        origin=raw.origin,
        inputs=None if (made := _function(top, "inputs", file)) is None else Inputs(made, str(_folder(file))),
        named=tuple(named.items()),
    )


def _seen_in(file: KernelFile, entry: str, sizes: tuple[Size, ...]) -> Callable[[str], Argument | None]:
    """How the code shows an argument. The parser is loaded where that is asked."""

    def seen(name: str) -> Argument | None:
        from fsr.contract.infer.seen import seen_argument

        return seen_argument(file, entry, name, {s.name for s in sizes})

    return seen


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
    found = top.texts("include_dirs", '["include", "../common"]')
    for name in found:
        if not (folder / name).is_dir():
            raise top.bad(
                f"the folder of includes {name!r} does not exist",
                f"a folder, from {folder or Path()}",
                "include_dirs",
                fix="write the path from the kernel's folder, such as ../include",
            )
    return found


def stated_defines(raw: RawContract) -> tuple[str, ...]:
    """The macros that a contract names, in ``defines`` or as -D among its ``flags``. Raises ContractError."""
    top = Fields(raw, raw.data)
    found = top.texts("defines", '["BLOCK=128", "FAST"]')
    for text in found:
        if why := why_no_define(text):
            raise top.bad(
                f"the macro {text!r} cannot be used: {why}",
                "NAME or NAME=VALUE",
                "defines",
                fix='write defines = ["BLOCK=128", "FAST"], say',
            )
    flags = top.texts("flags", '["--use_fast_math"]')
    return latest((*found, *(flag[2:].strip() for flag in flags if flag.startswith("-D"))))


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
            found.setdefault(text or chosen, found[chosen])
        except FsrError as fault:
            if text is not None and text != entry:
                fault.where = top.raw.where(*keys)
            raise
        main = main or chosen
    return main, found


# ---------------------------------------------------------------- sizes


def _sizes(top: Fields) -> tuple[Size, ...]:
    found = top.table("sizes").items()
    return tuple(_size(top, name, value) for name, value in found if not is_derived(value))


def _size(top: Fields, name: str, value: Any) -> Size:
    if isinstance(value, int) and not isinstance(value, bool):
        value = {"min": value, "max": value}
    fields = Fields(top.raw, value, "sizes", name)
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise fields.bad(
            f"the size name {name!r} is no identifier",
            "letters, digits and underscores",
            fix="rename it, here and in expressions",
        )
    fields.only(("min", "max", "timed"))
    timed = fields.integers("timed")
    low = fields.count("min", 1) or 0
    high = fields.count("max", max(timed, default=None) if timed else None)
    if high is None:
        raise fields.bad(
            f"the size {name} has neither max nor timed",
            f"{name} = {{min = 0, max = 1024, timed = 1024}}",
            fix="write the largest that callers pass as max, and what to time at as timed",
        )
    timed = timed or (high,)
    if low > high:
        raise fields.bad(
            f"the size {name} goes from {low} to {high}", "min at most max", "min", fix="exchange them, or correct one"
        )
    for one in timed:
        if not low <= one <= high:
            raise fields.bad(
                f"the size {name} is timed at {one}",
                f"a value from {low} to {high}",
                "timed",
                fix="write another timed size, or a wider min and max",
            )
    return Size(name, low, high, timed)


# ---------------------------------------------------------------- the rest


def _tolerance(top: Fields) -> Tolerance:
    fields = Fields(top.raw, top.table("tolerance"), "tolerance")
    fields.only(("rtol", "atol", "sum_length", "exact"))
    exact = fields.flag("exact")
    if exact and len(fields.data) > 1:
        raise fields.bad(
            "the tolerance is exact and has limits as well",
            "exact = true alone, or the limits",
            "exact",
            fix="remove exact, or the limits",
        )
    return Tolerance(fields.number("rtol"), fields.number("atol"), fields.expression("sum_length"), exact)


def _folder(file: KernelFile) -> Path:
    return file.path.parent.absolute()


def _function(top: Fields, key: str, file: KernelFile) -> str | None:
    """``module.py:function`` beside the kernel, which is read and not run."""
    text = top.text(key)
    if text is None:
        return None
    match = re.fullmatch(r"([\w./-]+\.py):([A-Za-z_]\w*)", text)
    if not match:
        raise top.bad(
            f"{key} is {text!r}",
            '"module.py:function", the file beside the kernel',
            key,
            fix=f'write {key} = "{key}.py:softmax", say',
        )
    path: Path = file.path.parent / match[1]
    try:
        tree = ast.parse(read_file(path).decode())
    except (Unreadable, SyntaxError, ValueError, RecursionError, MemoryError) as reason:
        raise top.bad(
            f"{key}: {path} cannot be used: {reason}",
            "a Python file beside the kernel",
            key,
            fix="correct that file, or the name that is written here",
        ) from None
    functions = [n.name for n in tree.body if isinstance(n, ast.FunctionDef)]
    if match[2] not in functions:
        raise top.bad(
            f"{key}: {match[1]} has no function {match[2]!r}", "one of: " + (", ".join(functions) or "none"), key,
            fix=did_you_mean(match[2], functions),
        )  # fmt: skip
    return text


def _aliasing(top: Fields, args: tuple[Argument, ...]) -> tuple[tuple[str, ...], ...]:
    value = top.data.get("aliasing", [])
    buffers = [a.name for a in args if a.role not in (Role.SCALAR, Role.NULL) and not a.symbol]
    if not isinstance(value, list) or any(not isinstance(g, list) or len(g) < 2 for g in value):
        raise top.bad(
            f"aliasing is {value!r}",
            'groups of two buffers or more: [["x", "y"]]',
            "aliasing",
            fix='write aliasing = [["x", "y"]], say: lists of names in a list',
        )
    for name in (n for group in value for n in group):
        if name not in buffers:
            raise top.bad(
                f"aliasing names {name!r}, which is no buffer", "one of: " + ", ".join(buffers), "aliasing",
                fix=did_you_mean(str(name), buffers),
            )  # fmt: skip
        if next(a for a in args if a.name == name).layout is not None:
            raise top.bad(
                f"aliasing names {name!r}, whose elements are structures with members of several types",
                "buffers of numbers", "aliasing", fix="leave it out: what shares its memory is not tested",
            )  # fmt: skip
    return tuple(tuple(group) for group in value)
