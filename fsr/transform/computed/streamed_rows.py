"""stream-rows: a block goes through many long rows, and the next one comes into the place of the one that it leaves.

Rows of which few fit a multiprocessor's shared memory leave its memory idle while a block folds: no other block is
there to read. Here every thread keeps its own packs of a row in shared memory; in the last walk, as soon as it has
taken a pack for the last time, it begins to copy that of the next row there (cp.async), so that one row is read while
the other is written. Nothing is shared but results of folds, so that no barrier guards the copies: the first walk waits
for a thread's own packs, one after the other, as they arrive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fsr.computation.expression import Load
from fsr.hardware.limits import ASYNC_COPIES_FROM
from fsr.source.names import indent
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.columns import lead_dims
from fsr.transform.computed.packs import MOST_BYTES, pack_type
from fsr.transform.computed.row_decisions import RESERVED
from fsr.transform.computed.row_form import ELEMENT, carried_on, kept_between, rows
from fsr.transform.computed.rows import RowKernel, Walked
from fsr.transform.computed.scene import Scene, bytes_of, word
from fsr.transform.gemm.pipelined import HEADER
from fsr.transform.plain.c_text import NotPlain

Params = Mapping[str, int | str]
_COPIED = (4, 8, 16)  # bytes that one copy may have
_WORDS = {4: "unsigned", 8: "uint2", 16: "uint4"}  # written as a struct, it is elements in unrolled walks, by nvcc 13
_GROUPS = 9  # of copies under way: a wait leaves eight of them at most (cuda_pipeline.h)
_FEW_BLOCKS = 3  # on a multiprocessor: where more fit, one reads while another folds anyway
_ROWS_A_BLOCK = 4  # at the least, for there to be a next row most of the time
_MOST_SLOTS = 64
_UNROLLED = 26  # slots; of 13, walks unrolled by four take 2.18 ms for 1.20, and of 50, as a whole, 6.2 for 1.35


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    found = rows(scene)
    if found is None or scene.gpu.capability < ASYNC_COPIES_FROM or not kept_between(found):
        return
    length, count = scene.timed(found.length), 1
    for _, extent in found.dims:
        count *= scene.timed(extent)
    width = MOST_BYTES // max(bytes_of(x) for x in kept_between(found))
    before = width - 1 if length % width else 0  # elements that the first pack may have before the row
    for threads in (1024, 512, 768, 256):
        slots = -(-(length + before) // (threads * width))
        kernel = StreamedRows(found, threads, width, slots, "streamed")
        blocks = kernel.blocks()
        if not kernel.fits or slots > _MOST_SLOTS or not blocks:
            continue
        if blocks <= _FEW_BLOCKS and count >= _ROWS_A_BLOCK * blocks * scene.gpu.sm_count:
            yield {"threads": threads, "pack": width, "slots": slots}, 4.2 if slots > 1 else 3.0


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernel. Raises NotPlain."""
    found = rows(scene.narrowed())
    if found is None:
        raise NotPlain("no rows")
    threads, pack, slots = (int(params[k]) for k in ("threads", "pack", "slots"))
    kernel = StreamedRows(found, threads, pack, slots, "streamed")
    if not kernel.fits:
        raise NotPlain("rows that are not copied as they stand in memory")
    return [kernel.written()]


@dataclass
class StreamedRows(RowKernel):
    """The kernel of such rows. Where they are longer than their place, or do not begin where a pack may, each walk
    reads them again."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.stay = kept_between(self.rows)
        self.kept = False  # whether rows stay, in the lines being written,
        self.cut = False  # and whether the pack there is known to be none of the whole ones
        self.turn = 0  # of the walks over a row, the one being written, from 1
        self.last = len(self.rows.walks) - self._online_first

    @property
    def fits(self) -> bool:
        """Whether what stays of a row can be copied: packs of as many bytes as one copy has, all beginning alike."""
        return all(x in self._alike for x in self.stay) and all(bytes_of(x) * self.pack in _COPIED for x in self.stay)

    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block."""
        return self.slots * self.threads * self.pack * sum(map(bytes_of, self.stay))

    def blocks(self) -> int:
        """Blocks that fit a multiprocessor."""
        size, gpu = self.shared_bytes() + RESERVED, self.rows.scene.gpu
        return gpu.shared_bytes_per_sm // size if size <= gpu.max_shared_bytes else 0

    def written(self) -> Written:
        """The whole kernel."""
        scene, size = self.rows.scene, self.shared_bytes()
        first = [
            f"for (int $number = 0; $number < {self.slots}; ++$number) {{",
            *indent(["$fetch(blockIdx.x, $number);", self._commit]), "}",
        ]  # fmt: skip
        lines = [
            "const int $thread = threadIdx.x;",
            f"if ({self._fits()}) {{  // rows come through shared memory",
            *indent([*super()._room(self.stay), *self._fetcher(), *first, *self._each_row(kept=True)]),
            "} else {", *indent(self._each_row(kept=False)), "}",
        ]  # fmt: skip
        blocks = max(1, self.blocks()) * scene.gpu.sm_count
        grid = f"min({' * '.join(f'({x})' for _, x in self.rows.dims)}, {blocks})"
        return Written(
            scene, lines, (grid, "1", "1"), (str(self.threads), "1", "1"), self.threads, "rows", shared_bytes=str(size),
            includes=(HEADER,),
        )  # fmt: skip

    def _fits(self) -> str:
        """The condition under which rows have their place, and packs of them are whole."""
        before = f" + {self.pack - 1}" if self.pack > 1 else ""
        tests = [f"{self.limit}{before} <= {self.slots * self.threads * self.pack}"]
        return " && ".join(dict.fromkeys([*tests, *(t for x in self._alike for t in self._aligned(x))]))

    def _each_row(self, *, kept: bool) -> list[str]:
        scene = self.rows.scene
        self.kept, self.turn = kept, 0
        head = f"for ({scene.index} $row = blockIdx.x; $row < {self._count}; $row += gridDim.x) {{"
        dims = lead_dims(scene, self.rows.dims, "$row")
        return [head, *indent([*dims, *self._shift(), *self._walked(kept=kept)]), "}"]

    def _fetcher(self) -> list[str]:
        """A function that begins to copy a thread's pack of a row to its place."""
        scene = self.rows.scene
        at, place = f"${ELEMENT}_first", f"$number * {self.threads}"
        inner = [*lead_dims(scene, self.rows.dims, "$wanted"), *self._shifted(), self._placed(at)]
        self.low, self.high, self.sure = self.pack > 1, True, True
        for x in self.stay:
            kept = f"{self.names[x]}_kept[{place}]"
            of = word(scene.element(x), ELEMENT, at)
            whole = f"__pipeline_memcpy_async(&{kept}, &{of}, {bytes_of(x) * self.pack});"
            single = self._lanes([self._copied(x, f"{kept}.v[$lane]")])
            inner += single if self.pack == 1 else self.chosen(x, whole, single)
        return [
            "// Begins to copy a thread's pack of a row to its place.",
            f"auto $fetch = [&](const {scene.index} $wanted, const int $number) {{",
            f"    if ($wanted < {self._count}) {{", *indent(indent(inner)), "    }", "};",
        ]  # fmt: skip

    def _placed(self, at: str) -> str:
        """Where the pack of a slot begins in its row."""
        return f"const int {at} = $number * {self.threads * self.pack} + {self._begin};"

    def _copied(self, x: Load, place: str) -> str:
        """One element to its place."""
        element = self.rows.scene.element(x)
        size = bytes_of(x)
        return f"__pipeline_memcpy_async(&{place}, &{element}, {size});" if size in _COPIED else f"{place} = {element};"

    # ------------------------------------------------------------ walks

    @property
    def _online_first(self) -> bool:
        return carried_on(self.rows.phases)

    def _there(self, stay: Sequence[Load]) -> set[Load]:
        return set(stay)

    def _room(self, stay: Sequence[Load]) -> list[str]:
        return []  # once for all rows

    def _number(self, at: str) -> str:
        return "$number"

    @property
    def _together(self) -> int:
        """Slots whose packs are one group of copies."""
        return -(-self.slots // _GROUPS)

    @property
    def _wait(self) -> str:
        """What waits for a group before its first slot: as many groups have been begun since as a row has, less one."""
        groups = -(-self.slots // self._together)
        first = f"if ($number % {self._together} == 0) " if self._together > 1 else ""
        return f"{first}__pipeline_wait_prior({groups - 1});"

    @property
    def _commit(self) -> str:
        """What ends a group behind its last slot, of copies for the next row or of none."""
        step = self._together
        last = f"if ($number % {step} == {step - 1} || $number == {self.slots - 1}) " if step > 1 else ""
        return f"{last}__pipeline_commit();"

    def _walk(self, *args: object, **more: object) -> list[str]:
        self.turn += 1
        return super()._walk(*args, **more)  # type: ignore[arg-type]

    def _shift(self) -> list[str]:
        lines = super()._shift()
        alike = [f"const bool {n}_whole" for n in self._alike.values()]
        return [x for x in lines if not (self.kept and x.startswith(tuple(alike)))]

    def chosen(self, x: Load, whole: str, single: list[str]) -> list[str]:
        """See :meth:`RowKernel.chosen`."""
        return single if self.cut else super().chosen(x, whole, single)

    def _taken(self, x: Load) -> list[str]:
        if not self.cut:
            return super()._taken(x)
        name = self.names[x]
        lanes = self._lanes([f"{name}_pack.v[$lane] = {name}_kept[$slot].v[$lane];"])
        return [f"{pack_type(self.rows.scene, x, self.pack)} {name}_pack;", *lanes]

    def _put(self, w: Load, at: str, name: str) -> str:
        kind = _WORDS.get(bytes_of(w) * self.pack)
        if not self.kept or kind is None:
            return super()._put(w, at, name)
        return f"__stwb(reinterpret_cast<{kind} *>(&{at}), reinterpret_cast<const {kind} &>({name}));"

    def _over(self, at: str, first: str, body: Walked) -> list[str]:
        if not self.kept:
            return super()._over(at, first, body)
        self.low, self.high, self.sure = False, False, True
        within = body()
        tests = [f"{at} >= 0"] if self.pack > 1 else []
        whole = " && ".join([*tests, f"{at} + {self.pack} <= {self.limit}"])
        wait = [self._wait] if self.turn == 1 else []
        end = ["$fetch($row + gridDim.x, $number);"] if self.turn == self.last else []
        end += [self._commit] if self.turn in (1, self.last) else []
        main = [
            "#pragma unroll" if self.slots <= _UNROLLED else f"#pragma unroll {max(4, self._together)}",
            f"for (int $number = 0; $number < {self.slots}; ++$number) {{",
            *indent([
                self._placed(at), *wait,
                f"if ({whole}) {{", *indent(within), "}", *end,
            ]),
            "}",
        ]  # fmt: skip
        ends = self._ends(at, body) if self.pack > 1 else []
        return [*ends, *main] if self.turn == self.last else [*main, *ends]  # before the next row takes their place

    def _ends(self, at: str, body: Walked) -> list[str]:
        """The packs at a row's ends that are not whole. In the loop over slots they would stand beside those that are:
        nvcc makes one of the two then, which writes every element by itself."""
        self.low, self.high, self.cut = True, True, True
        edges = body()
        self.cut = False
        wait = ["__pipeline_wait_prior(0);"] if self.turn == 1 == self.last else []
        return [
            "for (int $end = 0; $end < 2; ++$end) {  // the row's first and last pack, where they are not whole",
            *indent([
                f"const int $pack = $end == 0 ? 0 : ({self.limit} + $shift) / {self.pack};",
                f"const bool $mine = $pack % {self.threads} == $thread;",
                f"const bool $cut = $end == 0 ? $shift > 0 : ({self.limit} + $shift) % {self.pack} > 0"
                " && ($pack > 0 || $shift == 0);",
                "if ($mine && $cut) {",
                *indent([
                    f"const int $number = $pack / {self.threads};",
                    f"const int {at} = $pack * {self.pack} - $shift;", *wait, *edges,
                ]),
                "}",
            ]),
            "}",
        ]  # fmt: skip
