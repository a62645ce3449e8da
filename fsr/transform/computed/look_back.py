"""scan-look-back: running folds in one launch that reads and writes every element once, a tile a block.

A block draws its tile by a counter, folds it, posts the fold for the blocks behind it and looks back over what the
blocks before it have posted (Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016).
It waits only for tiles that were drawn before its own, so that blocks which run bring each other on, in whatever order
the hardware starts them.

What stands before a tile is folded as its number says, never as blocks came: the tiles before it in its group of 32,
the groups before it in theirs, and all before that group of groups. The last tile of a group posts the group's fold. So
results are the same bits in every run, which they are not where whatever predecessors have posted so far is taken.

A post is 64 bits that nobody changes again: a word's half of the value, and that it is there. Nothing else is passed
on by it, so that no fence is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fsr.computation.types import type_of
from fsr.hardware.c_types import BY_DTYPE
from fsr.records import Scratch
from fsr.source.names import indent, unrolled
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.columns import lead_dims
from fsr.transform.computed.elements import stores
from fsr.transform.computed.folding import OPERATORS, c_type, identity, step
from fsr.transform.computed.packs import MOST_BYTES
from fsr.transform.computed.scan import WARP, Scan, scan, tile_read, tile_written
from fsr.transform.computed.scene import Scene, bytes_of, loads_in
from fsr.transform.plain.c_text import NotPlain

Params = Mapping[str, int | str]
_INT = 2**31 - 1
_SHAPES = ((256, 4), (256, 8), (512, 2), (128, 8), (512, 4), (256, 2), (128, 4), (1024, 2))  # threads, packs of each

# How a value goes into posts and comes out of them.
_PUT = {
    "float32": ("__float_as_uint(value)",),
    "int32": ("(unsigned)value",),
    "float64": ("(unsigned)__double2loint(value)", "(unsigned)__double2hiint(value)"),
    "int64": ("(unsigned)value", "(unsigned)(value >> 32)"),
}
_TAKEN = {
    "float32": "__uint_as_float((unsigned)word[0])",
    "int32": "(int)(unsigned)word[0]",
    "float64": "__hiloint2double((int)(unsigned)word[1], (int)(unsigned)word[0])",
    "int64": "(long long)(word[1] << 32 | (unsigned)word[0])",
}
_POSTS = """\
// Posts a value for other blocks, once: each word of it with a bit that says it is there.
__device__ __forceinline__ void fsr_announce(volatile unsigned long long *post, KIND value)
{
PUT
}

// What stands in a post so far.
__device__ __forceinline__ void fsr_peek(const volatile unsigned long long *post, unsigned long long *word)
{
#pragma unroll
    for (int half = 0; half < WORDS; ++half) {
        word[half] = post[half];
    }
}

// The value of a post that was looked at before, as soon as it is there.
__device__ __forceinline__ KIND fsr_awaited(const volatile unsigned long long *post, unsigned long long *word)
{
#pragma unroll
    for (int half = 0; half < WORDS; ++half) {
        while (word[half] >> 32 == 0) {
            word[half] = post[half];
        }
    }
    return TAKEN;
}

"""


# ---------------------------------------------------------------- decisions


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first: for lines that are too few for all
    multiprocessors, and longer than a block's tile."""
    found = scan(scene)
    if found is None or type_of(found.fold) not in _PUT:
        return
    lines = 1
    for _, x in found.lead:
        lines *= scene.timed(x)
    length = scene.timed(scene.part.domain[-1][1])
    pack = max(1, MOST_BYTES // max(bytes_of(x) for x in (*loads_in([found.body]), *stores(scene))))
    gain = 5.0
    for threads, packs in _SHAPES:
        tile = threads * pack * packs
        most = scene.most(found.scene.part.domain[-1][1]) + tile
        if lines < 2 * scene.gpu.sm_count and length > tile and (scene.index != "int" or most <= _INT):
            yield {"threads": threads, "pack": pack, "packs": packs}, gain
            gain *= 0.97


# ---------------------------------------------------------------- text


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernel. Raises NotPlain."""
    found = scan(scene)
    if found is None or type_of(found.fold) not in _PUT:
        raise NotPlain("no scan of words")
    return [_Kernel(found, *(int(params[k]) for k in ("threads", "pack", "packs"))).written()]


@dataclass(frozen=True)
class _Kernel:
    found: Scan
    threads: int
    pack: int
    packs: int

    @property
    def _tile(self) -> int:
        return self.threads * self.pack * self.packs

    @property
    def _words(self) -> int:
        return len(_PUT[type_of(self.found.fold)])

    def written(self) -> Written:
        """The whole kernel."""
        found, kind = self.found, c_type(self.found.fold)
        lines = [
            f"__shared__ {kind} $warps[{self.threads // WARP}];",
            f"__shared__ {kind} $earlier;",
            "__shared__ unsigned $drawn;",
            "if (threadIdx.x == 0) $drawn = (unsigned)atomicAdd($posts, 1ULL);",
            "__syncthreads();",
            *self._place(),
            *tile_read(found, self.pack, self.packs, f"({found.scene.index})$tile * {self._tile}"),
            f"if (threadIdx.x % {WARP} == 0) $warps[threadIdx.x / {WARP}] = $sum;",
            "__syncthreads();",
            f"if (threadIdx.x < {WARP}) {{", *indent(self._looked_back()), "}",
            "__syncthreads();",
            f"{kind} $base = $earlier;",
            *unrolled("$warp", self.threads // WARP, [
                f"if ($warp < threadIdx.x / {WARP}) {{", f"    {step(found.fold, '$base', '$warps[$warp]')}", "}",
            ]),
            *tile_written(found, self.pack, self.packs),
        ]  # fmt: skip
        extent = found.scene.part.domain[-1][1]
        many, rows = f"ceil_div({extent}, {self._tile})", "".join(f"({x}) * " for _, x in found.lead)
        each = f"({many} + {many} // {WARP} + {many} // {WARP * WARP} + 2)"
        posts = Scratch("posts", "uint64", f"1 + {rows}{self._words} * {each}", zeroed=True)
        grid = (f"{rows}{many}", "1", "1")
        return Written(found.scene, lines, grid, (str(self.threads), "1", "1"), self.threads, "scan", (posts,),
                       before=(self._before(),))  # fmt: skip

    def _before(self) -> str:
        """The functions that the lines call."""
        dtype = type_of(self.found.fold)
        put = "\n".join(f"    post[{n}] = 1ULL << 32 | {text};" for n, text in enumerate(_PUT[dtype]))
        text = _POSTS.replace("KIND", BY_DTYPE[dtype].spelling).replace("WORDS", str(self._words))
        return text.replace("PUT", put).replace("TAKEN", _TAKEN[dtype])

    def _place(self) -> list[str]:
        """Which tile of which line, and where the line's posts are: of its tiles, of groups of them, and of what stands
        before each group of groups."""
        found, words = self.found, self._words
        drawn = "$drawn"
        lines = [
            f"const {found.scene.index} $end = {found.limit};",
            f"const unsigned $tiles = (unsigned)(($end + {self._tile - 1}) / {self._tile});",
        ]
        if found.lead:
            lines += lead_dims(found.scene, found.lead, "($drawn / $tiles)")
            drawn = "$drawn % $tiles"
        each = f"($tiles + $tiles / {WARP} + $tiles / {WARP * WARP} + 2)"
        start = f" + (size_t)($drawn / $tiles) * {words} * {each}" if found.lead else ""
        times = f"{words} * " if words > 1 else ""
        return [
            *lines,
            f"const unsigned $tile = {drawn};",
            f"unsigned long long *$of_tiles = $posts + 1{start};",
            f"unsigned long long *$of_groups = $of_tiles + {times}$tiles;",
            f"unsigned long long *$up_to = $of_groups + {times}($tiles / {WARP});",
        ]

    def _looked_back(self) -> list[str]:
        """The first warp: ``$earlier``, the fold of all that stands before the tile."""
        found, kind, words = self.found, c_type(self.found.fold), self._words
        fold, own, at = found.fold, OPERATORS[found.fold.op], f"{words} * " if words > 1 else ""
        found.scene.helpers.add(f"fsr_warp_{own}")
        lane, last = "threadIdx.x", WARP - 1
        return [
            f"{kind} $all = $warps[0];",
            "#pragma unroll",
            f"for (int $warp = 1; $warp < {self.threads // WARP}; ++$warp) {{",
            f"    {step(fold, '$all', '$warps[$warp]')}", "}",
            f"const unsigned $place = $tile % {WARP};",
            f"const unsigned $group = $tile / {WARP};",
            f"const unsigned $row = $group % {WARP};",
            f"if ({lane} == 0) fsr_announce($of_tiles + {at}$tile, $all);",
            "// A lane has a tile before this one in its group, and a group before that; the last one all before them.",
            f"const unsigned long long *$near_post = $of_tiles + {at}($tile - $place + {lane});",
            f"const unsigned long long *$far_post = $of_groups + {at}($group - $row + {lane});",
            f"if ({lane} == {last}) $far_post = $up_to + {at}($group / {WARP});",
            f"const bool $is_near = {lane} < $place;",
            f"const bool $is_far = {lane} < $row || ({lane} == {last} && $group >= {WARP});",
            f"unsigned long long $near_words[{words}];",
            f"unsigned long long $far_words[{words}];",
            "if ($is_near) fsr_peek($near_post, $near_words);",
            "if ($is_far) fsr_peek($far_post, $far_words);",
            f"{kind} $near = {identity(fold)};",
            f"{kind} $far = {identity(fold)};",
            "if ($is_near) $near = fsr_awaited($near_post, $near_words);",
            f"$near = fsr_warp_{own}($near);",
            f"{kind} $whole = $near;",
            step(fold, "$whole", "$all"),
            f"if ($place == {last} && {lane} == 0) fsr_announce($of_groups + {at}$group, $whole);",
            "if ($is_far) $far = fsr_awaited($far_post, $far_words);",
            f"$far = fsr_warp_{own}($far);",
            step(fold, "$whole", "$far"),
            f"if ($place == {last} && $row == {last} && {lane} == 0) {{",
            f"    fsr_announce($up_to + {at}($group / {WARP} + 1), $whole);", "}",
            step(fold, "$far", "$near"),
            f"if ({lane} == 0) $earlier = $far;",
        ]  # fmt: skip
