"""Text of a GEMM-like kernel: a shared-memory tile of each operand, tm x tn accumulators a thread.

The shape of the algorithm is the classic one (CUTLASS's efficient-GEMM page describes it): block tile in shared
memory, both tiles stored k-major so that a thread reads runs of rows, the next tile prefetched into registers.
Loads are wide where the address allows it, which is checked at run time, and guarded everywhere, so that every
size is right. Every output sums over k in the original order.

Names of this text are written ``$name`` (fsr.source.names).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fsr.hardware.c_types import BY_DTYPE
from fsr.source.names import indent, unrolled
from fsr.transform.gemm.config import CHUNK, LANES_M, LANES_N, PAD, GemmConfig

VECTOR_TYPES = {"float32": "float4", "int32": "int4", "uint32": "uint4"}


@dataclass(frozen=True, slots=True)
class Operand:
    """One factor of the product.

    ``dtype`` is the element in memory (a NumPy name), ``value`` the C type that is multiplied. ``at(outer, k)``: the
    lvalue text of an element; ``load(text)``: the value made of an element; ``inside(outer)``: whether the kernel
    handles that row or column, '' when it always does. ``along``: 'k' or 'outer', the dimension that is contiguous
    in memory, '' for neither; ``stride``: text of the other dimension's stride. ``axis``: the launch dimension of
    the outer index, ``index_type`` its C type.
    """

    dtype: str
    value: str
    at: Callable[[str, str], str]
    load: Callable[[str], str]
    inside: Callable[[str], str]
    along: str
    stride: str
    axis: str
    index_type: str = "int"

    def vector(self) -> str:
        """The C type that moves four elements at once."""
        return VECTOR_TYPES.get(self.dtype) or f"{self.dtype}_x4"


@dataclass(frozen=True, slots=True)
class GemmParts:
    """All that differs between one GEMM-like kernel and another.

    ``start(m, n, acc)``: statements that set an accumulator; ``combine(acc, a, b)``: statements of one step;
    ``zero_is_neutral``: a step with a = b = 0 leaves the accumulator as it was; ``finish(m, n, acc, run)``: statements
    that write ``run`` neighbouring outputs from (m, n) on, ``acc`` being that of ``$lane``. ``uniform``: statements
    that all threads share, before everything. ``k_type``, ``k_start``, ``k_end``: the loop, names or numbers.
    """

    a: Operand
    b: Operand
    acc_type: str
    start: Callable[[str, str, str], str]
    combine: Callable[[str, str, str], str]
    finish: Callable[[str, str, str, int], str]
    zero_is_neutral: bool
    k_type: str
    k_start: str
    k_end: str
    uniform: str = ""


def vector_structs(p: GemmParts) -> str:
    """Declarations of the vector types that are not built in, to stand before the kernel."""
    text = ""
    for dtype in dict.fromkeys(x.dtype for x in (p.a, p.b) if x.along and x.dtype not in VECTOR_TYPES):
        align = min(16, CHUNK * BY_DTYPE[dtype].bytes)
        text += f"struct __align__({align}) {dtype}_x4 {{\n    {BY_DTYPE[dtype].spelling} x, y, z, w;\n}};\n\n"
    return text


def gemm_body(p: GemmParts, c: GemmConfig) -> str:
    """The function body, without its braces, for a block of ``c.threads`` threads along x."""
    fetch = _fetch("a", p.a, c.bm, p, c, p.k_start) + _fetch("b", p.b, c.bn, p, c, p.k_start)
    lines = [*p.uniform.splitlines(), *_head(p, c), *fetch, *_loop(p, c), *write_lines(p, c)]
    return "\n".join(indent(lines)) + "\n"


def _head(p: GemmParts, c: GemmConfig) -> list[str]:
    return [
        f"__shared__ __align__(16) {p.a.value} $tile_a[{c.buffers}][{c.bk}][{c.bm + PAD}];",
        f"__shared__ __align__(16) {p.b.value} $tile_b[{c.buffers}][{c.bk}][{c.bn + PAD}];",
        *place_lines(p, c),
        *_share("a", p.a, c.bm, c),
        *_share("b", p.b, c.bn, c),
        *wide_lines("a", p.a, p.k_start),
        *wide_lines("b", p.b, p.k_start),
        f"{p.a.value} $next_a[{c.loads(c.bm)}][{CHUNK}];",
        f"{p.b.value} $next_b[{c.loads(c.bn)}][{CHUNK}];",
        *start_lines(p, c),
    ]


def place_lines(p: GemmParts, c: GemmConfig) -> list[str]:
    """Declarations of where a thread and its block lie in the output."""
    warps_n = c.bn // (LANES_N * c.tn)
    # Lanes zigzag over 4 x 8 places, so that each eight lanes read few distinct 16-byte words of either tile.
    m_lane, n_lane = "($lane / 16 * 2 + $lane % 2)", "$lane / 2 % 8"
    return [
        "const int $thread = threadIdx.x;",
        "const int $warp = $thread / 32;",
        "const int $lane = $thread % 32;",
        f"const {p.a.index_type} $m_block = blockIdx.{p.a.axis} * {c.bm};",
        f"const {p.b.index_type} $n_block = blockIdx.{p.b.axis} * {c.bn};",
        f"const int $m_thread = $warp / {warps_n} * {LANES_M * c.tm} + {m_lane} * {min(c.tm, CHUNK)};",
        f"const int $n_thread = $warp % {warps_n} * {LANES_N * c.tn} + {n_lane} * {min(c.tn, CHUNK)};",
    ]


def start_lines(p: GemmParts, c: GemmConfig) -> list[str]:
    """The accumulators as they begin."""
    return [f"{p.acc_type} $acc[{c.tm}][{c.tn}];", *_each(c, p.start(*_place(c), "$acc[$i][$j]"))]


def _place(c: GemmConfig) -> tuple[str, str]:
    """Row and column of accumulator [i][j]: runs of up to four, a warp's width apart."""
    run_m, run_n = min(c.tm, CHUNK), min(c.tn, CHUNK)
    m = f"$m_block + $m_thread + $i / {run_m} * {run_m * LANES_M} + $i % {run_m}"
    n = f"$n_block + $n_thread + $j / {run_n} * {run_n * LANES_N} + $j % {run_n}"
    return m, n


def _each(c: GemmConfig, inner: str) -> list[str]:
    return unrolled("$i", c.tm, unrolled("$j", c.tn, inner.splitlines()))


def _share(which: str, x: Operand, extent: int, c: GemmConfig) -> list[str]:
    """Where in the tile a thread's first access of a fetch lies: neighbouring threads along contiguous memory."""
    if x.along == "k":
        row, depth = f"$thread / {c.bk // CHUNK}", f"$thread % {c.bk // CHUNK} * {CHUNK}"
    else:
        row, depth = f"$thread % {extent // CHUNK} * {CHUNK}", f"$thread / {extent // CHUNK}"
    return [f"const int $row_{which} = {row};", f"const int $k_{which} = {depth};"]


def _steps(x: Operand, extent: int, c: GemmConfig) -> tuple[str, str]:
    """How far the i-th access of a fetch is from the first, along the outer dimension and along k."""
    if c.loads(extent) == 1:
        return "", ""
    if x.along == "k":
        return f" + $i * {c.threads // (c.bk // CHUNK)}", ""
    return "", f" + $i * {c.threads // (extent // CHUNK)}"


def wide_lines(which: str, x: Operand, k_start: str) -> list[str]:
    """Whether all accesses of four elements of this operand are aligned."""
    if not x.along:
        return []
    address = f"reinterpret_cast<unsigned long long>(&{x.at('0', k_start)})"
    return [f"const bool $wide_{which} = ({x.stride}) % {CHUNK} == 0 && {address} % alignof({x.vector()}) == 0;"]


def _fetch(which: str, x: Operand, extent: int, p: GemmParts, c: GemmConfig, k: str) -> list[str]:
    """Statements that bring a thread's share of a tile into ``next_<which>``, zeros outside the matrix."""
    block = "$m_block" if which == "a" else "$n_block"
    row_step, k_step = _steps(x, extent, c)
    row, depth = ("$row", "$depth + $j") if x.along == "k" else ("$row + $j", "$depth")
    one = unrolled("$j", CHUNK, [
        f"$next_{which}[$i][$j] = static_cast<{x.value}>(0);",
        f"if ({all_of(x.inside(row), f'{depth} < {p.k_end}')}) {{",
        f"    $next_{which}[$i][$j] = {x.load(x.at(row, depth))};",
        "}",
    ])  # fmt: skip
    inner = [
        f"const {x.index_type} $row = {block} + $row_{which}{row_step};",
        f"const {p.k_type} $depth = {k} + $k_{which}{k_step};",
    ]
    return unrolled("$i", c.loads(extent), inner + (_wide_or(which, x, p, one) if x.along else one))


def _wide_or(which: str, x: Operand, p: GemmParts, one: list[str]) -> list[str]:
    """One access of four elements where all are inside and aligned, else one by one."""
    last = f"$depth + {CHUNK - 1}" if x.along == "k" else "$depth"
    rows = [x.inside("$row")] if x.along == "k" else [x.inside("$row"), x.inside(f"$row + {CHUNK - 1}")]
    vector = x.vector()
    return [
        f"if ({all_of(f'$wide_{which}', *rows, f'{last} < {p.k_end}')}) {{",
        f"    const {vector} $four = *reinterpret_cast<const {vector} *>(&{x.at('$row', '$depth')});",
        *(f"    $next_{which}[$i][{j}] = {x.load(f'$four.{part}')};" for j, part in enumerate("xyzw")),
        "} else {",
        *indent(one),
        "}",
    ]


def _store(p: GemmParts, c: GemmConfig, buffer: str) -> list[str]:
    """Statements that put the fetched elements into the tiles, k-major."""
    lines = []
    for which, x, extent in (("a", p.a, c.bm), ("b", p.b, c.bn)):
        row_step, k_step = _steps(x, extent, c)
        row, depth = f"$row_{which}{row_step}", f"$k_{which}{k_step}"
        if x.along == "k":
            depth += " + $j"
        else:
            row += " + $j"
        one = [f"$tile_{which}[{buffer}][{depth}][{row}] = $next_{which}[$i][$j];"]
        lines += unrolled("$i", c.loads(extent), unrolled("$j", CHUNK, one))
    return lines


def compute_lines(p: GemmParts, c: GemmConfig, buffer: str) -> list[str]:
    """Statements that combine the tiles. A short last tile is zeros, or is cut where zeros would count."""
    step = [
        f"{p.a.value} $a[{c.tm}];",
        f"{p.b.value} $b[{c.tn}];",
        *_fragment("a", "$m_thread", c.tm, LANES_M, buffer),
        *_fragment("b", "$n_thread", c.tn, LANES_N, buffer),
        *_each(c, p.combine("$acc[$i][$j]", "$a[$i]", "$b[$j]")),
    ]
    full = unrolled("$kk", c.bk, step)
    if p.zero_is_neutral:
        return full
    head = f"for (int $kk = 0; $kk < {p.k_end} - $k_tile; ++$kk) {{"
    short = ["#pragma unroll 1", head, *indent(step), "}"]
    return [f"if ($k_tile + {c.bk} <= {p.k_end}) {{", *indent(full), "} else {", *indent(short), "}"]


def _fragment(which: str, start: str, count: int, lanes: int, buffer: str) -> list[str]:
    """Read a thread's elements of one k: runs of four, a warp's width apart, so that no two lanes collide."""
    run = min(count, CHUNK)
    place = f"{start} + $i / {run} * {run * lanes} + $i % {run}"
    return unrolled("$i", count, [f"${which}[$i] = $tile_{which}[{buffer}][$kk][{place}];"])


def _loop(p: GemmParts, c: GemmConfig) -> list[str]:
    following = f"$k_tile + {c.bk}"
    fetch = _fetch("a", p.a, c.bm, p, c, following) + _fetch("b", p.b, c.bn, p, c, following)
    more = [f"if ({following} < {p.k_end}) {{", *indent(fetch), "}"]
    if c.buffers == 1:
        before: list[str] = []
        body = [*_store(p, c, "0"), "__syncthreads();", *more, *compute_lines(p, c, "0"), "__syncthreads();"]
    else:
        before = ["int $current = 0;", *_store(p, c, "0"), "__syncthreads();"]
        store = [f"if ({following} < {p.k_end}) {{", *indent(_store(p, c, "1 - $current")), "}"]
        body = [*more, *compute_lines(p, c, "$current"), *store, "__syncthreads();", "$current = 1 - $current;"]
    head = f"for ({p.k_type} $k_tile = {p.k_start}; $k_tile < {p.k_end}; $k_tile += {c.bk}) {{"
    return [*before, "#pragma unroll 1", head, *indent(body), "}"]


def write_lines(p: GemmParts, c: GemmConfig) -> list[str]:
    """Every output of the thread that lies inside, finished as the original kernel does."""
    run = min(c.tn, CHUNK)
    m, n = _place(c)
    n = n.replace("$j", f"($run * {run})")
    lines = p.finish(m, n, f"$acc[$i][$run * {run} + $lane]", run).splitlines()
    return unrolled("$i", c.tm, unrolled("$run", c.tn // run, lines))


def simple_body(p: GemmParts, tile: int) -> str:
    """The function body for a block of tile x tile threads, one output each: what --keep-launch allows."""
    m_axis, n_axis = p.a.axis, p.b.axis
    own = f"threadIdx.{n_axis}", f"threadIdx.{m_axis}"
    places = {"k": ("threadIdx.y", "threadIdx.x"), "outer": ("threadIdx.x", "threadIdx.y")}
    (row_a, k_a), (row_b, k_b) = places[p.a.along or "outer"], places[p.b.along or "outer"]
    fetch = []
    for which, x, block, row, depth in (("a", p.a, "$m_block", row_a, k_a), ("b", p.b, "$n_block", row_b, k_b)):
        fetch += [
            "{",
            f"    const {x.index_type} $row = {block} + {row};",
            f"    const {p.k_type} $depth = $k_tile + {depth};",
            f"    {x.value} $element = static_cast<{x.value}>(0);",
            f"    if ({all_of(x.inside('$row'), f'$depth < {p.k_end}')}) {{",
            f"        $element = {x.load(x.at('$row', '$depth'))};",
            "    }",
            f"    $tile_{which}[{depth}][{row}] = $element;",
            "}",
        ]
    one = p.combine("$acc", f"$tile_a[$kk][{own[1]}]", f"$tile_b[$kk][{own[0]}]").splitlines()
    step = unrolled("$kk", tile, one)
    if not p.zero_is_neutral:
        step = [f"for (int $kk = 0; $kk < {tile} && $kk < {p.k_end} - $k_tile; ++$kk) {{", *indent(one), "}"]
    head = f"for ({p.k_type} $k_tile = {p.k_start}; $k_tile < {p.k_end}; $k_tile += {tile}) {{"
    m, n = f"$m_block + {own[1]}", f"$n_block + {own[0]}"
    start = p.start(m, n, "$acc").splitlines()
    lines = [
        *p.uniform.splitlines(),
        f"__shared__ {p.a.value} $tile_a[{tile}][{tile + 1}];",
        f"__shared__ {p.b.value} $tile_b[{tile}][{tile + 1}];",
        f"const {p.a.index_type} $m_block = blockIdx.{m_axis} * {tile};",
        f"const {p.b.index_type} $n_block = blockIdx.{n_axis} * {tile};",
        f"{p.acc_type} $acc;",
        *(start if len(start) == 1 else ["{", *indent(start), "}"]),
        "#pragma unroll 1",
        head,
        *indent([*fetch, "__syncthreads();", *step, "__syncthreads();"]),
        "}",
        *p.finish(m, n, "$acc", 1).splitlines(),
    ]
    return "\n".join(indent(lines)) + "\n"


def all_of(*conditions: str) -> str:
    """The conditions joined, those left out that are ''."""
    return " && ".join(c for c in conditions if c) or "true"
