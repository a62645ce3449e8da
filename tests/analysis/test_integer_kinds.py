"""Integer types of expressions, as a C++ compiler gives them."""

import pytest

from fsr.analysis.integer_kinds import kinds_of
from fsr.analysis.word_values import Kind
from fsr.source.form import Declare
from fsr.source.parse import parse_kernels
from fsr.source.walk import walk_stmts

TEXT = """typedef unsigned long long u64;
__constant__ u64 mod, mods[4];
__constant__ u64 *more;
__global__ void k(int i, unsigned u, long long l, u64 w, short s, bool b, float f, const u64 *p, unsigned char **q) {
  auto same = w; { auto two = i; } { auto two = w; } const auto next = same + 1; int table[4][2];
  { int twice; } { long twice; }
  int found = EXPR;
}"""
INT, UINT, LONG, ULONG = (Kind(bits, signed) for bits in (32, 64) for signed in (True, False))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("i", INT), ("i + u", UINT), ("l * u", LONG), ("l / w", ULONG), ("s % s", INT), ("b - b", INT), ("~s", INT),
        ("-u", UINT), ("s << w", INT), ("w >> 1", ULONG), ("w < 1", INT), ("!w", INT), ("b ? s : w", ULONG),
        ("p[i] & 1", ULONG), ("*p", ULONG), ("__ldg(&p[i])", ULONG), ("__ldg(p)", ULONG), ("q[0][1] | 0", INT),
        ("table[i][1]", INT), ("(u64)i", ULONG), ("unsigned(i)", UINT), ("threadIdx.x + i", UINT), ("min(i, 3)", INT),
        ("give(i)", ULONG), ("5000000000", LONG), ("0xffffffff", UINT), ("7ull", ULONG), ("(int64_t)u + i", LONG),
        ("same", ULONG), ("next & 1", ULONG),
        ("mod", ULONG), ("two", None), ("mods", None), ("more", None),
        ("f", None), ("i * f", None), ("p", None), ("q[0]", None), ("table[i]", None), ("twice", None),
        ("min(i, u)", None), ("other(i)", None), ("(float)i", None), ("1.5", None), ("z + i", None),
    ],
)  # fmt: skip
def test_types(text: str, kind: Kind | None) -> None:
    source = TEXT.replace("EXPR", text)
    form = parse_kernels(source)["k"]
    (init,) = (s.init for s in walk_stmts(form.body) if isinstance(s, Declare) and s.name == "found")
    kinds = kinds_of(form, source, lambda name: "u64" if name == "give" else None)
    assert init is not None
    assert kinds.of(init) == kind
