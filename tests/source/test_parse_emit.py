"""Parsing and emitting: the same form comes back, the code compiles, and what has no form stays word for word."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fsr.source.emit import _BINARY as LEVELS
from fsr.source.emit import emit_expr, emit_kernel
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Declare,
    Expr,
    For,
    If,
    Index,
    Literal,
    Member,
    Name,
    OpaqueStmt,
    Param,
    Return,
    Scope,
    Ternary,
    Unary,
    While,
)  # fmt: skip
from fsr.source.parse import misread_lines, parse_device_functions, parse_kernels
from fsr.source.walk import contains_opaque, walk_stmts

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.cu"))


def kernel(body: str, params: str = "float *x, int n"):
    return parse_kernels(f"__global__ void k({params}) {{\n{body}\n}}")["k"]


def statement(text: str):
    (found,) = kernel(text).body
    return found


def expr(text: str) -> Expr:
    found = statement(f"y = {text};")
    assert isinstance(found, Assign)
    return found.value


HARD = r"""
#define BLOCK 256
template <int B, typename T>
__global__ void __launch_bounds__(256, 2) soft(const float* __restrict__ x, float *y, int rows, const int cols,
                                               float a[3]) {
  extern __shared__ float sm[];
  __shared__ float tile[32][33], other[BLOCK];
  extern __shared__ __align__(128) unsigned char buf[];
  int row = blockIdx.x * blockDim.x + threadIdx.x, k;
  const float *p = x + row, *q{nullptr};
  if (row >= rows) return;
  // a word
  #pragma unroll 4
  for (int j = 0; j < cols; j++) { m = fmaxf(m, x[row * cols + j]); }
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    if (threadIdx.x < s) sm[threadIdx.x] += sm[threadIdx.x + s]; __syncthreads();
  }
  for (;;) break;
  for (size_t i = 0, n = 3; i < n; ++i) continue;
  #pragma unroll
  for (int i = 0; i < 4; ++i)
    #pragma unroll
    for (int j = 0; j < 4; ++j)
      y[i] = j;
  float4 v = *reinterpret_cast<const float4*>(x + 4 * row);
  float2 z = {1, 2};
  y[k++] = *p++; k = row = 3;
  auto f = [&](int i) { return i; };
  do { k--; } while (k > 0);
  switch (k) { case 0: break; default: ; }
  asm volatile("nop;" ::: "memory");
  dim3 g(1, 2); std::size_t ss; T val = T(0); cg::thread_block tb = cg::this_thread_block();
  if constexpr (B > 3) { k = 1; } else if (k) k = 2; else k = 3;
  foo<3>(k); a.b<int>(c); p->x = sizeof(float); k = sizeof k; long long big = 1'000'000;
  constexpr int C = 4; static_assert(C == 4);
  goto end; end: ;
#if __CUDA_ARCH__ > 800
  k = 9;
#endif
  const float& rr = x[0]; float (*fp)(int); k = (1, 2);
}
extern "C" __global__ void k2(int n) { __shared__ alignas(16) float s[4]; unsigned char c = 'a'; }
__global__ static void __cluster_dims__(2,1,1) k3(int n) { n = 1; }
"""


@pytest.mark.parametrize("text", [HARD, *[p.read_text() for p in EXAMPLES]], ids=["hard", *[p.stem for p in EXAMPLES]])
def test_emitting_and_parsing_again_changes_nothing(text):
    found = parse_kernels(text)
    assert found
    for name, form in found.items():
        emitted = emit_kernel(form)
        again = parse_kernels(emitted)[name]
        assert again == form
        assert emit_kernel(again) == emitted


def test_examples_are_understood_to_the_last_statement():
    for path in EXAMPLES:
        for form in parse_kernels(path.read_text()).values():
            assert not contains_opaque(form.body), path.name


def test_what_has_no_form_stays_word_for_word():
    emitted = emit_kernel(parse_kernels(HARD)["soft"])
    for text in ('asm volatile("nop;" ::: "memory");', "goto end;", "#if __CUDA_ARCH__ > 800",
                 "float (*fp)(int);",
                 "extern __shared__ __align__(128) unsigned char buf[];",
                 "[&](int i) { return i; }", "1'000'000"):  # fmt: skip
        assert text in emitted


def test_a_variable_that_follows_another_is_two_statements():
    text = "__global__ void k(int n) { for (int i = 0, last = n; i < n; last = i++) { n = last; } int j; j = --n; }"
    body = parse_kernels(text)["k"].body
    assert not contains_opaque(body)
    (loop,) = [s for s in walk_stmts(body) if isinstance(s, While)]
    assert loop.body[1:] == (Assign(Name("last"), "=", Name("i")), Assign(Name("i"), "+=", Literal("1")))
    assert body[2:] == (Assign(Name("n"), "-=", Literal("1")), Assign(Name("j"), "=", Name("n")))


def test_a_chain_of_assignments_is_a_statement_each_the_last_one_first():
    text = "__global__ void k(float *x, float2 v, float a, int i) { a = v.y = x[i]; v.x += a = 1.0f; x[i] = i = 2; }"
    body = parse_kernels(text)["k"].body
    a, x, y = Name("a"), Member(Name("v"), "x"), Member(Name("v"), "y")
    assert body[:2] == (Assign(y, "=", Index(Name("x"), Name("i"))), Assign(a, "=", y))
    assert body[2:4] == (Assign(a, "=", Literal("1.0f")), Assign(x, "+=", a))
    assert contains_opaque(body[4:])  # an element, which the index's own change may move


def test_headers():
    found = parse_kernels(HARD)
    soft = found["soft"]
    assert (soft.template, soft.launch_bounds) == ("int B, typename T", ("256", "2"))
    assert soft.params[0] == Param("const float *", "x", restrict=True)
    assert soft.params[4] == Param("float *", "a")
    assert found["k2"].prefix == ('extern "C"',)
    assert found["k3"].prefix == ("static", "__cluster_dims__(2,1,1)")
    start, end = soft.span
    assert HARD.encode()[start:end].startswith(b"template <int B")
    assert HARD.encode()[start:end].endswith(b"}")


@pytest.mark.parametrize("text", [
    "int i {0};", "int i(0);", "int i = {0};", "int i{};", "int i = {};", "int i { /* none */ 0 };",
])  # fmt: skip
def test_numbers_are_initialised_alike_in_every_spelling(text):
    assert kernel(text).body == (Declare("int", "i", Literal("0")),)


LOOP_MACROS = """
#define KERNEL_LOOP(i, n) \\
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < (n); i += blockDim.x * gridDim.x)
#define LEAVE_BEYOND(i, n) if ((i) >= (n)) return
#define SQUARE(x) ((x) * (x))
"""


@pytest.mark.parametrize("text", ["KERNEL_LOOP(i, n) { x[i] = 2; }", "KERNEL_LOOP(i, n) x[i] = 2;"])
def test_macros_that_head_a_loop_are_the_loop(text):
    source = f"{LOOP_MACROS}__global__ void k(float *x, int n) {{ {text} }}\n__global__ void l() {{}}"
    k = parse_kernels(source)["k"]
    (loop,) = k.body
    assert isinstance(loop, For)
    assert (loop.var, loop.bound) == ("i", Name("n"))
    assert source[slice(*k.span or ())].endswith(f"{text} }}")


def test_macros_that_are_statements_are_written_out_and_expressions_stay():
    text = "__global__ void k(float *x, int n) { LEAVE_BEYOND(threadIdx.x, n); x[0] = SQUARE(x[1]); }"
    guard, store = parse_kernels(LOOP_MACROS + text)["k"].body
    assert isinstance(guard, If)
    assert guard.then == (Return(None),)
    assert isinstance(store, Assign)
    assert store.value == Call(Name("SQUARE"), (Index(Name("x"), Literal("1")),))


def test_braces_where_modern_code_has_them():
    k = kernel(
        "for (unsigned int i { 2 }; i < n; ++i) { const float *p { x + i }; float2 v{1.f, 2.f}; int a[2]{1, 2}; }"
    )
    (loop,) = k.body
    assert isinstance(loop, For)
    assert (loop.type, loop.start) == ("unsigned int", Literal("2"))
    pointer, pair, array = loop.body
    assert isinstance(pointer, Declare)
    assert pointer.init == Binary("+", Name("x"), Name("i"))
    assert isinstance(pair, Declare)
    assert isinstance(array, Declare)
    assert "float2 v = make_float2(1.f, 2.f);" in emit_kernel(k)
    assert "int a[2] = {1, 2};" in emit_kernel(k)


def test_pragmas_between_nested_loops_stay_with_their_loop():
    outer = statement(
        "#pragma unroll\nfor (int i = 0; i < 4; ++i)\n#pragma unroll 2\nfor (int j = 0; j < n; ++j) x[i] = j;"
    )
    assert isinstance(outer, For)
    assert outer.pragmas == ("#pragma unroll",)
    (inner,) = outer.body
    assert isinstance(inner, For)
    assert inner.pragmas == ("#pragma unroll 2",)
    assert inner.body == (Assign(Index(Name("x"), Name("i")), "=", Name("j")),)


@pytest.mark.parametrize(
    ("text", "loop"),
    [
        ("for (int i = tid; i < n; i += stride) {}",
         For("int", "i", Name("tid"), "<", Name("n"), Name("stride"), ())),
        ("for (int i = n - 1; i >= 0; i--) ;",
         For("int", "i", Binary("-", Name("n"), Literal("1")), ">=", Literal("0"), Unary("-", Literal("1")), ())),
        ("for (i = 0; n != i; i = i + 2) {}", For(None, "i", Literal("0"), "!=", Name("n"), Literal("2"), ())),
        ("for (;;) {}", While(Literal("true"), ())),
        ("while (n > 0) n--;", While(Binary(">", Name("n"), Literal("0")), (Assign(Name("n"), "-=", Literal("1")),))),
    ],
)  # fmt: skip
def test_loops(text, loop):
    assert statement(text) == loop


def test_a_halving_loop_is_a_while_and_comes_back_as_for():
    form = kernel("for (int s = n / 2; s > 0; s >>= 1) { x[s] = 0; }")
    (found,) = form.body
    assert isinstance(found, Scope)
    assert isinstance(found.body[1], While)
    assert "for (int s = n / 2; s > 0; s >>= 1) {" in emit_kernel(form)
    turn = "if (s == 4) { if (n) continue; n = s; } n++;"
    assert isinstance(statement(f"for (int s = n; s > 0; s >>= 1) {{ {turn} }}"), OpaqueStmt)


def test_a_step_of_what_the_body_declares_stays_in_the_body():
    form = kernel("{ int at = 0; while (2 * at < n) { int child = 2 * at + 1; x[at] = x[child]; at = child; } }")
    text = emit_kernel(form)
    assert "while (2 * at < n) {" in text
    assert text.index("int child") < text.index("at = child;")
    assert parse_kernels(text)["k"].body == form.body


def test_statements():
    assert statement("if (n) return; else { n = 1; }") == If(
        Name("n"), (Return(),), (Assign(Name("n"), "=", Literal("1")),)
    )
    assert kernel("unsigned int a = 1u, *b;").body == (
        Declare("unsigned int", "a", Literal("1u")),
        Declare("unsigned int *", "b"),
    )
    assert statement("float t = __ldg(&x[n]);") == Declare(
        "float", "t", Call(Name("__ldg"), (Unary("&", Index(Name("x"), Name("n"))),))
    )


def test_kernels_are_found_among_broken_and_foreign_text():
    text = """
    // __global__ void not_this(int n) {}
    const char *s = "__global__ void nor_this() {";
    template <class T> struct Broken { T operator()(T a) const &&; }; @ @
    __global__ void declared(int n);
    namespace a { extern "C" { __global__ void inside(int n) { n = 2; } } }
    #define MAKE(n) __global__ void n(int q) { q = 1; }
    MAKE(made)
    __global__ void lost(int n) { if (n) {
    """
    assert list(parse_kernels(text)) == ["inside"]
    assert parse_kernels("") == {}


def test_an_unbalanced_directive_keeps_the_body_verbatim():
    heads = (
        "#if __CUDA_ARCH__ > 800\n for (int i = 0; i < n; i++) {\n#else\n for (int i = 0; i < 2 * n; i++) {\n#endif\n"
    )
    body = heads + " x[i] = 0; }"
    text = emit_kernel(kernel(body))
    assert "#else" in text
    assert "x[i] = 0; }" in text


def test_device_functions():
    found = parse_device_functions("__device__ __forceinline__ float twice(float v) { return 2 * v; }")
    assert found["twice"].body == (Return(Binary("*", Literal("2"), Name("v"))),)


def test_brackets_only_where_they_are_needed():
    for text in ("a - (b - c)", "a - b - c", "(a + b) * c", "a * b + c", "-(-a)", "!(a && b)", "a ? b : c ? d : e",
                 "(a ? b : c) + 1", "*(p + 1)", "(*p).x", "&a[1]", "(float)a / b", "(float)(a / b)", "a << (b + 1)",
                 "(a & b) == c", "f((a, b))", "f((a, b, c))", "-1", "(a && b) || c", "x[a + b].y"):  # fmt: skip
        assert emit_expr(expr(text)) == text


@pytest.mark.parametrize("test", [
    "i < n >> 1", "i < n && j > (m)", "threadIdx.x < n >> 1", "p->x < (n) && p->y > (m)", "x[i].y < n && x[j].y > (m)",
    "i < (n) || j > (m)",
])  # fmt: skip
def test_a_comparison_is_no_list_of_template_arguments(test):
    text = f"__global__ void k(P *p, Q *x, int n, int m) {{ int i = 0, j; if ({test}) x[i] = n; }}"
    kernel = parse_kernels(text)["k"]
    assert not contains_opaque(kernel.body)
    branch = next(s for s in walk_stmts(kernel.body) if isinstance(s, If))
    assert emit_expr(branch.test).replace("(n)", "n") == test.replace("(m)", "m").replace("(n)", "n")


@pytest.mark.parametrize(("text", "wanted"), [
    ("((v * (u * t)) + s) * l", "(v * (u * t) + s) * l"),
    ("l - ((v*(u)) - s) * l", "l - (v * u - s) * l"),
    ("l * (n & (m & 3)) - s", "l * (n & (m & 3)) - s"),
    ("(n & (m) ^ n) + s", "(n & m ^ n) + s"),
    ("(v * *y) + s", "v * *y + s"),
    ("(real * (u)) + s", "real * u + s"),  # a variable of that name
])  # fmt: skip
def test_a_product_in_brackets_is_no_cast(text, wanted):
    whole = "__global__ void k(float *y, float v, float u, float t, float s, float l, int n, int m, float real)"
    (stmt,) = parse_kernels(f"{whole} {{ y[0] = {text}; }}")["k"].body
    assert emit_expr(stmt.value).replace("(n & m) ^ n", "n & m ^ n") == wanted


def test_pointers_to_types_that_casts_name_stay_pointers():
    text = """__global__ void k(const unsigned char *x, unsigned long long *posts, half *h, int n) {
        unsigned char *p = (unsigned char *)h; char c = (unsigned char)n; long v = (unsigned long long)n;
        int i = (const int)v;
        char *q = (char *)p; long long *r = posts; int *t = &i; half *u = (const half)n * h;
    }"""
    kernel = parse_kernels(text)["k"]
    assert all(p.is_pointer for p in kernel.params[:3])
    declared = {s.name: s.type for s in kernel.body if isinstance(s, Declare)}
    assert {n for n, t in declared.items() if "*" in t} == {"p", "q", "r", "t", "u"}


def test_template_arguments_stay_what_they_are():
    text = "__global__ void k(P p, int *x) { int n = p.pick<4>(x[0]), m = pick<int, 2>(n); x[0] = n < m; }"
    first, second, *_ = parse_kernels(text)["k"].body
    assert isinstance(first, Declare)
    assert isinstance(second, Declare)
    assert [e.template_args for e in (first.init, second.init) if isinstance(e, Call)] == [("4",), ("int", "2")]


def test_a_cast_to_a_type_of_the_file_is_no_difference():
    text = """typedef float real;
using wide = double;
template <typename T> __global__ void k(T *x, const float *p, int n) {
  x[0] = (T)-1.5;
  x[1] = n * (real)-n + 2;
  x[2] = (wide)*p > (T)-1 ? (half)-p[1] : (n) - 1;
  x[3] = sizeof (real) * n;
}
__global__ void shadowed(float *x, float real) { x[0] = (real) - 1; }"""
    found = parse_kernels(text)
    written = [emit_expr(s.value) for s in found["k"].body]
    assert written[:2] == ["(T)-1.5", "n * (real)-n + 2"]
    assert written[2:] == ["(wide)*p > (T)-1 ? (half)-p[1] : n - 1", "sizeof (real) * n"]
    assert [emit_expr(s.value) for s in found["shadowed"].body] == ["real - 1"]


NAMES = st.sampled_from(["a", "b", "i", "n"]).map(Name)
NUMBERS = st.sampled_from(["0", "1", "2.5f", "0x1fu"]).map(Literal)


def wrap(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    operators = st.sampled_from(sorted(set(LEVELS) - {","}))
    return st.one_of(
        st.builds(Binary, operators, inner, inner),
        st.builds(Unary, st.sampled_from("-!~*&"), inner),
        st.builds(Ternary, inner, inner, inner),
        st.builds(lambda a, b: Call(Name("f"), (a, b)), inner, inner),
        st.builds(lambda e: Index(Name("x"), e), inner),
        st.builds(lambda e: Cast("float", e), inner),
        st.builds(lambda e: Cast("int *", e, "reinterpret_cast"), inner),
        st.builds(lambda e: Member(Index(Name("v"), e), "y"), inner),
    )


@settings(max_examples=150, deadline=None)
@given(st.recursive(NAMES | NUMBERS, wrap, max_leaves=12))
def test_any_expression_survives(e):
    assert expr(emit_expr(e)) == e


def test_a_head_under_ifdef_is_read_as_it_is_compiled():
    text = "#define ON\n#ifdef ON\n__global__\n#endif\nvoid f(int *p) {\n    p[0] = 1;\n}\n"
    form = parse_kernels(text)["f"]
    assert [p.name for p in form.params] == ["p"]
    assert text[slice(*form.span)].startswith("#ifdef ON")
    other = "#if defined(ODD)\n__global__ void g(float *a)\n#else\n"
    other += "__global__ void g(int *a, int n)\n#endif\n{ a[0] = 1; }\n"
    assert [p.type for p in parse_kernels(other)["g"].params] == ["int *", "int"]


def test_specifiers_in_any_order():
    text = "template <int N>\n__launch_bounds__(N) __global__\n"
    text += "  void k(int *p) { p[0] = N; }\nvoid __global__ h(int *p) { p[0] = 1; }\n"
    forms = parse_kernels(text)
    assert forms["k"].launch_bounds == ("N",)
    assert forms["h"].prefix == ()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_what_compiles_is_read_and_a_missing_semicolon_is_not(path):
    text = path.read_text()
    assert misread_lines(text) == []
    at = text.index(";", text.index("{", text.index("__global__")))
    lines = misread_lines(text[:at] + text[at + 1 :])
    assert lines
    assert abs(lines[0] - (text.count("\n", 0, at) + 1)) <= 1


@pytest.mark.parametrize(("text", "declared"), [
    ("cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);", ("cg::thread_block_tile<32>", "warp")),
    ("a::b<N * 2> c;", ("a::b<N * 2>", "c")),
    ("cg::thread_block_tile<32> warp(block);", None),
])  # fmt: skip
def test_a_type_of_one_number_is_no_comparison(text, declared):
    """Behind another statement a parser may take it for two of them."""
    found = kernel(f"int first = 0;\n  {text}\n  x[first] = warp.size();")
    stmt = found.body[1]
    if declared is None:
        assert isinstance(stmt, OpaqueStmt)
    else:
        assert isinstance(stmt, Declare)
        assert (stmt.type, stmt.name) == declared
    assert text in emit_kernel(found)


@pytest.mark.parametrize(
    "defined",
    [
        "#define RESTRICT",
        "#define RESTRICT __restrict__",
        "#ifndef RESTRICT\n#  define RESTRICT /* nothing */\n#endif",
        "#ifdef __CUDACC__\n#define RESTRICT __restrict__\n#else\n#define RESTRICT\n#endif",
    ],
)
def test_a_macro_that_qualifies_a_parameter_is_none_of_its_type(defined):
    """Of ``T * RESTRICT a`` the grammar makes a multiplication where T is a type of the file."""
    head = "__global__ void k(T * RESTRICT a, const T *RESTRICT b, int n)"
    text = f"{defined}\ntypedef float T;\n{head} {{ a[n] = b[n]; }}\n"
    (kernel,) = parse_kernels(text).values()
    assert [(p.type, p.name) for p in kernel.params] == [("T *", "a"), ("const T *", "b"), ("int", "n")]


def test_a_macro_that_is_more_than_a_qualifier_stays():
    text = "#define N 4\n__global__ void k(float (*a)[N], int n) { a[n][0] = N; }\n"
    (kernel,) = parse_kernels(text).values()
    assert "N" in " ".join(p.type for p in kernel.params)


def test_default_arguments_are_kept_as_long_as_nothing_without_one_stands_behind_them():
    text = "__global__ void k(float *x, int n = 1 << 4, float t = 1e4f) { x[n] = t; }"
    kernel = parse_kernels(text)["k"]
    assert [(p.type, p.name, p.default) for p in kernel.params[1:]] == [("int", "n", "1 << 4"), ("float", "t", "1e4f")]
    assert "int n = 1 << 4, float t = 1e4f)" in emit_kernel(kernel)
    more = replace(kernel, params=(*kernel.params, Param("int", "m")))
    assert "int n, float t, int m)" in emit_kernel(more)
