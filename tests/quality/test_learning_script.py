"""The script that says what experience is worth: how it counts, and that it deals fairly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.learning import HARD, dealt, reached, summary
from benchmarks.small_world import DEEPER, DEPTH, ROOT, Book, Few
from fsr.bench.suite import load_suite
from fsr.records import Candidate
from fsr.runs.kernel import load_kernel
from fsr.search.proposal import Rules

ROOT_FOLDER = Path(__file__).parents[2]


def row(name: str, best: float, random: float, guesses: float, learned: float) -> dict[str, Any]:
    needed = {"random": [random], "guesses": [guesses], "learned": [learned]}
    return {"workload": name, "best": best, "needed": needed}


def test_evaluations_are_counted_to_the_first_that_is_good_enough() -> None:
    assert reached([1.0, 2.0, 9.5, 10.0], 10.0, 5) == 3
    assert reached([1.0, 2.0], 10.0, 5) == 6
    assert reached([], 1.0, 5) == 6


def test_ratios_leave_out_where_there_is_nothing_to_find() -> None:
    rows = [row("a", 4.0, 10, 2, 1), row("b", 2.0, 20, 2 * HARD, 2), row("none", 1.01, 1, 1, 1)]
    told = summary(rows)
    assert told["nothing to find"] == ["none"]
    assert told["all"]["learned/random"] == {"geometric mean": 0.1, "median": 0.1, "worst": 0.1}
    assert told["first guess wrong"]["workloads"] == 1
    assert told["first guess wrong"]["learned/guesses"]["median"] == round(2 / (2 * HARD), 3)


def test_a_third_is_held_back_the_same_for_a_seed() -> None:
    workloads = load_suite(ROOT_FOLDER / "benchmarks" / "suite").workloads
    learned, held = dealt(workloads, 1)
    assert (len(learned), len(held)) == (50, 25)
    assert {w.name for w in learned} | {w.name for w in held} == {w.name for w in workloads}
    assert dealt(workloads, 1) == (learned, held)
    assert dealt(workloads, 2)[1] != held


def test_the_space_is_bounded_and_the_same_from_a_book(tmp_path: Path) -> None:
    kernel = load_kernel(ROOT_FOLDER / "examples" / "softmax.cu")
    rules = Rules(kernel.contract)

    def walked(space: Few) -> list[str]:
        first = space.moves(kernel.baseline)
        after = space.applied(kernel.baseline, *first[0])
        assert isinstance(after, Candidate)
        assert len(first) <= ROOT
        second = space.moves(after)
        assert len(second) <= DEEPER
        assert space.replay(kernel.baseline, (first[0][1].name,)) == after
        return [m.name for _, m in (*first, *second)]

    once = walked(Few(rules, Book(tmp_path / "k.jsonl")))
    book = Book(tmp_path / "k.jsonl")
    assert walked(Few(rules, book)) == once
    assert (book.count("moves"), book.cost_s) == (2, 0.0)
    deep = Candidate(kernel.baseline.source, kernel.baseline.plan, ("a@b",) * DEPTH)
    assert Few(rules, book).moves(deep) == []
