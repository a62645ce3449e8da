"""Candidates are preprocessed here, before any compiler: what comes out must be what a compiler's own gives."""

from __future__ import annotations

import random
import shutil
import subprocess

import pytest

from fsr.records import Candidate, Launch, Plan
from fsr.source.preprocess import preprocessed
from fsr.source.tokens import tokenize

COMPILER = next(filter(None, map(shutil.which, ("g++", "c++", "clang++"))), "")
ORIGINAL = Candidate("", Plan((Launch("k", ("1", "1", "1"), ("1", "1", "1"), "0", ()),)))
TEXTS, TRIES, MACROS = 24, 100, 6
BODY = ("int", "for (", ")", "+", "-", "*", "1", "x", "y", "=", "<", ";", "f", "z", "(", ",", "->", "&",
        "0x1p3f ", "'a' ")  # fmt: skip  # with a blank: a name behind these would be their suffix

OPERATORS = frozenset("+= -= *= /= %= &= |= ^= == != <= >= << >> <<= >>= ++ -- && || -> ::".split())  # noqa: SIM905


def ours(text: str) -> list[str]:
    made = preprocessed(Candidate(text, ORIGINAL.plan), ORIGINAL, "sm_90").source
    return words(made)


def words(text: str) -> list[str]:
    """Its tokens, those of an operator that touch as one: ``a *= b`` is not ``a * = b``."""
    found, end = list[str](), -1
    for t in tokenize(text):
        if t.kind != "directive":
            joined = found[-1] + t.text if found and t.start == end else ""
            if joined in OPERATORS:
                found[-1] = joined
            else:
                found.append(t.text)
        end = t.end
    return found


def theirs(text: str) -> list[str]:
    ran = subprocess.run([COMPILER, "-E", "-P", "-x", "c++", "-w", "-"], input=text, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return words(ran.stdout)


def macro(draw: random.Random, number: int, parameters: list[str] | None, arities: list[int | None]) -> str:
    """A definition that may name macros before and after it, itself among them."""
    words = []
    for _ in range(draw.randrange(1, 9)):
        kind = draw.random()
        if parameters and kind < 0.4:
            name = draw.choice(parameters)
            name = "__VA_ARGS__" if name == "..." else name
            shape = draw.choice(("{}", "{}", "{}", "({})", "-{}", "{}-", "#{}", "v_##{}", "{}##_t", "int {}"))
            words.append(shape.format(name))
        elif kind < 0.6:
            words.append(use(draw, arities))
        else:
            words.append(draw.choice(BODY))
    joined = "".join(word + draw.choice((" ", " ", "")) if word[-1].isalnum() else word for word in words)
    return f"#define M{number}{'' if parameters is None else '(' + ', '.join(parameters) + ')'} {joined.strip()}"


def use(draw: random.Random, arities: list[int | None]) -> str:
    """A macro's name with as many arguments as it has, mostly."""
    number = draw.randrange(len(arities))
    wanted = arities[number]
    given = [draw.choice(("q", "1", "-1", "x + y", "", "f(1, 2)", "M1", "int", "a b")) for _ in range(wanted or 0)]
    return f"M{number}" + ("" if wanted is None or draw.random() < 0.1 else f"({', '.join(given)})")


def program(draw: random.Random) -> str | None:
    """Macros and uses of them; None where a compiler does not take them."""
    listed = [draw.sample(["a", "b", "T"], draw.randrange(4)) if draw.random() < 0.7 else None for _ in range(MACROS)]
    listed = [[*p, "..."] if p is not None and draw.random() < 0.2 else p for p in listed]
    arities = [None if p is None else len(p) for p in listed]
    lines = [macro(draw, number, parameters, arities) for number, parameters in enumerate(listed)]
    lines += [f"{draw.choice('xy')} {use(draw, arities)} {draw.choice('xy')};" for _ in range(2 * MACROS)]
    text = "\n".join(lines) + "\n"
    ran = subprocess.run([COMPILER, "-E", "-P", "-x", "c++", "-w", "-"], input=text, capture_output=True, text=True)
    return text if ran.returncode == 0 else None


@pytest.mark.skipif(not COMPILER, reason="there is no C++ compiler")
@pytest.mark.parametrize("seed", range(TEXTS))
def test_macros_become_what_a_compiler_makes_of_them(seed: int) -> None:
    draw = random.Random(seed)
    text = next(filter(None, (program(draw) for _ in range(TRIES))), None)
    assert text is not None
    assert ours(text) == theirs(text), text


@pytest.mark.skipif(not COMPILER, reason="there is no C++ compiler")
@pytest.mark.parametrize("text", [
    "#define LOOP(i, n) for (int i = 0; i < n; i++)\nLOOP(q, 4) x[q] = 1;\n",
    "#define NEG(a) -a\nint v = NEG(-1) + NEG(NEG(2));\n",
    "#define MADE(T, n) static T T##_##n(const T v)\nMADE(float, 2);\n",
    "#define GIVES(op) a op##= b;\nGIVES(*) GIVES(<<)\n",
    "#define TEXT(a) #a\n#define TWICE(a) TEXT(a) TEXT(a b)\nTWICE(1 + \"x\\n\")\n",
    "#define SELF(a) SELF(a + 1)\nSELF(SELF(2))\n",
    "#define NONE()\n#define CALL NONE()(1) NONE ()(2)\nCALL\n",
    "#define ALL(...) f(__VA_ARGS__)\nALL() ALL(1) ALL(1, (2, 3))\n",
])  # fmt: skip
def test_forms_that_people_write(text: str) -> None:
    assert ours(text) == theirs(text)


ASKED = ("__ONE", "__TWO", "__THREE")  # which only a compiler knows


def condition(draw: random.Random, depth: int = 0) -> str:
    if depth < 2 and draw.random() < 0.5:
        sides = (condition(draw, depth + 1) for _ in range(2))
        return f"({draw.choice(('||', '&&')).join(sides)})"
    name = draw.choice((*ASKED, "KNOWN", "NOT_KNOWN"))
    leaf = draw.choice((f"defined({name})", f"defined {name}", f"!defined({name})", "KNOWN", "NUMBER > 3", "NUMBER"))
    return leaf if draw.random() < 0.9 else "__ONE"


def conditionals(draw: random.Random, depth: int = 0) -> list[str]:
    """A nest of them around words that say which branch was taken."""
    begin = draw.choice((f"#if {condition(draw)}", f"#ifdef {draw.choice(ASKED)}", "#ifndef KNOWN"))
    lines = [begin, f"a{draw.randrange(100)};"]
    lines += conditionals(draw, depth + 1) if depth < 2 and draw.random() < 0.6 else []
    for _ in range(draw.randrange(3)):
        lines += [f"#elif {condition(draw)}", f"b{draw.randrange(100)};"]
    lines += ["#else", f"c{draw.randrange(100)};"] if draw.random() < 0.7 else []
    return [*lines, "#endif"]


@pytest.mark.skipif(not COMPILER, reason="there is no C++ compiler")
@pytest.mark.parametrize("seed", range(TEXTS))
def test_a_branch_left_to_the_compiler_is_the_one_it_takes_of_the_text_as_it_was(seed: int) -> None:
    """Known macros are gone from what it sees, also from what it is asked."""
    draw = random.Random(seed)
    text = "\n".join(["#define KNOWN 1", "#define NUMBER 5", *conditionals(draw), *conditionals(draw), ""])
    candidate = Candidate(text, ORIGINAL.plan)
    made = preprocessed(candidate, candidate, "sm_90").source
    for number in range(2 ** len(ASKED)):
        given = "".join(f"#define {name} 1\n" for bit, name in enumerate(ASKED) if number >> bit & 1)
        assert theirs(given + made) == theirs(given + text), (given, text, made)


@pytest.mark.parametrize(("text", "left"), [
    ("#define AA\n#if defined(AA) || defined(__ONE)\nyes;\n#else\nno;\n#endif\n", "yes;"),
    ("#define AA\n#if !defined(AA) && defined(__ONE)\nyes;\n#else\nno;\n#endif\n", "no;"),
    ("#define AA 1\n#if AA && defined(__ONE)\nyes;\n#endif\n", "#if 1 && defined(__ONE)\nyes;\n#endif"),
    ("#if 0\nno;\n#elif __CUDA_ARCH__ >= 700\nyes;\n#endif\n", "#if __CUDA_ARCH__ >= 700\nyes;\n#endif"),
])  # fmt: skip
def test_conditions_are_decided_as_far_as_they_can_be(text: str, left: str) -> None:
    candidate = Candidate(text, ORIGINAL.plan)
    made = preprocessed(candidate, candidate, "sm_90").source
    assert [t.text for t in tokenize(made)] == [t.text for t in tokenize(f"{left}\n")]
