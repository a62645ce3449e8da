"""The choice of cases covers what breaks kernels, stays cheap, and keeps its three streams apart."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace

from fsr.contract.model import Argument, Constraints, Contract, Size
from fsr.records import Candidate, Case, CaseKind, Launch, Plan, Role
from fsr.testgen import cases, families, large


def matrix(low: int = 0, timed: tuple[int, ...] = (8192,), block: str = "128", **others: object) -> Contract:
    plan = Plan((Launch("k", ("ceil_div(rows, 128)", "1", "1"), (block, "1", "1"), "0", ("x", "y", "rows", "cols")),))
    args = (
        Argument("x", "float32", Role.IN, ("rows", "cols"), constraints=Constraints(finite=True)),
        Argument("y", "float32", Role.OUT, ("rows", "cols")),
        Argument("rows", "int32", Role.SCALAR, (), "rows"),
        Argument("cols", "int32", Role.SCALAR, (), "cols"),
    )
    sizes = (Size("rows", low, 65536, timed), Size("cols", 1, 8192, (1024,)))
    return Contract("k", sizes, args, plan, **others)  # type: ignore[arg-type]


def vector(dtype: str = "float32", minimum: int = 0, maximum: int = 1 << 26) -> Contract:
    plan = Plan((Launch("v", ("ceil_div(n, 192)", "1", "1"), ("192", "1", "1"), "0", ("x", "n")),))
    args = (Argument("x", dtype, Role.INOUT, ("n",)), Argument("n", "int32", Role.SCALAR, (), "n"))
    return Contract("v", (Size("n", minimum, maximum, (1 << 24,)),), args, plan)


def values(found: list, name: str) -> set[int]:
    return {c.size_map()[name] for c in found}


def test_the_smallest_sizes_one_primes_warps_and_blocks_are_all_there() -> None:
    found = cases.search_cases(vector(), vector().plan, 1)
    sizes = values(found, "n")
    assert {0, 1} <= sizes
    assert sizes & {31, 33}
    assert sizes & {191, 193, 385, 575}  # around the block of 192
    assert sizes & {7, 13, 61, 97, 251, 509, 1021}


def test_every_value_family_is_tried() -> None:
    assert {c.family for c in cases.search_cases(matrix(), matrix().plan, 1)} >= set(families.FLOAT)
    integers = cases.search_cases(vector("int32"), vector("int32").plan, 1)
    assert {c.family for c in integers} >= set(families.INTEGER)


def test_tiles_of_the_candidate_get_sizes_around_them() -> None:
    source = "// tile 77\nconstexpr int TILE = 96;\n__global__ void v(float *x, int n) { float a = 1.5f; }"
    with_source = cases.search_cases(vector(), Candidate(source, vector().plan), 3)
    assert values(with_source, "n") & {95, 97, 193, 287}


def test_a_size_that_the_source_names_is_tested() -> None:
    for number in (1000, 7777, 16000):
        source = f"__global__ void v(float *x, int n) {{ if (n == {number}) return; }}"
        found = cases.search_cases(vector(), Candidate(source, vector().plan), 3, max_elements=1 << 14)
        assert number in values(found, "n")


def test_lists_are_short_bounded_cheapest_first_and_reproducible() -> None:
    for contract in (matrix(), vector()):
        for limit in (cases.GPU_ELEMENTS, cases.HOST_ELEMENTS):
            found = cases.search_cases(contract, contract.plan, 7, max_elements=limit)
            costs = [cases.elements(contract, c.size_map()) for c in found]
            assert 30 <= len(found) <= 60
            assert max(costs) <= limit
            assert costs == sorted(costs)
            assert found == cases.search_cases(contract, contract.plan, 7, max_elements=limit)
            assert found != cases.search_cases(contract, contract.plan, 8, max_elements=limit)
            assert len({c.name for c in found}) == len(found)


def test_sizes_stay_within_the_contract() -> None:
    narrow = vector(minimum=64, maximum=80)
    found = [*cases.search_cases(narrow, narrow.plan, 1), *cases.held_out_cases(narrow, 1), cases.smoke(narrow, 1)]
    assert values(found, "n") <= set(range(64, 81))
    assert 64 in values(found, "n")


def test_legal_sizes_beyond_the_bound_are_tested_at_their_smallest() -> None:
    huge = vector(minimum=1 << 20)
    assert values(cases.search_cases(huge, huge.plan, 1, max_elements=1 << 14), "n") == {1 << 20}


def test_the_streams_never_share_a_seed() -> None:
    contract = matrix()
    search = {c.seed for c in cases.search_cases(contract, contract.plan, 5)}
    held_out = {c.seed for c in cases.held_out_cases(contract, 5)}
    timed = {c.seed for c in cases.timed_cases(contract, 5)} | {c.seed for c in cases.held_out_timed_cases(contract, 5)}
    assert not search & held_out
    assert not (search | held_out) & timed
    held_sizes = {c.sizes for c in cases.held_out_cases(contract, 5)}
    assert len(held_sizes - {c.sizes for c in cases.search_cases(contract, contract.plan, 5)}) >= 10


def test_timed_cases_have_several_sets_of_other_values() -> None:
    found = cases.timed_cases(matrix(timed=(8192, 100)), 1)
    assert [c.size_map()["rows"] for c in found] == [8192] * 3 + [100] * 3
    assert len({c.seed for c in found}) == 6


def test_held_out_timed_sizes_are_near_the_timed_ones_but_others() -> None:
    found = cases.held_out_timed_sizes(matrix())
    assert {"rows": 4915, "cols": 614} in found
    assert {"rows": 8192, "cols": 1024} not in found
    assert any(s["rows"] == 8191 and s["cols"] == 1023 for s in found)
    assert any(s["cols"] % 2 for s in found)
    assert cases.held_out_timed_sizes(vector(minimum=1 << 24, maximum=1 << 24)) == []


def test_alignment_and_aliasing_get_cases_of_their_own() -> None:
    contract = matrix(aliasing=(("x", "y"),))
    found = cases.search_cases(contract, contract.plan, 1)
    assert [c.alignment_bytes for c in found if c.alignment_bytes < 256 and "apart" not in c.name] == [4, 8, 4, 4]
    assert {c.apart for c in found} == {(), ("x",), ("y",)}
    assert [c.aliased for c in found if c.aliased] == [("x", "y")]
    assert cases.smallest_alignment(contract) == 4


def test_a_contract_without_sizes_still_gets_every_family() -> None:
    plan = Plan((Launch("c", ("1", "1", "1"), ("32", "1", "1"), "0", ("x",)),))
    fixed = Contract("c", (), (Argument("x", "float32", Role.INOUT, ("32",)),), plan)
    found = cases.search_cases(fixed, plan, 1)
    assert {c.family for c in found} >= set(families.FLOAT)
    assert cases.timed_cases(fixed, 1)[0].sizes == ()


def test_the_smoke_case_is_small_odd_and_normal() -> None:
    case = cases.smoke(matrix(), 1)
    assert case.family == "normal"
    assert all(33 <= v <= 161 for v in case.size_map().values())
    assert any(v % 2 for v in case.size_map().values())


def test_a_candidate_is_tested_at_the_numbers_that_only_it_names() -> None:
    base = Candidate("__global__ void k(float *x) { x[0] = 128; }", matrix().plan)
    changed = Candidate("__global__ void k(float *x) { if (rows == 1536) return; x[0] = 128; } ", matrix().plan)
    found = cases.tailored_cases(matrix(), changed, base, 1)
    assert {1535, 1536, 1537} <= values(found, "rows")
    assert 1536 in values(found, "cols")
    assert len(found) <= 8
    assert cases.tailored_cases(matrix(), base, base, 1) == []


def test_a_large_size_that_only_the_candidate_names_is_tested_all_the_same() -> None:
    base = Candidate("__global__ void v(float *x, int n) { }", vector().plan)
    for text in ("16777216", "1 << 24", "1u<<24"):
        source = f"// 99\n__global__ void v(float *x, int n) {{ if (n == ({text})) return; }}"
        found = cases.tailored_cases(vector(), Candidate(source, vector().plan), base, 1, max_elements=1 << 14)
        assert 16777216 in values(found, "n")
        assert 99 not in values(found, "n")


def test_no_size_leaves_its_range_where_a_case_grows_too_large() -> None:
    sizes = (Size("b", 1, 256, (128,)), Size("t", 0, 0, (0,)))
    contract = replace(vector(), sizes=sizes, args=(replace(vector().args[0], shape=("b", "65536")),))
    named = Candidate("if (b >= 8) ;", vector().plan)
    found = cases.tailored_cases(contract, named, Candidate("", vector().plan), 1, max_elements=1 << 14)
    assert any(case.size_map()["b"] == 8 for case in found)
    assert {case.size_map()["t"] for case in found} == {0}


def test_every_list_says_of_what_kind_its_cases_are() -> None:
    contract = vector()
    named = Candidate("__global__ void v(float *x, int n) { if (n == 7777) return; }", contract.plan)
    lists = {
        CaseKind.SMOKE: [cases.smoke(contract, 1)],
        CaseKind.SEARCH: cases.search_cases(contract, contract.plan, 1),
        CaseKind.NAMED: cases.tailored_cases(contract, named, Candidate("", contract.plan), 1),
        CaseKind.LARGE: large.large_cases(contract, 1, 1 << 20),
        CaseKind.HELD_OUT: cases.held_out_cases(contract, 1),
        CaseKind.TIMED: cases.timed_cases(contract, 1),
        CaseKind.HELD_OUT_TIMED: cases.held_out_timed_cases(contract, 1),
    }
    for kind, found in lists.items():
        assert {case.kind for case in found} == {kind}


def test_at_a_size_that_the_candidate_names_the_others_go_past_a_warp() -> None:
    """A size may be treated apart in one lane: ((rows ^ 6671) == 1051) && threadIdx.x % 32 == 18."""
    source = "__global__ void v(float *x, int rows) { if (((rows ^ 6671) == 1051) && threadIdx.x == 31) return; }"
    contract = matrix()
    for seed in range(5):
        found = cases.tailored_cases(
            contract, Candidate(source, contract.plan), Candidate("", contract.plan), seed, max_elements=1 << 14
        )
        others = [c.size_map()["cols"] for c in found if c.size_map()["rows"] == 6671 ^ 1051]
        assert others
        assert min(others) > 32


def test_the_largest_case_makes_a_product_of_sizes_overflow_where_no_size_alone_does() -> None:
    sizes = (Size("rows", 0, 1 << 20, (256,)), Size("cols", 1, 1 << 13, (2048,)))
    contract = dataclasses.replace(matrix(), sizes=sizes)
    largest = large.largest_case(contract, 1, (1 << 32) + (1 << 26)).size_map()
    assert largest["rows"] * largest["cols"] > 1 << 31
    assert all(c.size_map()["rows"] * c.size_map()["cols"] < 1 << 31 for c in large.large_cases(contract, 1, 1 << 33))


def test_pointers_stand_low_at_sizes_that_vectors_divide_too() -> None:
    """if (cols % 4 == 0) a path of whole vectors: it runs at no other size."""
    for seed in range(5):
        found = [c for c in cases.search_cases(matrix(), matrix().plan, seed) if c.alignment_bytes == 4]
        assert any(v % 8 == 0 and v for c in found for v in [c.size_map()["cols"]] if not c.size_map()["rows"] % 8)


def test_a_mask_in_the_source_brings_the_size_that_it_cuts() -> None:
    source = "__global__ void v(float *x, int n) { int i = blockIdx.x & 2047; int lane = threadIdx.x & 0xffffffffu; }"
    found = cases.tailored_cases(vector(), Candidate(source, vector().plan), Candidate("", vector().plan), 1)
    assert 2049 in values(found, "n")


def test_a_number_that_is_named_is_an_index_too_where_a_size_is_one_more() -> None:
    index = Argument("at", "int32", Role.IN, ("rows",), constraints=Constraints("0", "cols - 1"))
    base, changed = Candidate("", matrix().plan), Candidate("bool odd = at[i] == 4999;", matrix().plan)
    for contract in (replace(matrix(), args=(index, *matrix().args)), matrix()):
        found = cases.tailored_cases(contract, changed, base, 1)
        families = {c.family for c in found if c.size_map()["cols"] == 5000}
        assert families == {"limits" if contract.args[0] is index else "normal"}


def test_a_named_size_whose_case_is_too_dear_comes_with_smaller_others() -> None:
    base = Candidate("", matrix().plan)
    changed = Candidate("int tile = 73;", matrix().plan)
    usual = cases.tailored_cases(matrix(), changed, base, 1)
    asked: list[Case] = []

    def dear(case: Case) -> bool:
        asked.append(case)
        return math.prod(case.size_map().values()) > 73 * 5

    cheap = cases.tailored_cases(matrix(), changed, base, 1, dear=dear)
    assert any(math.prod(c.size_map().values()) > 73 * 5 for c in usual)
    assert {c.name for c in cheap} == {c.name for c in usual}
    for case in cheap:
        sizes, number = list(case.size_map().values()), int(case.name.split()[-1])
        assert number in sizes  # and the other gave way, as far as it goes
        assert math.prod(sizes) <= 73 * 5 or min(sizes) == 1
    assert len(asked) > len(cheap)


def test_sizes_that_vectors_divide_stay_small_where_there_are_many_of_them() -> None:
    sizes = tuple(Size(name, 1, 64, (64,)) for name in ("batch", "heads", "rows", "cols"))
    buffer = Argument("x", "float32", Role.INOUT, ("batch", "heads", "32 * rows", "cols"))
    contract = dataclasses.replace(matrix(), sizes=sizes, args=(buffer,))
    found = dict(
        cases.divisible(contract, Case("c", (("batch", 1), ("heads", 2), ("rows", 2), ("cols", 31)), "normal", 1))
    )
    assert found["cols"] in (8, 32)
    assert min(found.values()) >= 2
    assert cases.elements(contract, found) <= 4 * cases.HOST_ELEMENTS
