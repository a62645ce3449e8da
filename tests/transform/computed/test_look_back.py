"""Running folds in one launch: right in every type, over lines, however far back a block looks, whatever the order."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.protocol import Buffer
from fsr.computation.expression import Affine, Fold, Load
from fsr.contract.model import concrete_launches
from fsr.evaluation.orders import ORDERS
from fsr.guard.check import guard
from fsr.hardware.c_types import BY_DTYPE
from fsr.records import Image, Role, ScalarValue
from fsr.transform.protocol import Move
from tests.transform.computed.test_families import FAMILY, at, computed
from tests.transform.conftest import subject_of

LOOK_BACK = FAMILY["scan-look-back"]
# One thread a line, one element after the other.
SERIAL = """// /// fsr
// entry = "k"
// [sizes]
// rows = {min = 1, max = 1024, timed = ROWS}
// n = {min = 1, max = 16777216, timed = 1048576}
// [args]
// x = {role = "in", dtype = "DTYPE", shape = ["rows", "n"]}
// y = {role = "out", dtype = "DTYPE", shape = ["rows", "n"]}
// [launch]
// grid = "rows"
// block = 1
// [tolerance]
// sum_length = "n"
// ///
__global__ void k(const TYPE *x, TYPE *y, int rows, int n) {
  TYPE total = START;
  for (int i = 0; i < n; i++) {
    const TYPE own = x[blockIdx.x * n + i];
    BODY
  }
}"""
BODIES = {
    ("sum", 1): "total += own; y[blockIdx.x * n + i] = total;",
    ("sum", 0): "y[blockIdx.x * n + i] = total; total += own;",
    ("max", 1): "total = fmax(total, own); y[blockIdx.x * n + i] = total;",
}


def subject_for(dtype="float32", op="sum", inclusive=1, rows=1):
    text = SERIAL.replace("BODY", BODIES[op, inclusive]).replace("TYPE *", f"{BY_DTYPE[dtype].spelling} *")
    text = text.replace("DTYPE", dtype).replace("TYPE", BY_DTYPE[dtype].spelling).replace("ROWS", str(rows))
    text = text.replace("START", "-INFINITY" if op == "max" else "0")
    fold = Fold(op, (("k0", Affine((("j", 1),), inclusive)),), Load("x", at("i", "k0"), dtype))
    return computed(subject_of(text), {"y": fold}, ("rows", "n"))


def made_of(subject, threads, pack, packs):
    params = (("threads", threads), ("pack", pack), ("packs", packs))
    made = LOOK_BACK.apply(subject, Move(LOOK_BACK.name, "plan", params))
    assert guard(made, subject.candidate) is None
    return made


@pytest.mark.parametrize(("dtype", "op", "inclusive"), [
    ("float32", "sum", 1), ("float32", "sum", 0), ("float32", "max", 1),
    ("float64", "sum", 1), ("int32", "sum", 0), ("int64", "sum", 1),
])  # fmt: skip
@pytest.mark.parametrize("alignment", [256, 8])
def test_types_and_lines(runner, dtype, op, inclusive, alignment):
    subject = subject_for(dtype, op, inclusive, rows=3)
    for made, sizes in product(
        (made_of(subject, 64, 2, 2), made_of(subject, 32, 1, 1)), ((1, 1), (3, 1500), (2, 255), (1, 9001))
    ):
        names = dict(zip(("rows", "n"), sizes, strict=True))
        want = runner.outputs(subject.candidate, subject.contract, names, alignment=alignment)["y"]
        got = runner.outputs(made, subject.contract, names, alignment=alignment)["y"]
        np.testing.assert_array_equal(got, want, err_msg=f"{names}")


def test_groups_of_groups(runner):
    subject = subject_for()
    sizes = {"rows": 1, "n": 32 * (2 * 1024 + 70)}  # tiles of 32 elements, so that three folds stand before the last
    want, got = (
        runner.outputs(c, subject.contract, sizes)["y"] for c in (subject.candidate, made_of(subject, 32, 1, 1))
    )
    np.testing.assert_array_equal(got, want)


def watched(runner, made, contract, sizes):
    """Faults and outputs of each order."""
    image = HostToolchain(watched=True).compile(made)
    assert isinstance(image, Image), image
    x = np.random.default_rng(3).standard_normal((sizes["rows"], sizes["n"])).astype("f4")
    scalars = {name: ScalarValue("int32", value) for name, value in sizes.items()}
    buffers = [Buffer("x", x, Role.IN), Buffer("y", np.full_like(x, 77), Role.OUT)]
    buffers += [Buffer(s.name, np.zeros(4096, s.dtype), None, zeroed=s.zeroed) for s in made.plan.scratch]
    launches = concrete_launches(made.plan, contract, sizes, scalars)
    return [runner.device.watch(image, launches, buffers, order, 20.0) for order in ORDERS]


SHORT, LONG = {"rows": 1, "n": 32 * 75}, {"rows": 1, "n": 32 * (1024 + 3)}


def test_every_order_of_blocks_gives_the_same_bits(runner):
    subject = subject_for()
    seen = watched(runner, made_of(subject, 32, 1, 1), subject.contract, SHORT)
    assert [fault for faults, _ in seen for fault in faults] == []
    plain = [arrays["y"].tobytes() for _, arrays in seen]
    assert len(set(plain)) == 1


@pytest.mark.parametrize(("old", "new"), [
    ("of_tiles + tile, all", "of_tiles + tile, all * 0.5f"),
    ("while (word[half] >> 32 == 0)", "while (false)"),
    ("fsr_announce(of_groups + group, whole)", "fsr_announce(of_groups + group, near)"),
    ("row || (threadIdx.x == 31 && group >= 32)", "row"),
])  # fmt: skip
def test_what_is_left_out_shows(runner, old, new):
    subject = subject_for()
    made = made_of(subject, 32, 1, 1)
    assert old in made.source
    changed = replace(made, source=made.source.replace(old, new))
    right, seen = (runner.outputs(c, subject.contract, LONG)["y"] for c in (made, changed))
    if np.array_equal(seen, right):  # where tiles run one after the other, nobody waits
        right, seen = (
            [a["y"].tobytes() for _, a in watched(runner, c, subject.contract, SHORT)] for c in (made, changed)
        )
        assert right != seen


def test_a_block_is_told_by_what_it_drew_alone():
    """One that waited for others by its own number might wait for blocks that cannot begin before it ends."""
    source = made_of(subject_for(rows=2), 64, 2, 2).source
    assert "atomicAdd(posts, 1ULL)" in source
    assert "blockIdx" not in source.split("__global__")[1]


def test_many_lines_are_left_to_a_block_each():
    assert not list(LOOK_BACK.moves(subject_for(rows=1024)))
    (first, *_) = LOOK_BACK.moves(subject_for(rows=2))
    (scratch,) = LOOK_BACK.apply(subject_for(rows=2), first).plan.scratch
    assert scratch.zeroed
