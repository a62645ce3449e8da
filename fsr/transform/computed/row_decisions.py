"""fold-rows: which decisions are worth trying: threads and packs a row, and where a row is kept between walks."""

from __future__ import annotations

from collections.abc import Iterator

from fsr.computation.expression import PLACES
from fsr.transform.computed.packs import MOST_BYTES
from fsr.transform.computed.parts import RECORDS
from fsr.transform.computed.row_form import Rows, carried_on, kept_between, rows, streams
from fsr.transform.computed.scene import Scene, bytes_of

WARP = 32
_LANES = (4, 8, 16)  # of a warp, which shares rows that it has more lanes than packs for
_Tried = tuple[float, dict[str, int | str]]
_OTHER_REGISTERS = 24
_REGISTERS = 65536
_MOST_SLOTS = 32
RESERVED = 2048  # of shared memory, for what warps exchange
_MOST_TRIED = 8
_LOOKED_UP = 4  # how often a record is looked up at the least, for it to be worth a launch that puts it together


def configurations(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """Decisions worth trying with a guess of their gain, best first."""
    found = rows(scene)
    if found is None:
        return
    length = scene.timed(found.length)
    along_it = streams(found)
    if not along_it:
        return
    widest = max(1, MOST_BYTES // max(bytes_of(x) for x in along_it))
    tried = list[_Tried]()
    few = _LANES if length < WARP * widest and not _places_told(found) else ()
    for threads in (*few, 32, 64, 128, 256, 512, 1024):
        for pack in dict.fromkeys((widest, max(1, widest // 2), 1)):
            before = pack - 1 if length % pack else 0  # elements that the first pack may have before the row
            slots = -(-(length + before) // (threads * pack))
            busy = min(1.0, length / (threads * pack))  # threads that have an element at all
            worth = busy * (1.0 if pack == widest else 0.8)
            for keep, factor in _places(found, threads, pack, slots):
                held = slots if keep not in ("none", "online") else 0
                params: dict[str, int | str] = {"threads": threads, "pack": pack, "slots": held, "keep": keep}
                tried.append((worth * factor * _steps_worth(slots), params))
    for worth, params in sorted(tried, key=lambda t: -t[0])[: _MOST_TRIED + len(few)]:
        yield dict(params), 1.0 + 3.0 * worth


def looking_up(scene: Scene) -> Iterator[tuple[dict[str, int | str], float]]:
    """The same for rows that look up records, where they do so much more often than there are any."""
    found = rows(scene)
    if found is None:
        return
    terms = scene.timed(" * ".join(f"({x})" for x in (found.length, *(x for _, x in found.dims))))
    if all(terms >= _LOOKED_UP * scene.timed(b.shape[0]) for b in scene.part.buffers if b.name.startswith(RECORDS)):
        for params, gain in configurations(scene):
            yield params, gain * 1.05


def _places_told(found: Rows) -> bool:
    """Whether some fold tells the place of an extreme: whole warps do."""
    return any(f.fold.op in PLACES for phase in found.phases for f in phase)


def _places(found: Rows, threads: int, pack: int, slots: int) -> Iterator[tuple[str, float]]:
    """Where a row may be kept between walks, with how good that is."""
    size = slots * pack * sum(bytes_of(x) for x in kept_between(found))  # bytes a thread
    if size:
        most = 0.8 * min(255, _REGISTERS // max(threads, 128)) - _OTHER_REGISTERS
        if size / 4 <= most and slots <= _MOST_SLOTS:
            yield "registers", 1.0
        elif threads > WARP and size * threads + RESERVED <= found.scene.gpu.max_shared_bytes:
            resident = found.scene.gpu.shared_bytes_per_sm // (size * threads + RESERVED) * threads
            yield "shared", 0.9 * min(1.0, resident / 1024)
    if carried_on(found.phases):
        yield "online", 0.75 if found.elements else 1.05
    yield "none", 0.6 if size else 1.0


def _steps_worth(slots: int) -> float:
    """Few steps a thread leave latency to be seen, very many leave other multiprocessors without work."""
    return 0.8 if slots < 2 else 1.0 if slots <= 26 else 0.9
