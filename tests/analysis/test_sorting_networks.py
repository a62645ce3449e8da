"""Which comparators sort, and how far those do that sort a part."""

from __future__ import annotations

from itertools import permutations

import pytest

from fsr.analysis.sorting_networks import merge_exchange, settled


def bubble(count: int, passes: int | None = None) -> list[tuple[int, int]]:
    return [(j, j + 1) for i in range(count - 1 if passes is None else passes) for j in range(count - 1 - i)]


def insertion(count: int) -> list[tuple[int, int]]:
    return [(j - 1, j) for i in range(1, count) for j in range(i, 0, -1)]


def selection(count: int, passes: int | None = None) -> list[tuple[int, int]]:
    return [(i, j) for i in range(count - 1 if passes is None else passes) for j in range(i + 1, count)]


def applied(pairs: list[tuple[int, int]], values: list[int]) -> list[int]:
    for low, high in pairs:
        values[low], values[high] = sorted((values[low], values[high]))
    return values


@pytest.mark.parametrize("count", range(1, 8))
def test_merge_exchange_sorts(count: int) -> None:
    assert all(applied(merge_exchange(count), list(p)) == sorted(p) for p in permutations(range(count)))


def test_merge_exchange_has_few_comparators() -> None:
    assert [len(merge_exchange(n)) for n in (8, 9, 16, 25)] == [19, 26, 63, 138]


@pytest.mark.parametrize("pairs", [
    bubble(25), selection(25), insertion(25), merge_exchange(16), [(j, j + 1) for _ in range(24) for j in range(24)],
    [(j, j + 1) for i in range(25) for j in range(i % 2, 24, 2)], [(i, 24) for i in range(24)] + selection(24),
], ids=["bubble", "selection", "insertion", "merges", "whole passes", "odd-even", "greatest first"])  # fmt: skip
def test_what_sorts(pairs: list[tuple[int, int]]) -> None:
    count = 1 + max(high for _, high in pairs)
    assert settled(pairs, count) == frozenset(range(count))


@pytest.mark.parametrize("drop", range(0, 10))
def test_one_comparator_less_does_not_sort(drop: int) -> None:
    for pairs in (bubble(5), selection(5), insertion(5)):
        assert len(settled(pairs[:drop] + pairs[drop + 1 :], 5)) < 5
    assert settled(insertion(5)[:drop] + insertion(5)[drop + 1 :], 5, early=True) == frozenset()


def test_what_is_shown_settled_is() -> None:
    for pairs in (bubble(5, 2), selection(5, 2), bubble(5)[:6], [(1, 2), *selection(5, 3)], [*selection(5, 1), (0, 3)]):
        places = settled(pairs, 5)
        for p in permutations(range(5)):
            found = applied(pairs, list(p))
            assert all(found[at] == at for at in places)
    assert settled(bubble(5, 2), 5) == {3, 4}
    assert settled(selection(5, 3), 5, loose=True) == {0, 1, 2}
    assert settled([*selection(5, 3), (4, 0)], 5) == frozenset()
    assert settled(merge_exchange(8), 8, loose=True) == frozenset()
    assert settled(bubble(5), 5, early=True) == frozenset()


@pytest.mark.parametrize("count", [5, 25])
def test_each_with_all_sorts_either_way(count: int) -> None:
    rows = range(count)
    ascending = [(j, i) for i in rows for j in rows if i != j]
    mirrored = [(count - 1 - i, count - 1 - j) for i in rows for j in rows if i != j]
    for pairs in (ascending, mirrored):
        assert settled(pairs, count) == frozenset(rows)
        assert settled(pairs[:-1] if count > 5 else pairs[: 2 * count], count) != frozenset(rows)


def test_what_ends_early_is_sorted_where_all_neighbours_were_asked() -> None:
    passes = [(4 * n, 4 * n + 4) for n in range(4)]
    whole = [(j, j + 1) for _ in range(4) for j in range(4)]
    assert settled(whole, 5, exits=passes) == frozenset(range(5))
    assert settled(bubble(5), 5, exits=[(0, 4), (4, 7), (7, 9)]) == frozenset(range(5))
    assert settled(bubble(5), 5, exits=[(0, 3)]) == frozenset()
    assert settled(bubble(5), 5, exits=[(4, 6)]) == frozenset()
    assert settled(selection(5), 5, exits=[(0, 4)]) == frozenset()
    assert settled([*whole, (4, 0), *whole], 5, exits=passes) == frozenset()


def test_an_insertion_sort_sorts_whatever_was_done_before() -> None:
    assert settled([(0, 2), (1, 3), (2, 4), *insertion(5)], 5, early=True) == frozenset(range(5))
    assert settled([*insertion(5), (0, 2)], 5, early=True) == frozenset()
