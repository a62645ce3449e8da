"""Bodies with atomics, shared memory, shuffles and several launches."""

from __future__ import annotations

import random

from benchmarks.kernels.bodies import body, matrix_sizes, over_n, style_of
from benchmarks.kernels.style import NUMPY
from benchmarks.kernels.text import Written


@body
def histogram(chance: random.Random) -> Written:
    """Counts by value, by one atomic each."""
    w = Written(style_of(chance, "int", "unsigned char", "unsigned"))
    s = w.style
    n, bins = s.size("n"), "bins"
    w.sizes[bins] = "{min = 1, max = 200, timed = 64}"
    x = w.takes(s.given(), f'"{n}"', s.el, f', low = 0, high = "{bins} - 1"')
    y = w.gives("hist", f'"{bins}"', "unsigned", "inout", ", value = 0")
    way = chance.choice((f"atomicAdd(&{y}[{x}[I]], 1);", f"atomicAdd({y} + {x}[I], 1u);"))
    s.value = s.el if s.value != s.el and not s.template else s.value
    over_n(
        w,
        lambda i: (
            [way.replace("I", i)]
            if chance.random() < 0.6
            else [f"int bin = {x}[{i}];", f"if (bin < {chance.choice((1000, 256))}) atomicAdd(&{y}[bin], 1);"]
        ),
        "i",
    )
    return w


@body
def total(chance: random.Random) -> Written:
    """A sum or a dot product by an atomic a thread."""
    w = Written(style_of(chance, "float", "double", "int"))
    s = w.style
    n = s.size("n")
    x = w.takes(s.given(), f'"{n}"')
    two = chance.random() < 0.5
    z = w.takes(s.given("1"), f'"{n}"') if two else ""
    y = w.gives(s.made(), "1", s.el, "inout", ", value = 0")
    w.tolerance = f'sum_length = "{n}"'
    term = f"{x}[I] * {z}[I]" if two else f"{x}[I]"
    over_n(
        w,
        lambda i: (
            [f"{s.value} v = {term.replace('I', i)};", f"atomicAdd({y}, v);"]
            if chance.random() < 0.5
            else [f"atomicAdd(&{y}[0], {term.replace('I', i)});"]
        ),
        "i",
    )
    return w


@body
def block_sum(chance: random.Random) -> Written:
    """A block a row: a tree in shared memory, the block's size a constant, a macro or a template parameter."""
    w = Written(style_of(chance, "float", "double"))
    s = w.style
    rows, cols = matrix_sizes(w)
    x, y = w.takes(s.given(), f'"{rows}", "{cols}"'), w.gives(s.made(), f'"{rows}"')
    w.counts(rows, cols)
    threads = chance.choice((64, 128, 256))
    w.block, w.grid, w.tolerance = str(threads), f'"{rows}"', f'sum_length = "{cols}"'
    size = chance.choice(("BLOCK", "THREADS", str(threads)))
    if size == "THREADS":
        s.prelude.append(f"#define THREADS {threads}")
    elif size == "BLOCK":
        s.template.append("int BLOCK")
        s.template_args.append(str(threads))
    tree = chance.choice(
        (f"for (int s = {size} / 2; s > 0; s >>= 1)", "for (unsigned int s = blockDim.x / 2; s > 0; s /= 2)")
    )
    w.body += [
        f"__shared__ {s.acc} part[{size}];",
        "const int t = threadIdx.x;",
        f"{s.acc} mine = 0;",
        f"for (int j = t; j < {cols}; j += {chance.choice((size, 'blockDim.x'))})",
        f"    mine += {x}[blockIdx.x * {cols} + j];",
        "part[t] = mine;",
        "__syncthreads();",
        tree + " {",
        "    if (t < s) part[t] += part[t + s];",
        "    __syncthreads();",
        "}",
        f"if (t == 0) {y}[blockIdx.x] = part[0];",
    ]
    return w


@body
def tiled_copy(chance: random.Random) -> Written:
    """A transpose through a tile in shared memory."""
    w = Written(style_of(chance, "float", "double", "__half"))
    s = w.style
    rows, cols = matrix_sizes(w)
    x, y = w.takes(s.given(), f'"{rows}", "{cols}"'), w.gives(s.made(), f'"{cols}", "{rows}"')
    w.counts(rows, cols)
    tile = chance.choice((16, 32))
    pad = chance.choice(("", " + 1"))
    w.block, w.grid = f"[{tile}, {tile}]", f'["ceil_div({cols}, {tile})", "ceil_div({rows}, {tile})"]'
    s.prelude.append(
        chance.choice((f"#define TILE {tile}", f"constexpr int TILE = {tile};", f"enum {{ TILE = {tile} }};"))
    )
    w.body += [
        f"__shared__ {s.value} tile[TILE][TILE{pad}];",
        "int c = blockIdx.x * TILE + threadIdx.x;",
        "int r = blockIdx.y * TILE + threadIdx.y;",
        f"if (r < {rows} && c < {cols}) tile[threadIdx.y][threadIdx.x] = {x}[r * {cols} + c];",
        "__syncthreads();",
        "c = blockIdx.y * TILE + threadIdx.x;",
        "r = blockIdx.x * TILE + threadIdx.y;",
        f"if (c < {rows} && r < {cols}) {y}[r * {rows} + c] = tile[threadIdx.x][threadIdx.y];",
    ]
    return w


@body
def two_launches(chance: random.Random) -> Written:
    """Row sums into scratch by one kernel, every element divided by its row's sum by another."""
    w = Written(style_of(chance, "float", "double"))
    s = w.style
    s.template.clear()
    s.template_args.clear()
    s.value = s.el
    rows, cols = matrix_sizes(w)
    shape = f'"{rows}", "{cols}"'
    x, y = w.takes(s.given(), shape, more=", positive = true"), w.gives(s.made(), shape)
    w.params.append(f"const {s.el} *sums")
    w.counts(rows, cols, type_="int")  # as the other kernel takes them
    w.tolerance = f'sum_length = "{cols}"'
    w.before = (
        f"__global__ void row_sums(const {s.el} *in, {s.el} *sums, int rows, int cols) {{\n"
        "    int row = blockIdx.x * blockDim.x + threadIdx.x;\n    if (row >= rows) return;\n"
        f"    {s.el} sum = 0;\n    for (int j = 0; j < cols; j++) sum += in[row * cols + j];\n"
        "    sums[row] = sum;\n}\n"
    )
    first, second = f'["{x}", "sums", "{rows}", "{cols}"]', f'["{x}", "{y}", "sums", "{rows}", "{cols}"]'
    w.plan = (
        f'[[launch]]\nentry = "row_sums"\ngrid = "ceil_div({rows}, 64)"\nblock = 64\nargs = {first}\n'
        f'[[launch]]\nentry = "ENTRY"\ngrid = "ceil_div({rows} * {cols}, 128)"\nblock = 128\nargs = {second}\n'
        f'[scratch.sums]\ndtype = "{NUMPY[s.el]}"\ncount = "{rows}"'
    )
    i = "i"
    w.body += [*s.thread(i), *s.guarded([(i, f"{rows} * {cols}")], [f"{y}[i] = {x}[i] / sums[i / {cols}];"])]
    return w


@body
def all_pairs(chance: random.Random) -> Written:
    """Every element against all others, in an inner loop that is unrolled."""
    w = Written(style_of(chance, "float", "double"))
    s = w.style
    n = s.size("n")
    w.sizes[n] = "{min = 1, max = 700, timed = 256}"
    x, y = w.takes(s.given(), f'"{n}", 4'), w.gives(s.made(), f'"{n}"')
    w.counts(n)
    w.grid, w.tolerance = f'"ceil_div({n}, 128)"', f'sum_length = "{n}"'
    inner = [
        f"{s.acc} dx = {x}[4 * j] - {x}[4 * i], dy = {x}[4 * j + 1] - {x}[4 * i + 1];",
        s.add("force", f"{x}[4 * j + 3] / (dx * dx + dy * dy + {s.number('1.0')})"),
    ]
    w.body += [
        *s.thread("i"),
        *s.guarded([("i", n)], [f"{s.acc} force = 0;", *s.loop("j", n, inner), f"{y}[i] = force;"]),
    ]
    return w


@body
def shuffled(chance: random.Random) -> Written:
    """A warp a row, combined by shuffles in a helper."""
    w = Written(style_of(chance, "float", "double"))
    s = w.style
    rows, cols = matrix_sizes(w)
    x, y = w.takes(s.given(), f'"{rows}", "{cols}"'), w.gives(s.made(), f'"{rows}", "{cols}"')
    w.counts(rows, cols)
    w.block, w.grid, w.tolerance = "128", f'"ceil_div({rows}, 4)"', f'sum_length = "{cols}"'
    w.before = (
        f"__device__ {s.acc} warp_sum({s.acc} v) {{\n#pragma unroll\n"
        "    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffff, v, d);\n    return v;\n}\n"
    )
    w.body += [
        "int warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;",
        f"if (warp >= {rows}) return;",
        f"{s.acc} sum = 0;",
        f"for (int j = lane; j < {cols}; j += 32) sum += {x}[warp * {cols} + j] * {x}[warp * {cols} + j];",
        "sum = warp_sum(sum);",
        f"{s.acc} scale = {s.call('rsqrt')}(sum + {s.number('1.0')});",
        f"for (int j = lane; j < {cols}; j += 32) {y}[warp * {cols} + j] = {x}[warp * {cols} + j] * scale;",
    ]
    return w
