"""Reading contracts: what is accepted, and messages that name the line."""

from pathlib import Path

import pytest

from fsr.backends.host.compiler import HostToolchain
from fsr.contract.load import load_contract
from fsr.contract.model import concrete_launches
from fsr.contract.show import contract_toml
from fsr.errors import ContractError, FsrError
from fsr.records import Candidate, Image, Role, ScalarArgument, ScalarValue, Scratch
from fsr.source.file import KernelFile

EXAMPLES = Path(__file__).parents[2] / "examples"
KERNEL = """
__global__ void k(const float *x, float *y, int n, float a)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
"""
GOOD = """entry = "k"
[sizes]
n = {min = 0, max = 1000, timed = [100, 1000]}
[args]
x = {shape = ["n"]}
y = {role = "out", shape = ["n"]}
a = {low = -1, high = 1.5}
[launch]
grid = "ceil_div(n, 128)"
block = 128
"""


def block(toml: str, kernel: str = KERNEL) -> KernelFile:
    """A kernel file with this contract: TOML line i is line i + 1 of the file."""
    lines = "".join(f"// {line}".rstrip() + "\n" for line in toml.rstrip("\n").split("\n"))
    return KernelFile.from_text(f"// /// fsr\n{lines}// ///\n{kernel}", "dir/k.cu")


def test_what_is_left_out_comes_from_the_kernel():
    contract = load_contract(block(GOOD))
    assert [(a.name, a.dtype, a.role) for a in contract.args] == [
        ("x", "float32", Role.IN),
        ("y", "float32", Role.OUT),
        ("n", "int32", Role.SCALAR),
        ("a", "float32", Role.SCALAR),
    ]
    assert contract.argument("n").value == "n"
    assert contract.argument("a").constraints.high == "1.5"
    assert contract.timed_sizes() == [{"n": 100}, {"n": 1000}]
    (launch,) = contract.plan.launches
    assert (launch.grid, launch.block, launch.args) == (
        ("ceil_div(n, 128)", "1", "1"),
        ("128", "1", "1"),
        ("x", "y", "n", "a"),
    )
    assert (contract.origin.kind, contract.origin.line) == ("block", 1)


SPACES = """
namespace k::of {
template <int B> __global__ void k(const float *x, float *y, int n, float a)
{
    int i = blockIdx.x * B + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
}
"""


@pytest.mark.parametrize("entry", ["k<128>", "of::k<128>", "::k::of::k<128>"])
def test_an_entry_without_all_of_its_namespaces_is_spelt_out(entry):
    contract = load_contract(block(GOOD.replace('entry = "k"', f'entry = "{entry}"'), SPACES))
    assert (contract.entry, [x.entry for x in contract.plan.launches]) == ("k::of::k<128>", ["k::of::k<128>"])
    table = f"""[[launch]]
entry = "{entry}"
grid = "ceil_div(n, 128)"
block = 128
args = ["x", "y", "n", 2.0]
"""
    planned = GOOD[: GOOD.index("a = {")] + table
    contract = load_contract(block(planned.replace('entry = "k"', "flags = []", 1), SPACES))
    assert (contract.entry, [x.entry for x in contract.plan.launches]) == ("k::of::k<128>", ["k::of::k<128>"])
    toolchain = HostToolchain()
    file = block(planned.replace('entry = "k"', "flags = []", 1), SPACES)
    built = toolchain.compile(Candidate(file.cut(contract.entry).text, contract.plan))
    assert isinstance(built, Image), built.log


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("[!.]*.cu")), ids=lambda p: p.stem)
def test_every_example_has_a_contract(path):
    contract = load_contract(path)
    assert contract.buffers()
    assert contract.origin.kind == ("inferred" if path.stem == "scale_bias" else contract.origin.kind)


def test_buffers_that_callers_clear():
    total = load_contract(EXAMPLES / "reduction.cu").argument("total")
    assert total.role is Role.INOUT
    assert (total.constraints.low, total.constraints.high) == ("0", "0")


# (line to change, what it becomes, what the message must say, line of the file it must name)
WRONG = [
    ('entry = "k"', 'entry = "kk"', "no kernel named 'kk'", 2),
    ('entry = "k"', 'entry = 3', "entry is 3", 2),
    ('entry = "k"', 'entry = "k"\nsize = 3', "did you mean 'sizes'", 3),
    ('entry = "k"', 'entry = "k<3>"', "is no template", 2),
    ("n = {min = 0, max = 1000, timed = [100, 1000]}", "n = {min = 0, mx = 1000}", "did you mean 'max'", 4),
    ("n = {min = 0, max = 1000, timed = [100, 1000]}", "n = {min = 9, max = 1, timed = 5}", "goes from 9 to 1", 4),
    ("n = {min = 0, max = 1000, timed = [100, 1000]}", "n = {max = 10, timed = 11}", "timed at 11", 4),
    ("n = {min = 0, max = 1000, timed = [100, 1000]}", "n = {min = 0}", "neither max nor timed", 4),
    ("n = {min = 0, max = 1000, timed = [100, 1000]}", 'n = "many"', "a range, {min = 1, max = 1024}", 4),
    ("n = {min = 0, max = 1000, timed = [100, 1000]}", "n = {max = -1}", "max is -1", 4),
    ("n = {min = 0, max = 1000, timed = [100, 1000]}", 'n = {max = 8, timed = "8"}', "timed is '8'", 4),
    ("n = {min = 0, max = 1000, timed = [100, 1000]}", "m-n = 3", "is no identifier", 4),
    ('x = {shape = ["n"]}', 'z = {shape = ["n"]}', "names the argument 'z'", 6),
    ('x = {shape = ["n"]}', "", "says nothing of the argument 'x'", 5),
    ('x = {shape = ["n"]}', "x = {}", "has no shape", 6),
    ('x = {shape = ["n"]}', 'x = {shape = ["n / 2"]}', "write // or ceil_div", 6),
    ('x = {shape = ["n"]}', 'x = {shape = ["m"]}', "names 'm', which is no size", 6),
    ('x = {shape = ["n"]}', 'x = {shape = ["n - 5"]}', "is -5 at the smallest sizes", 6),
    ('x = {shape = ["n"]}', 'x = {shape = ["n * 2 ** 40"]}', "elements at", 6),
    ('x = {shape = ["n"]}', 'x = {shape = ["n"], dtype = "float64"}', "the kernel declares const float*", 6),
    ('x = {shape = ["n"]}', 'x = {shape = ["n"], dtype = "float23"}', "did you mean 'float32'", 6),
    ('x = {shape = ["n"]}', 'x = {shape = ["n"], role = "out"}', "pointer to const", 6),
    ('x = {shape = ["n"]}', 'x = {shape = ["n"], role = "scalar"}', "role 'scalar'", 6),
    ('x = {shape = ["n"]}', 'x = {shape = ["n"], role = "inn"}', "did you mean 'in'", 6),
    ('x = {shape = ["n"]}', 'x = {shape = ["n"], alignment = 24}', "a power of two", 6),
    ('x = {shape = ["n"]}', 'x = {shape = ["n"], sorted = "yes"}', "true or false", 6),
    ('x = {shape = ["n"]}', 'x = {shape = ["n"], low = 5, high = "n - n"}', "go from 5 to 0", 6),
    ('x = {shape = ["n"]}', 'x = {shape = [true]}', "a number or an expression", 6),
    ('x = {shape = ["n"]}', 'x = {shape = ["?"]}', "does not parse", 6),
    ('y = {role = "out", shape = ["n"]}', 'y = {shape = ["n"]}', "role of y (float*) is not stated", 7),
    ('y = {role = "out", shape = ["n"]}', 'y = {role = "in", shape = ["n"]}', "no argument has the role out", 5),
    ('y = {role = "out", shape = ["n"]}', 'y = {role = "out", shape = ["n"], value = 0}', "says what it holds", 7),
    ("a = {low = -1, high = 1.5}", 'a = {role = "in"}', "passed by value", 8),
    ("a = {low = -1, high = 1.5}", 'a = {shape = ["n"]}', "has a shape", 8),
    ("a = {low = -1, high = 1.5}", 'a = {low = [1]}', "low is [1]", 8),
    ("[launch]", "[lunch]", "did you mean 'launch'", 9),
    ('grid = "ceil_div(n, 128)"', "", "launch has no grid", 9),
    ('grid = "ceil_div(n, 128)"', "grid = [1, 2, 3, 4]", "4 dimensions", 10),
    ('grid = "ceil_div(n, 128)"', 'grid = "ceil_div(q, 128)"', "names 'q'", 10),
    ('grid = "ceil_div(n, 128)"', 'grid = [1, "n * 1000"]', "65535", 10),
    ("block = 128", "block = 2048", "2048 threads", 11),
    ("block = 128", "block = [4, 4, 128]", "at most 1024 x 1024 x 64", 11),
    ("block = 128", 'block = "q"', "names 'q'", 11),
    ("block = 128", "block = 0", "is empty", 11),
    ("block = 128", "block = 128\nshared_bytes = -4", "shared_bytes is -4", 12),
    ("block = 128", "block = 128\nblok = 4", "did you mean 'block'", 12),
    ("block = 128", 'block = 128\n[tolerance]\nrtol = -1', "a number, at least 0", 13),
    ("block = 128", 'block = 128\n[tolerance]\nexact = true\nrtol = 1', "exact and has limits", 13),
    ("block = 128", 'block = 128\n[tolerance]\nsum_length = "z"', "names 'z'", 13),
    ("block = 128", "block = 128 128", "is not TOML", 11),
    ('entry = "k"', 'entry = "k"\naliasing = [["x", "z"]]', "names 'z', which is no buffer", 3),
    ('entry = "k"', 'entry = "k"\naliasing = ["x"]', "groups of two", 3),
    ('entry = "k"', 'entry = "k"\nflags = "-O3"', "a list of texts", 3),
    ('entry = "k"', 'entry = "k"\nreference = "ref"', "module.py:function", 3),
    ('entry = "k"', 'entry = "k"\nreference = "ref.py:f"', "cannot be used", 3),
    ('entry = "k"', 'entry = "k"\nscratch.x = {dtype = "float32", count = 1}', "an argument and a scratch", 3),
    ('entry = "k"', 'entry = "k"\nscratch.t = {dtype = "real", count = 1}', "dtype 'real'", 3),
    ('entry = "k"', 'entry = "k"\nscratch.t = {dtype = "float32"}', "has no count", 3),
    ('entry = "k"', 'entry = "k"\nscratch.t = {dtype = "float32", count = "n - 7"}', "is -7 at", 3),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "told", "line"), WRONG, ids=[f"{w[1][:34]}" for w in WRONG])
def test_mistakes_are_told_with_their_line(old, new, told, line):
    with pytest.raises(FsrError) as caught:
        load_contract(block(GOOD.replace(old, new, 1)))
    assert told in str(caught.value)
    assert caught.value.where == f"dir/k.cu:{line}"
    assert caught.value.fix
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("old", "new", "fix"),
    [
        ("a = {low = -1, high = 1.5}", "a = {low = true}", 'in quotes what it is made of: "4 * n"'),
        ("a = {low = -1, high = 1.5}", "a = {low = 0, high = 1, finite = 1}", "write finite = true, or leave it out"),
        ("n = {min = 0,", 'n = {min = "0",', "write min = 16, say: no quotes"),
        ("block = 128", "block = [1, 2, 3, 4]", "write block = [16, 16], say"),
        ("[sizes]", 'defines = "A"\n[sizes]', 'write defines = ["BLOCK=128", "FAST"], say'),
    ],
)
def test_what_to_write_instead_is_told(old, new, fix):
    assert old in GOOD
    with pytest.raises(ContractError) as told:
        load_contract(block(GOOD.replace(old, new)))
    assert fix in told.value.fix


def test_integers_without_value_or_limits_are_refused():
    kernel = KERNEL.replace("float a)", "float a, int mode)")
    toml = GOOD.replace("[launch]", "mode = {}\n[launch]")
    with pytest.raises(ContractError, match="integer mode has neither"):
        load_contract(block(toml, kernel))


def test_floating_values_and_limits_may_divide():
    """Of floating arguments, in a block, in a plan and on the way back from what `fsr contract` shows."""
    contract = load_contract(block(GOOD.replace("min = 0", "min = 1").replace("{low = -1", '{low = "-1 / n"')))
    shown = contract_toml(contract)
    again = load_contract(block(shown)).argument("a").constraints
    assert (again.low, again.high) == ("-1 / n", "1.5")
    with pytest.raises(ContractError, match="division by zero"):
        load_contract(block(GOOD.replace("{low = -1, high = 1.5}", '{value = "1 / n"}')))
    plan = (
        GOOD.replace("[launch]", "[[launch]]").replace("min = 0", "min = 1").replace("a = {low = -1, high = 1.5}\n", "")
    )
    passing = load_contract(block(plan + 'args = ["x", "y", "n", "1 / n"]\n'))
    assert passing.plan.launches[0].args[-1] == ScalarArgument("float32", "1 / n")
    assert concrete_launches(passing.plan, passing, {"n": 3}, {})[0].args[-1] == ScalarValue("float32", 1 / 3)
    with pytest.raises(ContractError, match="write // or ceil_div"):
        load_contract(block(plan + 'args = ["x", "y", "n / 1", "1 / n"]\n'))


@pytest.mark.parametrize(("name", "entry"), [
    ("x", 'x = {role = "in", shape = ["n"]}'),
    ("y", 'y = {role = "out", shape = ["n"]}'),
])  # fmt: skip
def test_the_entry_that_is_missing_is_shown_as_the_code_has_it(name, entry):
    toml = "".join(f"{line}\n" for line in GOOD.splitlines() if not line.startswith(f"{name} ="))
    with pytest.raises(ContractError) as told:
        load_contract(block(toml.replace("[sizes]", "[sizes]\nbatch = 3")))
    assert entry in told.value.expected


PRODUCT = """
__global__ void k(const float *__restrict__ x, const float *mask, const float *map, float *y, int batch, int d) {
    const int ncols = batch * d, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (col >= ncols) return;
    const auto kept = (mask == NULL) ? 1.f : (*(mask + col));
    y[col] = x[col] * kept + map[(int)x[col]];
}
"""


@pytest.mark.parametrize(("name", "words"), [
    ("mask", 'mask = {role = "in", shape = ["batch * d"]}'),
    ("map", 'map = {role = "in", shape = ["?"]}, with the extents in the place of "?"'),
])  # fmt: skip
def test_a_missing_shape_is_a_product_or_not_known(name, words):
    """Never the first size that there is."""
    args = ("x", "mask", "map")
    toml = 'sizes.batch = 3\nsizes.d = 5\n[args]\ny = {role = "out", shape = ["batch * d"]}\n' + "".join(
        f'{other} = {{shape = ["batch * d"]}}\n' for other in args if other != name
    )
    with pytest.raises(ContractError, match=f"says nothing of the argument {name!r}") as told:
        load_contract(block(toml + "[launch]\ngrid = 1\nblock = 32\n", PRODUCT))
    assert words in told.value.expected
    assert ("sizes: batch, d" in told.value.expected) == ("?" in words)


def test_structures_that_cannot_be_taken_apart_are_refused():
    kernel = "union P { int a; };\n" + KERNEL.replace("float a)", "P a)")
    for entry in ("a = {low = -1, high = 1.5}\n", "", "a = {value = 1}\n"):
        with pytest.raises(ContractError, match="k takes a as 'P' by value, which cannot be taken apart") as told:
            load_contract(block(GOOD.replace("a = {low = -1, high = 1.5}\n", entry), kernel))
        assert "takes the members of a as numbers" in told.value.fix
        assert "dtype" not in told.value.fix


@pytest.mark.parametrize(
    "declared", ["union P { int a; };", "typedef union { int a; } P;", "struct alignas(8) P\n{ int a : 3; };"]
)
def test_without_a_contract_too(declared):
    kernel = declared + "\n__global__ void k(float *x, P p, int n) { int i = threadIdx.x; if (i < n) x[i] = p.a; }"
    with pytest.raises(ContractError, match="k takes p as 'P' by value") as told:
        load_contract(KernelFile.from_text(kernel, "k.cu"))
    assert "dtype" not in told.value.fix
    assert told.value.where == f"k.cu:{declared.count(chr(10)) + 2}"


def test_a_type_that_is_not_declared_may_be_a_number():
    kernel = "__global__ void k(float *x, word n, int m) { int i = threadIdx.x; if (i < m) x[i] = n; }"
    with pytest.raises(ContractError, match="the code leaves open") as told:
        load_contract(KernelFile.from_text(kernel, "k.cu"))
    assert 'n = {dtype = "?"' in told.value.expected


@pytest.mark.parametrize(
    ("type_", "lanes", "told"),
    [
        ("float4", 4, ("float32", 16)),
        ("cuFloatComplex", 2, ("float32", 8)),
        ("cuComplex", 2, ("float32", 8)),
        ("cuDoubleComplex", 2, ("float64", 16)),
    ],
)
def test_vector_pointers_promise_their_alignment(type_, lanes, told):
    kernel = KERNEL.replace("const float *x", f"const {type_} *x")
    argument = load_contract(block(GOOD.replace('["n"]}', f'["n", {lanes}]}}', 1), kernel)).argument("x")
    assert (argument.dtype, argument.alignment) == told


PAIRS = """
template <typename T> struct __attribute__((aligned(sizeof(T) * 2))) Pair {
  typedef T part;
  static const int parts = 2;
  part re, im;
  __device__ Pair() {}
};
typedef Pair<double> Pair64;
struct Three { float x, y, z; };
struct alignas(16) Mixed { int a; float b; };
"""


@pytest.mark.parametrize(
    ("type_", "stated", "lanes", "told"),
    [
        ("Pair64", "", 2, ("float64", 16)),
        ("Pair<float>", "", 2, ("float32", 8)),
        ("Three", "", 3, ("float32", 0)),
        ("Three", 'dtype = "int32", ', 3, ("int32", 0)),
        ("Mixed", 'dtype = "int32", ', 2, ("int32", 16)),
        ("float4", 'dtype = "float32", ', 4, ("float32", 16)),
    ],
)
def test_structures_of_one_type_are_its_elements(type_, stated, lanes, told):
    kernel = PAIRS + KERNEL.replace("const float *x", f"const {type_} *x")
    argument = load_contract(block(GOOD.replace('shape = ["n"]}', f'{stated}shape = ["n", {lanes}]}}', 1), kernel))
    assert (argument.argument("x").dtype, argument.argument("x").alignment) == told


def test_structures_of_several_types_need_no_dtype():
    kernel = PAIRS + KERNEL.replace("const float *x", "const Mixed *x")
    argument = load_contract(block(GOOD, kernel)).argument("x")
    assert (argument.dtype, argument.shape, argument.alignment) == ("uint32", ("n", "4"), 16)
    assert [part.name for part in argument.parts()] == ["x.a", "x.b"]


def test_a_size_that_others_tell_stands_for_what_it_is_made_of():
    text = GOOD.replace("[args]", 'half = "m // 2"\nm = "2 * n"\n[args]').replace(
        'shape = ["n"]', 'shape = ["half + m"]', 1
    )
    contract = load_contract(block(text))
    assert [size.name for size in contract.sizes] == ["n"]
    shapes = [argument.shape for argument in contract.buffers()]
    assert ("((2 * n) // 2) + (2 * n)",) in shapes or ("(((2 * n)) // 2) + (2 * n)",) in shapes


def test_a_parameter_with_the_name_of_such_a_size_holds_it():
    text = GOOD.replace("n = {min", 'n = "4 * q"\nq = {min')
    contract = load_contract(block(text))
    assert [size.name for size in contract.sizes] == ["q"]
    assert contract.argument("n").value == "(4 * q)"


@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ('m = "2 * k"', "the size m is '2 \\* k', of k"),
        ('m = "2 * m"', "the size m is '2 \\* m', of m"),
        ('m = "l"\nl = "m"', "of l"),
        ('m = "2 n"', "does not parse"),
    ],
)
def test_a_size_made_of_what_is_no_size_is_refused(stated, told):
    with pytest.raises(ContractError, match=told) as caught:
        load_contract(block(GOOD.replace("[args]", f"{stated}\n[args]")))
    assert ":" in str(caught.value.where)


def test_a_fixed_size_and_minimal_sizes():
    contract = load_contract(block(GOOD.replace("n = {min = 0, max = 1000, timed = [100, 1000]}", "n = 64")))
    assert (contract.sizes[0].minimum, contract.sizes[0].maximum, contract.sizes[0].timed) == (64, 64, (64,))
    contract = load_contract(block(GOOD.replace("{min = 0, max = 1000, timed = [100, 1000]}", "{timed = 77}")))
    assert (contract.sizes[0].minimum, contract.sizes[0].maximum) == (1, 77)


@pytest.mark.parametrize("mark", ["/// fsr", "//// fsr", "// // fsr", "/* fsr"])
def test_a_mark_that_is_nearly_one_is_told(mark):
    file = KernelFile.from_text(f"{mark}\n// entry = 'k'\n// ///\n" + KERNEL, "k.cu")
    with pytest.raises(ContractError, match="opens no contract") as caught:
        load_contract(file)
    assert str(caught.value.where).endswith("k.cu:1")


def test_marks_of_the_block():
    open_only = KernelFile.from_text("// /// fsr\n// entry = 'k'\n" + KERNEL, "k.cu")
    with pytest.raises(ContractError, match="never closed") as caught:
        load_contract(open_only)
    assert caught.value.where == "k.cu:1"
    with pytest.raises(ContractError, match="two contract blocks"):
        load_contract(KernelFile.from_text("// /// fsr\n// ///\n// /// fsr\n// ///\n" + KERNEL, "k.cu"))
    with pytest.raises(ContractError, match="is no comment") as caught:
        load_contract(KernelFile.from_text("// /// fsr\nint x;\n// ///\n" + KERNEL, "k.cu"))
    assert caught.value.where == "k.cu:2"


def test_blank_lines_of_a_block_say_nothing():
    block = """// /// fsr

// [sizes]
// n = {min = 1, max = 9}

// side = "2 * n + 1"
// [args]
// x = {role = "out", shape = ["n"]}
// [launch]
// grid = "side"
// block = 32
// ///
"""
    contract = load_contract(KernelFile.from_text(block + "__global__ void k(float *x, int n) { x[0] = n; }", "k.cu"))
    assert contract.named == (("side", "(2 * n + 1)"),)
    assert contract.plan.launches[0].grid[0] == "(2 * n + 1)"


def test_crlf_blocks_are_read():
    file = block(GOOD)
    assert load_contract(KernelFile.from_text(file.text.replace("\n", "\r\n"))).entry == "k"


def test_sidecar(tmp_path):
    path = tmp_path / "k.cu"
    path.write_text(KERNEL)
    (tmp_path / "k.fsr.toml").write_text(GOOD)
    contract = load_contract(path)
    assert contract.origin.kind == "sidecar"
    (tmp_path / "k.fsr.toml").write_text(GOOD.replace("block = 128", "block = 4096"))
    with pytest.raises(ContractError) as caught:
        load_contract(path)
    assert caught.value.where == f"{tmp_path / 'k.fsr.toml'}:10"
    path.write_text(block(GOOD).text)
    with pytest.raises(ContractError, match=r"another in k\.fsr\.toml"):
        load_contract(path)
    path.write_text(KERNEL)
    (tmp_path / "k.fsr.toml").write_bytes(b"\xff\xff")
    with pytest.raises(ContractError, match="cannot be read"):
        load_contract(path)


def test_reference_functions_are_looked_up(tmp_path):
    path = tmp_path / "k.cu"
    path.write_text(block('reference = "ref.py:right"\n' + GOOD).text)
    (tmp_path / "ref.py").write_text("raise SystemExit  # never run here\ndef right(x): return x\n")
    assert load_contract(path).reference == "ref.py:right"
    path.write_text(block('reference = "ref.py:wrong"\n' + GOOD).text)
    with pytest.raises(ContractError, match="has no function 'wrong'"):
        load_contract(path)


PLAN_KERNELS = """
__global__ void partial(const float *x, float *tmp, int n) { }
__global__ void finish(const float *tmp, float *y, int count, float s) { }
"""
PLAN = """[sizes]
n = {max = 4096}
[args]
x = {dtype = "float32", role = "in", shape = ["n"]}
y = {dtype = "float32", role = "out", shape = [1]}
n = {dtype = "int32", role = "scalar", value = "n"}
[[launch]]
entry = "partial"
grid = "ceil_div(n, 256)"
block = 256
args = ["x", "t", "n"]
[[launch]]
entry = "finish"
grid = 1
block = 32
args = ["t", "y", "ceil_div(n, 256)", {value = 0.5}]
[scratch.t]
dtype = "float32"
count = "ceil_div(n, 256)"
zeroed = true
"""


def test_plans_of_several_launches():
    contract = load_contract(block(PLAN, PLAN_KERNELS))
    assert contract.entry == "partial"
    assert [launch.entry for launch in contract.plan.launches] == ["partial", "finish"]
    assert contract.plan.scratch == (Scratch("t", "float32", "ceil_div(n, 256)", True),)
    assert contract.plan.launches[1].args[2:] == (
        ScalarArgument("int32", "ceil_div(n, 256)"),
        ScalarArgument("float32", "0.5"),
    )


def test_an_argument_is_held_against_what_takes_it():
    """Not against a parameter of its name that is passed something else."""
    text = PLAN.replace("y = {dtype", "tmp = {dtype").replace('"t", "y",', '"t", "tmp",')
    kernels = PLAN_KERNELS.replace("float *tmp, int n", "float *sums, int n")  # finish reads its own tmp
    assert load_contract(block(text, kernels)).argument("tmp").role is Role.OUT


@pytest.mark.parametrize(
    ("old", "new", "told", "line"),
    [
        ('args = ["x", "t", "n"]', 'args = ["x", "t"]', "passes 2 arguments", 12),
        ('args = ["x", "t", "n"]', 'args = ["x", "u", "n"]', "passes 'u' for tmp", 12),
        ('entry = "finish"', 'entry = "end"', "no kernel named 'end'", 14),
        ("block = 32", "block = 3200", "3200 threads", 16),
        ('{value = 0.5}', '{valu = 0.5}', "did you mean 'value'", 17),
        ('value = "n"}\n', 'value = "n"}\nxs = {value = 3}\n', "argument 'xs', which no l", 8),
    ],
)  # fmt: skip
def test_mistakes_in_plans(old, new, told, line):
    with pytest.raises(FsrError) as caught:
        load_contract(block(PLAN.replace(old, new), PLAN_KERNELS))
    assert told in str(caught.value)
    assert caught.value.where == f"dir/k.cu:{line}"
