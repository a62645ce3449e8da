"""invariant-division: divisions of integers by what stays the same multiply by a reciprocal that a thread finds once.

GPUs have no divider of integers: a remainder takes some twenty instructions in 32 bits and a hundred in 64. Of a
divisor n that does not change, m = floor((2^w - 1) / n) gives every quotient with one multiplication and one correction
(Granlund and Montgomery, "Division by Invariant Integers using Multiplication", PLDI 1994; Warren, Hacker's Delight,
chapter 10): with m n = 2^w - 1 - e, 0 <= e < n, and a < 2^w

    a / n - a m / 2^w = (a / n) (1 + e) / 2^w <= a / 2^w < 1,

so that q' = floor(a m / 2^w) > a / n - 2, which makes it the quotient q or q - 1. Then a - q' n lies in [0, 2 n) and is
no more than a, so that it fits in w bits, and one comparison with n tells which of both it was. That holds for every a
and every n from 1 to 2^w - 1. Of n = 0, by which no thread may divide, m is 0: nothing traps where none does.
Signed integers are divided by their magnitudes, as C++ rounds towards zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.instances import instances
from fsr.records import Candidate
from fsr.source.form import Assign, Binary, Call, For, KernelForm, Name, While
from fsr.source.parse import parse_device_functions
from fsr.source.rewrite import definition, insert_helpers, is_plain, redefinition, with_definitions
from fsr.source.walk import walk_exprs, walk_stmts
from fsr.transform.details.invariant_divisors import Divisors, Place
from fsr.transform.details.limits import Limits
from fsr.transform.inlining.calls import inlined
from fsr.transform.protocol import Move, Subject
from fsr.transform.sizes import INT_LIMIT
from fsr.transform.target import target_for

GAIN = {32: 1.05, 64: 2.0}  # of divisions in so many bits; ptxas itself takes a part of the 32-bit ones out of loops
# As / and % themselves in the operands' common type; U has no sign, and as many bits, or as many as both operands need.
_HELPERS = """template <bool SIGNED, typename U, typename T>
__device__ __forceinline__ U fsr_magnitude(T x)
{
    return SIGNED && x < 0 ? U(0) - U(x) : U(x);
}

template <bool SIGNED, typename U, typename T>
__device__ __forceinline__ U fsr_inverse(T n)
{
    U by = fsr_magnitude<SIGNED, U>(n);
    return by ? U(-1) / by : U(0);
}

template <bool SIGNED, typename A, typename N, typename U>
__device__ __forceinline__ auto fsr_quotient(A x, N n, U inverse) -> decltype(x / n)
{
    decltype(x / n) a = x, b = n;
    U left = fsr_magnitude<SIGNED, U>(a), by = fsr_magnitude<SIGNED, U>(b);
    U quotient = sizeof(U) == 8 ? __umul64hi(left, inverse) : __umulhi(left, inverse);
    if (left - quotient * by >= by) quotient += 1;
    return SIGNED && (a < 0) != (b < 0) ? U(0) - quotient : quotient;
}

template <bool SIGNED, typename A, typename N, typename U>
__device__ __forceinline__ auto fsr_rest(A x, N n, U inverse) -> decltype(x % n)
{
    decltype(x % n) a = x, b = n;
    U left = fsr_magnitude<SIGNED, U>(a), by = fsr_magnitude<SIGNED, U>(b);
    U rest = left - by * U(sizeof(U) == 8 ? __umul64hi(left, inverse) : __umulhi(left, inverse));
    if (rest >= by) rest -= by;
    return SIGNED && a < 0 ? U(0) - rest : rest;
}
"""


@dataclass(frozen=True, slots=True)
class InvariantDivision:
    """All such divisions of a plan's kernels and of the functions that these reach, or those in 64 bits alone."""

    name: str = "invariant-division"
    aims_at: frozenset[str] = frozenset(["compute", "instructions", "latency"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """One for all, and one for the wide ones where there are others."""
        _, every = _made(subject, 32)
        if every:
            yield Move(self.name, "plan", (("what", "all"),), GAIN[max(every)])
        if len(set(every)) > 1:
            yield Move(self.name, "plan", (("what", "64bit"),), GAIN[64])

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with reciprocals."""
        source, _ = _made(subject, 32 if move.param("what") == "all" else 64)
        return replace(subject.candidate, source=source, actions=(*subject.candidate.actions, move.name))


def _made(subject: Subject, least: int) -> tuple[str, list[int]]:
    return subject.once(("invariant-division", least), lambda: _rewritten(subject, least))


def _rewritten(subject: Subject, least: int) -> tuple[str, list[int]]:
    """The text with divisions of ``least`` bits or more by reciprocals, and the width of each that was found."""
    source, forms, known = subject.candidate.source, dict[str, KernelForm](), dict[str, dict[str, int]]()
    for one in instances(subject.candidate):
        forms[one.form.name] = one.form
        known.setdefault(one.form.name, {}).update(one.known)
    made, widths = dict[str, KernelForm](), list[int]()
    for name, form in forms.items():
        if form.span is None or name.startswith("fsr_") or not (name in subject.kernels or _may_call(source, form)):
            continue
        best = _best(subject, form, known[name], least)
        if best is not None:
            made[name] = best[0]
            widths += best[1]
    texts = {name: redefinition(source, forms[name], form) for name, form in made.items()}
    text = with_definitions(source, [forms[name] for name in texts], lambda old: [texts[old.name]])
    return insert_helpers(text, _HELPERS) if texts else source, widths


def _may_call(source: str, form: KernelForm) -> bool:
    """Whether a function can be written anew with calls of helpers, which are no constant expressions."""
    head = definition(source, form).partition("{")[0]
    return is_plain(source, form) and "constexpr" not in head


def _best(subject: Subject, form: KernelForm, known: dict[str, int], least: int) -> tuple[KernelForm, list[int]] | None:
    """A function with reciprocals, and with calls written out where that takes more divisions to them; None where there
    are none."""
    source, best = subject.candidate.source, None
    dividing = _dividing(source)
    kernel = subject.kernels.get(form.name)
    target = None if kernel is None else target_for(subject, kernel)
    written = inlined(form, source, lambda e: isinstance(e.callee, Name) and e.callee.text in dividing, pure=True)
    for one in (form, written) if written is not form else (form,):
        limits = None if target is None else Limits(replace(target, kernel=one), INT_LIMIT)
        divisors = Divisors(Place(one, source, known, limits), least)
        body = divisors.body()
        if divisors.bits and (best is None or len(divisors.bits) > len(best[1])):
            best = replace(one, body=body), divisors.bits
    return best


def _dividing(source: str) -> frozenset[str]:
    """The functions of a text that divide and have no loops, or that call such."""
    functions = {n: f for n, f in parse_device_functions(source).items() if not n.startswith("fsr_")}
    straight = {n: f for n, f in functions.items() if not any(isinstance(s, For | While) for s in walk_stmts(f.body))}
    found = {n for n, f in straight.items() if _divides(f)}
    while True:
        more = {n for n, f in straight.items() if n not in found and found & _called(f)}
        if not more:
            return frozenset(found)
        found |= more


def _divides(form: KernelForm) -> bool:
    compound = any(isinstance(s, Assign) and s.op in ("/=", "%=") for s in walk_stmts(form.body))
    return compound or any(isinstance(e, Binary) and e.op in ("/", "%") for e in walk_exprs(form.body))


def _called(form: KernelForm) -> set[str]:
    return {e.callee.text for e in walk_exprs(form.body) if isinstance(e, Call) and isinstance(e.callee, Name)}
