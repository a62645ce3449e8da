"""columns-in-threads: what is folded over a dimension that is not contiguous and then written along it, a softmax over
the channels of every pixel: a thread has a pack of neighbouring columns and goes down them.

Where the columns of a block fit into shared memory each element is read once: every thread keeps its own packs there.
Otherwise the walks read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fsr.computation.computation import Statement
from fsr.computation.expression import PLACES, Expr, Load, distinct, names_in, renamed
from fsr.source.names import indent
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.elements import a_pack_each
from fsr.transform.computed.folding import c_type, identity, step
from fsr.transform.computed.packs import MOST_BYTES, Packs, pack_type
from fsr.transform.computed.parts import name_of, value_of
from fsr.transform.computed.row_form import ELEMENT, RowFold, Rows, gathered, in_its_place, in_place, own_place, reads
from fsr.transform.computed.scene import Scene, along, bytes_of, plain, surely
from fsr.transform.plain.c_text import NotPlain

Params = Mapping[str, int | str]
_ROOM = 96 << 10  # bytes of shared memory a block: two of them on a multiprocessor of every GPU since Ampere
_FEWEST = 64  # threads


def standing(scene: Scene) -> Rows | None:
    """The part as lines that stand across memory, of neighbouring columns; None where it is none."""
    part = scene.part
    own = _numbered_by(scene)
    if own is None or any(len(s.domain) != len(own) for s in part.made):
        return None
    domain = tuple(d for d in part.domain if d[0] in own)
    more = tuple(d for d in part.domain if d[0] not in own)
    if len(more) != 1 or not domain or domain[-1] != part.domain[-1]:
        return None
    scene = replace(scene, part=replace(part, made=tuple(_as_read(s, own) for s in part.made)))
    if any(s.domain != domain for s in scene.part.made):
        return None
    if any(not own_place(s, (domain, part.domain)) for s in part.outputs):
        return None
    found = gathered(scene, domain, more)
    return found if found is not None and found.elements and _stands(found) and in_place(found) else None


def _numbered_by(scene: Scene) -> list[str] | None:
    """The names of the dimensions that number the columns, as the outputs call them: by which they read what is made
    in between, in the order of its own dimensions."""
    made = {s.target for s in scene.part.made}
    found = {
        tuple(map(name_of, x.indices))
        for s in scene.part.outputs
        for x in distinct(value_of(s))
        if isinstance(x, Load) and x.buffer in made
    }
    names = [n for n in next(iter(found)) if n is not None] if len(found) == 1 else []
    dims = dict(scene.part.domain)
    return names if names and len(names) == len(next(iter(found))) and all(n in dims for n in names) else None


def _as_read(s: Statement, own: Sequence[str]) -> Statement:
    """A value between statements over the dimensions that it is read by."""
    names = dict(zip((n for n, _ in s.domain), own, strict=True))

    def called(name: str) -> str:
        return names.get(name, name)

    domain = tuple((called(n), x) for n, x in s.domain)
    place = tuple(renamed(i, called) for i in s.place)
    return replace(s, domain=domain, value=renamed(value_of(s), called), place=place)


def _stands(found: Rows) -> bool:
    """Whether what is read lies along the last of the columns' dimensions, or does not move with it."""
    last = found.dims[-1][0]
    every = reads(e for walked in found.walks for e in walked)
    moving = [x for x in every if last in names_in(x)]
    if not all(map(plain, every)) or any(f.fold.op in PLACES for phase in found.phases for f in phase):
        return False
    sure = surely(e for walked in found.walks for e in walked)
    return bool(moving) and all(along(x, last) and x in sure for x in moving)


# ---------------------------------------------------------------- decisions


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    found = standing(scene)
    if found is None:
        return
    columns = found.dims[-1][1]
    length, gain = scene.timed(found.length), 2.0
    sizes = [bytes_of(x) for x in _kept(found)]
    widest = MOST_BYTES // max(bytes_of(x) for x in (*_kept(found), *(w for w, _ in found.elements)))
    for pack in dict.fromkeys((widest, 1)) if scene.timed(columns) >= widest else (1,):
        for threads in (256, 128, _FEWEST):
            if sum(sizes) * pack * threads * length <= _ROOM:
                yield {"pack": pack, "threads": threads, "slots": length}, gain
                gain *= 0.97
        yield {"pack": pack, "threads": 128, "slots": 0}, 1.5


def _kept(found: Rows) -> list[Load]:
    """What the walks read of a column, each once."""
    last = found.dims[-1][0]
    every = reads(e for walked in found.walks for e in walked)
    return [x for x in dict.fromkeys(every) if along(x, last) and ELEMENT in names_in(x)]


# ---------------------------------------------------------------- text


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernel. Raises NotPlain."""
    found = standing(scene)
    if found is None:
        raise NotPlain("no columns with something written along them")
    pack, threads, slots = (int(params[k]) for k in ("pack", "threads", "slots"))
    return [Columns(found, pack, threads, slots).written()]


@dataclass
class Columns:
    """The kernel of one choice of decisions."""

    rows: Rows
    pack: int
    threads: int
    slots: int
    totals: dict[Expr, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for f in (f for phase in self.rows.phases for f in phase):
            made = isinstance(f.value, Load) and self.rows.scene.names.names[f.value.buffer]
            self.totals[f.value] = made or f"$result{len(self.totals) + 1}"

    def written(self) -> Written:
        """The whole kernel."""
        scene, dims = self.rows.scene, self.rows.dims
        inner = self._whole_or_single(scene.size(dims[-1][1]))
        lines, grid = a_pack_each(scene, self.pack, self.threads, inner, domain=dims)
        head = ["extern __shared__ __align__(16) unsigned char $room[];"] if self.slots else []
        room = self.slots * self.threads * self.pack * sum(map(bytes_of, _kept(self.rows)))
        block = (str(self.threads), "1", "1")
        return Written(scene, [*head, *lines], (grid, "1", "1"), block, self.threads, "columns", shared_bytes=str(room))

    def _whole_or_single(self, limit: str) -> list[str]:
        """Whole packs where every row has whole ones at addresses that allow them; else columns one by one."""
        scene, (last, _) = self.rows.scene, self.rows.dims[-1]
        if self.pack == 1:
            return self._kept_or_not(self._packs(1))
        packs = self._packs(self.pack)
        outputs = [w for w, _ in self.rows.elements]
        fits = f"{limit} % {self.pack} == 0" if len(self.rows.dims) > 1 else f"${last}_first + {self.pack} <= {limit}"
        tests = dict.fromkeys((fits, *packs.aligned(outputs).split(" && ")))
        test = " && ".join(t for t in tests if t != "true")
        alone = replace(self, pack=1, slots=0, totals=self.totals)
        one = self._packs(1)
        column = [
            f"const {scene.index} $column = ${last}_first + $one;",
            f"if ($column < {limit}) {{",
            *indent([_first_is(line, last) for line in alone._walked(one, kept=False)]),
            "}",
        ]
        singly = [f"for (int $one = 0; $one < {self.pack}; ++$one) {{", *indent(column), "}"]
        return [f"if ({test}) {{", *indent(self._kept_or_not(packs)), "} else {", *indent(singly), "}"]

    def _kept_or_not(self, packs: Packs) -> list[str]:
        if not self.slots:
            return self._walked(packs, kept=False)
        test = f"if ({self.rows.scene.size(self.rows.length)} <= {self.slots}) {{  // the columns stay in shared memory"
        return [
            test,
            *indent(self._walked(packs, kept=True)),
            "} else {",
            *indent(self._walked(packs, kept=False)),
            "}",
        ]

    def _packs(self, width: int) -> Packs:
        """What is read, in packs: values between statements are variables."""
        every = [e for walked in self.rows.walks for e in walked]
        found = Packs.of(self.rows.scene, every, self.rows.dims[-1][0], width)
        names = {x: name for x, name in found.names.items() if not x.buffer.startswith("_")}
        return replace(found, loads=tuple(names), names=names)

    # ------------------------------------------------------------ walks

    def _walked(self, packs: Packs, *, kept: bool) -> list[str]:
        lane = "[$lane]" if packs.width > 1 else ""
        held: dict[Expr, str] = {value: f"{name}{lane}" for value, name in self.totals.items()}
        lines = self._rooms(packs) if kept else []
        for turn, phase in enumerate(self.rows.phases):
            lines += self._begun(packs, phase, lane)
            lines += self._phase(packs, phase, held, self._mode(kept, turn))
        return [
            *lines,
            *self._elements(packs, held, self._mode(kept, len(self.rows.phases))),
            *self._single(packs, held),
        ]

    def _mode(self, kept: bool, turn: int) -> str:
        """Whether a walk reads memory, and keeps what it reads; or takes what was kept."""
        return "read" if not kept else "keep" if turn == 0 else "take"

    def _rooms(self, packs: Packs) -> list[str]:
        """Where each thread keeps its packs: those of a step side by side, as threads are."""
        lines, start = list[str](), 0
        for x in self._stay(packs):
            kind, at = pack_type(self.rows.scene, x, packs.width), f"$room + {start}" if start else "$room"
            lines.append(f"{kind} *{packs.names[x]}_kept = reinterpret_cast<{kind} *>({at}) + threadIdx.x;")
            start += self.slots * self.threads * packs.width * bytes_of(x)
        return lines

    def _stay(self, packs: Packs) -> list[Load]:
        kept = _kept(self.rows)
        return [x for x in packs.loads if x in kept]

    def _begun(self, packs: Packs, phase: Sequence[RowFold], lane: str) -> list[str]:
        size = f"[{packs.width}]" if lane else ""
        declared = [f"{c_type(f.fold)} {self.totals[f.value]}{size};" for f in phase]
        return [*declared, *packs.lanes([f"{self.totals[f.value]}{lane} = {identity(f.fold)};" for f in phase])]

    def _phase(self, packs: Packs, phase: Sequence[RowFold], held: Mapping[Expr, str], mode: str) -> list[str]:
        scene, value = self.rows.scene, self._replacing(phase, mode)
        own = _reading(packs, [f.body for f in phase])
        known = {**held, **own.held("$lane")}
        if value is None:
            lines, known = scene.named([f.body for f in phase], known)
            lines = [*lines, *(step(f.fold, held[f.value], scene.text(f.body, known)) for f in phase)]
        else:
            place = known[self._stay(own)[0]]
            lines = [f"{place} = {scene.text(value, known)};"]
            lines += [step(f.fold, held[f.value], scene.text(f.body, {**known, value: place})) for f in phase]
        fetched = self._fetched(packs if mode == "keep" else own, mode)
        if value is None:
            return self._down([*fetched, *own.lanes(lines)])
        name = own.names[self._stay(own)[0]]
        fetched = [line.removeprefix("const ") if f" {name} =" in line else line for line in fetched]
        return self._down([*fetched, *own.lanes(lines), f"{name}_kept[${ELEMENT} * {self.threads}] = {name};"])

    def _replacing(self, phase: Sequence[RowFold], mode: str) -> Expr | None:
        """What takes the place of what is kept of a column, once it has been read from there."""
        return in_its_place(self.rows, phase, _kept(self.rows)) if mode == "take" else None

    def _elements(self, packs: Packs, held: Mapping[Expr, str], mode: str) -> list[str]:
        values = [v for _, v in self.rows.elements]
        own, known = _reading(packs, values), dict(held)
        value = self._replacing(self.rows.phases[-1], mode)
        if value is not None:
            known[value] = own.held("$lane")[self._stay(own)[0]]
        fetched = self._fetched(own, mode)
        known |= own.held("$lane")
        made = replace(own, loads=()).made([w for w, _ in self.rows.elements], values, known)
        return self._down([*fetched, *made])

    def _fetched(self, packs: Packs, mode: str) -> list[str]:
        """A step's packs: as they are read, and kept where they will be wanted again."""
        if mode == "read":
            return packs.fetch()
        stay = self._stay(packs)
        if mode == "keep":
            at = f"[${ELEMENT} * {self.threads}]"
            return [*packs.fetch(), *(f"{packs.names[x]}_kept{at} = {packs.names[x]};" for x in stay)]
        lines = replace(packs, loads=tuple(x for x in packs.loads if x not in stay)).fetch()
        for x in stay:
            kind, name = pack_type(self.rows.scene, x, packs.width), packs.names[x]
            lines.append(f"const {kind} {name} = {name}_kept[${ELEMENT} * {self.threads}];")
        return lines

    def _down(self, inner: list[str]) -> list[str]:
        scene, item = self.rows.scene, f"${ELEMENT}"
        head = f"for ({scene.index} {item} = 0; {item} < {scene.size(self.rows.length)}; ++{item}) {{"
        return ["#pragma unroll 4", head, *indent(inner), "}"]

    def _single(self, packs: Packs, held: Mapping[Expr, str]) -> list[str]:
        """The values of a column alone."""
        if not self.rows.results:
            return []
        scene = self.rows.scene
        pairs = [(scene.element(Load(s.target, s.place, "")), value_of(s)) for s in self.rows.results]
        return packs.lanes(scene.assigned(pairs, dict(held)))


def _reading(packs: Packs, exprs: Sequence[Expr]) -> Packs:
    """The packs that some expressions read."""
    return replace(packs, loads=tuple(x for x in packs.loads if any(x in distinct(e) for e in exprs)))


def _first_is(line: str, last: str) -> str:
    """A line of one column, which is ``$column``."""
    return line.replace(f"${last}_first", "$column")
