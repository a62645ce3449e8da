"""Elements of arrays at an index that data decides, read and written by functions that go through all elements: where
these are registers, each is a select."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fsr.analysis.calls import ATOMICS, INTO, is_load
from fsr.hardware.c_types import element_bytes
from fsr.source.arrays import indices_of
from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Declare,
    Expr,
    ExprStmt,
    Index,
    Literal,
    Name,
    OpaqueExpr,
    Stmt,
    number,
)  # fmt: skip
from fsr.source.macros import macros
from fsr.source.mapping import rewrite, with_blocks, with_exprs
from fsr.source.parse import parse_device_functions
from fsr.source.walk import Block, names_in, walk_expr
from fsr.transform.selects.arrays import Place, SmallArray

_HEAD = (
    "template <int COUNT, int STRIDE = 1, typename T{more}>\n__device__ __forceinline__ {result} {name}({given})\n{{\n"
)
_TURNS = "#pragma unroll\n    for (int element = {first}; element < COUNT; ++element) {{\n        {turn}\n    }}\n"
# Both sides are variables, so that compilers make a select of it at once: of branches they make paths, more and more.
_KEPT = "const T kept = elements[element * STRIDE];\n        "
_CHOOSE = _TURNS.format(first=1, turn=f"{_KEPT}value = element == at ? kept : value;")
_SET = _TURNS.format(first=0, turn=f"{_KEPT}elements[element * STRIDE] = element == at ? given : kept;")
_MOST_IN_CHAIN = 32
_MOST_SELECTS = 4096  # for an array in the whole of a program, unrolled, so that it stays in the instruction cache
_READ = "fsr_chosen"
_WORDS = {
    "=": "set", "+=": "add_to", "-=": "subtract_from", "*=": "multiply", "/=": "divide", "%=": "reduce",
    "&=": "and_with", "|=": "or_with", "^=": "xor_with", "<<=": "shift_left", ">>=": "shift_right",
}  # fmt: skip
_ADDED = frozenset(["+=", "-=", "*=", "&=", "|=", "^="])  # of integers an instruction, as cheap as a select


class Unfit(Exception):  # noqa: N818  # what it says of an array, no fault
    """An array whose elements cannot be chosen."""

    def __init__(self, array: SmallArray) -> None:
        super().__init__(array.name)
        self.array = array


@dataclass(frozen=True, slots=True)
class _Line:
    """Elements of an array, ``stride`` apart from ``begin`` on, of which that at ``at`` is chosen."""

    begin: Expr
    at: Expr
    count: int
    stride: int = 1

    @property
    def lengths(self) -> tuple[str, ...]:
        """Template arguments."""
        return (str(self.count),) if self.stride == 1 else (str(self.count), str(self.stride))


def _parts(e: Expr) -> list[Expr]:
    """The accesses of an element, the first dimension's first."""
    return [*_parts(e.base), e] if isinstance(e, Index) else []


@dataclass
class ChosenElements:
    """``late``: the accesses whose index is known at run time only, by ``id`` of their nodes. ``turns``:
    of loops that are unrolled, by their ``id``. ``helpers``: the texts of
    the functions that are called, once :meth:`block` was."""

    place: Place
    arrays: Sequence[SmallArray]
    late: Collection[int]
    turns: Mapping[int, int]
    helpers: dict[str, str] = field(default_factory=dict)
    _selects: Counter[str] = field(default_factory=Counter)

    def block(self, body: Block, times: int = 1) -> Block:
        """The statements, which are there so many times once loops are unrolled. Raises Unfit where an element is more
        than read, order would be lost, or a program would become too long."""
        found: list[Stmt] = []
        for s in body:
            self._times = times
            changed, inner = self._statement(s), times * self.turns.get(id(s), 1)
            found.append(with_blocks(changed, lambda b, inner=inner: self.block(b, inner)))  # type: ignore[misc]
        return tuple(found)

    def _statement(self, s: Stmt) -> Stmt:
        match s:
            case Declare():
                flat = next((a for a in self.arrays if a.declared == s and len(a.extents) > 1), None)
                s = s if flat is None else replace(s, dims=(number(flat.elements),))
            case Assign(target, op, value) if (array := self._chosen(target)) is not None:
                self._require_order(array, target, value)
                name, line = self._writer(array, op), self._line(array, target)
                args = (line.begin, line.at, self._expr(value))
                return ExprStmt(Call(Name(name), args, line.lengths), s.span)
        return with_exprs(s, self._expr)

    def _expr(self, e: Expr) -> Expr:
        return rewrite(e, self._read)

    def _read(self, e: Expr) -> Expr | None:
        if isinstance(e, Call):
            for n, argument in enumerate(e.args):
                if (array := self._chosen(argument)) is not None and not self._takes_value(e, n):
                    raise Unfit(array)
        array = self._array(e)
        if array is None:
            return None
        if self._chosen(e) is None:
            return Index(Name(array.name), self._place(array, e))
        line = self._line(array, e)
        return Call(Name(self._reader()), (line.begin, line.at), line.lengths)

    def _array(self, e: Expr) -> SmallArray | None:
        """The array that an expression is an element of."""
        return next((a for a in self.arrays if isinstance(e, Index) and indices_of(e, a.declared) is not None), None)

    def _chosen(self, e: Expr) -> SmallArray | None:
        """The same, where the index is known at run time only."""
        array, part = self._array(e), e
        while array is not None and isinstance(part, Index):
            if id(part) in self.late:
                return array
            part = part.base
        return None

    def _place(self, array: SmallArray, e: Expr) -> Expr:
        """An element's number."""
        first, *more = [self._expr(at) for at in indices_of(e, array.declared) or ()]
        for extent, at in zip(array.extents[1:], more, strict=True):
            first = Binary("+", Binary("*", first, number(extent)), at)
        return first

    def _line(self, array: SmallArray, e: Expr) -> _Line:
        """The elements among which an element is chosen: of two dimensions those along the one that data decides."""
        indices, late = indices_of(e, array.declared) or [], [id(part) in self.late for part in _parts(e)]
        line = _Line(Name(array.name), self._place(array, e), array.elements)
        if len(array.extents) == 2 and not all(late):
            (rows, columns), (row, column) = array.extents, [self._expr(at) for at in indices]
            if late[0]:
                line = _Line(Binary("+", Name(array.name), column), row, rows, columns)
            else:
                line = _Line(Binary("+", Name(array.name), Binary("*", row, number(columns))), column, columns)
        self._selects[array.name] += self._times * line.count
        if self._selects[array.name] > _MOST_SELECTS or line.count > _MOST_IN_CHAIN:
            raise Unfit(array)
        return line

    # ------------------------------------------------------------ what must not get lost

    def _require_order(self, array: SmallArray, target: Expr, value: Expr) -> None:
        """C++ evaluates the value before the index (C++17 [expr.ass]), a call its arguments in any order."""
        at = indices_of(target, array.declared) or []
        in_braces = isinstance(value, OpaqueExpr) and value.text.lstrip().startswith("{")
        if in_braces or (self._acts(value) and any(self._acts(x) for x in at)):
            raise Unfit(array)
        for one, other in ((at, [value]), ([value], at)):
            acting = {name for e in one if self._acts(e) for name in names_in(e)}
            if acting & {name for e in other for name in names_in(e)}:
                raise Unfit(array)
            if acting and not all(isinstance(x, Name | Literal | Binary) for e in other for x in walk_expr(e)):
                raise Unfit(array)

    def _acts(self, e: Expr) -> bool:
        """Whether evaluating an expression may do more than give a value."""
        return any(isinstance(x, OpaqueExpr) or (isinstance(x, Call) and not self._computes(x)) for x in walk_expr(e))

    def _computes(self, call: Call) -> bool:
        name = call.callee.text if isinstance(call.callee, Name) else ""
        return is_load(call) or self.place.functions.only_computes(name) or self._is_type(name)

    def _is_type(self, name: str) -> bool:
        return name in self.place.types or element_bytes(name) is not None

    def _takes_value(self, call: Call, n: int) -> bool:
        """Whether a call gets a value for its n-th argument, and no reference that it may write through."""
        name = call.callee.text if isinstance(call.callee, Name) else ""
        functions = self.place.functions
        if self._computes(call) or (name in ATOMICS | INTO and name not in functions.own):
            return True
        known = parse_device_functions(self.place.source).get(name)
        if known is None or f"{name}({n}" in self.place.by_reference or n >= len(known.params):
            return False
        plain = "&" not in known.params[n].type or "const" in known.params[n].type.split()
        return plain and all(m.name != name for m in macros(self.place.source))

    # ------------------------------------------------------------ the functions

    def _reader(self) -> str:
        self.helpers[_READ] = (
            "// The element at a place that data decides, of COUNT that are registers.\n"
            + _HEAD.format(more="", result="T", name=_READ, given="const T *elements, int at")
            + f"    T value = elements[0];\n{_CHOOSE}    return value;\n}}\n"
        )
        return _READ

    def _writer(self, array: SmallArray, op: str) -> str:
        """The function for an assignment. Of floats the sum is made once: it may be fused with a product."""
        added = op in _ADDED and array.whole
        name = f"fsr_{_WORDS[op]}_chosen" + ("" if added or op not in _ADDED else "_float")
        text = "// The same element is given another value.\n"
        text += _HEAD.format(more=", typename V", result="void", name=name, given="T *elements, int at, V value")
        if added:
            turn = f"{_KEPT}T changed = kept;\n        changed {op} value;\n        "
            text += _TURNS.format(first=0, turn=f"{turn}elements[element * STRIDE] = element == at ? changed : kept;")
        elif op == "=":
            text += f"    const T given = static_cast<T>(value);\n{_SET}"
        else:
            chosen = _CHOOSE.replace("value", "given")
            text += f"    T given = elements[0];\n{chosen}    given {op} value;\n{_SET}"
        self.helpers[name] = text + "}\n"
        return name
