"""Overloads of atomics for one more type, which hand on to CUDA's: what they add is gathered as what CUDA's adds is,
and an array whose elements they get by value may lie elsewhere. Other functions by such a name are not."""

from __future__ import annotations

import itertools

import pytest

from fsr.source.parse import parse_device_functions
from fsr.transform.atomics.shared_atomics import SharedAtomics
from fsr.transform.details.shared_locals import SharedLocals
from fsr.transform.fewer.called import folds_of_atomics, forwarded_atomics
from fsr.transform.protocol import Action

SIZES = [{"n": n} for n in (1, 33, 2000)]
OWN = """
__device__ unsigned long atomicAdd(unsigned long *address, unsigned long value)
{
    if (sizeof(unsigned long) == sizeof(unsigned long long))
        return atomicAdd(reinterpret_cast<unsigned long long *>(address), value);
    else return 0;
}
"""
SWAPPED = """
__device__ double atomicAdd(double *address, double value)
{
    unsigned long long int *as = (unsigned long long int *)address;
    unsigned long long int old = *as, assumed;
    do {
        assumed = old;
        old = atomicCAS(as, assumed, __double_as_longlong(value + __longlong_as_double(assumed)));
    } while (assumed != old);
    return __longlong_as_double(old);
}
"""


def kernel(head: str = OWN, add: str = "atomicAdd(&sums[g], own[g]);") -> str:
    return f"""
// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 100000, timed = 65536}}
// [args]
// group = {{role = "in", shape = ["n"]}}
// sums = {{role = "inout", shape = [8]}}
// n = {{value = "n"}}
// [launch]
// grid = 4
// block = 64
// ///
#include <stdint.h>
{head}
__global__ void k(const unsigned char *group, uint64_t *sums, int n)
{{
    uint64_t own[8] = {{0}};
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        own[group[i] & 7] += 1 + i;
    for (int g = 0; g < 8; g++) {{ {add} }}
}}
"""


@pytest.mark.parametrize("action", [SharedAtomics(), SharedLocals()], ids=["shared-atomics", "shared-locals"])
def test_what_an_overload_adds_is_gathered(action: Action, subject_from, runner) -> None:
    subject = subject_from(kernel())
    moves = list(action.moves(subject))
    assert moves
    for move in moves:
        runner.check(subject, action.apply(subject, move), *SIZES)


WRONG = [
    ("value);\n", "value + 1ul);\n"),
    ("== sizeof", "!= sizeof"),
    ("return atomicAdd", "return atomicSub"),
    ("unsigned long long *>", "unsigned int *>"),
    ("(address)", "(address + 1)"),
    ("unsigned long *address, unsigned long value", "unsigned long *address, unsigned int value"),
    ("\n{\n", "\n{\n    *address += 1;\n"),
]


@pytest.mark.parametrize(("old", "new"), WRONG)
def test_others_by_that_name_are_left_alone(old: str, new: str, subject_from) -> None:
    assert old in OWN
    head = OWN.replace(old, new)
    assert not forwarded_atomics(head)
    assert not list(SharedAtomics().moves(subject_from(kernel(head))))
    assert not list(SharedLocals().moves(subject_from(kernel(head))))


def test_two_overloads_are_told_by_neither() -> None:
    assert "atomicAdd" in parse_device_functions(OWN + SWAPPED)
    assert not forwarded_atomics(OWN + SWAPPED)
    assert folds_of_atomics(OWN) == {"atomicAdd": "Add"}


def test_extremes_keep_their_sign() -> None:
    signed = (
        OWN.replace("atomicAdd", "atomicMax").replace("unsigned long *", "long *").replace("unsigned long v", "long v")
    )
    assert not forwarded_atomics(signed.replace("unsigned long atomicMax", "long atomicMax"))
    assert forwarded_atomics(OWN.replace("atomicAdd", "atomicMax")) == {"atomicMax"}


def test_a_table_needs_room_beside_what_the_block_has(subject_from) -> None:
    held = "__shared__ int held[12280]; held[threadIdx.x] = n; uint64_t own[8] = {0};"
    full = kernel().replace("uint64_t own[8] = {0};", held)
    assert not list(SharedAtomics().moves(subject_from(full)))
    assert list(SharedAtomics().moves(subject_from(full.replace("12280", "12000"))))


LOOP = """
__device__ void least(double *place, double value)
{
    unsigned long long *bits = BITS;
    BEGUN
    do {
        seen = old;
        ENDS
        old = atomicCAS(bits, seen, __double_as_longlong(NEW));
    } while (seen != old);
}
"""
SPELLED = {
    "BITS": ("(unsigned long long *)place", "reinterpret_cast<unsigned long long *>(place)"),
    "BEGUN": (
        "unsigned long long old = *bits, seen;", "unsigned long long seen; unsigned long long old = *bits;",
        "unsigned long long old = *(volatile unsigned long long *)bits; unsigned long long seen;",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("ends", "new", "fold"),
    [
        ("", "fmin(value, __longlong_as_double(seen))", "Min"),
        ("", "value + __longlong_as_double(seen)", "Add"),
        ("if (__longlong_as_double(seen) <= value) return;", "value", "Min"),
        ("if (value >= __longlong_as_double(seen)) break;", "value", "Min"),
        ("if (__longlong_as_double(seen) >= value) return;", "value", "Max"),
        ("if (value < __longlong_as_double(seen)) return;", "value", "Max"),
        ("if (__longlong_as_double(seen) <= value) return;", "value + 1", None),
        ("if (seen <= value) return;", "value", None),
        ("if (__longlong_as_double(seen) <= value && value > 0) return;", "value", None),
        ("", "value", None),
    ],
)
def test_loops_around_compare_and_swap_are_read_however_they_are_spelled(ends: str, new: str, fold: str | None) -> None:
    for bits, begun in itertools.product(*SPELLED.values()):
        text = LOOP.replace("BITS", bits).replace("BEGUN", begun).replace("ENDS", ends).replace("NEW", new)
        assert folds_of_atomics(text).get("least") == fold
