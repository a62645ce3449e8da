"""Infer the contract of a kernel that has none, where its code leaves no doubt; ask for a block where it does.

Understood are kernels that index by one global id a dimension, or one row a thread or block, with a size guard
(``if (i < n)``, ``if (row >= rows) return``), a launch in the file, or both. Nothing is guessed: an open point
becomes a gap in a block that the error shows, ready to paste.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from fsr.analysis.polynomial import Poly, constant, symbol
from fsr.analysis.ranges import Reach, Walk
from fsr.analysis.reach import walk_kernel
from fsr.analysis.shapes import shape_of
from fsr.contract.draft import GAP, Draft, inline, quoted
from fsr.contract.host import constants, resolve_launch
from fsr.contract.model import Argument, Constraints, Contract, Origin, Size, Tolerance
from fsr.contract.show import argument_row, launch_rows, size_row
from fsr.contract.symbols import clear_symbols
from fsr.errors import ContractError, SourceError
from fsr.expressions import evaluate_int, names
from fsr.records import Launch, Plan, Role
from fsr.source.cut import found_with_i
from fsr.source.entry import bare_name, function_name, template_arguments
from fsr.source.file import KernelFile
from fsr.source.form import Declare, KernelForm
from fsr.source.launches import HostLaunch
from fsr.source.macros import expand
from fsr.source.signature import Parameter, Signature, signature
from fsr.source.types import resolve_dtype
from fsr.source.walk import contains_barrier, contains_warp_wide, walk_stmts

AXES = ("x", "y", "z")
BLOCKS = {1: ("256", "1", "1"), 2: ("32", "8", "1"), 3: ("32", "4", "2")}  # for kernels that work at any block size
_TOTAL_TIMED = {1: (16777216,), 2: (4096, 4096), 3: (1024, 1024, 1024)}


@dataclass
class _Finding:
    """What is known so far, and the open points by the key of the block that they concern."""

    file: KernelFile
    signature: Signature
    form: KernelForm
    launch: Launch | None = None
    walk: Walk | None = None
    bounds: dict[str, Poly] = field(default_factory=dict)
    open: dict[str, str] = field(default_factory=dict)
    nonempty: set[str] = field(default_factory=set)  # sizes that must be at least 1
    summed: set[str] = field(default_factory=set)


def infer(file: KernelFile, entry: str | None = None) -> Contract:
    """The contract that the code itself shows, origin 'inferred'.

    Raises SourceError when the kernel cannot be named, and ContractError when anything stays open: the message
    lists the open points and holds a block with the gaps marked ``"?"``.
    """
    name = _entry(file, entry)
    parsed = _parsed(file, name)
    found = _Finding(file, signature(file, name), parsed)
    _launch(found, name)
    known = {**constants(file)} | {k: int(v) for k, v in found.signature.template if re.fullmatch(r"\d+", v)}
    known |= {k: known[v] for k, v in found.signature.template if v in known}
    found.walk = walk_kernel(parsed, known, _block_extents(found.launch))
    _index_bounds(found, name)
    args = [_argument(found, p) for p in found.signature.params]
    sizes = _sizes(found, args)
    symbols, unclear = clear_symbols(file, name, {p.name for p in found.signature.params})
    found.open |= {f"args.{n}": "which values does host code put into this __constant__ variable?" for n in unclear}
    if found.open or found.launch is None or any(a is None for a in args):
        raise _ambiguous(found, name, args, sizes)
    whole = [a for a in args if a is not None]
    length = max(found.summed) if len(found.summed) == 1 else None
    return Contract(
        entry=name,
        sizes=tuple(sizes),
        args=(*whole, *symbols),
        plan=Plan((found.launch,)),
        tolerance=Tolerance(sum_length=length),
        origin=Origin("inferred", str(file.path), int(found.signature.where.rsplit(":", 1)[1])),
    )


def _entry(file: KernelFile, entry: str | None) -> str:
    """The entry named, or the only kernel; a template's instance from the one launch that there is."""
    name = file.choose(entry)
    if entry is None or "<" not in entry:
        bare = function_name(name)
        launched = {h.entry for h in file.launches if function_name(h.entry) == bare and "<" in h.entry}
        known = set(constants(file))
        concrete = [e for e in launched if all(_concrete(a, known) for a in template_arguments(e))]
        if len(launched) == 1 and concrete:
            instance = concrete[0]
            return bare_name(name) + instance[instance.index("<") :]
    return name


def _concrete(argument: str, known: set[str]) -> bool:
    """Whether a template argument means the same outside the launching function: a number, a type, a constant."""
    return argument.isdigit() or argument in known or argument in ("true", "false") or bool(resolve_dtype(argument)[0])


def _parsed(file: KernelFile, name: str) -> KernelForm:
    from fsr.source.parse import parse_kernels  # loads the grammar

    bare = function_name(name)
    form = parse_kernels(expand(file.cut(name).text)).get(bare)
    if form is None:
        raise SourceError(
            f"the kernel {bare!r} cannot be parsed", expected="a __global__ function with a body",
            where=file.find(name).where, fix="write a contract block (see docs/contract.md)",
        )  # fmt: skip
    return form


# ---------------------------------------------------------------- launch


def _launch(found: _Finding, name: str) -> None:
    """The launch from host code, when there is exactly one way that it is launched."""
    bare = function_name(name)
    params = found.signature.params
    own = [h for h in found.file.launches if function_name(h.entry) == bare]
    resolved: list[Launch] = []
    for host in own:
        launch, trouble = resolve_launch(host, found.file, [p.name for p in params], [p.pointer for p in params])
        if launch is None:
            found.open["launch"] = f"{trouble} is not understood"
            return
        launch = Launch(name, launch.grid, launch.block, launch.shared_bytes, launch.args)
        if launch not in resolved:
            resolved.append(launch)
    if len(resolved) > 1:
        lines = ", ".join(str(h.line) for h in own)
        found.open["launch"] = f"lines {lines} launch it in {len(resolved)} different ways"
    elif resolved:
        found.launch = _at_usual_block(found, resolved[0])


def _at_usual_block(found: _Finding, launch: Launch) -> Launch:
    """A launch whose block the launching function is given, at the usual size, if the kernel works at any."""
    given = {axis: text for axis, text in enumerate(launch.block) if text.isidentifier()}
    free = set(given.values()) - {p.name for p in found.signature.params}
    if not free or free != set(given.values()) or _needs_block(found.form) or launch.shared_bytes != "0":
        return launch
    usual = BLOCKS[max(given) + 1]
    values = {text: usual[axis] for axis, text in given.items()}

    def filled(texts: tuple[str, str, str]) -> tuple[str, str, str]:
        x, y, z = (re.sub(r"[A-Za-z_]\w*", lambda m: values.get(m[0], m[0]), text) for text in texts)
        return x, y, z

    return replace(launch, grid=filled(launch.grid), block=filled(launch.block))


def _block_extents(launch: Launch | None) -> dict[str, int]:
    if launch is None:
        return {}
    return {axis: int(text) for axis, text in zip(AXES, launch.block, strict=True) if text.isdigit()}


def _index_bounds(found: _Finding, name: str) -> None:
    """Ranges of block indices from the launch; the launch itself from the guards when the file has none."""
    assert found.walk is not None
    used = {a for access in found.walk.accesses for a in access.index.symbols}
    used |= set(found.walk.guards)
    if found.launch is not None:
        for axis, text in zip(AXES, found.launch.grid, strict=True):
            poly = _as_poly(text)
            if poly is not None:
                found.bounds[f"@b{axis}"] = poly
        for axis, extent in _block_extents(found.launch).items():
            found.bounds[f"@t{axis}"] = constant(extent)
        _check_cover(found, found.launch)
        return
    if "launch" in found.open:
        return
    raw = sorted(a for a in used if re.match(r"@[btBG]", a))
    rows = sorted(a for a in used if a.startswith("@g"))
    if raw or not rows or _needs_block(found.form):
        found.open["launch"] = "the file holds no launch of it, and the kernel depends on how it is launched"
        return
    if any(a not in found.walk.guards for a in rows):
        found.open["launch"] = f"no guard such as if (i < n) bounds the global index {rows[0][2:]}"
        return
    block = BLOCKS[max(AXES.index(a[2:]) for a in rows) + 1]
    grid = [
        f"ceil_div({found.walk.guards[f'@g{axis}'].text()}, {extent})" if f"@g{axis}" in rows else "1"
        for axis, extent in zip(AXES, block, strict=True)
    ]
    block = (block[0], block[1], block[2])
    params = tuple(p.name for p in found.signature.params)
    found.launch = Launch(name, (grid[0], grid[1], grid[2]), block, "0", params)


def _check_cover(found: _Finding, launch: Launch) -> None:
    """Note a launch with fewer threads than the guarded range of a global index that no loop strides over."""
    assert found.walk is not None
    used = {a for access in found.walk.accesses for a in access.index.symbols}
    for axis, grid, block in zip(AXES, launch.grid, launch.block, strict=True):
        end = found.walk.guards.get(f"@g{axis}")
        if end is None or f"@g{axis}" not in used:
            continue
        text = end.text()
        free = (names(grid) | names(block)) - {p.name for p in found.signature.params}
        if free:
            listed = ", ".join(sorted(free))
            found.open["launch"] = f"its size depends on {listed}, which no argument of the kernel holds"
            return
        for size in (1, 1000, 4097):
            sizes = dict.fromkeys(names(grid) | names(block) | names(text), size)
            threads = evaluate_int(grid, sizes) * evaluate_int(block, sizes)
            if threads < evaluate_int(text, sizes):
                found.open["launch"] = f"{grid} x {block} threads do not reach {text} for sizes of {size}"
                return


def _needs_block(form: KernelForm) -> bool:
    shared = any(isinstance(s, Declare) and "__shared__" in s.qualifiers for s in walk_stmts(form.body))
    return shared or contains_barrier(form.body) or contains_warp_wide(form.body)


def _as_poly(text: str) -> Poly | None:
    """A grid extent as a polynomial when it is a plain size, number or product."""
    if re.fullmatch(r"\d+", text):
        return constant(int(text))
    if re.fullmatch(r"[A-Za-z_]\w*( \* [A-Za-z_]\w*)*", text):
        product = constant(1)
        for part in text.split(" * "):
            product = product * symbol(part)
        return product
    return None


# ---------------------------------------------------------------- arguments


def _argument(found: _Finding, param: Parameter) -> Argument | None:
    """The argument when it is clear; otherwise None, with the open point noted."""
    if param.dtype is None or (param.lanes > 1 and not param.pointer):
        found.open[f"args.{param.name}"] = f"the type {param.type!r} is none that values can be made of"
        return None
    if not param.pointer:
        return _scalar(found, param)
    assert found.walk is not None
    if param.name in found.walk.unclear:
        found.open[f"args.{param.name}"] = found.walk.unclear[param.name]
        return None
    accesses = [a for a in found.walk.accesses if a.buffer == param.name]
    if not accesses:
        found.open[f"args.{param.name}"] = "the kernel does not use it in a way that is understood"
        return None
    shape = _common_shape(found, param, accesses)
    if shape is None:
        return None
    return Argument(param.name, param.dtype, _role(found, param, accesses, shape), tuple(p.text() for p in shape))


def _scalar(found: _Finding, param: Parameter) -> Argument | None:
    assert found.walk is not None
    dtype = param.dtype or ""
    literal = _launched_literal(found, param)
    if literal is not None and "int" in dtype:
        return Argument(param.name, dtype, Role.SCALAR, value=literal)
    if literal is not None and float(literal) != 0:  # around what is passed: it is a parameter, so it may vary
        ends = sorted((float(literal) / 2, float(literal) * 2))
        limits = Constraints(low=repr(ends[0]), high=repr(ends[1]))
        return Argument(param.name, dtype, Role.SCALAR, constraints=limits)
    if "int" not in dtype:
        return Argument(param.name, dtype, Role.SCALAR)
    if param.name in _size_names(found):
        return Argument(param.name, dtype, Role.SCALAR, value=param.name)
    found.open[f"args.{param.name}"] = "no guard or loop ends at it: what does it hold?"
    return None


def _launched_literal(found: _Finding, param: Parameter) -> str | None:
    """The number that every launch in the file passes for a scalar."""
    bare = function_name(found.signature.kernel)
    hosts: Sequence[HostLaunch] = [h for h in found.file.launches if function_name(h.entry) == bare]
    at = found.signature.params.index(param)
    given = {h.args[at] if at < len(h.args) else "" for h in hosts}
    if len(given) != 1:
        return None
    match = re.fullmatch(r"(-?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[fFuUlL]*", given.pop())
    if match is None:
        return None
    return match[1] if "int" in (param.dtype or "") and match[1].lstrip("-").isdigit() else repr(float(match[1]))


def _size_names(found: _Finding) -> set[str]:
    """Scalars that a range ends at or the launch is made of."""
    assert found.walk is not None
    known = {a for poly in found.walk.guards.values() for a in poly.symbols}
    for access in found.walk.accesses:
        known |= {a for poly in access.bounds.values() for a in poly.symbols}
    if found.launch is not None:
        known |= {
            n for text in (*found.launch.grid, *found.launch.block, found.launch.shared_bytes) for n in names(text)
        }
    return {n for n in known if n[0] not in "@?%"}


def _common_shape(found: _Finding, param: Parameter, accesses: Sequence[Reach]) -> tuple[Poly, ...] | None:
    """The one shape that all accesses fit, outermost first; None with the open point noted."""
    shapes: list[tuple[Poly, ...]] = []
    key = f"args.{param.name}"
    for access in accesses:
        shape = shape_of(access, found.bounds)
        if isinstance(shape, str):
            found.open[key] = shape
            return None
        if shape not in shapes:
            shapes.append(shape)
    general = [s for s in shapes if s != (constant(1),)]
    if len(general) > 1:
        texts = " and ".join("[" + ", ".join(p.text() for p in s) + "]" for s in general)
        found.open[key] = f"its indices fit different shapes: {texts}"
        return None
    shape = general[0] if general else shapes[0]
    for access in accesses:
        _note_nonempty(found, access, shape)
    return shape


def _note_nonempty(found: _Finding, access: Reach, shape: tuple[Poly, ...]) -> None:
    """Extents that a fixed index needs to be at least 1: cols for ``x[row * cols]`` outside any loop over cols."""
    moving = [a for a in access.index.symbols if a[0] in "@?%"]
    if len(moving) < len(shape):
        fixed = [e for e in shape if e.single and all(access.bounds.get(a, found.bounds.get(a)) != e for a in moving)]
        found.nonempty |= {e.single for e in fixed if e.single}


def _role(found: _Finding, param: Parameter, accesses: Sequence[Reach], shape: tuple[Poly, ...]) -> Role:
    """in when never written; out when written everywhere before anything is read; inout otherwise."""
    kinds = {a.kind for a in accesses}
    if param.const or kinds == {"read"}:
        return Role.IN
    _note_sums(found, accesses)
    if kinds == {"write"} and any(_covers(found, a, shape) for a in accesses):
        return Role.OUT
    return Role.INOUT


def _note_sums(found: _Finding, accesses: Sequence[Reach]) -> None:
    """Ranges that are run over but do not appear in the index written: the length of a sum."""
    assert found.walk is not None
    for access in found.walk.accesses:
        if access.kind == "read":
            inner = [a for a in access.index.symbols if a.startswith("@") and a[1:2] not in "gbt"]
            for atom in inner:
                end = access.bounds.get(atom)
                if end is not None and end.single and all(atom not in w.index.symbols for w in accesses):
                    found.summed.add(end.single)
    for access in accesses:
        if access.kind == "update" and access.index.value is not None:
            ends = {p.text() for a, p in access.bounds.items() if a.startswith("@g")}
            found.summed |= ends if len(ends) == 1 else set()


def _covers(found: _Finding, access: Reach, shape: tuple[Poly, ...]) -> bool:
    """Whether a write, over all threads, reaches every element of the shape."""
    if not access.total or shape_of(access, found.bounds) != shape:
        return False
    missing = [a for a in access.bounds if a.startswith("@t") and access.bounds[a].value != 1]
    return not missing


# ---------------------------------------------------------------- sizes


def _sizes(found: _Finding, args: Sequence[Argument | None]) -> list[Size]:
    """Every named size: the scalars that are sizes, and names that only the launch knows."""
    wanted: list[str] = []
    for argument in args:
        if argument is not None:
            wanted += [n for text in argument.shape for n in sorted(names(text))]
            wanted += sorted(names(argument.value)) if argument.value else []
    if found.launch is not None:
        wanted += [n for text in (*found.launch.grid, found.launch.shared_bytes) for n in sorted(names(text))]
    ordered = list(dict.fromkeys(wanted))
    by_row = _row_sizes(found)
    return [_size(found, name, i, len(ordered), by_row) for i, name in enumerate(ordered)]


def _row_sizes(found: _Finding) -> set[str]:
    """Sizes that a thread or block runs over by itself, one row each."""
    assert found.walk is not None
    ends = {p.single for a in found.walk.accesses for n, p in a.bounds.items() if n[0] == "@" and n[1] not in "gbt"}
    outer = {p.single for p in (*found.walk.guards.values(), *found.bounds.values())}
    return {e for e in ends if e} if len([o for o in outer if o]) == 1 else set()


def _size(found: _Finding, name: str, index: int, count: int, by_row: set[str]) -> Size:
    low = 1 if name in found.nonempty else 0
    if count == 2 and by_row:
        timed = 1024 if name in by_row else 8192
        return Size(name, low, 8192 if name in by_row else 65536, (timed,))
    timed = _TOTAL_TIMED.get(count, (256,) * count)[index]
    return Size(name, low, timed * 4, (timed,))


# ---------------------------------------------------------------- what is open


def _ambiguous(found: _Finding, name: str, args: Sequence[Argument | None], sizes: Sequence[Size]) -> ContractError:
    draft = Draft(entry=name)
    draft.sizes = [(s.name, size_row(s)) for s in sizes] or [("n", "{min = 1, max = 1048576, timed = 1048576}")]
    for param, argument in zip(found.signature.params, args, strict=True):
        note = found.open.get(f"args.{param.name}")
        if note:
            draft.notes[f"args.{param.name}"] = note
        draft.args.append((param.name, argument_row(argument) if argument is not None else _gap(param)))
    for key in [k for k in found.open if k.startswith("args.")]:
        if found.signature.param(key.removeprefix("args.")) is None:
            draft.notes[key] = found.open[key]
            draft.args.append((key.removeprefix("args."), inline([("low", GAP), ("high", GAP)])))
    if found.launch is not None and "launch" not in found.open:
        draft.launches = [launch_rows(found.launch, is_plan=False)]
    else:
        draft.launches = [[("grid", GAP), ("block", GAP)]]
        draft.notes["launch.grid"] = found.open.get("launch", "")
    missing = found.file.cut(name).missing
    points = "; ".join(f"{key.removeprefix('args.')}: {why}" for key, why in found.open.items())
    return ContractError(
        f"there is no contract, and the code leaves open: {points}",
        expected='this block on top of the file, with every "?" filled in (docs/contract.md):\n\n' + draft.block(),
        where=found.signature.where,
        fix=("" if not missing else found_with_i(missing) + ", or ")
        + 'paste the block, fill in every "?", and run fsr contract again',
    )


def _gap(param: Parameter) -> str:
    if not param.pointer:
        return inline([("value", GAP)])
    role = quoted("in") if param.const else GAP
    dtype = [] if param.dtype else [("dtype", GAP)]
    return inline([*dtype, ("role", role), ("shape", f"[{GAP}]")])
