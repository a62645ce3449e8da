"""A recurrence as one launch a step: however its barriers stand, whatever it carries, at every shape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from fsr.guard.check import guard
from fsr.records import Candidate
from fsr.source.parse import parse_kernels
from fsr.transform.protocol import Subject
from fsr.transform.recurrence.action import StepLaunches
from fsr.transform.recurrence.form import recurrence
from fsr.transform.target import targets
from tests.transform.conftest import Runner, subject_of

HEAD = """// /// fsr
// entry = "k"
// [sizes]
// b = {min = 1, max = 64, timed = 8}
// t = {min = 0, max = 64, timed = 16}
// heads = {min = 1, max = 4, timed = 2}
// d = {min = 1, max = 256, timed = 64}
// [args]
// x = {role = "in", shape = ["b", "t", "heads", "d"]}
// w = {role = "in", shape = ["heads", 2, "d", "d"], low = -1, high = 1}
// y = {role = "out", shape = ["b", "t", "heads", "d"]}
// z = {role = "inout", shape = ["b", "heads", "d"], dtype = "DTYPE"}
// b = {value = "b"}
// t = {value = "t"}
// heads = {value = "heads"}
// d = {value = "d"}
// [launch]
// GRID
// BLOCK
// SHARED
// [tolerance]
// rtol = 1e-3
// atol = 1e-3
// ///
"""
NAMES = "const float *x, const float *w, float *y, DTYPE *z, int b, int t, int heads, int d"


def text(
    body: str, shared: str = "//", grid: str = '["heads", "b"]', block: str = '"d"', dtype: str = "float32"
) -> str:
    head = (
        HEAD.replace("GRID", f"grid = {grid}")
        .replace("BLOCK", f"block = {block}")
        .replace("DTYPE", dtype)
        .replace("// SHARED", shared)
    )
    names = NAMES.replace("DTYPE", {"float32": "float", "int32": "int"}[dtype])
    return f"{head}__global__ void k({names}) {{\n{body}\n}}\n"


PLACES = "int j = threadIdx.x, head = blockIdx.x, item = blockIdx.y;"
AT = "((item * t + s) * heads + head) * d + j"
WEIGHTS = "w[((head * 2 + {0}) * d + i) * d + j]"
HALF = "0.01f"

PLAIN = f"""
  __shared__ float h[256];
  {PLACES}
  float c = 1.0f;
  h[j] = 0.5f;
  __syncthreads();
  for (int s = 0; s < t; s++) {{
    float g[2];
    for (int m = 0; m < 2; m++) {{
      g[m] = x[{AT}] + m;
      for (int i = 0; i < d; i++) g[m] += h[i] * {WEIGHTS.format("m")} * {HALF};
    }}
    c = 0.5f * c + tanhf(g[0]);
    __syncthreads();
    h[j] = c * tanhf(g[1]) + 0.25f * h[j];
    y[{AT}] = h[j];
    __syncthreads();
  }}
"""
# The shared array is written where a step begins.
WRITTEN_FIRST = f"""
  extern __shared__ float h[];
  {PLACES}
  float out = j % 3;
  for (int s = 0; s < t; s++) {{
    h[j] = out;
    __syncthreads();
    float a = x[{AT}];
    for (int i = 0; i < d; i += 1) a = a + h[i] * {WEIGHTS.format("0")} * {HALF};
    out = tanhf(a) + 0.5f * out;
    y[{AT}] = out;
    __syncthreads();
  }}
  z[(item * heads + head) * d + j] = out;
"""
# Two halves, one read and one written: a barrier a step.
TWO_HALVES = f"""
  __shared__ float h[2][256];
  {PLACES}
  h[0][j] = 1.0f;
  __syncthreads();
  for (int s = 0; s < t; s++) {{
    float a = x[{AT}];
    for (int i = 0; i < d; i++) a += h[s % 2][i] * {WEIGHTS.format("0")} * {HALF};
    h[(s + 1) % 2][j] = tanhf(a);
    y[{AT}] = a;
    __syncthreads();
  }}
  z[(item * heads + head) * d + j] = h[t % 2][j] + h[t % 2][0];
"""
# Two arrays in one dynamic one, and what is read at the end.
TWO_ARRAYS = f"""
  extern __shared__ float both[];
  float *h = both, *q = both + d;
  {PLACES}
  h[j] = 0.0f;
  q[j] = j;
  __syncthreads();
  for (int s = 0; s < t; s++) {{
    float a = x[{AT}], p = 0.0f;
    for (int i = 0; i < d; i++) {{
      a += h[i] * {WEIGHTS.format("0")} * {HALF};
      p = fmaf(q[i] * {HALF}, {WEIGHTS.format("1")}, p);
    }}
    __syncthreads();
    h[j] = tanhf(a + 0.1f * p);
    q[j] -= 0.5f * p;
    y[{AT}] = a + p;
    __syncthreads();
  }}
  z[(item * heads + head) * d + j] = h[j] + q[j];
"""
# Back through time, a block of fixed length with idle threads, whole numbers, elements written sometimes.
BACKWARD = f"""
  __shared__ int count[256];
  __shared__ float h[256];
  {PLACES}
  int seen = head;
  count[j] = 0;
  if (j < d) h[j] = 1.0f;
  __syncthreads();
  for (int s = t - 1; s >= 0; --s) {{
    float a = 0.0f;
    int n = 0;
    if (j < d) {{
      a = x[{AT}];
      for (int i = 0; i < d; i++) {{
        a += h[i] * {WEIGHTS.format("0")} * {HALF};
        n += count[i] & 3;
      }}
    }}
    __syncthreads();
    if (j < d) {{
      if ((n + s + j) % 3) {{ count[j] = count[j] + n + 1; seen++; }}
      h[j] = tanhf(a + n % 5);
      y[{AT}] = h[j] + seen;
    }}
    __syncthreads();
  }}
  if (j < d) z[(item * heads + head) * d + j] = seen + count[j] + count[0];
"""
# One axis of blocks, a state that a loop outside of sums looks at too, and a local that each step sets.
ONE_AXIS = f"""
  __shared__ float h[256];
  int j = threadIdx.x, head = 0, item = blockIdx.x;
  float top, best = -1.0f;
  h[j] = x[item * t * heads * d + j];
  __syncthreads();
  for (int s = 1; s <= t - 1; s++) {{
    top = -100.0f;
    for (int i = 0; i < d; i++) top = fmaxf(top, h[i]);
    float a = x[{AT}];
    for (int i = 0; i < d; i += 3) a -= h[i] * {WEIGHTS.format("1")} * {HALF};
    best = fmaxf(best, top);
    __syncthreads();
    h[j] = tanhf(a) + 0.1f * top;
    y[{AT}] = h[j] + best;
    __syncthreads();
  }}
"""
# Few threads walk over the elements of an item; the new state has an array of its own.
WALKING = f"""
  __shared__ float h[256], later[256], c[256];
  int head = blockIdx.x, item = blockIdx.y, tid = threadIdx.x;
  for (int j = tid; j < d; j += blockDim.x) {{
    h[j] = 0.0f;
    c[j] = j % 2;
  }}
  __syncthreads();
  for (int s = 0; s < t; s++) {{
    for (int j = tid; j < d; j += blockDim.x) {{
      float a = x[{AT}], f = 0.5f;
      for (int i = 0; i < d; i++) {{
        a += h[i] * {WEIGHTS.format("0")} * {HALF};
        f += h[i] * {WEIGHTS.format("1")} * {HALF};
      }}
      c[j] = f * c[j] + tanhf(a);
      later[j] = tanhf(c[j]);
      y[{AT}] = later[j];
    }}
    __syncthreads();
    for (int j = tid; j < d; j += blockDim.x) h[j] = later[j];
    __syncthreads();
  }}
  for (int j = tid; j < d; j += blockDim.x) z[(item * heads + head) * d + j] = c[j] + h[0];
"""
# The input's part of the sums, which is another for each item, is worked out in each step too.
PROJECTED = f"""
  __shared__ float h[256];
  {PLACES}
  h[j] = 0.0f;
  __syncthreads();
  for (int s = 0; s < t; s++) {{
    float a = 0.0f;
    for (int i = 0; i < d; i++) a += x[((item * t + s) * heads + head) * d + i] * {WEIGHTS.format("1")} * {HALF};
    for (int i = 0; i < d; i++) a += h[i] * {WEIGHTS.format("0")} * {HALF};
    __syncthreads();
    h[j] = tanhf(a);
    y[{AT}] = a;
    __syncthreads();
  }}
"""
THREE_AXES = PLAIN.replace("item = blockIdx.y", "item = blockIdx.z * 2 + blockIdx.y")
FORMS = {
    "plain": text(PLAIN),
    "written first": text(WRITTEN_FIRST, '// shared_bytes = "4 * d"'),
    "walking": text(WALKING, block="32"),
    "projected": text(PROJECTED),
    "two halves": text(TWO_HALVES),
    "two arrays": text(TWO_ARRAYS, '// shared_bytes = "8 * d"'),
    "backward": text(BACKWARD, block="256", dtype="int32"),
    "one axis": text(ONE_AXIS, grid='"b"')
    .replace("t = {min = 0", "t = {min = 1")
    .replace("4, timed = 2", "1, timed = 1"),
    "three axes": text(THREE_AXES, grid='["heads", 2, "ceil_div(b, 2)"]').replace(
        "1, max = 64, timed = 8", "8, max = 8"
    ),
}
SHAPES = [(1, 1, 1, 1), (3, 5, 2, 37), (2, 4, 1, 32), (17, 3, 2, 8), (2, 2, 3, 70), (1, 0, 1, 5)]


def moves_of(subject: Subject) -> Iterator[Candidate]:
    """What every move gives; of the tiles a few more than are offered."""
    action = StepLaunches()
    found = list(action.moves(subject))
    for move in found:
        yield action.apply(subject, move)
    for items, lanes, threads in ((1, 32, 128), (1, 8, 128), (2, 8, 512), (4, 16, 256)) if found else ():
        params = (("items", items), ("lanes", lanes), ("threads", threads))
        yield action.apply(subject, replace(found[0], params=params))


def shapes(name: str) -> list[dict[str, int]]:
    found = [dict(zip(("b", "t", "heads", "d"), sizes, strict=True)) for sizes in SHAPES]
    if name == "one axis":
        return [{**sizes, "heads": 1, "t": max(1, sizes["t"])} for sizes in found]
    return [{**sizes, "b": 8} for sizes in found] if name == "three axes" else found


@pytest.mark.parametrize("name", FORMS)
def test_a_launch_a_step_gives_what_the_loop_gave(runner: Runner, name: str) -> None:
    subject = subject_of(FORMS[name])
    made = list(moves_of(subject))
    assert len(made) > 4, "moves are offered"
    for sizes in shapes(name):
        want = runner.outputs(subject.candidate, subject.contract, sizes)
        for candidate in made:
            got = runner.outputs(candidate, subject.contract, sizes)
            for output in want:
                message = f"{candidate.actions} {output} {sizes}\n{candidate.source}"
                np.testing.assert_allclose(got[output], want[output], rtol=1e-3, atol=1e-3, err_msg=message)


@pytest.mark.parametrize("name", FORMS)
def test_nothing_races_is_undefined_or_out_of_bounds(runner: Runner, name: str) -> None:
    subject = subject_of(FORMS[name])
    for candidate, sizes in product(moves_of(subject), shapes(name)[1:4]):
        assert runner.faults(candidate, subject.contract, sizes) == []
        assert guard(candidate, subject.candidate) is None


REFUSED = {
    "a step reads what it wrote": ("h[j] = c * tanhf(g[1]) + 0.25f * h[j];", "h[j] = c; __syncthreads(); c += h[0];"),
    "a thread writes another's element": ("h[j] = c * tanhf", "h[d - 1 - j] = c * tanhf"),
    "a result is read": ("float g[2];", "float g[2]; c += z[0]; z[item] = c;"),
    "the loop may end": ("    c = 0.5f", "    if (c > 1e30f) break; c = 0.5f"),
    "barriers in branches": ("    __syncthreads();\n    h[j]", "    if (s < t) { __syncthreads(); }\n    h[j]"),
    "a parameter that changes": ("float c = 1.0f;", "float c = 1.0f; x += j; x -= j;"),
    "another name for an element": ("float g[2];", "float g[2]; float &own = h[j]; own = c;"),
    "shared memory of a step": ("float g[2];", "__shared__ float q[256]; float g[2]; q[j] = c; c += q[0];"),
    "pairs of results": ("y[{AT}] = h[j];".replace("{AT}", AT), "((float2 *)y)[item].x = h[j];"),
    "lanes talk": ("tanhf(g[0]);", "__shfl_xor_sync(0xffffffffu, g[0], 1);"),
    "atomics": ("c = 0.5f * c", "atomicAdd(&z[0], 1.0f); c = 0.5f * c"),
    "a number of steps that data tell": ("s < t", "s < (int)x[0]"),
    "a begin that passes values on": ("float c = 1.0f;\n  h[j] = 0.5f;", "h[j] = 1; __syncthreads(); float c = h[0];"),
    "registers in an array": ("float c = 1.0f;", "float a[2]; a[0] = 0; float c = 1.0f;"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_passes_between_threads_otherwise_is_left_alone(name: str) -> None:
    old, new = REFUSED[name]
    assert old in PLAIN
    changed = PLAIN.replace(old, new)
    if name == "registers in an array":
        changed = changed.replace("c = 0.5f * c", "a[0] += c; c = 0.5f * c + a[0]")
    subject = subject_of(text(changed))
    assert parse_kernels(subject.candidate.source)
    assert all(recurrence(target) is None for target in targets(subject))
    assert not list(StepLaunches().moves(subject))


REFUSED_WALKS = {
    "a value goes from element to element": ("float a = x[", "s0 += 1.0f; float a = s0 * x["),
    "one element is made of another": ("h[j] = later[j];", "h[j] = later[j] + h[(j + 1) % d];"),
    "a thread does more": ("    __syncthreads();\n    for", "    if (!tid) c[0] = 0;\n    __syncthreads();\n    for"),
    "some elements are left out": ("int j = tid; j < d; j += blockDim.x) h", "int j = tid + 1; j < d; j += 32) h"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED_WALKS)
def test_walks_that_are_not_an_element_a_turn_are_left_alone(name: str) -> None:
    old, new = REFUSED_WALKS[name]
    assert old in WALKING
    subject = subject_of(text(WALKING.replace(old, new).replace("int head", "float s0 = 0.0f; int head"), block="32"))
    assert parse_kernels(subject.candidate.source)
    assert all(recurrence(target) is None for target in targets(subject))


def test_what_is_read_under_a_condition_is_not_read_before_it(runner: Runner) -> None:
    guarded = PLAIN.replace("h[i] * w[", "(i + j < d - 1 ? h[i + j + 1] * w[").replace("* 0.01f;", "* 0.01f : 0.0f);")
    guarded = guarded.replace("(head * 2 + m) * d + i)", "(head * 2 + m) * d + i + j + 1)")
    subject = subject_of(text(guarded))
    made = list(moves_of(subject))
    assert made
    for candidate in made:
        assert runner.faults(candidate, subject.contract, {"b": 2, "t": 3, "heads": 1, "d": 19}) == []


def test_sums_of_other_lengths_for_each_item_stay_where_they_are() -> None:
    limited = PLAIN.replace("i < d; i++", "i < d - item % 2; i++")
    assert limited != PLAIN
    assert not list(StepLaunches().moves(subject_of(text(limited))))


def test_nothing_is_offered_where_it_cannot_pay_or_order_counts() -> None:
    subject = subject_of(FORMS["plain"])
    assert not list(StepLaunches().moves(replace(subject, keep_launch=True)))
    named = subject_of(FORMS["plain"].replace("// t = {min", "// step = 3\n// t = {min"))
    assert not list(StepLaunches().moves(named)), "a size has the name that counts the steps"
    many = subject_of(FORMS["plain"].replace("max = 64, timed = 8}", "max = 640, timed = 640}"))
    assert not list(StepLaunches().moves(many))
    exact = subject_of(FORMS["plain"].replace("rtol = 1e-3\n// atol = 1e-3", "exact = true"))
    assert not list(StepLaunches().moves(exact))


def test_results_that_may_share_memory_with_inputs_are_left_alone() -> None:
    subject = subject_of(FORMS["plain"])
    aliased = replace(subject, contract=replace(subject.contract, aliasing=(("x", "y"),)))
    assert not list(StepLaunches().moves(aliased))


def test_names_of_the_file_are_kept_clear() -> None:
    plain = FORMS["plain"].replace("__global__", "#define lane 0.01f\n#define step 2\n__global__")
    subject = subject_of(plain.replace(HALF, "lane").replace("m < 2", "m < step"))
    for candidate in moves_of(subject):
        assert "step_" in candidate.source
        assert "lane_" in candidate.source
