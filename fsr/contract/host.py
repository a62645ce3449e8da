"""What a launch in host code says: its C expressions as size expressions over the kernel's own parameters."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fsr.errors import ContractError
from fsr.expressions import parse
from fsr.records import Launch
from fsr.source.file import KernelFile
from fsr.source.integers import integers
from fsr.source.launches import HostLaunch
from fsr.source.macros import read_define
from fsr.source.tokens import close_of, split_commas, tokenize

_CAST = re.compile(r"\(\s*(?:unsigned|int|long|size_t|u?int\d+_t|std::size_t)(?:\s+(?:int|long))*\s*\)")
_STATIC_CAST = re.compile(r"static_cast\s*<\s*[\w: ]+\s*>")
_SUFFIX = re.compile(r"\b(0[xX][0-9a-fA-F]+|\d+)[uUlL]+\b")
_TYPES = (
    r"(?:auto|(?:const\s+|constexpr\s+|static\s+|unsigned\s+)*"
    r"(?:int|long|unsigned|size_t|u?int\d+_t)(?:\s+(?:int|long))*)"
)


@dataclass
class HostScope:
    """Names that host code uses, as size expressions; dim3 variables as three of them.

    ``helpers``: functions and macros that return one expression, by name: parameters and C text. ``wholes``:
    expressions that are passed for a parameter as they are, and the parameter.
    """

    values: dict[str, str] = field(default_factory=dict)
    dims: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    helpers: dict[str, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    wholes: dict[str, str] = field(default_factory=dict)


def constants(file: KernelFile) -> Mapping[str, int]:
    """File-level integers: ``#define N 256``, ``static const int N = 256;``, ``constexpr int N = 256;``."""
    return integers("\n".join(p.text for p in file.pieces if p.item.kind in ("define", "variable")))


def resolve_launch(
    launch: HostLaunch, file: KernelFile, params: Sequence[str], pointers: Sequence[bool]
) -> tuple[Launch | None, str]:
    """The launch as a plan's, over parameter names; or None and what could not be understood."""
    scope = _scope_of(launch, file, params, pointers)
    grid, block = _dimensions(launch.grid, scope), _dimensions(launch.block, scope)
    shared = to_expression(launch.shared, scope)
    if grid is None:
        return None, f"the grid {launch.grid!r} of the launch in line {launch.line}"
    if block is None:
        return None, f"the block {launch.block!r} of the launch in line {launch.line}"
    if shared is None:
        return None, f"the shared memory {launch.shared!r} of the launch in line {launch.line}"
    return Launch(launch.entry, grid, block, shared, tuple(params)), ""


def passed_number(launch: HostLaunch, file: KernelFile, at: int) -> str | None:
    """The whole number that host code is seen to pass for a parameter, through variables too; None for none."""
    bare = _scope_of(launch, file, (), ())
    found = to_expression(launch.args[at], bare) if at < len(launch.args) else None
    return found if found is not None and re.fullmatch(r"-?\d+", found) else None


def _scope_of(launch: HostLaunch, file: KernelFile, params: Sequence[str], pointers: Sequence[bool]) -> HostScope:
    """The names of the launching function; what it passes goes by the parameters' names."""
    scope = HostScope(helpers=_helpers(file))
    scope.values |= {name: str(value) for name, value in constants(file).items()}
    for param, pointer, arg in zip(params, pointers, launch.args, strict=False):
        name = re.sub(r"^\(\s*\w+\s*\)\s*", "", arg)
        if not pointer and re.fullmatch(r"[A-Za-z_]\w*", name):
            scope.values[name] = param
    _read_scope(launch.scope, scope, set(scope.values))
    for param, pointer, arg in zip(params, pointers, launch.args, strict=False):
        whole = None if pointer else to_expression(arg, scope)
        if whole is not None and re.search(r"\w\W+\w", whole):  # k<<<(m * n + 255) / 256, 256>>>(m * n)
            scope.wholes[whole] = param
    return scope


def _helpers(file: KernelFile) -> dict[str, tuple[tuple[str, ...], str]]:
    found: dict[str, tuple[tuple[str, ...], str]] = {}
    for piece in file.pieces:
        text = " ".join(piece.text.split())
        macro = read_define(piece.text) if piece.item.kind == "define" else None
        function = re.fullmatch(r"[^{}]*?(\w+) ?\(([^(){}]*)\)[^{}]*\{ ?return ([^;{}]+); ?\}", text)
        if macro is not None and macro.params and macro.body:
            found[macro.name] = (macro.params, macro.body)
        elif function and piece.item.kind == "function":
            names = tuple(p.split()[-1].lstrip("*&") for p in function[2].split(",") if p.split())
            found[function[1]] = (names, function[3])
    return found


_SETTING = re.compile(
    rf"(?<![\w.])(?:dim3\s+(?P<dims>[^;]+);|auto\s+(?P<auto>\w+)\s*=\s*(?P<one>dim3\b[^;]+);"
    rf"|{_TYPES}\s+(?P<name>\w+)\s*(?:=\s*(?P<value>[^;]+)|\{{(?P<braced>[^;}}]+)\}})\s*;"
    r"|(?P<again>\w+)\s*=(?!=)\s*(?P<anew>[^;]+);)"
)
_CHANGED = re.compile(r"(?<![\w.])(\w+)\s*(?:[-+*/%|&^]|<<|>>)=|(?:\+\+|--)(\w+)|(\w+)(?:\+\+|--)")


def _read_scope(text: str, scope: HostScope, fixed: set[str]) -> None:
    """The variables that the launching function sets before the launch, last setting first to win. What a loop or a
    branch sets anew is not known."""
    clean = re.sub(r"//[^\n]*|/\*.*?\*/", lambda m: " " * len(m[0]), text, flags=re.DOTALL)
    for match in _SETTING.finditer(clean):
        if match["again"]:
            depth = clean.count("{", 0, match.start()) - clean.count("}", 0, match.start())
            straight = depth == 1 and clean[: match.start()].rstrip().endswith((";", "{", "}"))
            _set(match["again"], match["anew"] if straight else "?", scope, fixed)
        elif match["dims"]:
            for name, value in _dim_declared(match["dims"]):
                _set_dims(name, value, scope)
        elif match["auto"]:
            _set_dims(match["auto"], match["one"], scope)
        else:
            for name, value in _declared(match["name"], match["value"] or match["braced"]):
                if to_expression(value, scope) is not None:  # otherwise what is known of the name may still hold
                    _set(name, value, scope, fixed)
    for changed in _CHANGED.finditer(clean):
        name = changed[1] or changed[2] or changed[3]
        if name not in fixed:
            scope.values.pop(name, None)


def _set(name: str, value: str, scope: HostScope, fixed: set[str]) -> None:
    if name in scope.dims:
        _set_dims(name, value, scope)
    elif name not in fixed:
        found = to_expression(value, scope)
        scope.values.pop(name, None)
        if found is not None:
            scope.values[name] = found


def _set_dims(name: str, value: str, scope: HostScope) -> None:
    dims = _dimensions(value, scope)
    scope.dims.pop(name, None)
    if dims is not None:
        scope.dims[name] = dims


def _dim_declared(text: str) -> Iterator[tuple[str, str]]:
    """(name, value) of ``block(16, 16), grid{n / 16}, other = dim3(4)``."""
    for part in split_commas(tokenize(text)):
        if len(part) > 2 and part[0].kind == "name":
            at = part[2].start if part[1].text == "=" else part[1].start
            value = text[at : part[-1].end]
            yield part[0].text, value if part[1].text == "=" else f"dim3{value}"


def _declared(name: str, values: str) -> Iterator[tuple[str, str]]:
    """(name, value) of ``int a = 1, b = 2;`` from its first name and the text after the first ``=``."""
    tokens = tokenize(values)
    for part in split_commas(tokens):
        texts = [t.text for t in part]
        if len(texts) > 2 and texts[1] == "=":
            name, part = texts[0], part[2:]
        if part:
            yield name, values[part[0].start : part[-1].end]


def _dimensions(text: str, scope: HostScope) -> tuple[str, str, str] | None:
    text = text.strip()
    if text in scope.dims:
        return scope.dims[text]
    match = re.fullmatch(r"dim3\s*[({](.*)[)}]", text, re.DOTALL) or re.fullmatch(r"\{(.*)\}", text, re.DOTALL)
    tokens = tokenize(match[1] if match else text)
    raw = match[1] if match else text
    parts = (
        [to_expression(raw[p[0].start : p[-1].end], scope) for p in split_commas(tokens) if p]
        if match
        else [to_expression(text, scope)]
    )
    if not 1 <= len(parts) <= 3 or any(p is None for p in parts):
        return None
    x, y, z = ([p or "1" for p in parts] + ["1", "1"])[:3]
    return x, y, z


def to_expression(text: str, scope: HostScope, depth: int = 0) -> str | None:
    """A C integer expression as a size expression; None when it uses more than arithmetic on known names."""
    if depth > 8:
        return None
    text = _expand(_STATIC_CAST.sub("", _CAST.sub("", text)), scope, depth)
    for name, dims in scope.dims.items():
        for axis, value in zip("xyz", dims, strict=True):
            text = re.sub(rf"\b{name}\s*\.\s*{axis}\b", f"({value})", text)
    text = _SUFFIX.sub(r"\1", text).replace("std::", "")
    text = re.sub(r"/+", "//", text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(text.strip(), mode="eval").body
        tree = _Wholes(scope.wholes).visit(_Names(scope.values).visit(tree))
        tree = _CeilDiv().visit(tree)
        found = ast.unparse(ast.fix_missing_locations(tree))
        parse(found)
    except (SyntaxError, ValueError, ContractError, RecursionError):
        return None
    return found


def _expand(text: str, scope: HostScope, depth: int) -> str:
    """Calls of one-line helpers replaced by what they return."""
    for name, (params, body) in scope.helpers.items():
        tokens = tokenize(text)
        at = next((i for i, t in enumerate(tokens[:-1]) if t.text == name and tokens[i + 1].text == "("), None)
        if at is None:
            continue
        close = close_of(tokens, at + 1)
        if close is None:
            continue
        args = [text[p[0].start : p[-1].end] for p in split_commas(tokens[at + 2 : close]) if p]
        if len(args) != len(params):
            continue
        bound = dict(zip(params, args, strict=True))
        inner = re.sub(r"\b[A-Za-z_]\w*\b", lambda m, b=bound: f"({b[m[0]]})" if m[0] in b else m[0], body)  # type: ignore[misc]
        inner = _STATIC_CAST.sub("", _CAST.sub("", inner))
        text = f"{text[: tokens[at].start]}({inner}){text[tokens[close].end :]}"
        return _expand(text, scope, depth + 1) if depth < 8 else text
    return text


class _Names(ast.NodeTransformer):
    """Host names replaced by what they stand for."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:  # the name that ast calls
        value = self.values.get(node.id)
        return node if value is None or value == node.id else ast.parse(value, mode="eval").body

    def visit_Call(self, node: ast.Call) -> ast.expr:
        node.args = [self.visit(a) for a in node.args]
        return node


class _Wholes(ast.NodeTransformer):
    """What is passed for a parameter replaced by the parameter."""

    def __init__(self, wholes: Mapping[str, str]) -> None:
        self.wholes = wholes

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        name = self.wholes.get(ast.unparse(node))
        if name is not None:
            return ast.Name(name, ast.Load())
        self.generic_visit(node)
        return node


class _CeilDiv(ast.NodeTransformer):
    """``(n + 255) // 256`` and ``(n - 1) // 256 + 1`` as ``ceil_div(n, 256)``."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """One division, if it rounds up."""
        self.generic_visit(node)
        match node:
            case ast.BinOp(ast.BinOp(total, ast.Sub(), ast.Constant(1)), ast.FloorDiv(), divisor):
                match total:
                    case ast.BinOp(n, ast.Add(), d) if ast.dump(d) == ast.dump(divisor):
                        return _ceil_div(n, divisor)
            case ast.BinOp(ast.BinOp(n, ast.Add(), ast.Constant(int(extra))), ast.FloorDiv(), ast.Constant(int(d))) if (
                extra == d - 1
            ):
                return _ceil_div(n, ast.Constant(d))
            case ast.BinOp(
                ast.BinOp(n, ast.Add(), ast.BinOp(a, ast.Sub(), ast.Constant(1))), ast.FloorDiv(), divisor
            ) if ast.dump(a) == ast.dump(divisor):
                return _ceil_div(n, divisor)
            case ast.BinOp(
                ast.BinOp(ast.BinOp(n, ast.Sub(), ast.Constant(1)), ast.FloorDiv(), divisor), ast.Add(), ast.Constant(1)
            ):
                return _ceil_div(n, divisor)
        return node


def _ceil_div(n: ast.expr, divisor: ast.expr) -> ast.expr:
    return ast.Call(ast.Name("ceil_div", ast.Load()), [n, divisor], [])
