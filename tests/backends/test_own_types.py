"""Files that declare int64_t and its like themselves, as another type than a compilation has them."""

from __future__ import annotations

import random

import pytest

from fsr.backends.cuda.nvrtc import NvrtcToolchain
from fsr.backends.host.compiler import HostToolchain
from fsr.backends.own_types import KNOWN, own_types, renamed
from fsr.errors import MissingToolError
from fsr.evaluation.original import _give_way
from fsr.records import Candidate, CompileFailure, Image, Launch, Plan

OTHER = {
    "long": ("long long", "long long int", "signed long long"), "unsigned long": ("unsigned long long", "unsigned int"),
    "int": ("long",), "unsigned int": ("unsigned long",), "short": ("int",), "unsigned short": ("unsigned",),
    "signed char": ("char",), "unsigned char": ("char",),
}  # fmt: skip
KERNEL = """%s
template <class T> __global__ void k(T *x, const %s *y, int n) {
  static_assert(sizeof(std::int64_t) == 8 && sizeof(::%s) == sizeof(%s), "int64_t");  // int64_t
  int i = threadIdx.x; if (i < n) x[i] = (T)((%s)y[i] + 1);
}
"""


def _compiled(text: str, entry: str) -> None:
    plan = Plan((Launch(entry, ("1", "1", "1"), ("1", "1", "1"), "0", ("x", "y", "n")),))
    for toolchain in (HostToolchain, NvrtcToolchain):
        try:
            image = toolchain().compile(Candidate(text, plan))
        except MissingToolError:
            continue
        assert isinstance(image, Image), image.log if isinstance(image, CompileFailure) else image
        assert set(image.symbols) == {entry}


@pytest.mark.parametrize("seed", range(6))
def test_a_files_own_types_are_what_it_says(seed: int) -> None:
    rng = random.Random(seed)
    name = rng.choice(sorted(KNOWN))
    type_ = rng.choice(OTHER[KNOWN[name]])
    declared = rng.choice([f"typedef {type_} {name};", f"using {name} = {type_};", f"typedef\n {type_}\n  {name} ;"])
    text = KERNEL % (declared, name, name, name, type_)
    own = own_types(text)
    assert own == {name: f"own_{name}"}
    changed = renamed(text, own)
    assert changed.count("\n") == text.count("\n")
    assert "// int64_t" in changed
    _compiled(text, f"k<{name}>")


def test_the_same_type_again_and_the_common_declarations_of_nvrtc_compile() -> None:
    head = "\n".join([
        "#include <stdint.h>", "typedef unsigned char uint8_t;", "typedef short int int16_t;", "typedef long int64_t;",
    ])  # fmt: skip
    assert own_types(head) == {}
    _compiled(KERNEL % (head, "int16_t", "int64_t", "int64_t", "long"), "k<float>")
    head = "typedef long long int int64_t;\ntypedef unsigned long long int uint64_t;\ntypedef unsigned char uint8_t;"
    assert set(own_types(head)) == {"int64_t", "uint64_t"}
    _compiled(KERNEL % (head, "uint64_t", "int64_t", "int64_t", "long long"), "k<uint64_t>")


@pytest.mark.parametrize(
    "text",
    [
        "namespace a { typedef long long int64_t; }",
        "#ifdef __CUDACC_RTC__\ntypedef long long int64_t;\n#endif\n",
        "// typedef long long int64_t;\n",
        "typedef struct { long long v; } int64_t;",
        "struct A { typedef long long int64_t; };",
    ],
)
def test_what_is_no_plain_declaration_of_the_files_stays(text: str) -> None:
    assert own_types(text) == {}


@pytest.mark.parametrize(
    "log",
    [
        'k.cu(14): error: invalid redeclaration of type name "int64_t" (declared at line 6 of fsr_prelude.h)',
        "k.cu:13:23: error: typedef redefinition with different types ('long long' vs '__int64_t' (aka 'long'))\n"
        "   13 | typedef long long int int64_t;",
        "k.cu:3:19: error: conflicting declaration 'typedef long long int int64_t'",
    ],
)
def test_what_to_do_is_said_where_a_declaration_is_in_the_way(log: str) -> None:
    assert "leave out the declaration of int64_t" in _give_way(log)
    assert not _give_way(log.replace("int64_t", "real_t"))
    assert not _give_way("k.cu(3): error: int64_t is no class")


def test_names_that_are_taken_and_those_of_the_library_are_left() -> None:
    text = 'typedef long long int64_t;\nint own_int64_t; std::int64_t x; const char *s = "int64_t"; int64_t y;\n'
    assert renamed(text, own_types(text)) == text.replace("long int64_t", "long own_int64_t_").replace(
        " int64_t y", " own_int64_t_ y"
    )
