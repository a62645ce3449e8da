"""Size expressions: their values, what is refused and why, and the C that launchers compute them with."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from fsr.errors import ContractError
from fsr.expressions import divisors, evaluate, evaluate_int, fingerprint, names, parse, replaced, to_c, with_divisors

SIZES = {"n": 1000, "m": 7, "k": 1}
VALUES = [
    ("n", 1000),
    ("ceil_div(n, 256)", 4),
    ("ceil_div(n, m) * m", 1001),
    ("round_up(n, 64)", 1024),
    ("min(n, m, 32)", 7),
    ("max(n, 2 * m, k)", 1000),
    ("(n - 1) // 256 + 1", 4),
    ("n % m", 6),
    ("1 << m", 128),
    ("n >> 3", 125),
    ("m ** 3", 343),
    ("m ** 0", 1),
    ("-m + n", 993),
    ("256 if n >= 256 else 32", 256),
    ("n if m == 8 else m", 7),
    ("(n != m) + (m < n) + (m <= 7) + (m > n)", 3),
    ("next_pow2(n) + next_pow2(m - m) + next_pow2(64)", 1089),
    ("isqrt(n) + isqrt(m - m) + isqrt(m * m)", 38),
    ("isqrt(4611686014132420609) + isqrt(4611686014132420608)", 4294967293),
    ("m ** (m - 3)", 2401),
]
COMPILER = shutil.which("g++") or shutil.which("clang++") or shutil.which("clang++-22")


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_values(text: str, value: int) -> None:
    assert evaluate_int(text, SIZES) == value


def test_functions_beside_the_operators() -> None:
    assert [evaluate("next_pow2(n)", {"n": n}) for n in (0, 1, 5, 64, 65)] == [1, 1, 8, 64, 128]
    assert evaluate("isqrt(n)", {"n": 99}) == 9


def test_parts_are_replaced_as_they_are_written() -> None:
    assert replaced("ceil_div(n - m // 2, 32)", {"n - m // 2": "count"}) == "ceil_div(count, 32)"
    assert replaced("min(count, 7) * count", {"count": "n - m"}) == "min(n - m, 7) * (n - m)"
    assert replaced("max(n, 1)", {"max": "m", "k": "m"}) == "max(n, 1)"  # the name of a function is no part


def test_divisors() -> None:
    text = "min(ceil_div(n, 512), 1024) + m // 256"
    assert divisors(text) == {512, 256}
    assert with_divisors(text, {512: 128, 1024: 1}) == "min(ceil_div(n, 128), 1024) + m // 256"


def test_what_differs_at_large_sizes_only_is_not_taken_for_one() -> None:
    names = ["n", "m", *(f"s{i}" for i in range(9))]
    assert fingerprint("round_up(n, 128)", names) != fingerprint("round_up(m, 128)", names)
    assert fingerprint("n * (m + 1)", names) == fingerprint("n + m * n", names)
    assert fingerprint("s8", names) != fingerprint("s2", names)


def test_powers_are_told_apart_where_they_are_not_too_large() -> None:
    names = ["n", "k"]
    assert fingerprint("n * 4 ** k", names) == fingerprint("4 ** k * n", names)
    assert fingerprint("4 ** k", names) != fingerprint("1 << k", names)
    assert None in fingerprint("4 ** k", names)
    with pytest.raises(ContractError, match="too large wherever it was tried"):
        fingerprint("1 << (n + 100)", names)


def test_floats_may_stand_in_scalars_but_not_in_counts() -> None:
    assert evaluate("0.5 * n", {"n": 3}) == 1.5
    assert evaluate_int("0.5 * n", {"n": 4}) == 2
    with pytest.raises(ContractError, match=r"is 1\.5 .*not a whole number"):
        evaluate_int("0.5 * n", {"n": 3})


def test_the_sizes_of_an_expression_are_told_without_its_functions() -> None:
    assert names("ceil_div(rows, 4) * min(cols, 32)") == {"rows", "cols"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("n +", "does not parse"),
        ("rows", r"'rows', which is no size of this contract \(sizes: n\)"),
        ("n // 0", "cannot be evaluated"),
        ("n ** 65", "raises by 65"),
        ("1 << 100", "shifts or raises by 100"),
        ("n ** 40", "beyond 64 bits"),
        ("__import__('os')", "not part of the language"),
        ("n.real", "not part of the language"),
        ("'n'", "not part of the language"),
        ("True", "not part of the language"),
        ("1 < n < 3", "not part of the language"),
        ("ceil_div(n)", "cannot be evaluated"),
        ("n" + " + n" * 200, "longer than 500 characters"),
    ],
)
def test_what_is_no_expression_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(ContractError, match=why) as caught:
        evaluate(text, {"n": 10})
    assert caught.value.fix


DIVIDED = [
    ("1 / n", 1 / 1000),
    ("1 / (16 * m)", 1 / 112),
    ("n / m / 2 - 1", 1000 / 14 - 1),
    ("min(m / n, 0.5) * 2", 0.014),
    ("(n if m > 3 else 1) / 8", 125),
    ("(n // m) / 4", 35.5),
    ("n ** -1 + m ** -2", 1 / 1000 + 1 / 49),
    ("(m + 57) ** -0.5", 0.125),
]


@pytest.mark.parametrize(("text", "value"), DIVIDED)
def test_floating_numbers_may_be_divided(text: str, value: float) -> None:
    assert evaluate(text, SIZES) == pytest.approx(value, rel=1e-15)
    assert names(text) <= set(SIZES)


@pytest.mark.parametrize("text", ["n / 2", "n // 2 + m / 1", "max(n / 2, 1)"])
def test_whole_numbers_are_not_divided_by_a_slash(text: str) -> None:
    for refuse in (parse, lambda text: evaluate_int(text, SIZES)):
        with pytest.raises(ContractError, match="write // or ceil_div"):
            refuse(text)


@pytest.mark.parametrize("text", ["n / 2 // 3", "ceil_div(n / 2, 3)", "isqrt(n / 2)", "(n / 2) % 3"])
def test_what_takes_whole_numbers_takes_no_fraction(text: str) -> None:
    with pytest.raises(ContractError, match="write // or ceil_div"):
        parse(text, floating=True)


@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler is installed")
def test_the_c_form_has_the_same_value(tmp_path: Path) -> None:
    sizes = "".join(f"long long {name} = {value}; " for name, value in SIZES.items())
    rows = "".join(f'printf("%lld\\n", (long long)({to_c(text)})); ' for text, _ in VALUES)
    source = tmp_path / "values.cpp"
    rows += "".join(f'printf("%.15g\\n", {to_c(text)}); ' for text, _ in (("0.5 * n", 500), *DIVIDED))
    source.write_text(f"#include <cstdio>\n#include <math.h>\nint main() {{ {sizes}{rows}}}\n")
    subprocess.run([str(COMPILER), str(source), "-o", str(tmp_path / "values")], check=True, timeout=200)
    told = subprocess.run([str(tmp_path / "values")], capture_output=True, text=True, check=True, timeout=200).stdout
    whole, divided = told.split()[: len(VALUES) + 1], told.split()[len(VALUES) + 1 :]
    assert whole == [*(str(value) for _, value in VALUES), "500"]
    assert [float(text) for text in divided] == pytest.approx([value for _, value in DIVIDED], rel=1e-14)


def test_sizes_go_by_other_names_in_c_and_functions_by_their_own():
    assert to_c("min(n, max) + n", {"n": "size_n", "max": "top"}) == to_c("min(size_n, top) + size_n")
    assert "size_a" not in to_c("isqrt(n)", {"a": "size_a", "r": "size_r"})  # names of what stands on the spot
    assert to_c("n + 1", {"n": "(from + (int)threadIdx.x)"}) == "((from + (int)threadIdx.x) + 1LL)"
