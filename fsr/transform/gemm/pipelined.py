"""Text of a GEMM-like kernel whose tiles are on their way to shared memory while others are multiplied.

The accumulators, their tiles and how threads read them are those of :mod:`fsr.transform.gemm.text`; here elements go to
shared memory by asynchronous copies (cp.async), which need no registers, so that several tiles can be under way: 16
bytes at a time where memory and tile run alike, else element by element, which transposes them. One barrier a step.
"""

from __future__ import annotations

from fsr.source.names import indent, unrolled
from fsr.transform.gemm.config import CHUNK, PAD, GemmConfig
from fsr.transform.gemm.text import (
    GemmParts,
    Operand,
    all_of,
    compute_lines,
    place_lines,
    start_lines,
    wide_lines,
    write_lines,
)  # fmt: skip

HEADER = "cuda_pipeline.h"
ELEMENT_BYTES = 4  # the smallest that is copied asynchronously


def tile_elements(c: GemmConfig) -> int:
    """Of both tiles of one stage."""
    return c.bk * (c.bm + c.bn + 2 * PAD)


def pipelined_lines(p: GemmParts, c: GemmConfig, stages: int) -> list[str]:
    """The function body for a block of ``c.threads`` threads along x with dynamic shared memory; both operands are of
    ELEMENT_BYTES and taken as they are. ``stages``: tiles in shared memory or on their way there, at least 2."""
    return [
        *p.uniform.splitlines(), *_tiles(p, c, stages), *place_lines(p, c),
        *(line for w, x, _ in _sides(p, c) if x.along == "outer" for line in wide_lines(w, x, p.k_start)),
        *start_lines(p, c),
        f"const {p.k_type} $steps = ({_from_start(p, p.k_end, '-')} + {c.bk - 1}) / {c.bk};",
        "#pragma unroll 1",
        f"for ({p.k_type} $step = -{stages - 1}; $step < $steps; ++$step) {{", *indent(_step(p, c, stages)), "}",
        *write_lines(p, c),
    ]  # fmt: skip


def _tiles(p: GemmParts, c: GemmConfig, stages: int) -> list[str]:
    """Names for the tiles of all stages, which lie one behind the other."""
    a, b = (f"reinterpret_cast<{x.value} (*)[{c.bk}][{extent + PAD}]>" for _, x, extent in _sides(p, c))
    return [
        "extern __shared__ __align__(16) unsigned char $memory[];",
        f"auto *const $tile_a = {a}($memory);",
        f"auto *const $tile_b = {b}($tile_a + {stages});",
    ]


def _from_start(p: GemmParts, text: str, sign: str) -> str:
    """A text of the folded dimension moved by where it begins."""
    return text if p.k_start == "0" else f"{text} {sign} {p.k_start}"


def _sides(p: GemmParts, c: GemmConfig) -> tuple[tuple[str, Operand, int], tuple[str, Operand, int]]:
    return ("a", p.a, c.bm), ("b", p.b, c.bn)


def _step(p: GemmParts, c: GemmConfig, stages: int) -> list[str]:
    """Wait for a tile, send the one after the others on its way, and multiply."""
    ahead = stages - 1
    fetch = [
        f"const {p.k_type} $k_next = {_from_start(p, f'($step + {ahead}) * {c.bk}', '+')};",
        f"const int $stage = ($step + {ahead}) % {stages};",
        *(line for which, x, extent in _sides(p, c) for line in _fetch(which, x, extent, p, c)),
    ]
    return [
        "if ($step >= 0) {", f"    __pipeline_wait_prior({ahead - 1});", "    __syncthreads();", "}",
        f"if ($step + {ahead} < $steps) {{", *indent(fetch), "}",
        "__pipeline_commit();",
        "if ($step >= 0) {",
        *([] if p.zero_is_neutral else
          [f"    const {p.k_type} $k_tile = {_from_start(p, f'$step * {c.bk}', '+')};"]),
        f"    const int $current = $step % {stages};",
        *indent(compute_lines(p, c, "$current")),
        "}",
    ]  # fmt: skip


def _fetch(which: str, x: Operand, extent: int, p: GemmParts, c: GemmConfig) -> list[str]:
    """Statements that send a thread's share of a tile on its way; zeros outside the matrix."""
    if x.along == "outer":
        row, depth, run = f"$part % {extent // CHUNK} * {CHUNK}", f"$part / {extent // CHUNK}", CHUNK
    elif x.along == "k":
        row, depth, run = f"$part / {c.bk}", f"$part % {c.bk}", 1
    else:
        row, depth, run = f"$part % {extent}", f"$part / {extent}", 1
    to, block = f"$tile_{which}[$stage]", "$m_block" if which == "a" else "$n_block"
    lane, place = ("$row + $j", "$row_in + $j") if run > 1 else ("$row", "$row_in")
    one = [
        f"if ({all_of(x.inside(lane), f'$depth < {p.k_end}')}) {{",
        f"    __pipeline_memcpy_async(&{to}[$depth_in][{place}], &{x.at(lane, '$depth')}, {ELEMENT_BYTES});",
        "} else {",
        f"    {to}[$depth_in][{place}] = static_cast<{x.value}>(0);",
        "}",
    ]
    if run > 1:
        last = all_of(f"$wide_{which}", x.inside(f"$row + {run - 1}"), f"$depth < {p.k_end}")
        whole = f"__pipeline_memcpy_async(&{to}[$depth_in][$row_in], &{x.at('$row', '$depth')}, {run * ELEMENT_BYTES});"
        each_one = ["#pragma unroll 1", f"for (int $j = 0; $j < {run}; ++$j) {{", *indent(one), "}"]
        one = [f"if ({last}) {{", f"    {whole}", "} else {", *indent(each_one), "}"]
    parts = extent * c.bk // run
    lines = [
        f"const int $row_in = {row};",
        f"const int $depth_in = {depth};",
        f"const {x.index_type} $row = {block} + $row_in;",
        f"const {p.k_type} $depth = $k_next + $depth_in;",
        *one,
    ]
    return unrolled("$i", -(-parts // c.threads), [
        f"const int $part = $thread + $i * {c.threads};", *shared_out("$part", parts, c.threads, lines),
    ])  # fmt: skip


def shared_out(name: str, parts: int, threads: int, lines: list[str]) -> list[str]:
    """Statements for one of ``parts`` that threads take by turns: not for those beyond the last."""
    return lines if parts % threads == 0 else [f"if ({name} < {parts}) {{", *indent(lines), "}"]
