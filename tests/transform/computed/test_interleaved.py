"""Records of a few elements: a point makes all of its own, by accesses of whole packs, whatever it computes there."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from fsr.backends.host.runtime import find_compiler
from fsr.backends.host.traced import watches
from fsr.computation.computation import Buffer, Computation, Statement
from fsr.computation.expression import Affine, Case, Expr, Load, Number, Op
from fsr.lifting.lift import lift
from fsr.transform.computed.interleaved import by_planes, by_records
from fsr.transform.computed.parts import Part
from fsr.transform.protocol import Subject
from tests.transform.computed.test_families import FAMILY, check
from tests.transform.conftest import subject_of

pytestmark = pytest.mark.skipif(not watches(find_compiler()), reason="watching a kernel needs clang++ 16 or newer")

HEAD = """// /// fsr
// entry = "k"
// [sizes]
// h = {min = 1, max = 4096, timed = 1080}
// w = {min = 1, max = 4096, timed = 1920}
// [args]
ARGS
// [launch]
// grid = ["ceil_div(w, 32)", "ceil_div(h, 8)"]
// block = [32, 8]
// ///
__global__ void k(PARAMS, int h, int w) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  if (x >= w || y >= h) return;
  int p = y * w + x;
BODY
}"""


def kernel(body: str, params: str, **args: str) -> str:
    told = "".join(f"// {name} = {{{text}}}\n" for name, text in args.items())
    return HEAD.replace("ARGS\n", told).replace("PARAMS", params).replace("BODY", body)


def buffer(role: str, *last: int, more: str = "") -> str:
    return f'role = "{role}", shape = ["h", "w"{"".join(f", {n}" for n in last)}]{more}'


CASES = {
    "tinted bytes": kernel(
        "  int r = a[3 * p], g = a[3 * p + 1], b = a[3 * p + 2], m = (77 * r + 150 * g + 29 * b) >> 8;\n"
        "  o[3 * p] = (m + r) >> 1; o[3 * p + 1] = g; o[3 * p + 2] = m > 99 ? m : b;",
        "const unsigned char *a, unsigned char *o", a=buffer("in", 3), o=buffer("out", 3),
    ),
    "one byte of three": kernel(
        "  o[p] = (77 * a[3 * p] + 150 * a[3 * p + 1] + 29 * a[3 * p + 2]) >> 8;",
        "const unsigned char *a, unsigned char *o", a=buffer("in", 3), o=buffer("out"),
    ),
    "turned in place": kernel(
        "  float s, c; sincosf(t, &s, &c);\n  float u = a[2 * p], v = a[2 * p + 1];\n"
        "  a[2 * p] = c * u - s * v; a[2 * p + 1] = s * u + c * v;",
        "float *a, float t", a=buffer("inout", 2), t="low = -3.0, high = 3.0",
    ),
    "three of four in place": kernel(
        "  int m = (77 * a[4 * p] + 150 * a[4 * p + 1] + 29 * a[4 * p + 2]) >> 8;\n"
        "  a[4 * p] = m; a[4 * p + 1] = m / 2; a[4 * p + 2] = 255 - m;",
        "unsigned char *a", a=buffer("inout", 4),
    ),
    "scaled fours": kernel(
        "  float4 v = a[p]; float n = rsqrtf(v.x * v.x + v.y * v.y + v.z * v.z + 1.0f) * s[y * w + x];\n"
        "  o[p] = make_float4(v.x * n, v.y * n, v.z * n, 1.0f);",
        "const float4 *a, const float *s, float4 *o",
        a=buffer("in", 4, more=', dtype = "float32", alignment = 16'), s=buffer("in"),
        o=buffer("out", 4, more=', dtype = "float32", alignment = 16'),
    ),
}  # fmt: skip
STORES = {
    "tinted bytes": 3, "one byte of three": 1, "turned in place": 2, "three of four in place": 4, "scaled fours": 4
}  # fmt: skip


@cache
def lifted(text: str) -> Subject:
    bare = subject_of(text)
    found = lift(bare.contract, bare.candidate, limit_s=60)
    assert found.computation is not None, found.why
    return replace(bare, computation=found.computation)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("alignment", [256, 4])
def test_records_are_read_and_written_whole(runner, name, alignment):
    if name == "scaled fours" and alignment == 4:
        pytest.skip("its contract promises 16")
    subject = lifted(CASES[name])
    moves = check(runner, subject, "pack-elements", ((1, 1), (3, 64), (5, 7), (16, 48)), alignment=alignment)
    body = FAMILY["pack-elements"].apply(subject, moves[0]).source.split("__global__")[1]
    whole = body[: body.index("} else {")]
    assert whole.count("_records1_at = reinterpret_cast<const fsr_pack<") == 1
    stored = [line for line in whole.splitlines() if line.lstrip().startswith(("reinterpret_cast<", "*reinterpret_"))]
    assert len(stored) == STORES[name], "no element is stored alone"
    assert "i2" not in body, "no condition on the place in a record is left"


ROW, LAST = (Number(Affine(((d, 1),)), "int64") for d in ("i", "i2"))


def of_three(value: Expr, count: str = "3") -> list[Computation]:
    """What ``y[i, i2] = value`` is over records."""
    dims = (("i", "n"), ("i2", count))
    buffers = tuple(Buffer(b, "float32", ("n", count)) for b in "xy")
    return list(by_records(Computation(("n",), buffers, (Statement("map", "y", dims, value, (ROW, LAST)),))))


def element(at: Expr) -> Load:
    return Load("x", (ROW, at), "float32")


MIXED = Case(Affine((("i2", 1),)), Affine((), 0), element(Number(Affine((), 2), "int64")), element(LAST))


def test_each_place_in_a_record_is_known():
    (found,) = of_three(MIXED)
    assert [s.place[1].index.constant for s in found.statements] == [0, 1, 2]
    assert [s.value.indices[1].index.constant for s in found.statements] == [2, 1, 2]
    assert {s.domain for s in found.statements} == {(("i", "n"),)}


FIELDS = kernel(
    "  int *r = a + 8 * p;\n  r[7] = r[0] * r[5] + ((r[1] + r[2]) ^ r[6]) - r[3] * r[4];", "int *a",
    a=buffer("inout", 8),
)  # fmt: skip


@pytest.mark.parametrize("alignment", [256, 4])
def test_a_field_alone_is_written_where_the_others_stay(runner, alignment):
    moves = check(runner, lifted(FIELDS), "pack-elements", ((1, 1), (3, 64), (5, 7)), alignment=alignment)
    alone = next(m for m in moves if dict(m.params)["pack"] == 1)
    body = FAMILY["pack-elements"].apply(lifted(FIELDS), alone).source.split("__global__")[1]
    whole = body[: body.index("} else {")]
    assert "_records1_at[1]}" in whole, "the record is read by two accesses"
    assert whole.count("] = ") == whole.count("] = {") + 1, "one element is written"


PLANES = kernel(
    "  int n = h * w;\n  o[p] = r[p] + 0.5f; o[n + p] = g[p] * s[x]; o[2 * n + p] = b[p];",
    "const float *r, const float *g, const float *b, const float *s, float *o", r=buffer("in"), g=buffer("in"),
    b=buffer("in"), s='role = "in", shape = ["w"]', o='role = "out", shape = [3, "h", "w"]',
)  # fmt: skip


@pytest.mark.parametrize("alignment", [256, 4])
def test_planes_that_are_made_of_something_else_each_are_made_together(runner, alignment):
    moves = check(runner, lifted(PLANES), "pack-elements", ((1, 1), (3, 64), (5, 7)), alignment=alignment)
    body = FAMILY["pack-elements"].apply(lifted(PLANES), moves[0]).source.split("__global__")[1]
    whole = body[: body.index("} else {")]
    assert whole.count("*reinterpret_cast<const fsr_pack<float, 4>") == 4
    assert whole.count("*reinterpret_cast<fsr_pack<float, 4>") == 3
    assert " ? " not in body, "no condition on the plane is left"


def over_planes(value: Expr, count: str) -> list[Computation]:
    """What ``y[i, i2] = value`` is over ``count`` lines."""
    dims = (("i", count), ("i2", "n"))
    buffers = tuple(Buffer(b, "float32", (count, "n")) for b in "xy")
    return list(by_planes(Computation(("n",), buffers, (Statement("map", "y", dims, value, (ROW, LAST)),))))


FIRST = Case(Affine((("i", 1),)), Affine((), 0), element(LAST), Op("neg", (element(LAST),)))


def test_planes_that_are_made_alike_and_many_lines_stay_as_they_are():
    assert over_planes(element(LAST), "3") == []
    assert over_planes(FIRST, "64") == []
    assert over_planes(replace(FIRST, left=Affine((("i", 1), ("i2", 1)))), "2") == []  # an edge of a tap, not a plane
    (found,) = over_planes(FIRST, "2")
    assert [s.place[0].index.constant for s in found.statements] == [0, 1]
    assert not any(isinstance(s.value, Case) for s in found.statements)


def test_what_each_point_reads_beside_the_field_it_writes_is_no_hindrance():
    field_, other = (Number(Affine((), n), "int64") for n in (3, 1))
    value = Op("sum", (element(other), element(field_)))
    buffer_, dims = Buffer("x", "float32", ("n", "4")), (("i", "n"),)
    for index, free in ((field_, True), (other, False)):
        written = Statement("map", "x", dims, value, (ROW, index))
        shifted = Load("x", (Number(Affine((("i", 1),), 1), "int64"), other), "float32")
        read = replace(written, value=Op("sum", (shifted, value)))
        assert Part(("n",), (buffer_,), dims, (), (written,)).by_points
        assert Part(("n",), (buffer_,), dims, (), (read,)).by_points is free


@pytest.mark.parametrize(("value", "count"), [
    (Op("neg", (element(LAST),)), "3"),  # a line
    (MIXED, "m"),
    (MIXED, "64"),
])  # fmt: skip
def test_lines_and_long_rows_are_none(value, count):
    assert of_three(value, count) == []
