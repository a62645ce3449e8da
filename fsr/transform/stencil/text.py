"""Text of stencil kernels: rows of the neighbourhood in registers, or a tile with its halo in shared memory.

Where all points of a thread (or block) take the path that reads the neighbourhood, each element is read once;
elsewhere the core runs as it was written. So border handling stays exactly the user's.
"""

from __future__ import annotations

from fsr.analysis.domain import Domain
from fsr.source.emit import emit_expr, emit_stmts
from fsr.source.form import Expr, Index, Name, OpaqueExpr
from fsr.source.mapping import rewrite, substitute
from fsr.source.names import indent, unrolled
from fsr.transform.points import at_point, condition
from fsr.transform.stencil.neighbourhood import Neighbourhood, Stencil


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
    return lines + emit_stmts(rewrite(s.leaf, lambda e: near.get(e))).splitlines()


def _element(s: Stencil, n: Neighbourhood, x: str, y: str) -> str:
    """The element read for offset (0, 0) of a neighbourhood when the point is at (x, y)."""
    places = {s.domain.axes["x"].var: OpaqueExpr(x), s.domain.axes["y"].var: OpaqueExpr(y)}
    return emit_expr(Index(Name(n.array), substitute(n.first.offset, places)))


def _plus(text: str, offset: int) -> str:
    return text if offset == 0 else f"{text} + {offset}" if offset > 0 else f"{text} - {-offset}"


def _rows_in_registers(s: Stencil, rows: int) -> list[str]:
    lines: list[str] = []
    near: dict[Expr, Expr] = {}
    for number, n in enumerate(s.neighbourhoods):
        for column, (dx, (low, high)) in enumerate(n.columns().items()):
            kept, count = f"$near{number}_{column}", rows + high - low
            place = _element(
                s, n, _plus("$x_own", dx), f"$y_first + ($j - {-low})" if low < 0 else f"$y_first + ($j + {low})"
            )
            lines.append(f"{element_type(s.domain, n.array)} {kept}[{count}];")
            lines += unrolled("$j", count, [f"{kept}[$j] = {place};"])
            for expr, (own_dx, dy) in n.offsets.items():
                if own_dx == dx:
                    near[expr] = Index(Name(kept), OpaqueExpr(_plus("$i", dy - low)))
    return [*lines, *unrolled("$i", rows, _leaf(s, "$x_own", "$y_first + $i", near))]


def halo_body(s: Stencil, rows: int, x: int, y: int) -> str:
    """The kernel body for blocks of x by y threads over tiles of x by y * rows points, halo included in the tile."""
    tile_y = y * rows
    xs, ys = s.domain.axes["x"], s.domain.axes["y"]
    own = {"x": "$x_block + threadIdx.x", "y": f"$y_block + threadIdx.y + $i * {y}"}
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
        *indent(unrolled("$i", rows, _leaf(s, own["x"], own["y"], _from_tiles(s, y)))),
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
    if set(n.offsets.values()) != full:
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


def _from_tiles(s: Stencil, y: int) -> dict[Expr, Expr]:
    near: dict[Expr, Expr] = {}
    for number, n in enumerate(s.neighbourhoods):
        left, _, top, _ = n.box()
        for expr, (dx, dy) in n.offsets.items():
            row = OpaqueExpr(_plus(f"threadIdx.y + $i * {y}", dy - top))
            near[expr] = Index(Index(Name(f"$tile{number}"), row), OpaqueExpr(_plus("threadIdx.x", dx - left)))
    return near


def element_type(found: Domain, array: str) -> str:
    """The C type of an array parameter's elements, as the kernel spells it."""
    return " ".join(w for w in found.form.param(array).type.replace("*", " ").split() if w not in ("const", "volatile"))
