"""Inferring contracts: what is understood, and that doubt is told with a block to complete."""

from pathlib import Path

import pytest

from fsr.contract.infer.infer import infer
from fsr.contract.load import load_contract
from fsr.contract.show import contract_block, contract_toml, with_block
from fsr.errors import ContractError, SourceError
from fsr.records import Role
from fsr.source.file import KernelFile

EXAMPLES = Path(__file__).parents[3] / "examples"


def inferred(text: str, entry: str | None = None):
    return infer(KernelFile.from_text(text, "dir/k.cu"), entry)


def shapes(contract) -> dict[str, tuple[str, ...]]:
    return {a.name: a.shape for a in contract.buffers()}


@pytest.mark.parametrize(
    "name", ["saxpy", "softmax", "layer_norm", "transpose", "reduction", "gemm", "histogram", "realworld"]
)
def test_what_is_inferred_agrees_with_what_is_stated(name):
    """The examples state contracts; the code alone must not lead elsewhere."""
    stated, found = load_contract(EXAMPLES / f"{name}.cu"), infer(KernelFile.read(EXAMPLES / f"{name}.cu"))
    for mine, theirs in zip(found.args, stated.args, strict=True):
        assert (mine.name, mine.dtype, mine.role, mine.shape) == (theirs.name, theirs.dtype, theirs.role, theirs.shape)
        assert mine.value == theirs.value or mine.name in ("eps", "a")
    assert {s.name for s in found.sizes} == {s.name for s in stated.sizes}
    assert found.origin.kind == "inferred"


def test_vectors_have_their_elements_as_the_last_extent():
    text = "__global__ void k(const float4 *x, float *y, uchar3 *z, int n) { "
    body = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) { y[i] = x[i].x; z[i] = make_uchar3(1, 2, 3); } }"
    found = inferred(text + body)
    assert shapes(found) == {"x": ("n", "4"), "y": ("n",), "z": ("n", "3")}
    assert [a.alignment for a in found.buffers()] == [16, 0, 1]


def test_the_launch_in_the_file_is_taken():
    contract = load_contract(EXAMPLES / "scale_bias.cu")
    (launch,) = contract.plan.launches
    assert launch.grid == ("ceil_div(cols, 32)", "ceil_div(rows, 4)", "1")
    assert launch.block == ("32", "4", "1")
    assert shapes(contract) == {"x": ("rows", "cols"), "scale": ("cols",), "bias": ("cols",), "y": ("rows", "cols")}
    assert contract.argument("y").role is Role.OUT


def test_softmax_needs_at_least_one_column():
    sizes = {s.name: s.minimum for s in infer(KernelFile.read(EXAMPLES / "softmax.cu")).sizes}
    assert sizes == {"rows": 0, "cols": 1}


GRID_STRIDE = """
#define BLOCK 256
static int div_up(int a, int b) { return (a + b - 1) / b; }
__global__ void k(float *y, const float *x, size_t n, float s) {
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) y[i] = s * x[i];
}
void run(float *y, float *x, int count) {
    int blocks = std::min(div_up(count, BLOCK), 1024);
    k<<<blocks, BLOCK>>>(y, x, count, 2.0f);
}
"""


def test_grid_stride_loops_and_host_helpers():
    contract = inferred(GRID_STRIDE)
    assert shapes(contract) == {"y": ("n",), "x": ("n",)}
    assert contract.argument("y").role is Role.OUT
    limits = contract.argument("s").constraints
    assert (limits.low, limits.high) == ("1.0", "4.0")
    assert contract.plan.launches[0].grid[0] == "min(ceil_div(n, 256), 1024)"
    assert contract.plan.launches[0].block[0] == "256"


FLAT = """
__global__ void k(const float *x, const float *bias, float *y, int rows, int cols) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * cols) return;
    int col = i % cols;
    y[i] = x[i] + bias[col];
}
"""


def test_a_flat_index_taken_apart():
    assert shapes(inferred(FLAT)) == {"x": ("rows * cols",), "bias": ("cols",), "y": ("rows * cols",)}


WARP_ROWS = """
__global__ void k(const float *__restrict__ x, float *y, int rows, int cols) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x & 31;
    if (row >= rows) return;
    const float *xr = x + (size_t)row * cols;
    float sum = 0;
    for (int j = lane; j < cols; j += 32) sum += xr[j];
    for (int d = 16; d > 0; d >>= 1) sum += __shfl_down_sync(~0u, sum, d);
    if (lane == 0) y[row] = sum;
}
void run(float *x, float *y, int rows, int cols) {
    const int threads = 128;
    dim3 grid{(unsigned)((rows * 32 + threads - 1) / threads)};
    k<<<grid, dim3(threads)>>>(x, y, rows, cols);
}
"""


def test_a_row_a_warp():
    contract = inferred(WARP_ROWS)
    assert shapes(contract) == {"x": ("rows", "cols"), "y": ("rows",)}
    assert contract.tolerance.sum_length == "cols"
    assert contract.plan.launches[0].grid[0] == "ceil_div(rows * 32, 128)"


def test_three_dimensions_and_one_thread_writes():
    contract = inferred("""
__global__ void k(const double *a, double *b, unsigned nx, unsigned ny, unsigned nz) {
    unsigned x = threadIdx.x + blockDim.x * blockIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    unsigned z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x < nx && y < ny && z < nz) b[(z * ny + y) * nx + x] = 2 * __ldg(&a[(z * ny + y) * nx + x]);
}""")
    assert shapes(contract) == {"a": ("nz", "ny", "nx"), "b": ("nz", "ny", "nx")}
    assert contract.plan.launches[0].block == ("32", "4", "2")
    assert contract.argument("b").role is Role.OUT


def test_conditional_writes_are_inout():
    contract = inferred("""
__global__ void k(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && x[i] > 0) y[i] = x[i];
}""")
    assert contract.argument("y").role is Role.INOUT


ROW_BLOCK = """
template <int B> __global__ void k(const float *x, float *y, int cols) {
    __shared__ float s[B];
    float v = 0;
    for (int j = threadIdx.x; j < cols; j += B) v += x[blockIdx.x * cols + j];
    s[threadIdx.x] = v;
    __syncthreads();
    if (threadIdx.x == 0) { float t = 0; for (int i = 0; i < B; i++) t += s[i]; y[blockIdx.x] = t; }
}
void run(float *x, float *y, int rows, int cols) { k<128><<<rows, 128>>>(x, y, cols); }
"""


def test_a_templated_row_a_block():
    contract = inferred(ROW_BLOCK)
    assert contract.entry == "k<128>"
    assert shapes(contract) == {"x": ("rows", "cols"), "y": ("rows",)}
    assert contract.argument("y").role is Role.OUT


MACROS = """
#define N_THREADS 256
#define IDX2C(i, j, ld) (((j) * (ld)) + (i))  // column-major
#define CUDA_KERNEL_LOOP(i, n) \\
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)
__global__ void relu(float *out, const float *in, const int n) {
    CUDA_KERNEL_LOOP(i, n) { out[i] = in[i] > 0.f ? in[i] : 0.f; }
}
__global__ void axpby(const int N, const float a, const float *X, float *Y) {
    const unsigned int tid = threadIdx.x;
    const unsigned int gid = tid + N_THREADS * blockIdx.x;
    if (gid < N) Y[gid] = a * X[gid] + Y[gid];
}
__global__ void colmajor(int m, int n, const float *A, float *B) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= m || j >= n) return;
    B[IDX2C(i, j, m)] = A[IDX2C(i, j, m)] * 2;
}
void run(int m, int n, float *A, float *B) {
    axpby<<<(m * n + N_THREADS - 1) / N_THREADS, N_THREADS>>>(m * n, 1.f, A, B);
    dim3 t(16, 16), unused(1);
    dim3 b((m + t.x - 1) / t.x, (n + 15) / 16);
    colmajor<<<b, dim3(16, 16)>>>(m, n, A, B);
    auto blocks = dim3((m + 31) / 32);
    relu<<<blocks, 32>>>(B, A, m);
}
"""


@pytest.mark.parametrize(
    ("entry", "expected", "grid"),
    [
        ("relu", {"out": ("n",), "in": ("n",)}, "ceil_div(n, 32)"),
        ("axpby", {"X": ("N",), "Y": ("N",)}, "ceil_div(N, 256)"),
    ],
)
def test_macros_of_the_file_are_followed(entry, expected, grid):
    contract = inferred(MACROS, entry)
    assert shapes(contract) == expected
    assert contract.plan.launches[0].grid == (grid, "1", "1")


def test_column_major_macros():
    contract = inferred(MACROS.replace("dim3 t(16, 16), unused(1);", "dim3 t(16, 16);"), "colmajor")
    assert shapes(contract) == {"A": ("n", "m"), "B": ("n", "m")}
    assert contract.plan.launches[0].grid == ("ceil_div(m, 16)", "ceil_div(n, 16)", "1")


SOBEL = """
__global__ void edges(const unsigned char *image, float *out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
    float across = image[(y - 1) * width + x + 1] - image[(y - 1) * width + x - 1]
                 + image[(y + 1) * width + x + 1] - image[(y + 1) * width + x - 1];
    out[y * width + x] = across;
}
int main() {
    int width = 4096, height = 2048, shown = 0;
    unsigned char *image; float *out;
    dim3 block(32, 8), grid((width + 31) / 32, (height + 7) / 8);
    edges<<<grid, block>>>(image, out, width, height);
}
"""
BLUR = """
__global__ void blur(const float *in, float *out, int width, int height, int radius) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0; int count = 0;
    for (int dy = -radius; dy <= radius; dy++)
        for (int dx = -radius; dx <= radius; dx++) {
            int xx = x + dx, yy = y + dy;
            if (xx >= 0 && xx < width && yy >= 0 && yy < height) { sum += in[yy * width + xx]; count++; }
        }
    out[y * width + x] = sum / count;
}
void run(const float *in, float *out, int width, int height) {
    int blocks = 1;
    blocks = (width + 15) / 16;
    dim3 block(16, 16);
    dim3 grid(blocks, (height + 15) / 16);
    const int radius = 3;
    blur<<<grid, block>>>(in, out, width, height, radius);
}
"""
GREY = """
__global__ void grey(const unsigned char *rgb, unsigned char *out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < width && y < height) {
        int i = y * width + x;
        out[i] = (rgb[3 * i] * 77 + rgb[3 * i + 1] * 151 + rgb[3 * i + 2] * 28) >> 8;
    }
}
void run(const unsigned char *rgb, unsigned char *out, int width, int height) {
    grey<<<dim3((width + 15) / 16, (height + 15) / 16), dim3(16, 16)>>>(rgb, out, width, height);
}
"""


@pytest.mark.parametrize(("text", "expected"), [
    (SOBEL, {"image": ("height", "width"), "out": ("height", "width")}),
    (BLUR, {"in": ("height", "width"), "out": ("height", "width")}),
    (GREY, {"rgb": ("height", "width", "3"), "out": ("height", "width")}),
])  # fmt: skip
def test_images(text, expected):
    contract = inferred(text)
    assert shapes(contract) == expected
    assert contract.plan.launches[0].grid[1] in ("ceil_div(height, 8)", "ceil_div(height, 16)")


HEAD = "__global__ void k(const float *x, float *y, int n) {\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
DOUBT = [
    ("no guard", HEAD + "y[i] = x[i]; }", "no guard such as if (i < n)"),
    ("neighbours", HEAD + "if (i < n) y[i] = x[i] + x[i + 1]; }", "reaches beyond its range by 1"),
    ("gather", HEAD + "if (i < n) y[i] = x[(int)y[i]]; }", "whose range is not clear"),
    ("two shapes", HEAD + "if (i < n) y[i] = x[i]; for (int j = 0; j < 7; j++) y[j] = 0; }", "different shapes"),
    (
        "stride",
        HEAD + "if (i < n) y[2 * i] = x[i]; y[0] = 1; if (i < n) y[3 * i + 1] = 1;}",
        "different shapes",
    ),
    ("helper", "__device__ void f(float *);\n" + HEAD + "if (i < n) f(y); }", "address is used"),
    (
        "shared memory",
        HEAD + "__shared__ float s[32]; s[threadIdx.x] = 1; if (i < n) y[i] = x[i]; }",
        "no launch of it",
    ),
    ("opaque", HEAD + 'if (i < n) { asm("st.f32 %0" :: "l"(y)); } }', "it is used in"),
    ("unused", HEAD + "if (i < n) y[i] = 1; }", "x: the kernel does not use it"),
    (
        "two launches",
        HEAD + "if (i < n) y[i] = x[i]; }\n"
        "void r(int n) { k<<<n / 32 + 1, 32>>>(0, 0, n); k<<<n / 64 + 1, 64>>>(0, 0, n); }",
        "in 2 different ways",
    ),
    (
        "launch too small",
        HEAD + "if (i < n) y[i] = x[i]; }\nvoid r(int n) { k<<<n / 32, 32>>>(0, 0, n); }",
        "do not reach n",
    ),
    (
        "computed launch",
        HEAD + "if (i < n) y[i] = x[i]; }\nvoid r(int n) { int b = ceil(n / 32.0); k<<<b, 32>>>(0, 0, n); }",
        "b, which no argument of the kernel holds",
    ),
    (
        "unknown launch",
        HEAD + "if (i < n) y[i] = x[i]; }\nvoid r(int n) { k<<<blocks_for(n), 32>>>(0, 0, n); }",
        "the grid 'blocks_for(n)' of the launch in line 4 is not understood",
    ),
    (
        "flag",
        HEAD.replace("int n", "int n, int mode") + "if (i < n) y[i] = mode ? x[i] : 0; }",
        "mode: no guard or loop",
    ),
    (
        "type",
        HEAD.replace("int n", "int n, P p") + "if (i < n) y[i] = x[i]; }",
        "type 'P'",
    ),
]


@pytest.mark.parametrize(("text", "told"), [d[1:] for d in DOUBT], ids=[d[0] for d in DOUBT])
def test_doubt_is_told_with_a_block_to_complete(text, told):
    with pytest.raises(ContractError) as caught:
        inferred(text)
    message = str(caught.value)
    assert told in message
    assert "// /// fsr" in message
    assert '"?"' in message
    assert caught.value.where.startswith("dir/k.cu:")


def test_a_pasted_block_with_gaps_is_refused_at_its_first_gap():
    text = HEAD + "if (i < n) y[i] = x[i] + x[i + 1]; }"
    with pytest.raises(ContractError) as caught:
        inferred(text)
    block = caught.value.expected.split("\n\n", 1)[1]
    with pytest.raises(ContractError) as again:
        load_contract(KernelFile.from_text(block + "\n" + text))
    assert "'?'" in again.value.what
    complete = block.replace('["?"]', '["n + 1"]')
    assert load_contract(KernelFile.from_text(complete + "\n" + text)).argument("x").shape == ("n + 1",)


def test_templates_without_an_instance_ask_for_one():
    text = "template <typename T> __global__ void k(T *y, int n) { int i = blockIdx.x; if (i < n) y[i] = 0; }\n"
    with pytest.raises(SourceError, match="gives no T"):
        inferred(text)
    launched = text + "template <typename T> void r(T *y, int n) { k<T><<<n, 1>>>(y, n); }"
    with pytest.raises(SourceError, match="gives no T"):
        inferred(launched)
    contract = inferred(launched, "k<double>")
    assert contract.argument("y").dtype == "float64"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("[!.]*.cu")), ids=lambda p: p.stem)
def test_shown_contracts_read_back_equal(path):
    file = KernelFile.read(path)
    contract = load_contract(file)
    text = with_block(file.text, contract)
    again = load_contract(KernelFile.from_text(text, path))
    assert (again.entry, again.sizes, again.args, again.plan, again.tolerance) == (
        contract.entry, contract.sizes, contract.args, contract.plan, contract.tolerance,
    )  # fmt: skip
    assert contract_toml(again) == contract_toml(contract)
    assert contract_block(contract) in text
    assert with_block(text, again) == text


def test_a_contract_with_everything_reads_back_equal(tmp_path):
    kernel = "__global__ void a(const __half *x, float *y, long n) {}\n__global__ void b(float *t, float *y) {}\n"
    toml = """entry = "a"
reference = "r.py:f"
aliasing = [["x", "y"]]
flags = ["--use_fast_math"]
sizes.n = {min = 2, max = 8, timed = [4, 8]}
[args]
x = {shape = ["n", 2], alignment = 16, sorted = true, finite = false, low = "-n", high = 4.5}
y = {role = "inout", shape = ["n"], nonnegative = true, unique = true, positive = true}
n = {dtype = "int64", role = "scalar", value = "n"}
[[launch]]
grid = ["n", 2]
block = [32, 2, 2]
shared_bytes = "4 * n"
[[launch]]
entry = "b"
grid = 1
block = 32
args = ["t", "y"]
[scratch]
t = {dtype = "float32", count = "n"}
[tolerance]
rtol = 1e-3
atol = 0.5
"""
    path = tmp_path / "k.cu"
    path.write_text(kernel)
    (tmp_path / "r.py").write_text("def f(): pass\n")
    (tmp_path / "k.fsr.toml").write_text(toml)
    contract = load_contract(path)
    (tmp_path / "k.fsr.toml").write_text(contract_toml(contract))
    assert load_contract(path) == contract


def test_a_block_goes_below_the_leading_comment_and_keeps_crlf():
    text = "/* licence */\r\n#include <cuda_runtime.h>\r\n" + FLAT.replace("\n", "\r\n")
    contract = inferred(text)
    written = with_block(text, contract)
    assert written.startswith("/* licence */\r\n// /// fsr\r\n")
    assert "\n" not in written.replace("\r\n", "")
    assert load_contract(KernelFile.from_text(written)).args == contract.args


def test_a_launcher_that_is_given_the_block_size_leaves_nothing_open():
    text = """__global__ void k(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 2.0f * x[i];
}
void launch(const float *x, float *y, int n, const int block_size) {
    const int grid_size = (n + block_size - 1) / block_size;
    k<<<grid_size, block_size>>>(x, y, n);
}
"""
    (launch,) = infer(KernelFile.from_text(text)).plan.launches
    assert (launch.grid[0], launch.block[0]) == ("ceil_div(n, 256)", "256")


def test_a_launch_of_what_host_code_hides_is_left_open():
    text = """__global__ void firsts(const float *x, int *y, long long cols) {
  const float *row = x + blockIdx.x * cols;
  int n = 0;
  for (int j = threadIdx.x; j < cols; j += blockDim.x) n += row[j] > 0.0f;
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  atomicAdd(&total, n);
  __syncthreads();
  if (threadIdx.x == 0) y[blockIdx.x] = total;
}
void go(const float *x, int *y, long long rows, long long cols) {
  const long long count = widest(cols);
  const dim3 block(count, 1, 1), grid(rows, 1, 1);
  firsts<<<grid, block>>>(x, y, cols);
}
"""
    with pytest.raises(ContractError, match="count, which could not be followed") as caught:
        inferred(text)
    assert 'block = "?"' in str(caught.value)


@pytest.mark.parametrize(
    ("head", "such"),
    [("typename T, int N", "k<float, 256>"), ("bool B", "k<true>"), ("int N, class T", "k<256, float>")],
)
def test_a_template_without_arguments_is_told_an_instance(head, such):
    with pytest.raises(SourceError) as caught:
        inferred(f"template <{head}> __global__ void k(float *x) {{ x[0] = 1; }}", "k")
    assert such in caught.value.fix


MAYBE = """
__global__ void scale(const float *x, const float *bias, float *y, float *also, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (!x || y == nullptr) return;
    if (i < n) {
        y[i] = x[i] + (bias ? bias[i] : 0.0f);
        if (also && i < n) also[i] = y[i];
    }
}
"""


def test_a_question_whether_there_is_a_buffer_takes_no_address():
    contract = inferred(MAYBE)
    assert shapes(contract) == dict.fromkeys(("x", "bias", "y", "also"), ("n",))
    assert contract.argument("also").role is Role.OUT
    assert contract.argument("bias").role is Role.IN
