"""How an inferred kernel is launched: as host code says, else from the guards of its global indices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from fsr.analysis.polynomial import Poly, constant, symbol
from fsr.contract.host import resolve_launch
from fsr.contract.infer.finding import AXES, Finding
from fsr.contract.model import Size
from fsr.expressions import evaluate_int, names
from fsr.records import Launch
from fsr.source.entry import function_name
from fsr.source.form import Declare, KernelForm
from fsr.source.walk import contains_barrier, contains_warp_wide, walk_stmts

BLOCKS = {1: ("256", "1", "1"), 2: ("32", "8", "1"), 3: ("32", "4", "2")}  # for kernels that work at any block size


def take_launch(found: Finding, name: str) -> None:
    """Note the launch that host code makes, when there is exactly one way that it is launched."""
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


def _at_usual_block(found: Finding, launch: Launch) -> Launch:
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


def block_extents(launch: Launch | None) -> dict[str, int]:
    """The block's threads along each axis that is a number."""
    if launch is None:
        return {}
    return {axis: int(text) for axis, text in zip(AXES, launch.block, strict=True) if text.isdigit()}


def bound_indices(found: Finding, name: str) -> None:
    """Note the ranges of block indices from the launch; the launch itself from the guards when the file has none."""
    assert found.walk is not None
    used = {a for access in found.walk.accesses for a in access.index.symbols}
    used |= set(found.walk.guards)
    if found.launch is not None:
        for axis, text in zip(AXES, found.launch.grid, strict=True):
            poly = _as_poly(text)
            if poly is not None:
                found.bounds[f"@b{axis}"] = poly
        for axis, extent in block_extents(found.launch).items():
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


def need_sizes(found: Finding, sizes: Sequence[Size]) -> None:
    """Note a launch that names what is neither a size nor a parameter: a variable of host code that could not be
    followed."""
    if found.launch is None or "launch" in found.open:
        return
    known = {s.name for s in sizes} | {p.name for p in found.signature.params}
    texts = found.launch.shape
    free = sorted({n for text in texts for n in names(text)} - known)
    if free:
        found.open["launch"] = f"it depends on {', '.join(free)}, which could not be followed through host code"


def _check_cover(found: Finding, launch: Launch) -> None:
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
