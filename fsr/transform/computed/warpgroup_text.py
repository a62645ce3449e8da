"""Text of a product of matrices on Hopper's tensor cores: wgmma, whose factors stay in shared memory.

Tiles lie there as wgmma reads them fastest, in rows of 128 bytes whose 16-byte words are exchanged within groups of
eight rows (the 128-byte swizzle); either layout of an operand in memory has such a tile, so that 16 bytes at a time go
there (cp.async). While one step is multiplied, the next is waited for and later ones are fetched. Whole tiles are
fetched without a test; at the edges every load is guarded: every size is right.

Instructions, descriptors and layouts: PTX ISA 8.7, "Asynchronous Warpgroup Level Matrix Instructions"; the canonical
layouts also as CUTLASS states them (cute/atom/mma_traits_sm90_gmma.hpp).
"""

from __future__ import annotations

from dataclasses import dataclass

from fsr.source.names import indent, unrolled
from fsr.transform.computed.contraction import Contraction, Side, batch_lines, operand_of
from fsr.transform.computed.tensor_text import Patch, patches
from fsr.transform.gemm.pipelined import shared_out
from fsr.transform.gemm.text import Operand

ELEMENTS = {"float16": ("__half", "f16"), "bfloat16": ("__nv_bfloat16", "bf16")}
DEPTH = 64  # of a step: elements of 128 bytes
_RUN = 8  # elements of 16 bytes
_ROW_BYTES = 128
_GROUP_ROWS = 64  # of the sums of one instruction
_PAD = 8  # floats behind each row of sums, so that four rows of pairs lie in 32 banks


@dataclass(frozen=True, slots=True)
class Tiles:
    """A block makes bm x bn outputs, each of its warpgroups wm x bn; ``stages`` tiles of a step are in shared memory:
    two that are multiplied, the others on their way."""

    bm: int
    bn: int
    wm: int
    stages: int

    @property
    def threads(self) -> int:
        """Threads a block."""
        return 128 * (self.bm // self.wm)

    @property
    def stage_bytes(self) -> int:
        """Of the tiles of one step."""
        return (self.bm + self.bn) * _ROW_BYTES

    @property
    def shared_bytes(self) -> int:
        """Of all stages, or of the sums on their way out where those need more."""
        return max(self.stages * self.stage_bytes, self.threads // 32 * self.patch("", "").bytes)

    @property
    def registers(self) -> int:
        """Of a thread's sums."""
        return self.wm // _GROUP_ROWS * self.bn // 2

    def params(self) -> dict[str, int | str]:
        """As decisions of a move."""
        return {"bm": self.bm, "bn": self.bn, "wm": self.wm, "stages": self.stages}

    def patch(self, row: str, column: str) -> Patch:
        """A warp's sums of 16 rows."""
        return Patch(self.bn, self.bn + _PAD, row, column)


@dataclass(frozen=True, slots=True)
class _Tile:
    """One operand's tile of a step. ``first``: its bytes behind the stage's first."""

    operand: Operand
    extent: int
    first: int
    tiles: Tiles

    @property
    def deep(self) -> bool:
        """Whether rows of the tile go along the folded dimension."""
        return self.operand.along != "outer"

    @property
    def loads(self) -> int:
        """Accesses of a thread."""
        return -(-self.words // self.tiles.threads)

    @property
    def words(self) -> int:
        """Of 16 bytes."""
        return self.extent * DEPTH // _RUN

    @property
    def leading(self) -> int:
        """Bytes between neighbours of 64 elements across the folded dimension, where those lie along rows."""
        return DEPTH * _ROW_BYTES

    @property
    def advance(self) -> int:
        """Bytes from the factors of one instruction (16 deep) to those of the next."""
        return 32 if self.deep else 16 * _ROW_BYTES


def warpgroup_lines(c: Contraction, dtype: str, t: Tiles) -> list[str]:
    """The kernel's body."""
    a, b = _tiles(c, t)
    limit, index = c.depth_text(), c.scene.index
    return [
        *batch_lines(c), *_head(t, a, b), *_whole("a", a), *_whole("b", b),
        f"float $acc[{t.wm // _GROUP_ROWS}][{t.bn // 2}];",
        *unrolled("$i", t.wm // _GROUP_ROWS, unrolled("$j", t.bn // 2, ["$acc[$i][$j] = 0.0f;"])),
        f"const {index} $steps = ({limit} + {DEPTH - 1}) / {DEPTH};",
        f"const auto $fetch = [&]({index} $step) {{",
        f"    const {index} $k_tile = $step * {DEPTH};",
        f"    unsigned char *const $stage = $memory + $step % {t.stages} * {t.stage_bytes};",
        *indent([*_fetch("a", a, dtype, limit, index), *_fetch("b", b, dtype, limit, index)]),
        "};",
        *_loop(t, a, b, dtype, index), *_results(c, t),
    ]  # fmt: skip


def _tiles(c: Contraction, t: Tiles) -> tuple[_Tile, _Tile]:
    sides: tuple[tuple[Side, int, int], ...] = ((c.a, t.bm, 0), (c.b, t.bn, t.bm * _ROW_BYTES))
    a, b = (_Tile(operand_of(c, side), extent, first, t) for side, extent, first in sides)
    return a, b


def _head(t: Tiles, a: _Tile, b: _Tile) -> list[str]:
    return [
        "extern __shared__ __align__(1024) unsigned char $memory[];",
        "const int $thread = threadIdx.x;",
        f"const int $m_group = $thread / 128 * {t.wm};",
        f"const {a.operand.index_type} $m_block = blockIdx.y * {t.bm};",
        f"const {b.operand.index_type} $n_block = blockIdx.x * {t.bn};",
    ]


def _whole(which: str, x: _Tile) -> list[str]:
    """Whether this operand is read 16 bytes at a time, and so without a test of its rows."""
    address = f"reinterpret_cast<unsigned long long>(&{x.operand.at('0', '0')})"
    last = f"{_block(which)} + {x.extent - 1}"
    return [
        f"const bool $wide_{which} = ({x.operand.stride}) % {_RUN} == 0 && {address} % 16 == 0;",
        f"const bool $whole_{which} = $wide_{which} && {x.operand.inside(last)};",
    ]


def _block(which: str) -> str:
    return "$m_block" if which == "a" else "$n_block"


def _fetch(which: str, x: _Tile, dtype: str, limit: str, index: str) -> list[str]:
    """Statements that bring a thread's share of a tile on its way; zeros outside the matrix."""
    element, inside, operand = ELEMENTS[dtype][0], x.operand.inside, x.operand
    step = ("$row", "$depth + $j") if x.deep else ("$row + $j", "$depth")
    last, inside_all = ("$row", f"$depth + {_RUN}") if x.deep else (f"$row + {_RUN - 1}", "$depth + 1")
    copy = f"__pipeline_memcpy_async($to, &{operand.at('$row', '$depth')}, 16);"
    guarded = [
        f"if ($wide_{which} && {inside(last)} && {inside_all} <= {limit}) {{",
        f"    {copy}",
        "} else {",
        "    #pragma unroll 1",
        f"    for (int $j = 0; $j < {_RUN}; ++$j) {{",
        f"        reinterpret_cast<{element} *>($to)[$j] = {inside(step[0])} && {step[1]} < {limit}",
        f"            ? {operand.at(*step)} : static_cast<{element}>(0.0f);",
        "    }",
        "}",
    ]
    place = _place(which, x, index)
    return [
        f"if ($whole_{which} && $k_tile + {DEPTH} <= {limit}) {{",
        *indent(unrolled("$i", x.loads, _within(x, [*place, copy]))),
        "} else {",
        "    #pragma unroll 1",
        f"    for (int $i = 0; $i < {x.loads}; ++$i) {{",
        *indent(indent(_within(x, [*place, *guarded]))),
        "    }",
        "}",
    ]


def _place(which: str, x: _Tile, index: str) -> list[str]:
    """Where a word comes from and goes to: in rows of eight, word w of row r is kept at w ^ r % 8."""
    if x.deep:
        row, depth, line, panel = "$word / 8", f"$word % 8 * {_RUN}", "$word / 8", ""
    else:
        words = x.extent // _RUN
        row, depth, line = f"$word % {words} * {_RUN}", f"$word / {words}", f"$word / {words}"
        panel = f" + $word % {words} / 8 * {x.leading}"
    first = f" + {x.first}" if x.first else ""
    return [
        f"const {index} $row = {_block(which)} + {row};",
        f"const {index} $depth = $k_tile + {depth};",
        f"unsigned char *const $to = $stage{first}{panel} + {line} * {_ROW_BYTES} + ($word % 8 ^ {line} % 8) * 16;",
    ]


def _within(x: _Tile, lines: list[str]) -> list[str]:
    word = f"const int $word = $thread + $i * {x.tiles.threads};"
    return [word, *shared_out("$word", x.words, x.tiles.threads, lines)]


def _loop(t: Tiles, a: _Tile, b: _Tile, dtype: str, index: str) -> list[str]:
    """Fetch ahead; then wait for a step, multiply it, and meanwhile fetch into the tile that was multiplied before the
    last."""
    ahead = t.stages - 2
    group = f" + $m_group / {_GROUP_ROWS} * {_GROUP_ROWS * _ROW_BYTES}"  # 64 rows, or 64 elements of each row
    name = wgmma_name(t, dtype, a.deep, b.deep)
    rows = f" + $i * {_GROUP_ROWS * _ROW_BYTES // 16}" if t.wm > _GROUP_ROWS else ""
    product = [f"{name}($acc[$i], $a + $kk * {a.advance // 16}{rows}, $b + $kk * {b.advance // 16});"]
    return [
        "#pragma unroll 1",
        f"for ({index} $step = 0; $step < {ahead}; ++$step) {{",
        "    if ($step < $steps) {",
        "        $fetch($step);",
        "    }",
        "    __pipeline_commit();",
        "}",
        f"const unsigned long long $tile_a = fsr_matrix($memory{group}, {_strides(a)});",
        f"const unsigned long long $tile_b = fsr_matrix($memory + {b.first}, {_strides(b)});",
        "#pragma unroll 1",
        f"for ({index} $step = 0; $step < $steps; ++$step) {{",
        f"    __pipeline_wait_prior({ahead - 1});",
        "    fsr_shared_to_async();",
        "    __syncthreads();",
        "    fsr_wgmma_begin();",
        f"    const unsigned long long $a = $tile_a + $step % {t.stages} * {t.stage_bytes // 16};",
        f"    const unsigned long long $b = $tile_b + $step % {t.stages} * {t.stage_bytes // 16};",
        *indent(unrolled("$kk", DEPTH // 16, unrolled("$i", t.wm // _GROUP_ROWS, product))),
        "    fsr_wgmma_commit();",
        f"    if ($step + {ahead} < $steps) {{",
        f"        $fetch($step + {ahead});",
        "    }",
        "    __pipeline_commit();",
        "    fsr_wgmma_wait<1>();",
        "}",
        "fsr_wgmma_wait<0>();",
    ]  # fmt: skip


def _strides(x: _Tile) -> str:
    return f"{0 if x.deep else x.leading}, {8 * _ROW_BYTES}"


def _results(c: Contraction, t: Tiles) -> list[str]:
    """Statements that make the outputs: of an instruction's 64 rows a warp has 16."""
    patch = t.patch(f"$m_block + $m_group + $i * {_GROUP_ROWS} + $thread / 32 % 4 * 16", "$n_block")
    pair = (
        "$sums[($thread % 32 / 4 + $j / 2 % 2 * 8) * {pitch} + $j / 4 * 8 + $thread % 4 * 2 + $j % 2] = $acc[$i][$j];"
    )
    stored = unrolled("$j", t.bn // 2, [pair.format(pitch=patch.pitch)])
    return patches(c, t.wm // _GROUP_ROWS, patch, stored)


# ---------------------------------------------------------------- instructions


def wgmma_name(t: Tiles, dtype: str, a_deep: bool, b_deep: bool) -> str:
    """The function that multiplies: its columns, type, and which factors lie across the folded dimension."""
    across = ("" if a_deep else "_a_across") + ("" if b_deep else "_b_across")
    return f"fsr_wgmma_{t.bn}_{ELEMENTS[dtype][1]}{across}"


def instructions(c: Contraction, dtype: str, t: Tiles) -> tuple[str, ...]:
    """The device functions that the body calls, each of one instruction."""
    a, b = _tiles(c, t)
    kind, count = ELEMENTS[dtype][1], t.bn // 2
    shape = f"m64n{t.bn}k16.f32.{kind}.{kind}"
    sums = _rows([f"%{n}" for n in range(count)], 16)
    lines = [f'"{"{" if not n else " "}{row}{"}, " if n == len(sums) - 1 else ","}"' for n, row in enumerate(sums)]
    held = _rows([f'"+f"(d[{n}])' for n in range(count)], 8)
    operands = [f"{': ' if not n else '  '}{row}{'' if n == len(held) - 1 else ','}" for n, row in enumerate(held)]
    body = [
        f'asm volatile("wgmma.mma_async.sync.aligned.{shape} "',
        *indent([*lines, f'"%{count}, %{count + 1}, 1, 1, 1, {int(not a.deep)}, {int(not b.deep)};"', *operands]),
        '    : "l"(a), "l"(b));',
    ]
    product = [
        f"// d += a * b: 64 x {t.bn} sums of a warpgroup, factors 16 deep in shared memory. Compile for sm_90a.",
        f"__device__ __forceinline__ void {wgmma_name(t, dtype, a.deep, b.deep)}(",
        "    float *d, unsigned long long a, unsigned long long b)",
        "{", *indent(body), "}", "",
    ]  # fmt: skip
    return *_STEPS, "\n".join(product) + "\n"


def _rows(items: list[str], width: int) -> list[str]:
    return [", ".join(items[n : n + width]) for n in range(0, len(items), width)]


_STEPS = (
    """\
// What wgmma is told of a factor in shared memory: rows of 128 bytes, swizzled in groups of eight; strides in bytes.
__device__ __forceinline__ unsigned long long fsr_matrix(
    const void *at, unsigned long long leading, unsigned long long stride)
{
    const unsigned long long address = __cvta_generic_to_shared(at);
    return address >> 4 | leading >> 4 << 16 | stride >> 4 << 32 | 1ull << 62;
}

""",
    """\
// What this thread has written to shared memory is there for wgmma, once the threads have met.
__device__ __forceinline__ void fsr_shared_to_async()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

""",
    """\
// Sums may be touched by wgmma from here on.
__device__ __forceinline__ void fsr_wgmma_begin()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

""",
    """\
// What was begun since the last call is a group.
__device__ __forceinline__ void fsr_wgmma_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

""",
    """\
// All but so many groups are complete.
template <int LEFT>
__device__ __forceinline__ void fsr_wgmma_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}

""",
)
