"""shared-atomics and segment-atomics: the same totals from kernels of any shape, and from elements in runs."""

from __future__ import annotations

import pytest

from fsr.transform.atomics.segments import SegmentAtomics
from fsr.transform.atomics.shared_atomics import SharedAtomics
from tests.transform.test_atomics import GUARD, RETURN, SIZES, STRIDE, kernel

SHARED, SEGMENTS = SharedAtomics(), SegmentAtomics()
BLOCK_PARTS = (
    "extern __shared__ int none[]; int part = (n + gridDim.x - 1) / gridDim.x; int at = threadIdx.x; "
    "while (at < part && blockIdx.x * part + at < n) {{ {0} at += blockDim.x; }}"
)
SCATTERS = [
    (GUARD.format("atomicAdd(&out[abs(x[i]) % bins], 1);"), "int", "int", ""),
    (RETURN.format("if (x[i] < 3) return; atomicAdd(&out[x[i] % bins], x[i] * 2);"), "unsigned", "int", ""),
    (GUARD.format("atomicSub(&out[abs(x[i]) % bins], x[i]);"), "int", "int", ""),
    (STRIDE.format("atomicMax(out + abs(x[i]) % bins, x[i]);"), "int", "int", ""),
    (BLOCK_PARTS.format("atomicAdd(&out[abs(x[blockIdx.x * part + at]) % bins], 1.0f);"), "float", "int", ""),
    (GUARD.format("atomicAdd(&out[abs(x[i]) % bins], 1);"), "float", "int", "exact = true"),
    (GUARD.format("for (int k = 0; k < 3; ++k) { if (x[i] == k) break; atomicOr(&out[k % bins], 1 << i % 31); }"),
     "int", "int", ""),
    ("int i = blockIdx.x * blockDim.x + threadIdx.x; int v = i < n ? x[i] : 0; __syncthreads(); "
     "if (i >= n) v = 0; atomicMin(&out[abs(v) % bins], v);", "int", "int", ""),
]  # fmt: skip
OTHERS = {
    "result used": GUARD.format("int old = atomicAdd(&out[abs(x[i]) % bins], 1); if (old) atomicAdd(&out[0], 2);"),
    "read too": GUARD.format("if (out[0] < 5) atomicAdd(&out[abs(x[i]) % bins], 1);"),
    "two operations": GUARD.format("atomicAdd(&out[abs(x[i]) % bins], 1); atomicMax(&out[0], 1);"),
    "a thread ends in a loop": GUARD.format(
        "for (int k = 0; k < 3; ++k) { if (x[i] == k) return; atomicAdd(out, k); }"
    ),
    "lanes wait where others have ended": GUARD.format("__syncwarp(); atomicAdd(&out[abs(x[i]) % bins], 1);"),
    "threads wait where others have ended": GUARD.format("__syncthreads(); atomicAdd(&out[abs(x[i]) % bins], 1);"),
    "a thread ends before others meet": RETURN.format("__syncthreads(); atomicAdd(&out[abs(x[i]) % bins], 1);"),
}


@pytest.mark.parametrize(("work", "out", "x", "tolerance"), SCATTERS)
def test_a_block_gathers_what_it_adds(work: str, out: str, x: str, tolerance: str, subject_from, runner) -> None:
    subject = subject_from(kernel(work, out=out, x=x, tolerance=tolerance))
    moves = list(SHARED.moves(subject))
    assert [m.param("copies") for m in moves] == [1, 4]
    for move in moves:
        changed = SHARED.apply(subject, move)
        assert changed.source.count("atomic") == subject.candidate.source.count("atomic") + 1
        runner.check(subject, changed, *SIZES)


@pytest.mark.parametrize("work", OTHERS.values(), ids=OTHERS)
def test_atomics_that_tell_threads_something_stay(work: str, subject_from) -> None:
    assert not list(SHARED.moves(subject_from(kernel(work, out="int", x="int"))))


def test_a_buffer_that_is_large_and_sums_that_must_be_exact_stay(subject_from) -> None:
    count = GUARD.format("atomicAdd(&out[abs(x[i]) % bins], 1);")
    assert not list(SHARED.moves(subject_from(kernel(count, out="int", x="int", shape='["bins * 100"]'))))
    added = GUARD.format("atomicAdd(&out[i % bins], x[i]);")
    assert list(SHARED.moves(subject_from(kernel(added))))
    assert not list(SHARED.moves(subject_from(kernel(added, tolerance="exact = true"))))


COUNTERS = "struct Counters { TYPE seen; TYPE kept, lost; };\n__global__ void k(const int *x, Counters *out,"
OF_MEMBERS = [
    ('["1", "3"]', "atomicAdd(&out->seen, 1); if (x[i] > 3) atomicAdd(&out->lost, x[i]);"),
    ('["bins", "3"]', "int b = abs(x[i]) % bins; atomicAdd(&out[b].kept, 2); atomicAdd(&(out + b)->lost, x[i]);"),
]


def of_members(shape: str, work: str, type_: str = "int") -> str:
    text = kernel(GUARD.format(work), out=type_, x="int", shape=shape)
    return text.replace(f"__global__ void k(const int *x, {type_} *out,", COUNTERS.replace("TYPE", type_))


@pytest.mark.parametrize("type_", ["int", "unsigned", "float", "double"])
@pytest.mark.parametrize(("shape", "work"), OF_MEMBERS)
def test_members_of_structures_are_places_too(shape: str, work: str, type_: str, subject_from, runner) -> None:
    subject = subject_from(of_members(shape, work, type_))
    moves = list(SHARED.moves(subject))
    assert {m.param("copies") for m in moves} == {1, 4}
    for move in moves:
        changed = SHARED.apply(subject, move)
        assert "Counters *out" in changed.source  # callers pass what they did
        runner.check(subject, changed, *SIZES)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("kept, lost;", "kept[2];"),
        ("int seen;", "unsigned seen;"),
        ("x[i]);", "x[i]); if (x[i] == 9) out->kept = 2;"),
        ("x[i]);", "x[i]); if (x[i] == 9) atomicMax(&out->kept, 2);"),
        ("x[i]);", "x[i]); Counters copy = out[0]; if (copy.seen == -9) return;"),
    ],
    ids=["an array", "two types", "stored to", "two operations", "read"],
)
def test_members_that_are_more_than_counted_stay(old: str, new: str, subject_from) -> None:
    text = of_members(*OF_MEMBERS[0]).replace("out->lost", "out->kept" if "[2]" not in new else "out->kept[0]")
    assert old in text
    assert list(SHARED.moves(subject_from(of_members(*OF_MEMBERS[0]))))
    assert not list(SHARED.moves(subject_from(text.replace(old, new))))


IN_RUNS = [
    (GUARD.format("atomicAdd(&out[i / 5 % bins], x[i]);"), "float", "float", True),
    (GUARD.format("atomicAdd(&out[i * 7 / 40 % bins], x[i]);"), "int", "int", True),
    (RETURN.format("if (x[i] < 0) return; int p = x[i] % bins; atomicAdd(&out[p], 1);"), "double", "int", True),
    (STRIDE.format("if (x[i] > 0) { atomicAdd(&out[i * i / 64 % bins], 3); }"), "unsigned", "int", True),
    (GUARD.format("atomicAdd(&out[x[i]], 1);"), "int", "unsigned char", False),
]


@pytest.mark.parametrize(("work", "out", "x", "likely"), IN_RUNS)
def test_neighbours_of_one_place_add_up_first(work: str, out: str, x: str, likely: bool, subject_from, runner) -> None:
    subject = subject_from(kernel(work, out=out, x=x, **({} if likely else {"shape": '["bins * 200"]'})))
    moves = list(SEGMENTS.moves(subject))
    assert [m.param("rounds") for m in moves] == [1, 4]
    assert likely or not list(SEGMENTS.moves(subject_from(kernel(work, out=out, x=x))))  # bins serve
    assert (moves[0].gain > 2) is likely
    for move in moves:
        runner.check(subject, SEGMENTS.apply(subject, move), *(s for s in SIZES if likely or s["bins"] > 255))


def test_no_runs_where_an_element_adds_more_than_once(subject_from) -> None:
    loop = "for (int k = 0; k < 2; ++k) atomicAdd(&out[i / 2 + k], 1);"
    for work in ("atomicAdd(&out[i / 2], x[i]); atomicAdd(&out[i / 3], x[i]);", loop, "atomicMax(&out[i / 2], 1);"):
        assert not list(SEGMENTS.moves(subject_from(kernel(GUARD.format(work), out="int", x="int"))))
