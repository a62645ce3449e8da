"""Top-level items: kinds and names of what C++ offers, and that any text is taken apart in order."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsr.errors import SourceError
from fsr.source.file import KernelFile
from fsr.source.items import parse_items
from fsr.source.signature import signature
from fsr.source.tokens import tokenize
from fsr.source.types import aliases, resolve_dtype

FILES = Path(__file__).parent / "files"

ITEMS = [
    ("struct __align__(16) V { float x; } gv;", "record", ("V", "gv")),
    ("enum class E : int { A = 1, B };", "record", ("E", "A", "B")),
    ("typedef struct { int q; } Y;", "alias", ("Y",)),
    ("typedef void (*fn)(int);", "alias", ("fn",)),
    ("typedef float row_t[4];", "alias", ("row_t",)),
    ("using T = float;", "alias", ("T",)),
    ("template <class T> using P = T *;", "alias", ("P",)),
    ("namespace cg = cooperative_groups;", "alias", ("cg",)),
    ("using namespace std;", "using", ("std",)),
    ("using a::b;", "using", ("b",)),
    ("static const int a = 3, b[2] = {1, 2};", "variable", ("a", "b")),
    ("int z{3};", "variable", ("z",)),
    ("extern __shared__ float sm[];", "variable", ("sm",)),
    ("__device__ float Foo::bar(int x) const { return 1; }", "function", ("Foo", "bar")),
    ("template <> __global__ void k<float, (3 > 2)>(float *p) {}", "function", ("k",)),
    ("template __global__ void k<float>(float *);", "instantiation", ()),
    ("extern template struct S<int>;", "instantiation", ()),
    ("__device__ V operator+(V a, V b) { return a; }", "function", ("operator",)),
    ("[[nodiscard]] int f(int a = g(1));", "prototype", ("f",)),
    ("static_assert(sizeof(int) == 4, \"{\");", "assertion", ()),
    ("PYBIND11_MODULE(NAME, m) { m.def(\"x\"); };", "function", ("PYBIND11_MODULE",)),
    ("DECLARE(x);", "call", ()),
    ("__global__ void __launch_bounds__(256, 2) k(int *p) {}", "function", ("k",)),
    ("const char *s = R\"x(} { )\" )x\";", "variable", ("s",)),
    ("constexpr long big = 1'000'000;", "variable", ("big",)),
    (";", "empty", ()),
    ("template <int N> __global__ MY_BOUNDS(N) void k(int *p) {}", "function", ("k",)),
    ("__device__ int f(int a) MY_ATTRIBUTE(cold) { return a; }", "function", ("f",)),
    ("struct MY_ALIGNED S final { int a; };", "record", ("S",)),
    ("enum class E : unsigned char;", "record", ("E",)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "names"), ITEMS, ids=[i[0][:40] for i in ITEMS])
def test_kinds_and_names(text, kind, names):
    (item,) = parse_items(f"  {text}  // tail\n")
    assert (item.kind, item.names) == (kind, names)
    assert (item.start, item.end) == (2, 2 + len(text))


def test_a_macro_call_on_its_own_line_ends_there():
    kinds = [i.kind for i in parse_items("#define OP(a) int a;\nOP(x)\n__global__ void k(int *p) {}\nOTHER_MACRO(y)\n")]
    assert kinds == ["define", "call", "function", "call"]


def test_branches_that_open_the_same_bracket():
    text = "void f() {\n#if A\n  if (x) {\n#elif B\n  while (y) {\n#else\n  {\n#endif\n  }\n}\nint after;\n"
    assert [i.kind for i in parse_items(text)] == ["function", "variable"]
    header = "#if A\nvoid f(int a) {\n#else\nvoid f() {\n#endif\n}\nint after;\n"
    assert [i.kind for i in parse_items(header)][-1] == "variable"


def test_a_head_in_several_branches_is_one_item():
    text = "#ifdef A\n__global__\n#endif\nvoid f(int *p) { *p = 1; }\n#if B\nint x;\n"
    text += "void g(int a)\n#else\nvoid g()\n#endif\n{\n}\nint y;\n"
    first, second, last = parse_items(text)
    assert (first.kind, first.names, "__global__" in first.head) == ("function", ("f",), True)
    assert text[first.start : first.end].startswith("#ifdef A")
    assert (second.kind, text[second.start : second.start + 5], last.names) == ("function", "#if B", ("y",))
    unclosed = parse_items("#if A\nint x\n#else\nint y;\n#endif\nint z;\n")
    assert [i.kind for i in unclosed] == ["variable", "variable"]


def test_macros_around_a_namespace_hide_nothing():
    text = "LIB_NAMESPACE_BEGIN\n\nnamespace a {\n__global__ void k(int *p) {}\n}\n"
    text += "A_PREFIX namespace b {\nint x;\n}\nLIB_NAMESPACE_END\n"
    assert KernelFile.from_text(text).kernels == ("a::k",)
    assert [i.kind for i in parse_items(text)] == ["call", "namespace", "call", "namespace", "call"]


@given(
    st.lists(
        st.sampled_from([*list("ab1 \n#'\"/*\\(){}[];,<>=:.R"), "#if ", "#endif\n", "struct ", "template ", "\r\n"])
    )
)
@settings(max_examples=300, deadline=None)
def test_any_text_is_taken_apart_in_order(parts):
    text = "".join(parts)
    position = 0
    for token in tokenize(text):
        assert token.start >= position
        assert text[token.start : token.end] == token.text
        position = token.end
    try:
        items = parse_items(text)
    except SourceError:
        return
    for before, after in itertools.pairwise(items):
        assert before.end <= after.start


TYPES = [
    ("const unsigned long long int", "uint64"), ("long unsigned", "uint64"), ("std::uint8_t", "uint8"),
    ("short", "int16"), ("unsigned", "uint32"), ("signed char", "int8"), ("__nv_bfloat16", "bfloat16"),
    ("half", "float16"),     ("at::Half", "float16"),
    ("bool", "bool"), ("void", None), ("Unknown", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "dtype"), TYPES)
def test_c_types(text, dtype):
    assert resolve_dtype(text) == (dtype, 1)


def test_vector_types_and_chains_of_typedefs():
    assert resolve_dtype("const ulonglong2") == ("uint64", 2)
    assert resolve_dtype("half2") == ("float16", 2)
    assert resolve_dtype("a", {"a": "b", "b": "const c", "c": "float4"}) == ("float32", 4)
    assert resolve_dtype("a", {"a": "b", "b": "a"}) == (None, 1)


def test_names_for_types_are_followed():
    text = """typedef long unsigned word_t; using small = cuda::std::uint8_t;
    enum Kind { A, B }; enum class E : short { C };
    typedef enum { D } named; typedef float row_t[4]; typedef struct { int q; } S;
    #define real word_t
    """
    known = aliases(text)
    found = {name: resolve_dtype(name, known)[0] for name in ("real", "small", "Kind", "E", "named", "row_t", "S")}
    assert found == {"real": "uint64", "small": "uint8", "Kind": "int32", "E": "int16", "named": "int32",
                     "row_t": None, "S": None}  # fmt: skip


def test_the_branch_that_is_compiled_gives_the_signature():
    text = "#define WIDE\n#ifdef WIDE\n__global__ void k(double *x)\n#else\n"
    text += "__global__ void k(float *x)\n#endif\n{ x[0] = 1; }\n"
    assert signature(KernelFile.from_text(text), "k").params[0].dtype == "float64"
    assert signature(KernelFile.from_text(text.replace("#define WIDE", "")), "k").params[0].dtype == "float32"


def test_signatures():
    text = """
#define real float
typedef real value_t;
using count_t = unsigned int;
template <typename T, typename U = double, int N = 2, typename... Rest>
__global__ void k(const T *__restrict__ x, U y[], value_t *const out, count_t n = 3, T **deep, T s) {}
"""
    found = signature(KernelFile.from_text(text), "k<__half>")
    assert [(p.name, p.dtype, p.pointer, p.const) for p in found.params] == [
        ("x", "float16", True, True),
        ("y", "float64", True, False),
        ("out", "float32", True, False),
        ("n", "uint32", False, False),
        ("deep", None, True, False),
        ("s", "float16", False, False),
    ]
    assert dict(found.template)["N"] == "2"
    assert found.param("n") is found.params[3]
    assert found.param("none") is None


def test_parameters_without_a_name_are_refused():
    with pytest.raises(SourceError, match="has no name") as caught:
        signature(KernelFile.from_text("\n__global__ void k(int a,\n float *) {}"), "k")
    assert caught.value.where == "kernel.cu:3"
    assert signature(KernelFile.from_text("__global__ void k(void) {}"), "k").params == ()


def test_parameters_that_a_macro_makes_are_refused_by_its_name():
    text = "#define ARGS const float *x, float *y\n__global__ void k(ARGS, int n) {}"
    with pytest.raises(SourceError, match="a macro, ARGS, makes parameters of k") as caught:
        signature(KernelFile.from_text(text), "k")
    assert caught.value.where == "kernel.cu:2"


@pytest.mark.parametrize("end", [" \\\n\n", " \\\r\n\r\n", " \\\n  \n", "\\\n\\\n\n"])
def test_a_macro_ends_where_a_splice_leads_to_an_empty_line(end):
    tokens = tokenize(f"#define A(x) x += 1{end}#define B 2\nint a;")
    assert [t.text for t in tokens if t.kind == "directive"] == ["#define A(x) x += 1", "#define B 2"]


@pytest.mark.parametrize("text", ["{ } ;", "using ;", "typedef ;", "struct ;", "template ;", "namespace { }", "extern"])
def test_broken_declarations_have_a_kind(text):
    assert all(item.kind for item in parse_items(text))


def test_empty_parameters_are_refused():
    with pytest.raises(SourceError, match="has no name"):
        signature(KernelFile.from_text("__global__ void k(int a,, int b) {}"), "k")


def test_more_parameters_than_cuda_passes_are_refused():
    """32,764 bytes: NVRTC says the same of one parameter more."""
    taken = ", ".join(f"float *p{i}" for i in range(4095))
    assert len(signature(KernelFile.from_text(f"__global__ void k({taken}) {{}}"), "k").params) == 4095
    with pytest.raises(SourceError, match=r"(?s)k has 4,096 parameters, 32,768 bytes or more.*32,764 bytes"):
        signature(KernelFile.from_text(f"__global__ void k({taken}, float *more) {{}}"), "k")


def test_a_long_file_has_the_lines_that_a_short_one_has():
    head = "\n".join(f"// line {i}" for i in range(1, 1000))
    file = KernelFile.from_text(f"{head}\n__global__ void k(int a,\n int b) {{}}\n")
    assert [p.line for p in signature(file, "k").params] == [1000, 1001]
    assert file.find("k").where == "kernel.cu:1000"
