"""What a thread gathers over the turns of loops: variables, and elements of short arrays of its own."""

from __future__ import annotations

from fsr.analysis.accumulators import accumulators, mentions
from fsr.source.emit import emit_expr
from fsr.source.form import Assign, Expr, Index, Name
from fsr.source.mapping import map_exprs
from fsr.source.walk import Block, base_name, names_assigned, names_in, walk_exprs, walk_stmts


def gathered(
    turns: Block, arrays: frozenset[str], private: frozenset[str], memory: frozenset[str]
) -> dict[str, str] | None:
    """Operator by name of what turns hand on, where they do nothing else with it than fold values into it; None where
    they hand on anything else. ``arrays``: of the thread, not of a turn; ``private``: a turn's own; ``memory``: arrays
    and pointers of any kind."""
    filled = frozenset(
        base_name(s.target) or "" for s in walk_stmts(turns) if isinstance(s, Assign) and isinstance(s.target, Index)
    )
    filled &= arrays - private
    plain = map_exprs(turns, lambda e: _as_variable(e, filled))
    found, mentioned = accumulators(plain), mentions(plain)
    scalars = names_assigned(turns) - private - memory
    if not scalars <= found.keys():
        return None
    result = {name: found[name] for name in scalars}
    for array in filled:
        elements = [name for name in mentioned if name.startswith(f"{array}[")]
        operators = {found.get(name, "") for name in elements}
        if len(operators) != 1 or "" in operators or mentioned[array]:
            return None
        result[array] = operators.pop()
    told = {n for e in walk_exprs(turns) if isinstance(e, Index) and base_name(e) in filled for n in names_in(e)}
    return None if (told - filled) & result.keys() or _tells_own(turns, filled) else result


def _as_variable(e: Expr, arrays: frozenset[str]) -> Expr:
    """An element of one of the arrays as a variable that goes by its text."""
    match e:
        case Index(Name(text), index) if text.split("[")[0] in arrays:
            return Name(f"{text}[{emit_expr(index)}]")
    return e


def _tells_own(turns: Block, arrays: frozenset[str]) -> bool:
    """Whether what is in an array tells an index of it."""
    inner = (e.index for e in walk_exprs(turns) if isinstance(e, Index) and base_name(e) in arrays)
    return any(names_in(i) & arrays for i in inner)
