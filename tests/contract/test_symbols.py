"""`__constant__` variables that host code fills: arguments of a contract, stated or read off the declarations."""

import pytest

from fsr.contract.build import build
from fsr.contract.infer.infer import infer
from fsr.contract.read import read_contract
from fsr.contract.show import with_block
from fsr.contract.validate import validate
from fsr.errors import ContractError
from fsr.source.constants import as_constants, constant_variables
from fsr.source.file import KernelFile

# the shapes of public image filters, transforms and stencils: a macro length, two axes, namespaces, vectors, scalars
DECLARATIONS = """
#define RADIUS 8
#define LENGTH (2 * RADIUS + 1)
#define CONST __constant__
typedef float real;
static __constant__ float c_Kernel[LENGTH];
__constant__ real mask[3][5], gain;
__constant__ float fixed[2] = {1.0f, 2.0f};
namespace filters { __device__ __constant__ __align__(16) float4 taps[RADIUS]; }
CONST unsigned char lut[256];
__constant__ Camera camera;
__constant__ constexpr float pi = 3.14f;
__device__ float counter[3];
extern "C" { __constant__ double weights[5]; }
"""

BLOCK = """// /// fsr
// entry = "k"
// [sizes]
// n = {min = 0, max = 4096, timed = 4096}
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["n"]}
// n = {value = "n"}
ENTRY// [launch]
// grid = "ceil_div(n, 64)"
// block = 64
// ///
"""
KERNEL = (
    "__global__ void k(const float *x, float *y, int n) { int i = blockIdx.x * 64 + threadIdx.x; if (i < n) BODY; }\n"
)


def stated(declarations: str, body: str, entry: str = ""):
    text = BLOCK.replace("ENTRY", entry) + declarations + "\n" + KERNEL.replace("BODY", body)
    file = KernelFile.from_text(text, "dir/k.cu")
    raw = read_contract(file.path, file.text)
    assert raw is not None
    return validate(build(raw, file, None), raw.where)


def test_declarations_without_a_value_are_found_with_type_and_extents():
    found = {v.name: (v.dtype, v.lanes, v.extents) for v in constant_variables(DECLARATIONS)}
    assert found == {
        "c_Kernel": ("float32", 1, ("LENGTH",)), "mask": ("float32", 1, ("3", "5")), "gain": ("float32", 1, ()),
        "filters::taps": ("float32", 4, ("RADIUS",)), "lut": ("uint8", 1, ("256",)), "camera": (None, 1, ()),
        "weights": ("float64", 1, ("5",)),
    }  # fmt: skip


def test_floating_ones_that_the_kernel_reads_are_arguments_though_nobody_says_so():
    contract = stated(DECLARATIONS, "y[i] = x[i] * c_Kernel[i % LENGTH] * mask[1][2] * filters::taps[0].x")
    assert [(a.name, a.symbol, a.shape) for a in contract.symbols()] == [
        ("c_Kernel", "c_Kernel", ("17",)), ("mask", "mask", ("3", "5")), ("gain", "gain", ("1",)),
        ("taps", "filters::taps", ("8", "4")),
    ]  # fmt: skip
    assert contract.plan.launches[0].args == ("x", "y", "n"), "they are not passed"


def test_integers_need_values_and_a_size_has_its_own():
    with pytest.raises(ContractError, match="says nothing of the __constant__ variable 'lut'") as told:
        stated(DECLARATIONS, "y[i] = lut[i % 256]")
    assert "[args]" in told.value.expected
    contract = stated(DECLARATIONS, "y[i] = lut[i % 256]", "// lut = {low = 0, high = 200}\n")
    (lut,) = contract.symbols()
    assert (lut.dtype, lut.shape, lut.constraints.high) == ("uint8", ("256",), "200")
    width = stated("__constant__ int width;", "y[i] = x[i] + width", '// w = {symbol = "width", value = "n"}\n')
    assert width.argument("w").constraints.low == width.argument("w").constraints.high == "n"


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ('// m = {symbol = "maks"}\n', "did you mean 'mask'"),
        ('// mask = {role = "out"}\n', "has the role 'out'"),
        ('// mask = {shape = ["n"]}\n', "numbers"),
        ("// mask = {grid = 3}\n", "grid"),
    ],
)
def test_what_cannot_be_is_told_at_its_line(entry, told):
    with pytest.raises(ContractError) as fault:
        stated("__constant__ float mask[3];", "y[i] = mask[1]", entry)
    assert told in str(fault.value)
    assert "dir/k.cu:9" in str(fault.value)


def test_more_than_constant_memory_holds_is_refused():
    with pytest.raises(ContractError, match="80000 bytes"):
        stated("__constant__ float mask[20000];", "y[i] = mask[1]")


def test_a_kernel_without_contract_gets_them_too_or_is_asked():
    text = "__constant__ float gains[4];\n" + KERNEL.replace("BODY", "y[i] = x[i] * gains[i & 3]").replace(
        "* 64", "* blockDim.x"
    )
    contract = infer(KernelFile.from_text(text, "dir/k.cu"))
    assert [(a.name, a.shape) for a in contract.symbols()] == [("gains", ("4",))]
    with pytest.raises(ContractError, match="lut: which values does host code put"):
        infer(KernelFile.from_text(text.replace("float gains[4]", "int lut[4]").replace("gains", "lut"), "dir/k.cu"))


def test_what_is_shown_reads_back_equal():
    text = "__constant__ float gains[4];\n" + KERNEL.replace("BODY", "y[i] = x[i] * gains[i & 3]").replace(
        "* 64", "* blockDim.x"
    )
    contract = infer(KernelFile.from_text(text, "dir/k.cu"))
    file = KernelFile.from_text(with_block(text, contract), "dir/k.cu")
    raw = read_contract(file.path, file.text)
    assert raw is not None
    again = build(raw, file, None)
    assert (again.args, again.plan) == (contract.args, contract.plan)


HOSTS = "namespace sizes { __device__ int wide, high; } static __device__ float mask[5];"


def test_device_variables_that_are_told_of_and_only_read_are_such_too():
    contract = stated(
        HOSTS,
        "y[i] = x[i] * mask[i % 5] + sizes::wide & sizes::high",
        '// wide = {value = "n"}\n// "high" = {low = 1, high = 9}\n// mask = {low = 0, high = 1}\n',
    )
    assert {a.symbol: a.dtype for a in contract.symbols()} == {
        "sizes::wide": "int32", "sizes::high": "int32", "mask": "float32",
    }  # fmt: skip
    text = as_constants(HOSTS + KERNEL, ["sizes::wide", "sizes::high", "mask"])
    assert text.startswith(HOSTS.replace("__device__", "__constant__"))


@pytest.mark.parametrize(
    ("declared", "body"),
    [
        ("__device__ int count;", "atomicAdd(&count, 1)"),
        ("__device__ int count;", "count = i"),
        ("__device__ int count;", "count++"),
        ("__device__ int count;", "y[i] = ++count"),
        ("__device__ int count[4];", "count[i % 4] += 1"),
        ("__device__ int2 count;", "count.x = 1"),
        ("__device__ int count = 3;", "y[i] = count"),
        ("__device__ int *count;", "y[i] = count[0]"),
        ("__device__ int other, count;", "other = 1; y[i] = count"),
    ],
)
def test_device_variables_that_device_code_changes_or_sets_are_none(declared, body):
    text = declared + KERNEL.replace("BODY", body)
    assert as_constants(text, ["count", "other"]) == text


@pytest.mark.parametrize("body", ["y[i] = x[i] && count", "y[i] = i & count", "y[i] = count == 3", "y[i] = count <= i"])
def test_what_only_looks_like_a_change_is_none(body):
    text = "__device__ int count;" + KERNEL.replace("BODY", body)
    assert as_constants(text, ["count"]) == text.replace("__device__", "__constant__")
    assert as_constants(text, ["n"]) == text
