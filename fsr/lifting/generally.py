"""What holds at the sizes that matter, where one more form was watched at sizes so small that a fold had one term.

A sum of one term is no sum to what is watched. Where too few of such sizes were watched to tell its form, that of all
others is held against the original at these, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fsr.computation.canonical import canonical
from fsr.computation.computation import Computation
from fsr.computation.expression import Affine, Expr, mapped, rebuilt, valued
from fsr.computation.expression import Case as Choice
from fsr.lifting.check import Checker
from fsr.records import Case


def standing(
    told: Computation, found: Computation, checker: Checker, cases: Sequence[Case], timed: Mapping[str, int]
) -> tuple[Computation | None, str]:
    """What stands the check: ``found``, the canonical form of what was ``told``, or that of what holds generally; None
    and why not where neither does."""
    wrong = checker.refutation(found, cases)
    if not wrong:
        return found, ""
    general, refuted = generally(told, timed), checker.refuted
    if general is not None and not checker.refutation(found := canonical(general), cases):
        return found, ""
    checker.refuted = refuted  # at which sizes, and where, is asked of what was found
    return None, wrong


def generally(found: Computation, timed: Mapping[str, int]) -> Computation | None:
    """The computation with the form of the timed sizes in place of conditions on sizes alone; None where there are
    none."""
    changed = tuple(s if s.value is None else replace(s, value=_general(s.value, timed)) for s in found.statements)
    return replace(found, statements=changed) if changed != found.statements else None


def _general(e: Expr, timed: Mapping[str, int]) -> Expr:
    def chosen(e: Expr, parts: tuple[Expr, ...]) -> Expr:
        if isinstance(e, Choice) and _names(e.left) | _names(e.right) <= timed.keys():
            return parts[0] if valued(e.left, timed.__getitem__) <= valued(e.right, timed.__getitem__) else parts[1]
        return rebuilt(e, parts)

    return mapped(e, chosen)


def _names(a: Affine) -> set[str]:
    return {name for name, _ in a.terms}
