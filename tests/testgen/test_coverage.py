"""Cases that run what others do not: which of the drawn ones are kept, and how wide they are drawn."""

from __future__ import annotations

from collections.abc import Mapping

from fsr.backends.protocol import Coverage
from fsr.contract.load import load_contract
from fsr.records import Case
from fsr.source.file import KernelFile
from fsr.testgen.coverage import DRAWS, ELEMENTS, ENOUGH, MOST, covering, wide_draws
from fsr.testgen.fitting import elements
from tests.commandline import ROW_SUM

PARTS = {1: (0, 10), 2: (0, 12), 3: (0, 12), 4: (9, 40)}  # the last in a function that nothing calls


def cases(*names: str) -> list[Case]:
    return [Case(name, (), "normal", 0) for name in names]


def runs(ran: Mapping[str, set[int]]):
    return lambda case: Coverage(PARTS, frozenset(ran[case.name])) if case.name in ran else None


def test_nothing_is_drawn_where_the_known_cases_run_everything() -> None:
    known = cases(*"abcd")
    drawn = iter(cases("x"))
    found = covering(known, drawn, runs({name: {1, 2, 3} for name in "abcd"}))
    assert (found.cases, found.never) == ((), ())
    assert next(drawn).name == "x"


def test_drawn_cases_are_kept_while_they_run_what_few_run() -> None:
    known = cases(*"abcd")
    ran = {name: {1} for name in "abcd"} | {"v": {1}, "w": {1, 2}, "x": {1, 3}, "y": {1, 2}, "z": {1, 2, 3}}
    found = covering(known, cases(*"vwxyz", "broken", *"zzz"), runs(ran))
    assert [case.name for case in found.cases] == ["w", "x", "y", "z", "z"]  # ENOUGH of each
    assert ENOUGH == 3
    assert found.never == ()


def test_lines_that_no_case_runs_are_told_but_for_those_that_some_part_of_runs() -> None:
    found = covering(cases("a", "b", "b"), cases("c"), runs({"a": {1}, "b": {1}, "c": {1}}))
    assert (found.cases, found.never) == ((), (12,))
    found = covering(cases("a"), cases("c"), runs({"a": {1, 2}, "c": {1}}))
    assert found.never == ()


def test_nothing_is_looked_for_where_no_tool_tells_the_parts() -> None:
    asked = list[str]()

    def run(case: Case) -> Coverage:
        asked.append(case.name)
        return Coverage({}, frozenset())

    assert covering(cases("a", "b"), cases("x", "y"), run).cases == ()
    assert asked == ["a"]


def test_few_are_kept() -> None:
    def run(case: Case) -> Coverage:
        number = int(case.name)
        return Coverage({n: (0, n) for n in range(100)}, frozenset({0, number}))

    found = covering(cases("0"), cases(*map(str, range(1, 90))), run)
    assert len(found.cases) == MOST


def test_draws_are_legal_wide_and_the_same_for_a_seed() -> None:
    contract = load_contract(KernelFile.from_text(ROW_SUM, "k.cu"))
    first, again, other = (list(wide_draws(contract, seed, ROW_SUM)) for seed in (1, 1, 2))
    assert first == again != other
    assert len(first) == DRAWS
    for case in first:
        assert elements(contract, case.size_map()) <= ELEMENTS
        assert all(s.minimum <= case.size_map()[s.name] <= s.maximum for s in contract.sizes)
    for size in contract.sizes:
        drawn = [case.size_map()[size.name] for case in first]
        assert min(drawn) <= max(size.minimum, 1) * 4
        assert max(drawn) >= size.maximum // 4


def test_sizes_about_the_numbers_of_a_source_are_drawn() -> None:
    contract = load_contract(KernelFile.from_text(ROW_SUM.replace("max = 128", "max = 8192"), "k.cu"))
    source = "if (cols > 896 && cols <= 1024) fast(); else slow();"
    drawn = [case.size_map() for case in wide_draws(contract, 1, source)]
    close = [s for s in drawn if 1020 < s["cols"] < 1024]
    assert any(s["rows"] > 1 for s in close), "rows that do not all begin at a pack"
    assert any(896 < s["cols"] <= 900 for s in drawn)
    assert len({s["cols"] for s in drawn}) > DRAWS // 3
