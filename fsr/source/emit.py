"""The loop-nest form as CUDA text a person could have written: four blanks a level, no needless brackets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

from fsr.source.form import (
    Assign,
    Binary,
    Call,
    Cast,
    Comment,
    Declare,
    Expr,
    ExprStmt,
    For,
    If,
    Index,
    Jump,
    KernelForm,
    Literal,
    Member,
    Name,
    OpaqueExpr,
    OpaqueStmt,
    Param,
    Return,
    Scope,
    Stmt,
    Ternary,
    Unary,
    While,
)  # fmt: skip
from fsr.source.loop_heads import has_continue
from fsr.source.walk import base_name, names_in

INDENT = "    "
WIDTH = 110

_COMMA, _ASSIGN, _UNARY, _POSTFIX, _PRIMARY = 1, 2, 13, 14, 15
_BINARY = {
    ",": 1, "||": 3, "&&": 4, "|": 5, "^": 6, "&": 7, "==": 8, "!=": 8, "<": 9, ">": 9, "<=": 9, ">=": 9,
    "<<": 10, ">>": 10, "+": 11, "-": 11, "*": 12, "/": 12, "%": 12,
}  # fmt: skip
_BITS = frozenset(["|", "^", "&", "<<", ">>"])  # mixed with anything else they are hard to read without brackets


def emit_expr(e: Expr) -> str:
    """The text of an expression, as it stands on the right of an assignment or as an argument."""
    text, level = _emit(e)
    return f"({text})" if level == _COMMA else text


def _emit(e: Expr) -> tuple[str, int]:
    match e:
        case Name(text):
            return text, _PRIMARY
        case Literal(text):
            return text, _UNARY if text[:1] in "-+" else _PRIMARY
        case OpaqueExpr(text):
            return text, _opaque_level(text)
        case Binary(op, left, right):
            return _emit_binary(op, left, right)
        case Unary(op, operand):
            inner = _at(operand, _UNARY)
            return op + (f"({inner})" if inner[:1] == op and op in "+-&" else inner), _UNARY
        case Cast(type_, operand, style):
            if style == "c":
                return f"({type_}){_at(operand, _UNARY)}", _UNARY
            return f"{style}<{type_}>({emit_expr(operand)})", _POSTFIX
        case Ternary(test, yes, no):
            return f"{_at(test, 3)} ? {_at(yes, _ASSIGN)} : {_at(no, _ASSIGN)}", _ASSIGN
        case Call(callee, args, templates):
            template = f"<{', '.join(templates)}>" if templates else ""
            return f"{_at(callee, _POSTFIX)}{template}({', '.join(map(emit_expr, args))})", _POSTFIX
        case Index(base, index):
            return f"{_at(base, _POSTFIX)}[{emit_expr(index)}]", _POSTFIX
        case Member(base, name, arrow):
            return f"{_at(base, _POSTFIX)}{'->' if arrow else '.'}{name}", _POSTFIX


def _emit_binary(op: str, left: Expr, right: Expr) -> tuple[str, int]:
    level = _BINARY[op]
    if op == ",":
        return f"{_at(left, level)}, {_at(right, level + 1)}", level
    return f"{_operand(left, op, level)} {op} {_operand(right, op, level + 1)}", level


def _operand(e: Expr, op: str, level: int) -> str:
    """An operand with brackets where the grammar needs them, or where compilers warn without."""
    text = _at(e, level)
    if isinstance(e, Binary) and _BINARY[e.op] >= level and e.op != op:
        confusing = (op in _BITS) or (op == "||" and e.op == "&&") or (op in ("==", "!=") and _BINARY[e.op] <= 9)
        if confusing and not text.startswith("("):
            return f"({text})"
        if confusing:
            return text if _wrapped(text) else f"({text})"
    return text


def _wrapped(text: str) -> bool:
    depth = 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return at == len(text) - 1
    return False


def _at(e: Expr, level: int) -> str:
    text, own = _emit(e)
    return text if own >= level else f"({text})"


def _opaque_level(text: str) -> int:
    if re.fullmatch(r"\{.*\}|\[.*\}|[\w:]+|[\w:.]+\s*[\(\{][^()]*[\)\}]", text, re.DOTALL):
        return _PRIMARY
    if re.fullmatch(r"(\+\+|--)[\w.]+|[\w.]+(\+\+|--)|sizeof\b.*", text):
        return _UNARY
    return _ASSIGN


# ---------------------------------------------------------------- statements


def emit_stmts(stmts: tuple[Stmt, ...], indent: int = 0) -> str:
    """The text of statements, one a line, each line ended; ``indent`` counts levels of four blanks."""
    return "".join(_stmt(s, indent) for s in stmts)


def _stmt(s: Stmt, indent: int) -> str:
    pad = INDENT * indent
    match s:
        case Declare():
            return f"{pad}{_declare(s)};\n"
        case Assign() | ExprStmt():
            return f"{pad}{_simple(s)};\n"
        case If():
            return f"{pad}{_if(s, indent)}\n"
        case For(pragmas=pragmas, body=body):
            return _pragmas(pragmas, pad) + f"{pad}for ({_for_header(s)}) {_braced(body, indent)}\n"
        case While(test, body, pragmas):
            header = "for (;;)" if test == Literal("true") else f"while ({_condition(test)})"
            return _pragmas(pragmas, pad) + f"{pad}{header} {_braced(body, indent)}\n"
        case Return(value):
            return f"{pad}return;\n" if value is None else f"{pad}return {emit_expr(value)};\n"
        case Jump(keyword):
            return f"{pad}{keyword};\n"
        case Scope(body):
            return _stepping_for(body, indent) or f"{pad}{_braced(body, indent)}\n"
        case Comment(text):
            return f"{pad}{text}\n"
        case OpaqueStmt(text):
            return text + "\n" if text.startswith("#") else f"{pad}{text}\n"


def _simple(s: Assign | ExprStmt) -> str:
    match s:
        case ExprStmt(expr):
            return _emit(expr)[0]
        case Assign(target, "+=", Literal("1")):
            return f"{_at(target, _POSTFIX)}++"
        case Assign(target, "-=", Literal("1")):
            return f"{_at(target, _POSTFIX)}--"
        case Assign(target, op, value):
            return f"{_at(target, _UNARY)} {op} {emit_expr(value)}"


def declared(type_: str, name: str) -> str:
    """``type name`` with the stars at the name: ``const float *x``."""
    return f"{type_}{name}" if type_.endswith(("*", "&")) else f"{type_} {name}"


def _declare(s: Declare) -> str:
    dims = "".join(f"[{emit_expr(d)}]" for d in s.dims)
    init = "" if s.init is None else f" = {emit_expr(s.init)}"
    return " ".join((*s.qualifiers, declared(s.type, s.name))) + dims + init


def _condition(test: Expr) -> str:
    return _emit(test)[0]


def _if(s: If, indent: int) -> str:
    head = f"if {'constexpr ' if s.constexpr else ''}({_condition(s.test)}) "
    if not s.orelse and len(s.then) == 1 and isinstance(s.then[0], Return | Jump):
        return head + _stmt(s.then[0], 0).rstrip("\n")
    text = head + _braced(s.then, indent)
    match s.orelse:
        case ():
            return text
        case (If() as inner,):
            return f"{text} else {_if(inner, indent)}"
    return f"{text} else {_braced(s.orelse, indent)}"


def _braced(body: tuple[Stmt, ...], indent: int) -> str:
    return "{\n" + emit_stmts(body, indent + 1) + INDENT * indent + "}"


def _pragmas(pragmas: tuple[str, ...], pad: str) -> str:
    return "".join(f"{pad}{p}\n" for p in pragmas)


def _for_header(s: For) -> str:
    start = f"{declared(s.type, s.var) if s.type else s.var} = {emit_expr(s.start)}"
    match s.step:
        case Literal("1"):
            step = f"++{s.var}"
        case Unary("-", Literal("1")):
            step = f"--{s.var}"
        case Unary("-", amount):
            step = f"{s.var} -= {emit_expr(amount)}"
        case amount:
            step = f"{s.var} += {emit_expr(amount)}"
    return f"{start}; {s.var} {s.relation} {_at(s.bound, 10)}; {step}"


def _stepping_for(body: tuple[Stmt, ...], indent: int) -> str | None:
    """``for (int s = n; s > 0; s >>= 1)``, which the form holds as a scope around a while."""
    match body:
        case (
            Declare() | Assign(target=Name()) as first,
            While(test, (*inner, Assign(target=Name(target)) as update), pragmas),
        ):
            name = first.name if isinstance(first, Declare) else base_name(first.target)
            first_text = _declare(first) if isinstance(first, Declare) else _simple(first)
        case _:
            return None
    if name != target or has_continue(tuple(inner)) or test == Literal("true"):
        return None
    if names_in(update.value) & {s.name for s in inner if isinstance(s, Declare)}:  # the head does not see these
        return None
    pad = INDENT * indent
    header = f"for ({first_text}; {_condition(test)}; {_simple(update)})"
    return _pragmas(pragmas, pad) + f"{pad}{header} {_braced(tuple(inner), indent)}\n"


# ---------------------------------------------------------------- kernels


def emit_kernel(kernel: KernelForm) -> str:
    """The definition of a kernel, template header included, ended by a newline."""
    template = f"template <{kernel.template}>\n" if kernel.template is not None else ""
    words = [*kernel.prefix, "__global__ void"]
    if kernel.launch_bounds:
        words.append(f"__launch_bounds__({', '.join(kernel.launch_bounds)})")
    return f"{template}{_signature(' '.join(words), kernel)} {_braced(kernel.body, 0)}\n"


def _signature(head: str, kernel: KernelForm) -> str:
    params = [f"{_param(p)} = {p.default}" if p in _optional(kernel.params) else _param(p) for p in kernel.params]
    one_line = f"{head} {kernel.name}({', '.join(params)})"
    if len(one_line) <= WIDTH:
        return one_line
    lines = [f"{head} {kernel.name}("]
    for at, param in enumerate(params):
        word = param + ("," if at < len(params) - 1 else ")")
        if lines[-1] != lines[0] and len(lines[-1]) + len(word) < WIDTH:
            lines[-1] += " " + word
        else:
            lines.append(INDENT + word)
    return "\n".join(lines)


def _optional(params: Sequence[Param]) -> list[Param]:
    """Those whose default arguments may be said: none without one stands behind them."""
    return list(takewhile(lambda p: p.default, reversed(params)))


def _param(param: Param) -> str:
    if not param.name:
        return param.type
    if param.restrict:
        space = " " if param.type[-1:].isalnum() else ""  # behind the const of ``int *const``
        return f"{param.type}{space}__restrict__ {param.name}"
    return declared(param.type, param.name)
