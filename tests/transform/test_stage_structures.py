"""stage-slices of structures with members of several types, reached by index, by reference or by pointer."""

from __future__ import annotations

import random

import numpy as np
import pytest

from fsr.source.element_references import with_elements
from fsr.source.parse import parse_kernels
from fsr.source.walk import names_mentioned
from fsr.transform.slices.action import StageSlices

ACTION = StageSlices()
SIZES = (1, 2, 63, 64, 65, 200)
TYPES = ("int", "float", "double", "short", "unsigned char")
WAYS = {
    "index": ("", "bodies[i]."),
    "reference": ("{const}Body &b = bodies[i];", "b."),
    "inner reference": ("", "b."),  # declared where it is used
    "pointer": ("{const}Body *b = bodies + i;", "b->"),
    "address": ("{const}Body *b = &bodies[i];", "b->"),
}


def composed(seed: int) -> tuple[str, str, bool]:
    """A kernel over structures, the way in which it reaches them, and whether it writes them."""
    draw = random.Random(seed)
    types = draw.choices(TYPES, weights=(4, 4, 2, 1, 1), k=draw.randint(3, 9))
    types[0], types[1] = "float", "int"  # several types, and a word at least
    way, writes = draw.choice(list(WAYS)), draw.random() < 0.5
    declared, member = WAYS[way]
    declared = declared.format(const="" if writes else "const ")
    members = [f"m{n}" for n in range(len(types))]
    read = draw.sample(range(len(types)), draw.randint(2, len(types)))
    sum_ = " + ".join(f"(float){member}m{n}" for n in read)
    lines = [f"float s = {sum_};"]
    if writes:
        for n in draw.sample(range(len(types)), draw.randint(1, 3)):
            value = f"({types[n]})(s * 0.5f)" if types[n] in ("float", "double") else "s > 0.5f"
            lines.append(f"{member}m{n} = {value};")
    lines.append("out[i] = s;")
    work = "\n    ".join(lines)
    if way == "inner reference":
        const = "" if writes else "const "
        work = f"if (i % 3 != 1) {{ {const}Body &b = bodies[i];\n    {work} }} else out[i] = 0.0f;"
    fields = "\n  ".join(f"{t} {m};" for t, m in zip(types, members, strict=True))
    limits = "\n".join(f"// {m} = {{low = 0, high = 100}}" for m in members)
    const = "" if writes else "const "
    return (
        f"""// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 100000, timed = 65536}}
// [args]
// n = {{value = "n"}}
// out = {{role = "out", shape = ["n"]}}
// [args.bodies]
// role = "{"inout" if writes else "in"}"
// shape = ["n"]
{limits}
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
struct Body {{
  {fields}
}};
__global__ void k({const}Body *bodies, float *out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    {declared}
    {work}
}}
""",
        way,
        writes,
    )


@pytest.mark.parametrize("seed", range(30))
def test_structures_are_copied_as_words(seed: int, subject_from, runner) -> None:
    text, _, writes = composed(seed)
    subject = subject_from(text)
    layout = subject.contract.argument("bodies").layout
    moves = [m for m in ACTION.moves(subject) if m.param("threads") == 64]
    assert bool(moves) == (layout is not None and layout.word == 4), text
    for move in moves[:1]:
        changed = ACTION.apply(subject, move)
        assert "bodies_slices" in changed.source
        assert ("fsr_store_slices<" in changed.source.partition("__global__")[2]) == writes
        for n in SIZES:
            shape = subject.contract.shape(subject.contract.argument("bodies"), {"n": n})
            words = np.random.default_rng(seed).uniform(0, 100, shape).astype(np.float32).view(np.uint32)
            want, got = (
                runner.outputs(one, subject.contract, {"n": n}, given={"bodies": words})
                for one in (subject.candidate, changed)
            )
            for name in want:
                np.testing.assert_array_equal(got[name], want[name], err_msg=f"{name} {n}")
        assert runner.faults(changed, subject.contract, {"n": 70}) == []


def test_all_ways_were_drawn() -> None:
    drawn = {composed(seed)[1:] for seed in range(30)}
    assert drawn == {(way, writes) for way in WAYS for writes in (True, False)}


RESULTS = """// /// fsr
// entry = "k"
// [sizes]
// n = {{min = 1, max = 100000, timed = 65536}}
// [args]
// n = {{value = "n"}}
// x = {{role = "in", shape = ["n"]}}
// [args.found]
// role = "out"
// shape = ["n"]
// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
struct Found {{ float value; int place; {last} sure; float rest; }};
__global__ void k(const float *x, Found *found, int n) {{
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= n) return;
    Found &f = found[i];
    f.value = x[i];
    f.place = i;
    {then}
    f.rest = 0.5f;
}}
"""


@pytest.mark.parametrize(("last", "then", "offered"), [
    ("int", "f.sure = x[i] > 0;", True),
    ("int", "if (x[i] > 0) f.sure = 1; else f.sure = 0;", True),
    ("int", "if (x[i] > 0) f.sure = 1;", False),
    ("int", "", False),
    ("bool", "f.sure = x[i] > 0;", False),  # what lies behind it would be written, too
    ("short", "f.sure = x[i] > 0;", False),
])  # fmt: skip
def test_results_of_which_something_is_left_are_not_written_back(
    last: str, then: str, offered: bool, subject_from, runner
) -> None:
    subject = subject_from(RESULTS.format(last=last, then=then))
    moves = list(ACTION.moves(subject))
    assert bool(moves) == offered
    for move in moves[:1]:
        runner.check(subject, ACTION.apply(subject, move), {"n": 1}, {"n": 64}, {"n": 201})


REFERENCES = """__global__ void k(Body *bodies, float *out, int n) {{
    int i = blockIdx.x * 64 + threadIdx.x;
    {body}
}}
"""


@pytest.mark.parametrize(("body", "gone"), [
    ("Body &b = bodies[i]; b.x = out[i];", True),
    ("const Body &b = bodies[i + 1]; out[i] = b.x;", True),
    ("for (int j = 0; j < n; j++) { Body &b = bodies[j]; out[i] += b.x; }", True),
    ("Body *p = bodies + 4; Body &b = p[i]; out[i] = b.x;", True),
    ("Body &b = bodies[i]; i = 3; out[i] = b.x;", False),
    ("Body &b = bodies[i]; bodies++; out[i] = b.x;", False),
    ("Body &b = bodies[(int)out[i]]; out[i] = 0; b.x = 1;", False),
    ("int j = 0; while (j < n) { Body &b = bodies[j]; j++; b.x = 1; }", False),
    ("Body &b = *bodies; out[i] = b.x;", False),
    ("Body &&b = make(i); out[i] = b.x;", False),
    ("Body &b = bodies[i]; { float b = 1; out[i] = b; } b.x = 2;", False),
])  # fmt: skip
def test_references_are_written_out_where_they_stay_what_they_are(body: str, gone: bool) -> None:
    kernel = parse_kernels(REFERENCES.format(body=body))["k"]
    assert ("b" not in names_mentioned(with_elements(kernel).body)) == gone
