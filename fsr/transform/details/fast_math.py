"""Cheaper arithmetic where the contract is not exact: intrinsics, --use_fast_math."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from fsr.analysis.types import FLOAT, INT, aliases, type_of
from fsr.contract.model import Contract
from fsr.hardware.dtypes import is_float, numpy_dtype
from fsr.records import Candidate, Role
from fsr.source.form import Binary, Call, Expr, Literal, Name
from fsr.source.mapping import map_exprs
from fsr.source.tokens import skeleton
from fsr.source.walk import Block
from fsr.transform.plan import rewritten, with_flags
from fsr.transform.protocol import Move, Subject
from fsr.transform.target import Target, target_of, targets

FLAG = "--use_fast_math"
_INTRINSICS = {
    "expf": "__expf", "exp10f": "__exp10f", "logf": "__logf", "log2f": "__log2f", "log10f": "__log10f",
    "sinf": "__sinf", "cosf": "__cosf", "powf": "__powf",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FastMath:
    """``intrinsics``: __expf and its like, __fdividef, rsqrtf; ``exp``: only exponentials and logarithms;
    ``flag``: the compiler's own --use_fast_math."""

    name: str = "fast-math"
    aims_at: frozenset[str] = frozenset(["compute", "instructions"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """The modes that change anything; none where results are to be exact, whole numbers among them, or good to
        double's precision."""
        if has_exact_results(subject.contract) or _doubles(subject.contract):
            return
        for target in targets(subject):
            for mode in ("intrinsics", "exp"):
                if _cheaper(target, mode) != target.kernel.body:
                    yield Move(self.name, target.region, (("mode", mode),), 1.08)
        if FLAG not in subject.candidate.plan.flags and may_round(subject.candidate.source):
            yield Move(self.name, "plan", (("mode", "flag"),), 1.06)

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate with cheaper arithmetic."""
        if move.region == "plan":
            candidate = subject.candidate
            plan = with_flags(candidate.plan, (FLAG,))
            return replace(candidate, plan=plan, actions=(*candidate.actions, move.name))
        target = target_of(subject, move)
        body = _cheaper(target, str(move.param("mode")))
        return rewritten(target, move, replace(target.kernel, body=body))


def has_exact_results(contract: Contract) -> bool:
    """Whether results are to be exact: by the contract, or as whole numbers. What decides these is a comparison or a
    cut, and a quotient that is approximated misses where it is exact: 168 * 255 / 252 is 170, and no longer at most
    170 then. Thresholds that show it are few, so that tests may miss them."""
    if contract.tolerance.exact or contract.tolerance.atol:
        return contract.tolerance.exact
    written = [a for a in contract.buffers() if a.role is not Role.IN]
    return bool(written) and not any(is_float(numpy_dtype(a.dtype)) for a in written)


def _doubles(contract: Contract) -> bool:
    """Whether a result is a double, which is wrong when it is good to a float's digits only."""
    written = (Role.OUT, Role.INOUT)
    return contract.tolerance.rtol is None and any(a.dtype == "float64" and a.role in written for a in contract.args)


def may_round(source: str) -> bool:
    """Whether the code holds a division or a function that fast math makes cheaper."""
    code = skeleton(source)
    return re.search(r"/|\b_*(exp|log|sqrt|rsqrt|sin|cos|tan|pow|tanh|erf)\w*\s*\(", code) is not None


def _cheaper(target: Target, mode: str) -> Block:
    types, names = target.known.types, aliases(target.source)
    wanted = {text for text in _INTRINSICS if mode == "intrinsics" or text[:3] in ("exp", "log")}

    def change(e: Expr) -> Expr:
        match e:
            case Call(Name(text), args, ()) if text in wanted:
                return Call(Name(_INTRINSICS[text]), args)
            case Call(Name("exp" | "log" as text), (arg,), ()) if type_of(arg, types, names) == FLOAT:
                return Call(Name(f"__{text}f"), (arg,))
            case Binary("/", Literal("1.0f" | "1.f" | "1"), Call(Name("sqrtf"), (inner,))) if mode == "intrinsics":
                return Call(Name("rsqrtf"), (inner,))
            case Binary("/", left, right) if mode == "intrinsics" and _float_division(left, right, types, names):
                return Call(Name("__fdividef"), (left, right))
        return e

    return map_exprs(target.kernel.body, change)


def _float_division(left: Expr, right: Expr, types: Mapping[str, str], names: Mapping[str, str]) -> bool:
    """Whether a division is one of floats; by a constant the compiler does better itself."""
    kinds = {type_of(left, types, names), type_of(right, types, names)}
    return kinds in ({FLOAT}, {FLOAT, INT}) and not isinstance(right, Literal)
