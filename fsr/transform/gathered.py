"""What atomics on one address add, in a variable of a thread's own first."""

from __future__ import annotations

from dataclasses import dataclass

from fsr.analysis.operators import BY_ATOMIC, identity
from fsr.source.form import Assign, Call, Declare, Expr, ExprStmt, If, Literal, Name, Stmt
from fsr.source.walk import Block

_OPERATORS = {"sum": "+=", "and": "&=", "or": "|=", "xor": "^="}


@dataclass(frozen=True, slots=True)
class Gathered:
    """Atomics ``name`` on one address: ``total`` is a variable for them, of a ``type``. ``any``: a variable that tells
    whether one was to be done, where the address may be nobody's else (``&sums[i]`` where there is no point i); ''
    where it is one for all."""

    name: str
    address: Expr
    total: str
    type: str
    any: str

    @property
    def fold(self) -> str:
        """The operation's name."""
        return BY_ATOMIC[self.name]

    @property
    def begun(self) -> Declare:
        """The declaration of the total."""
        return Declare(self.type, self.total, Literal(identity(self.fold, self.type)))

    @property
    def asked(self) -> tuple[Declare, ...]:
        """The declaration of what tells whether one was to be done."""
        return (Declare("bool", self.any, Literal("false")),) if self.any else ()

    def more(self, value: Expr) -> Block:
        """What stands in the place of one, whose value has the total's type."""
        told = (Assign(Name(self.any), "=", Literal("true")),) if self.any else ()
        return (folded(self.fold, self.total, value, self.type), *told)

    @property
    def added(self) -> Stmt:
        """The one that is done in the end."""
        added = ExprStmt(Call(Name(self.name), (self.address, Name(self.total))))
        return If(Name(self.any), (added,)) if self.any else added


def folded(fold: str, total: str, value: Expr, type_: str) -> Stmt:
    """The statement that folds a value into a variable of a C type."""
    if fold in _OPERATORS:
        return Assign(Name(total), _OPERATORS[fold], value)
    function = {"float": f"f{fold}f", "double": f"f{fold}"}.get(type_, fold)
    return Assign(Name(total), "=", Call(Name(function), (Name(total), value)))
