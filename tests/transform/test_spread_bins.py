"""spread-bins: copies of what a block adds up by atomics in its own memory, whatever bins are made of."""

from __future__ import annotations

import random

import pytest

from fsr.transform.atomics.bin_copies import SpreadBins
from tests.transform.test_fewer_blocks import START, kernel

SIZES = [{"n": n, "m": m} for n, m in [(1, 1), (63, 2), (64, 3), (1000, 5), (4099, 1)]]
BINS = f"""__shared__ T bins[32]; {START} if (t < 32) bins[t] = 0; __syncthreads();
    if (i < n) atomicAdd(&bins[(int)(x[i] * 5) & 31], T(1)); __syncthreads();
    if (t < 32) atomicAdd(&to[t], bins[t]);"""
CUT = f"""extern __shared__ char memory[]; T *bins = (T *)memory; unsigned *counts = (unsigned *)(bins + 32); {START}
    for (int b = t; b < 32; b += blockDim.x) {{ bins[b] = 0; counts[b] = 0; }}
    __syncthreads();
    if (i < n) {{ int b = (int)(x[i] * 5) & 31; atomicAdd(bins + b, x[i]); atomicAdd(&counts[b], 1u); }}
    __syncthreads();
    if (t < 32) {{ atomicAdd(&to[t], bins[t]); if (counts[t] > 0u) atomicAdd((unsigned *)&to[t + 32], counts[t]); }}"""


def check(text: str, subject_from, runner, copies: set[int]) -> None:
    subject, action = subject_from(text), SpreadBins()
    moves = list(action.moves(subject))
    assert {int(m.param("copies")) for m in moves} == copies
    for move in moves:
        runner.check(subject, action.apply(subject, move), *SIZES)


@pytest.mark.parametrize("seed", range(12))
def test_a_block_has_copies_of_its_bins(seed: int, subject_from, runner) -> None:
    """Sums, extremes and bits of numbers of any kind, bins that further ones are made from, two arrays or one."""
    rng = random.Random(seed)
    type_ = rng.choice(["int", "unsigned", "float", "double"])
    fold, empty = rng.choice([("Add", "0"), ("Max", "-9"), ("Min", "100"), ("Or", "0"), ("Xor", "0")])
    if type_ in ("float", "double"):
        fold, empty = "Add", rng.choice(["0", "0.0f", "T(0)"])
    text = BINS.replace("bins[t] = 0", f"bins[t] = {empty}").replace("atomicAdd", f"atomic{fold}")
    text = text.replace("T(1)", rng.choice(["T(1)", "T(3) * T(i % 7)", "x[i]"]) if fold == "Add" else "T(i % 61)")
    if rng.random() < 0.4:
        text = text.replace("bins[t]);", "bins[t]); y[i % (n * m)] = bins[0] + bins[bins[1] > T(3) ? 1 : t % 32];")
        text = text.replace(f"if (t < 32) atomic{fold}", f"if (i < n) if (t < 32) atomic{fold}")
    if rng.random() < 0.4:
        text = text.replace("&bins[(int)(x[i] * 5) & 31]", "bins + ((int)(x[i] * 5) & 31)")
    block = rng.choice(["64", "[16, 4]", "96"])
    text = text.replace("t = threadIdx.x", "t = threadIdx.x + threadIdx.y * blockDim.x").replace(
        "blockIdx.x * blockDim.x", "blockIdx.x * 64"
    )
    if block == "96":
        text = text.replace("if (i < n)", "if (t < 64 && i < n)")
    check(kernel(text, type_=type_, block=block), subject_from, runner, {4, 8, 32})


def test_all_of_the_launchs_memory_is_copied(subject_from, runner) -> None:
    check(kernel(CUT, shared="256"), subject_from, runner, {4, 8, 32})
    check(kernel(CUT, shared='"2048 + 16 * m"'), subject_from, runner, {4, 8})


LEAST = """__device__ void least(float *place, float value)
{
    int *bits = (int *)place;
    int old = *(volatile int *)bits, seen;
    do {
        seen = old;
        if (__int_as_float(seen) <= value) return;
        old = atomicCAS(bits, seen, __float_as_int(value));
    } while (seen != old);
}"""


def test_loops_around_compare_and_swap_are_atomics_too(subject_from, runner) -> None:
    body = (
        BINS.replace("bins[t] = 0", "bins[t] = 1e30f").replace("atomicAdd(&bins", "least(&bins").replace("T(1)", "x[i]")
    )
    body = body.replace("atomicAdd(&to[t], bins[t])", "if (blockIdx.x == 0) to[t] = bins[t]")
    check(kernel(body, before=LEAST), subject_from, runner, {4, 8, 32})


def test_float_sums_come_in_another_order(subject_from) -> None:
    assert not list(SpreadBins().moves(subject_from(kernel(BINS, exact="exact = true"))))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("bins[t] = 0", "bins[t] = 1"),
        ("bins[t] = 0", "bins[t] = T(t)"),
        ("bins[t]);", "bins[t]); bins[t % 32] += 1;"),
        ("bins[t]);", "bins[t]); bins[t % 32]++;"),
        ("bins[t]);", "bins[t]); T *p = &bins[3]; to[40] = *p;"),
        ("bins[t]);", "bins[t]); to[t] = *bins;"),
        ("T(1));", "T(1)); if (i < n) atomicMax(&bins[i & 31], T(2));"),
        ("if (i < n) atomicAdd(&bins[(int)(x[i] * 5) & 31], T(1))", "if (i < n) y[i] = atomicAdd(&bins[i & 31], T(1))"),
        ("__shared__ T bins[32];", "__shared__ volatile T bins[32];"),
        ("__shared__ T bins[32];", "__shared__ T bins[4000];"),
    ],
)
def test_nothing_is_offered_where_more_is_done_with_bins(old: str, new: str, subject_from) -> None:
    text = kernel(BINS, type_="int")
    assert old in text
    assert list(SpreadBins().moves(subject_from(text)))
    assert not list(SpreadBins().moves(subject_from(text.replace(old, new))))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(bins + 32)", "(bins + 32); counts += n"),
        ("bins[b] = 0;", "bins[b] = 0; ((T *)memory)[b] = 0;"),
        ("T *bins = (T *)memory;", "T *bins = (T *)memory; T *more = bins + 64; more[0] = x[0];"),
        ("atomicAdd(bins + b, x[i]);", "bins[t % 32] = x[i];"),
    ],
)
def test_nor_where_the_launchs_memory_is_more_than_bins(old: str, new: str, subject_from) -> None:
    assert old in CUT
    text = kernel(CUT.replace(old, new), shared="1024")
    assert not list(SpreadBins().moves(subject_from(text)))
