"""Text of stencil kernels: rows of the neighbourhood in registers, or a tile with its halo in shared memory.

Where all points of a thread (or block) take the path that reads the neighbourhood, each element is read once;
elsewhere the core runs as it was written. So border handling stays exactly the user's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fsr.analysis.domain import Domain
from fsr.source.emit import emit_expr, emit_stmts
from fsr.source.form import Expr, For, Index, Name, OpaqueExpr, Stmt
from fsr.source.mapping import map_stmts, rewrite, substitute
from fsr.source.names import indent, unrolled
from fsr.source.walk import Block
from fsr.transform.points import at_point, condition
from fsr.transform.stencil.neighbourhood import Neighbourhood, Stencil

_MOST = 128  # turns that are unrolled


def march_body(s: Stencil, rows: int, x: int, y: int) -> str:
    """The kernel body for blocks of x by y threads, each thread ``rows`` rows one below the other."""
    xs, ys = s.domain.axes["x"], s.domain.axes["y"]
    lines = emit_stmts(s.domain.uniform).splitlines()
    lines += [
        f"const {xs.type} $x_own = blockIdx.x * {x} + threadIdx.x;",
        f"const {ys.type} $y_first = (blockIdx.y * {y} + threadIdx.y) * {rows};",
        "bool $inner = true;",
        *unrolled("$i", rows, _is_inner(s, "$x_own", "$y_first + $i")),
        "if ($inner) {",
        *indent(_rows_in_registers(s, rows)),
        "} else {",
        "    #pragma unroll 1",
        f"    for (int $i = 0; $i < {rows}; ++$i) {{",
        *indent(_as_written(s, {"x": "$x_own", "y": "$y_first + $i"}), 2),
        "    }",
        "}",
    ]
    return "\n".join(indent(lines)) + "\n"


def _as_written(s: Stencil, places: dict[str, str]) -> list[str]:
    return at_point(s.domain, s.values, places, emit_stmts(s.domain.core).splitlines())


def _is_inner(s: Stencil, x: str, y: str) -> list[str]:
    """Statements that clear ``$inner`` unless the point is handled and takes the stencil's path."""
    xs, ys = s.domain.axes["x"], s.domain.axes["y"]
    lines = [f"const {xs.type} {xs.var} = {x};", f"const {ys.type} {ys.var} = {y};"]
    tests = [condition(a, s.values) for a in (ys, xs)]
    for level in s.levels:
        lines += emit_stmts(level.lets).splitlines()
        text = emit_expr(level.test)
        tests.append(f"({text})" if level.taken else f"!({text})")
    joined = " && ".join(t for t in tests if t)
    return [*lines, f"$inner = $inner && {joined};"] if joined else []


def _leaf(s: Stencil, x: str, y: str, near: dict[Expr, Expr]) -> list[str]:
    """The point's work on the stencil's path, neighbours taken from where they are kept."""
    xs, ys = s.domain.axes["x"], s.domain.axes["y"]
    lines = [f"const {xs.type} {xs.var} = {x};", f"const {ys.type} {ys.var} = {y};"]
    for level in s.levels:
        lines += emit_stmts(level.lets).splitlines()
    return lines + emit_stmts(_unrolled(s, rewrite(s.leaf, lambda e: near.get(e)))).splitlines()


def _unrolled(s: Stencil, leaf: Block) -> Block:
    """The statements with loops over a neighbourhood unrolled, so that what is kept has constant places."""

    def change(stmt: Stmt) -> Stmt:
        unroll = isinstance(stmt, For) and stmt.var in s.turns and not stmt.pragmas
        return replace(stmt, pragmas=("#pragma unroll",)) if isinstance(stmt, For) and unroll else stmt

    short = [n for n in s.neighbourhoods if n.loops and len(n.reads) <= _MOST]
    return map_stmts(leaf, change) if short else leaf


def _element(s: Stencil, n: Neighbourhood, x: str, y: str) -> str:
    """The element read for offset (0, 0) of a neighbourhood when the point is at (x, y)."""
    places = {s.domain.axes["x"].var: OpaqueExpr(x), s.domain.axes["y"].var: OpaqueExpr(y)}
    return emit_expr(Index(Name(n.array), substitute(n.first, places)))


def _plus(text: str, offset: int) -> str:
    return text if offset == 0 else f"{text} + {offset}" if offset > 0 else f"{text} - {-offset}"


def _at(base: str, counters: Sequence[tuple[str, int]], offset: int) -> str:
    """A place so many times the counters and so far from another; counters are ints, so that it may lie before it."""
    terms = [base, *(name if k == 1 else f"{k} * {name}" for name, k in counters)]
    return _plus(" + ".join(t for t in terms if t) or "0", offset)


def _rows_in_registers(s: Stencil, rows: int) -> list[str]:
    """Columns of the neighbourhood as arrays, or one array of all where loops go over it, and the rows' work."""
    lines: list[str] = []
    near: dict[Expr, Expr] = {}
    for number, n in enumerate(s.neighbourhoods):
        kept, type_ = f"$near{number}", element_type(s.domain, n.array)
        left, right, top, bottom = n.box()
        if n.loops:
            lines.append(f"{type_} {kept}[{right - left + 1}][{rows + bottom - top}];")
            for dx, (low, high) in n.columns().items():  # no corners of a cross
                lines += _column(s, n, _plus(f"{kept}[{dx - left}][$j", low - top), dx, (low, rows + high - low))
            for expr, o in n.offsets.items():
                column = Index(Name(kept), OpaqueExpr(_at("", o.across, o.dx - left)))
                near[expr] = Index(column, OpaqueExpr(_at("$i", o.down, o.dy - top)))
            continue
        for at, (dx, (low, high)) in enumerate(n.columns().items()):
            lines.append(f"{type_} {kept}_{at}[{rows + high - low}];")
            lines += _column(s, n, f"{kept}_{at}[$j", dx, (low, rows + high - low))
            same = {e: o for e, o in n.offsets.items() if o.dx == dx}
            near |= {e: Index(Name(f"{kept}_{at}"), OpaqueExpr(_plus("$i", o.dy - low))) for e, o in same.items()}
    return [*lines, *unrolled("$i", rows, _leaf(s, "$x_own", "$y_first + $i", near))]


def _column(s: Stencil, n: Neighbourhood, kept: str, dx: int, rows: tuple[int, int]) -> list[str]:
    """Statements that read a column to ``kept``, but for a bracket: its first row from the thread's first one, and how
    many there are."""
    low, count = rows
    place = _element(s, n, _plus("$x_own", dx), f"$y_first + ($j {'-' if low < 0 else '+'} {abs(low)})")
    return unrolled("$j", count, [f"{kept}] = {place};"])


def halo_body(s: Stencil, rows: int, x: int, y: int) -> str:
    """The kernel body for blocks of x by y threads over tiles of x by y * rows points, halo included in the tile."""
    tile_y = y * rows
    xs, ys = s.domain.axes["x"], s.domain.axes["y"]
    own = {"x": "$x_block + threadIdx.x", "y": f"$y_block + {_own_row(rows)}"}
    lines = emit_stmts(s.domain.uniform).splitlines()
    for number, n in enumerate(s.neighbourhoods):
        width, height = halo_extent(n, x, tile_y)
        lines.append(f"__shared__ {element_type(s.domain, n.array)} $tile{number}[{height}][{width}];")
    lines += [
        f"const {xs.type} $x_block = blockIdx.x * {x};",
        f"const {ys.type} $y_block = blockIdx.y * {tile_y};",
        "bool $inner = true;",
        *unrolled("$i", rows, _is_inner(s, own["x"], own["y"])),
        "if (__syncthreads_and($inner)) {",
        *(line for k, n in enumerate(s.neighbourhoods) for line in indent(_load_tile(s, k, n, x, y, tile_y))),
        "    __syncthreads();",
        *indent(unrolled("$i", rows, _leaf(s, own["x"], own["y"], _from_tiles(s, rows)))),
        "} else {",
        "    #pragma unroll 1",
        f"    for (int $i = 0; $i < {rows}; ++$i) {{",
        *indent(_as_written(s, own), 2),
        "    }",
        "}",
    ]
    return "\n".join(indent(lines)) + "\n"


def halo_extent(n: Neighbourhood, x: int, tile_y: int) -> tuple[int, int]:
    """Columns and rows of the tile with its halo."""
    left, right, top, bottom = n.box()
    return x + right - left, tile_y + bottom - top


def _load_tile(s: Stencil, number: int, n: Neighbourhood, x: int, y: int, tile_y: int) -> list[str]:
    """Statements by which the block brings in what its points read, and nothing else (no corners of a cross)."""
    left, right, top, bottom = n.box()
    width, height = halo_extent(n, x, tile_y)
    place = _element(s, n, _plus("$x_block + $c", left), _plus("$y_block + $r", top))
    put = [f"$tile{number}[$r][$c] = {place};"]
    full = {(dx, dy) for dx in range(left, right + 1) for dy in range(top, bottom + 1)}
    if n.reads != full:
        columns = " || ".join(
            f"($c >= {dx - left} && $c < {x + dx - left} && $r >= {low - top} && $r < {tile_y + high - top})"
            for dx, (low, high) in n.columns().items()
        )
        put = [f"if ({columns}) {{", *indent(put), "}"]
    return [
        f"for (int $r = threadIdx.y; $r < {height}; $r += {y}) {{",
        f"    for (int $c = threadIdx.x; $c < {width}; $c += {x}) {{",
        *indent(put, 2),
        "    }",
        "}",
    ]


def _own_row(rows: int) -> str:
    """A thread's rows lie one below the other: what several of them read of the tile is read once."""
    return f"threadIdx.y * {rows} + $i" if rows > 1 else "threadIdx.y"


def _from_tiles(s: Stencil, rows: int) -> dict[Expr, Expr]:
    near: dict[Expr, Expr] = {}
    for number, n in enumerate(s.neighbourhoods):
        left, _, top, _ = n.box()
        for expr, offset in n.offsets.items():
            row = OpaqueExpr(_at(_own_row(rows), offset.down, offset.dy - top))
            column = OpaqueExpr(_at("threadIdx.x", offset.across, offset.dx - left))
            near[expr] = Index(Index(Name(f"$tile{number}"), row), column)
    return near


def element_type(found: Domain, array: str) -> str:
    """The C type of an array parameter's elements, as the kernel spells it."""
    return " ".join(w for w in found.form.param(array).type.replace("*", " ").split() if w not in ("const", "volatile"))
