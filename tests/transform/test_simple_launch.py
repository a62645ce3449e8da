"""Block size, grid-stride loops, coarsening, launch bounds, flags: what changes how many threads do what."""

from __future__ import annotations

import dataclasses

import pytest

from fsr.transform.details.compiling import CompileFlags, LaunchBounds
from fsr.transform.launch.block_size import BlockSize
from fsr.transform.launch.coarsen import Coarsen
from fsr.transform.launch.grid_stride import GridStride
from fsr.transform.vector.vectorize import Vectorize

LINE = """
// /// fsr
// entry = "k{instance}"
// [sizes]
// n = {{min = 0, max = {most}, timed = 900}}
// [args]
// x = {{role = "in", shape = ["n"]}}
// y = {{role = "inout", shape = ["n"]}}
// n = {{value = "n"}}
// [launch]
// grid = "{grid}"
// block = {block}
// ///
{before}
__global__ void {attribute}k(const float *x, float *y, int n)
{{
{body}
}}
"""
EARLY = """
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    if (v < 0) { y[i] = -v; return; }
    y[i] += v;
"""


def line(body: str = EARLY, grid: str = "ceil_div(n, 256)", block: int = 256, most: int = 1 << 24, before: str = "",
         attribute: str = "", instance: str = "") -> str:  # fmt: skip
    return LINE.format(
        body=body, grid=grid, block=block, most=most, before=before, attribute=attribute, instance=instance
    )


SIZES = tuple({"n": n} for n in (1, 255, 256, 257, 1500))


def test_another_block_takes_the_grid_along(subject_from, apply_move, runner):
    subject = subject_from(line())
    changed = apply_move(BlockSize(), subject, "[threads=64]")
    (launch,) = changed.plan.launches
    assert (launch.grid[0], launch.block[0]) == ("ceil_div(n, 64)", "64")
    runner.check(subject, changed, *SIZES)


def test_a_width_written_into_the_code_gives_way(subject_from, apply_move, runner):
    body = "const int i = threadIdx.x + blockIdx.x * TPB; if (i < n) y[i] += 2 * x[i];"
    subject = subject_from(line(body, before="#define TPB 256"))
    changed = apply_move(BlockSize(), subject, "[threads=512]")
    assert "blockIdx.x * blockDim.x + threadIdx.x" in changed.source
    runner.check(subject, changed, *SIZES)


def test_launch_bounds_follow_the_block(subject_from, apply_move):
    subject = subject_from(line(attribute="__launch_bounds__(256) "))
    assert "__launch_bounds__(1024)" in apply_move(BlockSize(), subject, "[threads=1024]").source


TEMPLATE = """
template <int B> __device__ float total(float v)
{
    __shared__ float part[B];
    part[threadIdx.x] = v;
    __syncthreads();
    for (int s = B / 2; s > 0; s /= 2) {
        if (threadIdx.x < s) part[threadIdx.x] += part[threadIdx.x + s];
        __syncthreads();
    }
    return part[0];
}
template <int B>
"""


def test_a_template_argument_that_is_the_block_size_changes_with_it(subject_from, apply_move, close_outputs):
    body = """
    float s = 0;
    for (int j = threadIdx.x; j < n; j += B) s += x[j];
    s = total<B>(s);
    if (threadIdx.x == 0) y[0] = s;"""
    source = line(body, grid="1", before=TEMPLATE, instance="<256>")
    subject = subject_from(source)
    changed = apply_move(BlockSize(), subject, "[threads=128]")
    assert (changed.plan.launches[0].entry, changed.plan.launches[0].block[0]) == ("k<128>", "128")
    close_outputs(subject, changed, [{"n": 1000}])
    fixed = subject_from(source.replace("j += B", "j += 256"))
    assert list(BlockSize().moves(fixed)) == []


def test_what_a_block_has_a_share_of_follows_its_size(subject_from, apply_move, runner):
    body = """
    int first = blockIdx.x * (2 * B) + threadIdx.x;
    if (first < n) y[first] = 2 * x[first];
    if (first + B < n) y[first + B] = 2 * x[first + B];"""
    source = line(body, grid="ceil_div(n, 512)", before="template <int B>", instance="<256>")
    subject = subject_from(source)
    changed = apply_move(BlockSize(), subject, "[threads=128]")
    assert (changed.plan.launches[0].entry, changed.plan.launches[0].grid[0]) == ("k<128>", "ceil_div(n, 256)")
    runner.check(subject, changed, *SIZES)
    for old, new in (("2 * B", "512"), ("ceil_div(n, 512)", "ceil_div(n + 256, 512)")):
        assert list(BlockSize().moves(subject_from(source.replace(old, new)))) == []


def test_a_grid_stride_loop_covers_everything(subject_from, apply_move, runner):
    subject = subject_from(line())
    changed = apply_move(GridStride(), subject, "[threads=256,blocks=1056]")
    assert changed.plan.launches[0].grid[0] == "min(ceil_div(n, 256), 1056)"
    small = dataclasses.replace(
        changed,
        plan=dataclasses.replace(
            changed.plan, launches=(dataclasses.replace(changed.plan.launches[0], grid=("2", "1", "1")),)
        ),
    )
    runner.check(subject, small, {"n": 1500}, {"n": 1})


TAKEN = """
__device__ void taken(const float *&p, int by) { p += by; }
#define AHEAD y[1]
"""
CHANGED = {
    "pointers": "x += i; y += i; y[0] += 2 * x[0];",
    "a number": "m = m / 2 + (x[i] > 0); y[i] += x[i] * m;",
    "by a function": "taken(x, i); y[i] += 2 * x[0];",
    "by another name": "int &left = n; left -= i; y[i] += left;",
}


@pytest.mark.parametrize("action", [GridStride, Coarsen, Vectorize])
@pytest.mark.parametrize("body", CHANGED.values(), ids=CHANGED)
def test_parameters_that_a_thread_changes_are_new_for_each_id(subject_from, apply_move, runner, action, body):
    start = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; "
    source = line(start + body, before=TAKEN).replace("int n)", "int n, int m)")
    subject = subject_from(source.replace("// [launch]", '// m = {value = "n"}\n// [launch]'))
    moves = list(action().moves(subject))
    assert moves or action is Vectorize
    for move in moves[:1]:
        changed = apply_move(action(), subject, move.name)
        fewer = dataclasses.replace(changed.plan.launches[0], grid=("2", "1", "1"))
        if action is GridStride:
            changed = dataclasses.replace(changed, plan=dataclasses.replace(changed.plan, launches=(fewer,)))
        runner.check(subject, changed, {"n": 1500}, {"n": 1})


@pytest.mark.parametrize(
    "body", ["y += i; AHEAD += x[i];", "y += i; if (x[i] > 0) { float *y = 0; n = y == 0; } y[0] += n;"]
)
def test_parameters_whose_uses_cannot_be_told_keep_their_kernel(subject_from, body):
    start = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; "
    for action in (GridStride(), Coarsen()):
        assert list(action.moves(subject_from(line(start + "y[i] += x[i];", before=TAKEN))))
        assert not list(action.moves(subject_from(line(start + body, before=TAKEN))))


A_QUARTER = """
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const int more = n + 3, some = more / 4;
    if (i < some) y[i] += x[i];
"""


@pytest.mark.parametrize("action", [GridStride, Vectorize])
def test_a_bound_that_is_declared_beside_the_id_is_told_before_it(subject_from, apply_move, runner, action):
    subject = subject_from(line(A_QUARTER))
    move = next(iter(action().moves(subject)))
    changed = action().apply(subject, move)
    runner.check(subject, changed, *({"n": n} for n in (1, 5, 255, 700, 1500)))


def test_no_grid_stride_where_the_grid_is_small_anyway(subject_from):
    assert list(GridStride().moves(subject_from(line(most=1000)))) == []


def test_several_outputs_a_thread(subject_from, apply_move, runner):
    subject = subject_from(line())
    changed = apply_move(Coarsen(), subject, "[factor=4]")
    assert changed.plan.launches[0].grid[0] == "ceil_div(n, 1024)"
    runner.check(subject, changed, *SIZES)


PURE = "__device__ float twice(float v) { return 2 * fmaxf(v, 0.0f); }\n#define PLUS(v) ((v) + 1)"
PURE_BODY = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = PLUS(twice(x[i]));"


def test_functions_of_the_thread_alone_are_no_obstacle(subject_from, apply_move, runner):
    subject = subject_from(line(PURE_BODY, before=PURE))
    runner.check(subject, apply_move(Coarsen(), subject, "[factor=2]"), {"n": 700})


@pytest.mark.parametrize(
    ("why", "source"),
    [
        ("a function with a barrier", line(
            "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = total<256>(x[i]);", before=TEMPLATE
            ).replace("template <int B>\n\n__global__", "__global__")),
        ("a grid that does not cover the data", line(grid="ceil_div(n, 512)")),
        ("two ids on one axis", line(
            "int i = blockIdx.x * blockDim.x + threadIdx.x; int j = blockIdx.x * blockDim.x + threadIdx.x;"
            "if (i < n) y[j] = x[i];")),
        ("a bound that is no size", line(
            "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < (int)x[0]) y[i] = 1;")),
        ("a shuffle", line(
            "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = __shfl_xor_sync(~0u, x[i], 1);")),
        ("the block's place", line(
            "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = blockIdx.x;")),
        ("shared memory", line(
            "__shared__ float s[4]; int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = s[0] = x[i];")),
        ("a return from a loop", line(
            "int i = blockIdx.x * blockDim.x + threadIdx.x;"
            "if (i < n) { for (int j = 0; j < 3; j++) { if (x[i] > j) return; y[i] += 1; } }")),
    ],
)  # fmt: skip
def test_nothing_is_offered_with(subject_from, why, source):
    subject = subject_from(source)
    for action in (BlockSize(), GridStride(), Coarsen()):
        assert list(action.moves(subject)) == [], f"{action.name} with {why}"


def test_a_kept_launch_rules_all_of_them_out(subject_from):
    subject = subject_from(line(), keep_launch=True)
    for action in (BlockSize(), GridStride(), Coarsen()):
        assert list(action.moves(subject)) == []


def test_launch_bounds_are_those_of_the_plan(subject_from, apply_move, runner):
    subject = subject_from(line())
    changed = apply_move(LaunchBounds(), subject, "[threads=256,blocks=4]")
    assert "__launch_bounds__(256, 4)" in changed.source
    runner.check(subject, changed, {"n": 300})
    again = dataclasses.replace(subject, candidate=changed)
    assert "blocks=16" not in " ".join(m.name for m in LaunchBounds().moves(again))


def test_no_fewer_registers_than_assembly_names(subject_from):
    """36 registers of one statement, and some beside them, hold no values where a thread has 32."""
    outputs = ", ".join(f'"+f"(sums[{k}])' for k in range(32))
    text = f'asm volatile("wgmma.fence.sync.aligned;" : {outputs} : "l"(a), "l"(b));'
    helper = "__device__ void add(float *sums, long a, long b) { " + text + " }"
    use = "float sums[32]; if (i < n) { add(sums, i, i); y[i] = sums[i % 32]; }"
    body = f"int i = blockIdx.x * blockDim.x + threadIdx.x; {use}"
    subject = subject_from(line(body, before=helper))
    bounds = {move.param("blocks") for move in LaunchBounds().moves(subject)}
    flags = {move.param("set") for move in CompileFlags().moves(subject)}
    assert (bounds, flags & {"regs-32", "regs-64"}) == ({0, 2, 4}, {"regs-64"})
    plain = subject_from(line())
    assert 8 in {move.param("blocks") for move in LaunchBounds().moves(plain)}
    assert "regs-32" in {move.param("set") for move in CompileFlags().moves(plain)}


def test_flags_are_added_once_and_none_that_round_under_an_exact_contract(subject_from, apply_move):
    divides = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i] / 3.0f;"
    subject = subject_from(line(divides))
    changed = apply_move(CompileFlags(), subject, "[set=regs-64]")
    assert changed.plan.flags == ("--maxrregcount=64",)
    other = apply_move(CompileFlags(), dataclasses.replace(subject, candidate=changed), "[set=regs-32]")
    assert other.plan.flags == ("--maxrregcount=32",)
    exact = dataclasses.replace(subject.contract, tolerance=dataclasses.replace(subject.contract.tolerance, exact=True))
    names = {m.name for m in CompileFlags().moves(dataclasses.replace(subject, contract=exact))}
    assert "compile-flags@plan[set=flush]" not in names
    assert "compile-flags@plan[set=flush]" in {m.name for m in CompileFlags().moves(subject)}
