"""A block that keeps some queries in shared memory and walks over the keys, however it multiplies.

What every such kernel shares: which queries of which head are the block's, how tiles of keys and values come to shared
memory, while others are worked on where they are multiplied as they stand there, and the order of a tile's work. What
is left to each way (:mod:`attention_tiles`, :mod:`attention_split`) is how scores, powers and sums lie in threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fsr.computation.expression import Expr, Load
from fsr.computation.types import type_of
from fsr.contract.model import Contract
from fsr.hardware.limits import ASYNC_COPIES_FROM, REGISTERS_PER_SM
from fsr.source.names import indent
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.attention_form import Attention, attention
from fsr.transform.computed.columns import lead_dims
from fsr.transform.computed.folding import extent
from fsr.transform.computed.packs import Packs
from fsr.transform.computed.parts import value_of
from fsr.transform.computed.scene import Scene
from fsr.transform.gemm.pipelined import HEADER
from fsr.transform.sizes import largest

PACK = "fsr_pack<float, 4>"
# What was summed is scaled down where a score is higher by so much than those before: of keys in rising order each tile
# would scale it, and round it once more. Powers are at most e times what they would be.
_HIGHER = "1.0f"


def found_in(scene: Scene) -> Attention | None:
    """The part as attention; None where it is none."""
    part = scene.part
    if len(part.outputs) != 1 or len(part.domain) < 2:
        return None
    return attention(part.outputs[0], value_of(part.whole[0]), part.sizes)


def most_columns(found: Attention, contract: Contract) -> int | None:
    """As many as any head has, of queries and of values; None where no size tells."""
    most = [largest(contract, x) for x in (found.column[1], _text(found))]
    sizes = [m for m in most if m is not None]
    return max(sizes) if len(sizes) == len(most) else None


def _text(found: Attention) -> str:
    terms, constant = extent(found.product).terms, extent(found.product).constant
    return " + ".join((*(f"{k} * ({n})" for n, k in terms), str(constant)))


def either(test: str, lines: list[str]) -> list[str]:
    """The lines where a test holds."""
    return [f"if ({test}) {{", *indent(lines), "}"]


def shuffled(side: int, step: str, own: str) -> list[str]:
    """The step with the value of every other of ``side`` threads in OTHER's place."""
    other = f"__shfl_xor_sync(0xffffffffu, {own}, $apart)"
    return ["#pragma unroll", f"for (int $apart = {side // 2}; $apart > 0; $apart /= 2) {{",
            f"    {step.replace('OTHER', other)}", "}"]  # fmt: skip


@dataclass(frozen=True)
class Lane:
    """One query's scores as a thread has them. ``own``: one of them, ``key``: the number of its key in the tile;
    ``each``: statements for every one; ``top``, ``total``: the largest so far and the sum of powers; ``fade``:
    statements that scale sums by ``$fade``; ``put``: statements that keep ``$power``; ``side``: threads that share the
    query; ``tested``: whether a key may be none of the query's."""

    own: str
    key: str
    each: Callable[[list[str]], list[str]]
    top: str
    total: str
    fade: list[str]
    put: list[str]
    side: int
    tested: bool = True


@dataclass(frozen=True)
class _Area:
    """A tile in shared memory: ``pitch`` floats from row to row."""

    name: str
    rows: int
    pitch: int


@dataclass(frozen=True)
class Walk(ABC):
    """``columns``: floats of a row in shared memory that hold an element, as many as any head has."""

    scene: Scene
    found: Attention
    queries: int
    keys: int
    columns: int
    threads: int

    def __post_init__(self) -> None:
        self.scene.helpers.add("fsr_pack")

    # ------------------------------------------------------------ what each way says

    @property
    @abstractmethod
    def pitches(self) -> tuple[int, int, int]:
        """Floats from one row in shared memory to the next: of queries, of keys, of values."""

    @property
    @abstractmethod
    def powers(self) -> int:
        """Floats of the powers in shared memory."""

    @property
    @abstractmethod
    def registers(self) -> int:
        """Of a thread."""

    @abstractmethod
    def placed(self) -> list[str]:
        """Declarations of a thread's place among the block's."""

    @abstractmethod
    def begun(self) -> list[str]:
        """Declarations of what is carried on from tile to tile."""

    @abstractmethod
    def scored(self) -> list[str]:
        """Statements from a tile's keys to its powers; what was summed is scaled to them."""

    @abstractmethod
    def weighed(self) -> list[str]:
        """Statements that add a tile's values."""

    @abstractmethod
    def stored(self) -> list[str]:
        """Statements that write the results."""

    @property
    def copied_at_once(self) -> int:
        """Packs of a tile that a thread has on their way in one turn of its loop."""
        return 8

    def before(self) -> tuple[str, ...]:
        """Declarations to stand before the kernel."""
        return ()

    # ------------------------------------------------------------ what all share

    @property
    def limit(self) -> str:
        """How many queries a head has."""
        return self.scene.size(self.found.query[1])

    @property
    def end(self) -> str:
        """How many keys ``$<query>`` has."""
        return self.scene.names.affine(self.found.length)

    @property
    def own_length(self) -> bool:
        """Whether a query's number says how many keys it has."""
        return self.found.query[0] in {name for name, _ in self.found.length.terms}

    @property
    def shared_bytes(self) -> int:
        """Of shared memory that a block takes."""
        of_queries, of_keys, of_values = self.pitches
        return 4 * (self.queries * of_queries + self.keys * (of_keys + of_values) + self.powers)

    @property
    def resident(self) -> int:
        """Blocks of a multiprocessor that shared memory and registers leave room for."""
        gpu = self.scene.gpu
        rooms = gpu.shared_bytes_per_sm // (self.shared_bytes + gpu.reserved_shared_bytes)
        return max(1, min(rooms, REGISTERS_PER_SM // (self.threads * self.registers)))

    def written(self) -> Written:
        """The whole kernel. Raises NotPlain."""
        found, scene = self.found, self.scene
        depth = found.product.dims[0][0], "$depth"
        of_query = found.query[0], "$first", self.limit
        lines = [
            *self._room(),
            f"const {scene.index} $tiles = ({self.limit} + {self.queries - 1}) / {self.queries};",
            *self._which(),
            *self.placed(),
            f"const int $depth = {scene.names.affine(extent(found.product))}, $width = {scene.size(found.column[1])};",
            *self._filled(_Area("$queries", self.queries, self.pitches[0]), of_query, depth, found.q),
            *self.begun(),
            f"const int $last = $first + {self.queries} < {self.limit} ? $first + {self.queries} : {self.limit};",
            f"const int $end = {self.length_of('$last - 1')};",
            *(self._keys_from("0") if self._ahead else []),
            f"for (int $tile = 0; $tile < $end; $tile += {self.keys}) {{", *indent(self._tile()), "}",
            *self.stored(),
        ]  # fmt: skip
        lead = "".join(f" * ({x})" for _, x in found.lead)
        grid = (f"ceil_div({found.query[1]}, {self.queries}){lead}", "1", "1")
        return Written(scene, lines, grid, (str(self.threads), "1", "1"), self.threads, "attention",
                       blocks=self.resident, shared_bytes=str(self.shared_bytes), before=self.before(),
                       includes=(HEADER,) if self._ahead else ())  # fmt: skip

    def length_of(self, query: str) -> str:
        """How many keys a query has."""
        return f"[&](int ${self.found.query[0]}) {{ return {self.end}; }}({query})"

    def _which(self) -> list[str]:
        """Which queries of which head are the block's. Where a query's number says how many keys it has, all heads'
        long rows come before short ones: a long row begun last would have the GPU to itself. Else a head's blocks
        come after one another, while the L2 holds its keys."""
        found, scene = self.found, self.scene
        if not self.own_length:
            return [*lead_dims(scene, found.lead, "(blockIdx.x / $tiles)"),
                    f"const int $first = blockIdx.x % $tiles * {self.queries};"]  # fmt: skip
        heads = " * ".join(scene.size(x) for _, x in found.lead) or "1"
        return [
            f"const {scene.index} $heads = {heads};",
            *lead_dims(scene, found.lead, "(blockIdx.x % $heads)"),
            f"const int $first = ($tiles - 1 - blockIdx.x / $heads) * {self.queries};  // long rows first",
        ]

    def _room(self) -> list[str]:
        of_queries, of_keys, of_values = self.pitches
        lines = ["extern __shared__ __align__(16) unsigned char $room[];",
                 "float *$queries = reinterpret_cast<float *>($room);"]  # fmt: skip
        before, size = "$queries", self.queries * of_queries
        named = (("$keys", self.keys * of_keys), ("$values", self.keys * of_values), ("$powers", self.powers))
        for name, more in named[: 3 if self.powers else 2]:
            lines.append(f"float *{name} = {before} + {size};")
            before, size = name, more
        return lines

    @property
    def _ahead(self) -> bool:
        """Whether a tile is on its way while another is worked on: of keys that are multiplied as they stand in memory,
        the next while values are weighed; of values, while keys are multiplied."""
        found = self.found
        plain = all(isinstance(x, Load) and type_of(x) == "float32" for x in (found.k, found.v))
        return plain and self.scene.gpu.capability >= ASYNC_COPIES_FROM

    def _keys_from(self, first: str) -> list[str]:
        found = self.found
        area = _Area("$keys", self.keys, self.pitches[1])
        return self._sent(area, (found.key, first, "$end"), (found.product.dims[0][0], "$depth"), found.k)

    def _values(self) -> list[str]:
        found = self.found
        area = _Area("$values", self.keys, self.pitches[2])
        return self._sent(area, (found.key, "$tile", "$end"), (found.column[0], "$width"), found.v)

    def _sent(self, area: _Area, row: Sequence[str], column: Sequence[str], value: Expr) -> list[str]:
        filled = self._filled(area, row, column, value, ahead=self._ahead)
        return [*filled, "__pipeline_commit();"] if self._ahead else filled

    def _filled(
        self, area: _Area, row: Sequence[str], column: Sequence[str], value: Expr, *, ahead: bool = False
    ) -> list[str]:
        """A tile in shared memory, zero where it is beyond an edge, a pack of four at a time. ``row``: its dimension,
        where it begins and ends; ``column``: its dimension and where it ends; ``ahead``: whether packs are copied while
        other work is done."""
        (row_dim, first, limit), (dim, width), scene = row, column, self.scene
        reads = Packs.of(scene, [value], dim, 4)
        put = f"$four.v[$lane] = {scene.text(value, reads.held('$lane'))};"
        whole, single = reads.lanes([put]), reads.lanes([f"$four.v[$lane] = {scene.text(value)};"], f"${dim} < {width}")
        put_all = f"*reinterpret_cast<{PACK} *>($to) = $four;"
        all_there = f"$whole && ${row_dim} < {limit} && ${dim}_first < {width}"
        rest = either(f"!$whole && ${row_dim} < {limit}", single)
        inner = [
            f"const int $row = $at / {self.columns}, ${dim}_first = $at % {self.columns}, ${row_dim} = {first} + $row;",
            f"float *$to = &{area.name}[$row * {area.pitch} + ${dim}_first];",
        ]
        if ahead and len(reads.loads) == 1:
            copy = f"__pipeline_memcpy_async($to, &{reads.first(reads.loads[0])}, 16);"
            inner += [f"if ({all_there}) {{", f"    {copy}", "} else {",
                      *indent([f"{PACK} $four = {{}};", *rest, put_all]), "}"]  # fmt: skip
        else:
            inner += [f"{PACK} $four = {{}};", *either(all_there, [*reads.fetch(), *whole]), *rest, put_all]
        head = f"for (int $at = 4 * threadIdx.x; $at < {area.rows * self.columns}; $at += {4 * self.threads}) {{"
        whole_test = f"const bool $whole = {width} % 4 == 0 && {reads.aligned()};"
        return [
            "{",
            f"    {whole_test}",
            f"    #pragma unroll {self.copied_at_once}",
            *indent([head, *indent(inner), "}"]),
            "}",
        ]

    def softened(self, lane: Lane) -> list[str]:
        """Query ``$<query>``'s scores as powers, and what was summed before scaled to them. One kernel takes the
        maximum of its own products, fused; of several, one wrote scores, rounded: far from nought that decides on the
        powers."""
        found, scene, own = self.found, self.scene, lane.own
        row, key, fused = found.query[0], found.key, len(scene.target.contract.plan.launches) == 1
        place = [f"const int ${key} = $tile + {lane.key};"]
        score = scene.text(found.score, {found.product: own})
        power = scene.text(found.power, {found.product if fused else found.score: own, found.top: lane.top})
        if lane.tested:
            score, power = (f"${key} < $length ? {x} : {none}" for x, none in ((score, "-INFINITY"), (power, "0.0f")))
        return [
            *([f"const int $length = ${row} < {self.limit} ? {self.end} : 0;"] if lane.tested else []),
            "float $most = -INFINITY;",
            *lane.each([
                *place, f"const float $scaled = {score};", *([] if fused else [f"{own} = $scaled;"]),
                "$most = fmaxf($most, $scaled);",
            ]),
            *shuffled(lane.side, "$most = fmaxf($most, OTHER);", "$most"),
            f"if ($most > {lane.top} + {_HIGHER}) {{",
            f"    const float $fade = {lane.top} == -INFINITY ? 0.0f : expf({lane.top} - $most);",
            f"    {lane.total} *= $fade;",
            f"    {lane.top} = $most;",
            *indent(lane.fade),
            "}",
            *lane.each([*place, f"const float $power = {power};", *lane.put, f"{lane.total} += $power;"]),
        ]  # fmt: skip

    def _tile(self) -> list[str]:
        if self._ahead:
            there = ["__pipeline_wait_prior(0);", "__syncthreads();"]
            more = either(f"$tile + {self.keys} < $end", self._keys_from(f"$tile + {self.keys}"))
            return [*there, *self._values(), *self.scored(), *there, *more, *self.weighed()]
        return [
            "__syncthreads();", *self._keys_from("$tile"), *self._values(), "__syncthreads();", *self.scored(),
            "__syncwarp();  // a query's powers stay within its warp", *self.weighed(),
        ]  # fmt: skip
