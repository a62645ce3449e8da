"""Expanding a file's own macros for analysis."""

from fsr.source.macros import expand, function_macros


def test_nested_macros_are_expanded():
    text = "#define SQ(a) ((a) * (a))\n#define NORM(x, y) sqrtf(SQ(x) + SQ(y))\n"
    text += "float f() { return NORM(p[i], q(1, 2)); }\n"
    assert "return sqrtf(((p[i]) * (p[i])) + ((q(1, 2)) * (q(1, 2))));" in expand(text)


def test_what_cannot_be_expanded_stays():
    text = "#define S(a) #a\n#define TWO(a) a\n#define TWO(a) a + a\n#define LOG(...) f(__VA_ARGS__)\n"
    text += "int x = TWO(1); S(b) LOG(1);\n"
    assert function_macros(text) == {}
    assert expand(text) == text


def test_other_counts_of_arguments_stay():
    text = "#define ADD(a, b) (a + b)\nint x = ADD(1);\nint y = ADD(1, 2);\n"
    assert expand(text).endswith("int x = ADD(1);\nint y = (1 + 2);\n")


def test_bombs_are_left_alone():
    text = "#define A(x) x x x x x x x x x x\n#define B(x) A(A(A(A(A(x)))))\n#define C(x) B(B(x))\nC(1234567890)\n"
    assert len(expand(text)) <= 200_000
    recursive = "#define R(x) R(x) R(x)\nR(1)\n"
    assert len(expand(recursive)) <= 200_000
