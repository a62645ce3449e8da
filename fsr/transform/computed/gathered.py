"""Neighbouring elements that are read at a place which data tells (a body's coordinates, a row of a few columns), by
one access: each lane of a warp asks for a place of its own, and a sector is fetched once for all that is wanted of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fsr.computation.computation import KEPT
from fsr.computation.expression import Affine, Expr, Load, Number, distinct
from fsr.transform.computed.parts import number_of
from fsr.transform.computed.record_packs import MOST_BYTES, pack_type
from fsr.transform.computed.scene import Scene, bytes_of, loads_in, surely


def by_data(load: Load) -> bool:
    """Whether data tells where an element is."""
    return any(isinstance(e, Load) and e.indices for i in load.indices for e in distinct(i))


def side_by_side(scene: Scene, exprs: Sequence[Expr], held: Mapping[Expr, str]) -> tuple[list[str], dict[Expr, str]]:
    """Declarations of packs of what the expressions read in any case where data tells, and ``held`` with their
    elements. Raises NotPlain."""
    groups, sure = dict[tuple[str, tuple[Expr, ...], int], list[Load]](), surely(exprs)
    for x in loads_in(exprs):
        at = number_of(x.indices[-1])
        if x in sure and at is not None and by_data(x) and (unit := _unit(scene, x)) > 1:
            groups.setdefault((x.buffer, x.indices[:-1], at // unit * unit), []).append(x)
    lines, known = list[str](), dict(held)
    for (buffer, lead, first), members in groups.items():
        if len(members) > 1:
            name, unit = f"$beside{len(lines) + 1}", _unit(scene, members[0])
            place = Load(buffer, (*lead, Number(Affine((), first), "int64")), members[0].dtype)
            lines.append(f"const {pack_type(scene, place, unit)} {name} = {_read(scene, place, unit, held)};")
            known |= {x: f"{name}.v[{(number_of(x.indices[-1]) or 0) - first}]" for x in members}
    return lines, known


def _read(scene: Scene, first: Load, unit: int, held: Mapping[Expr, str]) -> str:
    """The access; an element at a time where the buffer begins at no multiple of it, but for scratch memory, which an
    allocator gives."""
    text, name, needed = scene.element(first, held), scene.names.names[first.buffer], unit * bytes_of(first)
    if first.buffer.startswith(KEPT) or scene.target.alignment(name) % needed == 0:
        return f"*reinterpret_cast<const {pack_type(scene, first, unit)} *>(&{text})"
    scene.helpers.update(("fsr_aligned", "fsr_neighbours"))
    return f"fsr_neighbours<{unit}, 1>(&{text}, fsr_aligned<{needed}>({name}))"


def _unit(scene: Scene, load: Load) -> int:
    """Elements of an access, of which each row has a whole number: a power of two of at most 16 bytes."""
    row = scene.shape(load.buffer)[-1]
    if not row.isdigit() or not 0 <= (number_of(load.indices[-1]) or 0) < int(row):
        return 1
    unit = int(row) & -int(row)
    while unit > 1 and unit * bytes_of(load) > MOST_BYTES:
        unit //= 2
    return unit
