"""Which sequences of comparators sort, and one that does with few of them.

A comparator is a pair of places: the lesser of what stands there goes to the first, the greater to the second (Knuth,
The Art of Computer Programming 3, 5.3.4).
"""

from __future__ import annotations

from collections.abc import Sequence

Pairs = Sequence[tuple[int, int]]
_MOST_TRIED = 16  # places for which all sequences of zeros and ones are tried


def merge_exchange(count: int) -> list[tuple[int, int]]:
    """Batcher's merge exchange for any number of places (Knuth 5.2.2, algorithm M)."""
    found = list[tuple[int, int]]()
    p = top = 1 << max(0, (count - 1).bit_length() - 1)
    while p > 0:
        q, r, d = top, 0, p
        while True:
            found += [(i, i + d) for i in range(count - d) if i & p == r]
            if q == p:
                break
            d, q, r = q - p, q // 2, p
        p //= 2
    return found


def settled(pairs: Pairs, count: int, *, loose: bool = False, early: bool = False, exits: Pairs = ()) -> frozenset[int]:
    """The places, of 0 to ``count`` - 1, that hold what ascending order has there, whatever it is that comparators get,
    as far as that can be shown. ``loose``: of those that share a place in a row, all that is known is what this place
    gets. ``early``: each element may stop at the first comparator that finds it in order. ``exits``: some that follow
    may be left out where all comparators from one number up to another found their elements in order."""
    every = frozenset(range(count))
    if not all(0 <= low < count and 0 <= high < count for low, high in pairs):
        return frozenset()
    if exits and (early or loose or not _ends_in_order(pairs, count, exits)):
        return frozenset()
    if early:
        # What an insertion sort gets is sorted whatever was done before, each step of which exchanges some or none.
        insertion = [(at - 1, at) for last in range(1, count) for at in range(last, 0, -1)]
        return every if not loose and list(pairs[-len(insertion) :]) == insertion else frozenset()
    found = _extremes(pairs, count)
    if found == every or loose:
        return found
    if not all(low < high for low, high in pairs):
        both_ways = list(pairs) in _each_with_all(count) or (
            count <= _MOST_TRIED and _sorts_zeros_and_ones(pairs, count)
        )
        return every if both_ways else found
    if all(high == low + 1 for low, high in pairs):
        # Comparators of neighbours sort all if they sort what is in reverse (Knuth 5.3.4, exercise 36; de Bruijn 1974).
        if _applied(pairs, list(range(count, 0, -1))) == list(range(1, count + 1)):
            return every
    elif count <= _MOST_TRIED and _sorts_zeros_and_ones(pairs, count):
        return every
    return found


def _extremes(pairs: Pairs, count: int) -> frozenset[int]:
    """The places that comparators give the extreme of those that are left, time after time: along neighbours (bubble
    sort), or all with one end (selection sort)."""
    first, last, at = 0, count - 1, 0
    while first < last:
        while at < len(pairs) and _is_idle(pairs[at], first, last):
            at += 1
        length, rest = last - first, range(first, last + 1)
        run = list(pairs[at : at + length])
        if run == [(i, i + 1) for i in rest[:-1]] or sorted(run) == [(i, last) for i in rest[:-1]]:
            last -= 1
        elif run == [(i, i + 1) for i in reversed(rest[:-1])] or sorted(run) == [(first, i) for i in rest[1:]]:
            first += 1
        else:
            break
        at += length
    if not all(_is_idle(pair, first, last) or _between(pair, first, last) for pair in pairs[at:]):
        return frozenset()
    return frozenset(range(count)) if first == last else frozenset(range(count)) - frozenset(range(first, last + 1))


def _ends_in_order(pairs: Pairs, count: int, exits: Pairs) -> bool:
    """Whether all elements are in order, and stay where they are, wherever a loop may end early: each neighbour was
    just found in order, or one of them is where it belongs."""
    for before, after in exits:
        placed, found = settled(pairs[:before], count), set(pairs[before:after])
        if not all(at in placed or at + 1 in placed or (at, at + 1) in found for at in range(count - 1)):
            return False
    return all(low < high for low, high in pairs)


def _each_with_all(count: int) -> list[list[tuple[int, int]]]:
    """The comparators of each element with every other in one row, the same way round: the first row finds the greatest
    (or the least), all others insert (Fung, "Is this the simplest (and most surprising) sorting algorithm ever?")."""
    rows = range(count)
    return [
        [(j, i) for i in rows for j in rows if i != j],
        [(i, j) for i in reversed(rows) for j in reversed(rows) if i != j],
    ]


def _between(pair: tuple[int, int], first: int, last: int) -> bool:
    return all(first <= place <= last for place in pair)


def _is_idle(pair: tuple[int, int], first: int, last: int) -> bool:
    """Whether a comparator with a place that has its element already finds it in order."""
    low, high = pair
    return low < high and (low < first or high > last)


def _applied(pairs: Pairs, values: list[int]) -> list[int]:
    for low, high in pairs:
        if values[low] > values[high]:
            values[low], values[high] = values[high], values[low]
    return values


def _sorts_zeros_and_ones(pairs: Pairs, count: int) -> bool:
    """Knuth 5.3.4, theorem Z: what sorts all sequences of zeros and ones sorts all. One bit for each of them."""
    every = 1 << count
    rows = list[int]()
    for place in range(count):
        half = 1 << place
        rows.append(((1 << every) - 1) // ((1 << 2 * half) - 1) * (((1 << half) - 1) << half))
    for low, high in pairs:
        rows[low], rows[high] = rows[low] & rows[high], rows[low] | rows[high]
    return all(rows[place] & ~rows[place + 1] == 0 for place in range(count - 1))
