"""sorting-network: what sorts a thread's few elements by loops becomes Batcher's network of minima and maxima.

A network's places are constants, so that its elements are registers; it has fewer steps than a bubble sort, of which
those side by side are independent; what no result reads, compilers leave out, a part of a median's. Minima and maxima
order elements as exchanges do, but for NaNs and zeros of both signs: a sort of floating-point numbers looks for those
first, and leaves them to the original's loops, on a copy, since loops would keep the array itself in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from fsr.records import Candidate
from fsr.source.items import parse_items
from fsr.source.names import words
from fsr.source.walk import fresh
from fsr.transform.details.function_loops import pragmas, spliced, unrollable
from fsr.transform.details.network_text import forced_inline, in_place, network, ordering
from fsr.transform.details.sorted_arrays import SortedArray, sorted_arrays, written_out
from fsr.transform.protocol import Move, Subject

_GAIN = 2.0


@dataclass(frozen=True, slots=True)
class SortingNetwork:
    """All sorts of the file at once."""

    name: str = "sorting-network"
    aims_at: frozenset[str] = frozenset(["latency", "instructions", "compute", "uncoalesced"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """One for the file, once: the loops that it leaves sort, too."""
        done = any(name.startswith(self.name) for name in subject.candidate.actions)
        if not done and sorted_arrays(written_out(subject.candidate)):
            yield Move(self.name, "plan", (), _GAIN)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with networks, and without the loops of constant length that go through their arrays."""
        old = written_out(subject.candidate)
        found = _outermost(sorted_arrays(old))
        text, taken = old.source, set(words(old.source))
        orders, networks = dict[str, str](), dict[tuple[str, int, bool], str]()
        functions, edits = list[str](), list[tuple[int, int, str]]()
        for one in found:
            if one.element not in orders:
                taken.add(name := fresh("in_order", taken))
                orders[one.element] = name
                functions.append(ordering(one.element, name))
            kind = one.element, one.count, one.descends
            if kind not in networks:
                taken.add(name := fresh(f"merge_exchange_{one.count}", taken))
                networks[kind] = name
                functions.append(network(one, name, orders[one.element]))
        for (start, end), alike in groupby(found, key=lambda one: (one.start, one.end)):
            ways = [(one, networks[one.element, one.count, one.descends]) for one in alike]
            names = [fresh(f"{ways[0][0].array}_copy", taken), fresh("element", taken)]
            edits.append((start, end, in_place(ways, text, names)))
        loops = [at for at in unrollable(old) if not any(s.start <= at < s.end for s in found)]
        edits += [(at, at, pragma) for at, pragma in pragmas(text, loops)]
        edits += {edit for one in found for edit in forced_inline(text, one.function)}
        before = _before(text, found[0].function)
        edits.append((before, before, "".join(f"{function}\n" for function in functions)))
        return replace(old, source=spliced(text, edits), actions=(*old.actions, move.name))


def _outermost(found: list[SortedArray]) -> list[SortedArray]:
    """Those within no other."""
    return [s for s in found if not any(_within(s, other) for other in found)]


def _within(one: SortedArray, other: SortedArray) -> bool:
    same = (one.start, one.end) == (other.start, other.end)
    return not same and other.start <= one.start and one.end <= other.end


def _before(text: str, at: int) -> int:
    """Where the outermost item begins that a place of the text is in."""
    return max((item.start for item in parse_items(text) if item.start <= at), default=0)
