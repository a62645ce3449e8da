"""Whether partial states of consecutive turns, merged in order by the author's merge, are the state of all turns.

That the merge is a fold of partial states is what the author's own tree relies on: it is given those of other threads,
each of which began as every thread does. What tells of a mistake in that, or of turns that know how many came before
them in their thread, is looked for here, and refused; the tests have the last word:

- each number of the state is made of both sides, so that none is just the last one's;
- a number that is added up begins at 0 (a product at 1), as its beginning is added once a part; one of which the merge
  keeps either side begins with what is no thread's own, and turns do not count with it;
- what decides about it, or goes into it, in a turn does so in the merge, so that no turn asks what the merge does not
  know (the number of turns so far, the element before); but where the merge takes an extreme, or sets bits;
- turns hand on nothing that is no part of the state.

What a thread without any turn has need not be neutral: parts without turns are not merged at all. It is what each part
of a thread begins with, as each thread does in the original.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fsr.analysis.types import number_type
from fsr.hardware.c_types import BY_SPELLING
from fsr.source.form import Assign, Binary, Call, Cast, Declare, Expr, For, Index, Literal, Name, Ternary, Unary, While
from fsr.source.walk import BUILTINS, Block, blocks_of, identifiers, names_assigned, names_in, walk_expr, walk_stmts
from fsr.transform.sizes import largest
from fsr.transform.target import Target
from fsr.transform.two_stage.folds import Ends, Fold, State
from fsr.transform.two_stage.influence import (
    Given,
    Names,
    calculated,
    given,
    influences,
    values_of,
    without_tests,
)  # fmt: skip
from fsr.transform.two_stage.turns import Turns

_HOLDS = {"float": 2**24, "double": 2**53}  # whole numbers up to here add up in any order
_TURNS = {"+": ("+=", "-="), "*": ("*=",), "^": ("^=",)}  # by how the merge puts numbers together: what turns may do
_GROWS = frozenset(["=", "|=", "&=", *(f"{op}=" for op in _TURNS)])
_DEPTH = 8
_UNKNOWN = For("int", "", Literal("-1"), "<", Literal("0"), Literal("0"), ())  # turns as many as you like


def is_fold(target: Target, turns: Turns, ends: Ends) -> bool:
    """Whether all that was found is as the module tells."""
    first = given(ends.first)
    names, values = influences(first), values_of(first)
    of = {s.own: (names_in(s.value) | frozenset().union(*(names.get(n, frozenset()) for n in names_in(s.value))))
          & turns.handed for s in ends.states}  # fmt: skip
    if frozenset[str]().union(*of.values()) != turns.handed:
        return False
    law = _Law(target, turns, ends.first, given(turns.loop.body), of, values)
    return all(map(law.begins_alike, turns.handed)) and all(map(law.holds, ends.folds))


@dataclass(frozen=True)
class _Law:
    """``of``: by state, the variables that turns hand on in it; ``behind``: what variables behind the turns are made
    of."""

    target: Target
    turns: Turns
    end: Block
    inside: tuple[Given, ...]
    of: dict[str, frozenset[str]]
    behind: Names

    def holds(self, fold: Fold) -> bool:
        """Whether a fold's states may be merged part by part."""
        merge = given(fold.merge.body)
        known, sums = influences(merge), calculated(merge)
        for state in fold.states:
            if number_type(state.type, self.target.aliases) not in BY_SPELLING:
                return False
            mine = next(n for n, side in fold.sides.items() if side == (state.own, True))
            sets = [g for g in merge if g.name == mine]
            if not sets or not all(g.op in _GROWS and self._of_both(g, fold, known) for g in sets):
                return False
            deciding = {fold.sides[n][0] for n in known[mine] if n in fold.sides} | {state.own}
            added = bool(sums[mine] & fold.sides.keys())
            if added and not self._may_be_added(state, sets, fold):
                return False
            operator = _summed(sets, fold, state)
            if operator is not None and not self._adds_alone(state, operator):
                return False
            alone = deciding == {state.own}
            if not added and not self._may_be_chosen(state):
                return False
            if (added or not alone) and not self._asks_no_more(state, deciding):
                return False
        return True

    @staticmethod
    def _of_both(g: Given, fold: Fold, known: Names) -> bool:
        """Whether what a number of the state is set to, or whether it is, has to do with both sides."""
        told = g.names.union(*map(names_in, g.tests))
        told |= frozenset().union(*(known.get(n, frozenset()) for n in told if n not in fold.sides))
        return {True, False} <= {fold.sides[n][1] for n in told if n in fold.sides}

    def _asks_no_more(self, state: State, deciding: set[str]) -> bool:
        told = influences(self.inside)
        asked = frozenset[str]().union(*(told.get(n, frozenset()) for n in self.of[state.own])) & self.turns.handed
        return asked <= frozenset[str]().union(*(self.of[own] for own in deciding))

    # ------------------------------------------------------------ what is added up

    def _may_be_added(self, state: State, sets: list[Given], fold: Fold) -> bool:
        products = all(self._is_product(g) for g in sets)
        if self._at_start(state.value) != (1.0 if products else 0.0):
            return False
        values = values_of(self.inside)
        for g in self.inside:
            made_of = g.names.union(*(values.get(n, frozenset()) for n in g.names))
            if g.name in self._whose_value(state) and g.name not in made_of:
                return False  # it is the last turn's
        type_ = number_type(state.type, self.target.aliases)
        exact = self.target.exact and "int" not in BY_SPELLING[type_].dtype
        return not exact or self._counts(state, type_, sets, fold)

    @staticmethod
    def _is_product(g: Given) -> bool:
        if g.op != "=":
            return g.op == "*="
        return isinstance(g.value, Binary) and g.value.op == "*"

    def _whose_value(self, state: State) -> frozenset[str]:
        """The variables of turns that a state is made of, not those that only decide between values."""
        named = names_in(without_tests(state.value))
        return named.union(*(self.behind.get(n, frozenset()) for n in named)) & self.turns.handed

    def _adds_alone(self, state: State, operator: str) -> bool:
        """Whether what is merely added up in the merge (or multiplied) is just that in turns, whatever it is so far."""
        name, told = self._variable(state.value), influences(self.inside)
        for g in (g for g in self.inside if g.name == name):
            asked = frozenset[str]().union(*map(names_in, g.tests))
            if g.op in _TURNS[operator]:
                asked |= names_in(g.value)
            elif g.op == "=" and isinstance(g.value, Binary) and f"{g.value.op}=" in _TURNS[operator]:
                left, right = g.value.left, g.value.right
                swapped = right == Name(name or "") and g.value.op != "-"
                if left != Name(name or "") and not swapped:
                    return False
                asked |= names_in(left if swapped else right)
            else:
                return False
            if name in asked.union(*(told.get(n, frozenset()) for n in asked)):
                return False
        return name is not None

    def _variable(self, e: Expr) -> str | None:
        """The variable of turns that an expression is, in whatever type."""
        while isinstance(e, Cast | Call) and self._converts(e):
            e = e.operand if isinstance(e, Cast) else e.args[0]
        if not isinstance(e, Name):
            return None
        own = [s for s in self.end if isinstance(s, Declare) and s.name == e.text]
        if own and own[0].init is not None and e.text not in names_assigned(self.end):
            return self._variable(own[0].init)
        return e.text if e.text in self.turns.handed and e.text not in names_assigned(self.end) else None

    def _counts(self, state: State, type_: str, sets: list[Given], fold: Fold) -> bool:
        """Whether a float is a number of whole numbers added up, few enough for any order to be the same."""
        name = state.value.text if isinstance(state.value, Name) else ""
        if _summed(sets, fold, state) != "+" or name not in self.turns.handed or type_ not in _HOLDS:
            return False
        if self._type_of(name) != type_:
            return False
        each = 0
        for s, around in _under(self.turns.loop.body, ()):
            if not isinstance(s, Assign) or s.target != Name(name):
                continue
            step, times = self._whole(s.value), self._times(around)
            if step is None or s.op != "+=" or times is None:
                return False
            each += abs(step) * times
        most = largest(self.target.contract, f"ceil_div({self.turns.room}, {self.turns.step})")
        return most is not None and each * max(most, 1) * (self.target.threads or 1024) <= _HOLDS[type_]

    def _whole(self, e: Expr) -> int | None:
        """The whole number that an expression is, in whatever type."""
        value = self._at_start(e) if not names_in(e) & self.turns.handed else None
        return int(value) if value is not None and value.is_integer() else None

    def _type_of(self, name: str) -> str:
        return number_type(self.target.known.types.get(name, ""), self.target.aliases)

    def _times(self, around: tuple[For, ...]) -> int | None:
        """How often a statement in some loops of a turn is gone through, at most."""
        times = 1
        for loop in around:
            most = self.target.largest(loop.bound) if loop.relation in ("<", "<=") else None
            step = self.target.known.poly(loop.step, self.target.constants).value
            if most is None or not step or step < 0 or not self.target.at_least(loop.start, 0):
                return None
            times *= max(most + 1, 0)
        return times

    # ------------------------------------------------------------ what is chosen

    def _may_be_chosen(self, state: State) -> bool:
        sums, told = calculated(self.inside), influences(self.inside)
        behind = calculated((*given(self.end), Given("", "=", state.value, ())))
        if behind[""]:
            return False
        for name in self._whose_value(state) or self.of[state.own]:
            if name in sums.get(name, frozenset()):
                return False
            sets = [g for g in self.inside if g.name == name]
            if not sets:
                return False
            flag = len({g.value for g in sets}) == 1 and _is_literal(sets[0].value)
            for g in sets:
                asked = g.names.union(*map(names_in, g.tests))
                asked = asked.union(*(told.get(n, frozenset()) for n in asked))
                if not (flag and g.tests) and not asked & self.turns.handed:
                    return False  # it is that of the last turn
        return True

    def begins_alike(self, name: str) -> bool:
        """Whether a variable begins with the same in all threads, and reads nothing."""
        own = self._declared(name)
        if own is None:
            return False
        if own.init is None:
            return True
        plain = self.target.known.expand(own.init)
        if any(n.split(".")[0] in BUILTINS for n in identifiers(plain)):
            return False
        return not any(isinstance(e, Index) or (isinstance(e, Unary) and e.op in "*&") for e in walk_expr(plain))

    # ------------------------------------------------------------ what threads begin with

    def _declared(self, name: str) -> Declare | None:
        """The declaration of a variable that is set by that and by turns alone."""
        before = (*self.turns.before, *self.end)
        own = [s for s in walk_stmts(before) if isinstance(s, Declare) and s.name == name]
        return own[0] if len(own) == 1 and name not in names_assigned(before) else None

    def _at_start(self, e: Expr, depth: int = 0) -> float | None:
        """What an expression is for a thread without any turn, where that is a number."""
        match e:
            case Literal(text):
                return _number(text)
            case Name("true" | "false" as text):
                return float(text == "true")
            case Name(text):
                own = self._declared(text)
                return (
                    None if own is None or own.init is None or depth > _DEPTH else self._at_start(own.init, depth + 1)
                )
            case Cast(_, operand) | Call(Name(), (operand,)) if self._converts(e):
                return self._at_start(operand, depth)
            case Ternary(test, yes, no):
                holds = self._at_start(test, depth)
                return None if holds is None else self._at_start(yes if holds else no, depth)
            case Unary("!", operand):
                inner = self._at_start(operand, depth)
                return None if inner is None else float(not inner)
            case Binary("<" | ">" | "<=" | ">=" | "==" | "!=" as op, left, right):
                a, b = self._at_start(left, depth), self._at_start(right, depth)
                if a is None or b is None:
                    return None
                return float({"<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b, "==": a == b, "!=": a != b}[op])
        return None

    def _converts(self, e: Expr) -> bool:
        if isinstance(e, Cast):
            return "*" not in e.type
        name = e.callee.text if isinstance(e, Call) and isinstance(e.callee, Name) else ""
        return name in self.target.type_names or number_type(name, self.target.aliases) in BY_SPELLING


def _under(stmts: Block, around: tuple[For, ...]) -> list[tuple[object, tuple[For, ...]]]:
    """Statements with the loops around them; one in a loop that does not count has none that is known."""
    found: list[tuple[object, tuple[For, ...]]] = []
    for s in stmts:
        found.append((s, around))
        match s:
            case For(body=body):
                found += _under(body, (*around, s))
            case _:
                for block in blocks_of(s):
                    found += _under(block, (*around, _UNKNOWN) if isinstance(s, While) else around)
    return found


def _summed(sets: list[Given], fold: Fold, state: State) -> str | None:
    """The operator with which the merge puts both sides of a number together, where that is all that it does."""
    mine, other = (Name(n) for yes in (True, False) for n, side in fold.sides.items() if side == (state.own, yes))
    (one, *others) = sets
    if others or one.tests:
        return None
    if one.op != "=":
        return one.op[0] if one.op[0] in _TURNS and one.value == other else None
    ways = ((op, Binary(op, *sides)) for op in _TURNS for sides in ((mine, other), (other, mine)))
    return next((op for op, way in ways if one.value == way), None)


def _is_literal(e: Expr) -> bool:
    return isinstance(e, Literal) or e in (Name("true"), Name("false"))


def _number(text: str) -> float | None:
    plain = re.fullmatch(r"([0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+)[fFuUlL]*", text)
    return float(plain.group(1)) if plain else {"true": 1.0, "false": 0.0}.get(text)
