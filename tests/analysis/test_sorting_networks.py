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
