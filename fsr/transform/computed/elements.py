"""pack-elements: values that depend on no neighbour, several a thread: packs of 16 bytes along contiguous memory.

The place of a pack is taken apart once for all its elements, so that what an index costs (`at / C % T`) is shared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fsr.computation.expression import Fold, Load, Recurrence, distinct, names_in
from fsr.source.names import indent, unrolled
from fsr.transform.computed.assembly import Written
from fsr.transform.computed.packs import MOST_BYTES, Packs
from fsr.transform.computed.parts import Domain, Part, name_of, number_of, value_of
from fsr.transform.computed.record_packs import Record
from fsr.transform.computed.scene import Scene, along, bytes_of, loads_in, plain
from fsr.transform.plain.c_text import NotPlain

Params = Mapping[str, int | str]
_UNSIGNED = 2**32
_LONG = 8  # packs that a line has at least where the last may be in part: of shorter ones it wastes too many lanes


def stores(scene: Scene) -> list[Load]:
    """What the outputs write, as reads of the same elements."""
    dtypes = {b.name: b.dtype for b in scene.part.buffers}
    return [Load(s.target, s.place, dtypes[s.target]) for s in scene.part.outputs]


def is_map(scene: Scene) -> bool:
    """Whether every output is a value of its own point, written where the point is."""
    return _is_map(scene.part, False)


def _is_map(part: Part, segments: bool) -> bool:
    """``segments``: numbers and sizes may stand among the dimensions of a place."""
    if part.made or not part.domain:
        return False
    if any(isinstance(e, Fold | Recurrence) for s in part.outputs for e in distinct(value_of(s))):
        return False
    names = [n for n, _ in part.domain]
    places = ([i for i in s.place if not segments or names_in(i) & {*names}] for s in part.outputs)
    return all([name_of(i) for i in place] == names for place in places)


def _applies(scene: Scene) -> bool:
    """Whether every output is a value of its own point, written where the point is, of one or of several segments; and
    what is read goes along the last dimension, or does not move with it, or data decides where it is."""
    if not _is_map(scene.part, segments=True):
        return False
    last = scene.part.domain[-1][0]
    if any(number_of(o.indices[-1]) is not None and not Record.of(scene, o, last) for o in stores(scene)):
        return False
    reads = [x for x in loads_in(value_of(s) for s in scene.part.outputs) if not Record.of(scene, x, last)]
    return not any(plain(x) and any(last in names_in(i) for i in x.indices[:-1]) for x in reads)


def _segments(part: Part) -> bool:
    """Whether a point writes an element of each segment of a line."""
    return len({s.target for s in part.outputs}) < len(part.outputs)


def _records(scene: Scene) -> list[Record]:
    last = scene.part.domain[-1][0]
    reads = loads_in(value_of(s) for s in scene.part.outputs)
    return [r for x in (*reads, *stores(scene)) if (r := Record.of(scene, x, last))]


# ---------------------------------------------------------------- decisions


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    if not _applies(scene):
        return
    last = scene.part.domain[-1][0]
    reads = [x for x in loads_in(value_of(s) for s in scene.part.outputs) if along(x, last)]
    sizes = [bytes_of(x) for x in (*reads, *stores(scene))]
    widest = MOST_BYTES // max(sizes)
    gain = 1.6 if _segments(scene.part) else 1.3
    length = scene.timed(scene.part.domain[-1][1])
    fitting = [p for p in dict.fromkeys((widest, max(1, widest // 2))) if not length % p or length >= _LONG * p]
    if any(r.unit(1) * bytes_of(r.first) == MOST_BYTES for r in _records(scene)):
        fitting.insert(1, 1)  # a record alone is as much as an access takes
    for pack in dict.fromkeys(fitting or [1]):
        for packs in (1, 2, 4) if fitting else (2, 4, 8):
            for threads in (256, 128):
                yield {"pack": pack, "packs": packs, "threads": threads}, gain
                gain *= 0.98


# ---------------------------------------------------------------- text


def written(scene: Scene, params: Params) -> list[Written]:
    """The kernel. Raises NotPlain."""
    if not _applies(scene):
        raise NotPlain("no map along the last dimension")
    scene = scene.narrowed()
    pack, packs, threads = (int(params[k]) for k in ("pack", "packs", "threads"))
    last, length = scene.part.domain[-1]
    values = [value_of(s) for s in scene.part.outputs]
    reads = Packs.of(scene, values, last, pack).with_records(values)
    limit = scene.size(length)
    lines, grid = a_pack_each(scene, pack, threads, _whole_or_single(scene, reads, limit), packs=packs)
    return [Written(scene, lines, (grid, "1", "1"), (str(threads), "1", "1"), threads, "elements")]


def a_pack_each(
    scene: Scene, pack: int, threads: int, inner: Sequence[str], *, packs: int = 1, domain: Domain = ()
) -> tuple[list[str], str]:
    """A kernel whose threads each do ``inner`` with so many packs of the part's domain, or of another; and its grid."""
    number, count = numbered(scene, pack, threads * packs, domain)
    head, grid = packs_of_rows(scene, pack, threads * packs, domain)
    turn = f" + $turn * {threads}" if packs > 1 else ""
    each_pack = [
        f"const {number} $pack = ({number})blockIdx.x * {threads * packs}{turn} + threadIdx.x;",
        f"if ($pack < {count}) {{",
        *indent([*place_of_pack(scene, pack, number, domain), *inner]),
        "}",
    ]
    return [*head, *(each_pack if packs == 1 else unrolled("$turn", packs, each_pack))], grid


def packs_of_rows(scene: Scene, pack: int, block: int, domain: Domain = ()) -> tuple[list[str], str]:
    """How many packs a row has, as a declaration where there are several rows, and the grid of blocks of so many."""
    *lead, (last, length) = domain or scene.part.domain
    rows = "".join(f"({x}) * " for _, x in lead)
    head = f"const {scene.index} ${last}_packs = ({scene.size(length)} + {pack - 1}) / {pack};"
    return [head] if lead else [], f"ceil_div({rows}ceil_div({length}, {pack}), {block})"


def numbered(scene: Scene, pack: int, block: int, domain: Domain = ()) -> tuple[str, str]:
    """The C type of a pack's number, and how many there are in the part's domain, or another. Without a sign wherever
    that holds them all: of the divisions that take a number apart, those of 32 bits without a sign cost the least."""
    *lead, (last, length) = domain or scene.part.domain
    rows = "".join(f"({x}) * " for _, x in lead)
    few = scene.most(f"{rows}ceil_div({length}, {pack})") + block < _UNSIGNED
    number = scene.index if not lead else "unsigned" if few else "long long"
    if not lead:
        return number, f"({scene.size(length)} + {pack - 1}) / {pack}"
    return number, " * ".join((*(f"({number}){scene.size(x)}" for _, x in lead), f"${last}_packs"))


def place_of_pack(scene: Scene, pack: int, number: str, domain: Domain = ()) -> list[str]:
    """The dimensions' values at the first element of a pack."""
    *lead, (last, _) = domain or scene.part.domain
    kind = scene.index
    if not lead:
        return [f"const {kind} ${last}_first = $pack * {pack};"]
    first = f"const {kind} ${last}_first = ({kind})($pack % ${last}_packs) * {pack};"
    return [first, *taken_apart(scene, lead, f"$pack / ${last}_packs", number)]


def taken_apart(scene: Scene, dims: Sequence[tuple[str, str]], left: str, number: str) -> list[str]:
    """The values of dimensions from the number ``left`` of a point, of the C type ``number``: it is divided by one
    extent after the other."""
    kind, lines = scene.index, list[str]()
    for name, extent in reversed(dims[1:]):
        rest = f"${name}_rest"
        lines.append(f"const {number} {rest} = {left};")
        lines.append(f"const {kind} ${name} = ({kind})({rest} % {scene.size(extent)});")
        left = f"{rest} / {scene.size(extent)}"
    return [*lines, f"const {kind} ${dims[0][0]} = ({kind})({left});"]


def _whole_or_single(scene: Scene, reads: Packs, limit: str) -> list[str]:
    """Whole packs where each row has whole ones at addresses that allow them. Where not, no row has: then a thread's
    elements lie as far apart as the row has packs, so that neighbouring threads still touch neighbours."""
    (last, _), outputs = scene.part.domain[-1], stores(scene)
    lead = len(scene.part.domain) > 1
    values = [value_of(s) for s in scene.part.outputs]
    pairs = [(scene.element(o), v) for o, v in zip(outputs, values, strict=True)]
    apart = f"${last}_first / {reads.width} + $lane * ${last}_packs" if lead and reads.width > 1 else ""
    single = reads.lanes(scene.assigned(pairs, {}), f"${last} < {limit}", apart)
    if reads.width == 1 and not reads.records:
        return single
    whole = reads.made(outputs, values, {})
    fits = f"{limit} % {reads.width} == 0" if lead else f"${last}_first + {reads.width} <= {limit}"
    tests = dict.fromkeys((fits, *reads.aligned(outputs).split(" && ")))
    test = " && ".join(t for t in tests if t != "true") or "true"
    return [f"if ({test}) {{", *indent(whole), "} else {", *indent(single), "}"]
