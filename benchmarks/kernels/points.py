"""Bodies with a thread a point, along one, two and three axes."""

from __future__ import annotations

import random
from collections.abc import Callable

from benchmarks.kernels.bodies import body, matrix_sizes, over_n, style_of
from benchmarks.kernels.text import Written


@body
def pointwise(chance: random.Random) -> Written:
    """One element in, one out."""
    w = Written(style_of(chance))
    s = w.style
    n = s.size("n")
    x, y = w.takes(s.given(), f'"{n}"'), w.gives(s.made(), f'"{n}"')
    a = w.scalar("alpha", "0.5", "2") if chance.random() < 0.5 else s.number("1.5")

    def inner(i: str) -> list[str]:
        v = s.load(f"{x}[{i}]")
        ways = (
            f"{v} * {a} + {s.number('1.0')}",
            f"{s.call('tanh')}({v} * {a})",
            f"{v} > {s.number('0.0')} ? {v} : {a} * {v}",
            f"{v} / ({s.number('1.0')} + {s.call('exp')}(-{v}))",
        )
        expression = chance.choice(ways)
        if chance.random() < 0.5:
            return [f"{s.acc} v = {expression};", s.store(f"{y}[{i}]", "v")]
        return [s.store(f"{y}[{i}]", expression)]

    over_n(w, inner, chance.choice(("i", "idx", "tid", "gid")))
    return w


@body
def in_place(chance: random.Random) -> Written:
    """y += a x, where the two may be one array."""
    w = Written(style_of(chance, "float", "double"))
    s = w.style
    n = s.size("n")
    s.restrict = s.restrict_out = ""
    x, y = w.takes(s.given(), f'"{n}"'), w.gives(s.made(), f'"{n}"', role="inout")
    w.aliasing = chance.choice(("", f'[["{x}", "{y}"]]'))
    a = w.scalar("a", "0.5", "2")

    def inner(i: str) -> list[str]:
        if chance.random() < 0.4:
            return [f"{s.value} *p = {y} + {i};", f"*p += {a} * {x}[{i}];"]
        return [chance.choice((f"{y}[{i}] += {a} * {x}[{i}];", f"{y}[{i}] = {a} * {x}[{i}] + {y}[{i}];"))]

    over_n(w, inner, "i")
    return w


@body
def interleaved(chance: random.Random) -> Written:
    """Complex products: pairs of elements, through a struct of the thread's own."""
    w = Written(style_of(chance, "float", "double"))
    s = w.style
    n = s.size("n")
    x, z = w.takes(s.given(), f'"{n}", 2'), w.takes(s.given("1"), f'"{n}", 2')
    y = w.gives(s.made(), f'"{n}", 2')
    w.before = f"struct Pair {{ {s.el} re, im; }};"

    def inner(i: str) -> list[str]:
        return [
            "Pair p, q;",
            f"p.re = {x}[2 * {i}]; p.im = {x}[2 * {i} + 1];",
            f"q.re = {z}[{i} * 2]; q.im = {z}[{i} * 2 + 1];",
            f"{y}[2 * {i}] = p.re * q.re - p.im * q.im;",
            f"{y}[2 * {i} + 1] = p.re * q.im + p.im * q.re;",
        ]

    over_n(w, inner, "i")
    return w


@body
def gather(chance: random.Random) -> Written:
    """A table looked up by indices."""
    w = Written(style_of(chance))
    s = w.style
    n, m = s.size("n"), "entries"
    w.sizes[m] = "{min = 1, max = 1000, timed = 512}"
    kind = chance.choice(("int", "unsigned", "long long"))
    i0 = w.takes("indices", f'"{n}"', kind, f', low = 0, high = "{m} - 1"')
    x, y = w.takes(s.given(), f'"{m}"'), w.gives(s.made(), f'"{n}"')
    over_n(w, lambda i: [f"const auto at = {i0}[{i}];", f"{y}[{i}] = {x}[at];"], "i")
    return w


def _two_axes(w: Written, inner: Callable[[str, str], list[str]], sizes: tuple[str, str]) -> None:
    s, (rows, cols) = w.style, sizes
    w.counts(rows, cols)
    r, c = s.chance.choice((("row", "col"), ("y_", "x_"), ("i", "j"), ("ty_", "tx_")))
    bx, by = s.chance.choice(((16, 16), (32, 8), (32, 4), (8, 8)))
    if s.chance.random() < 0.25:  # the slow axis along x, as beginners do
        w.block, w.grid = f"[{by}, {bx}]", f'["ceil_div({rows}, {by})", "ceil_div({cols}, {bx})"]'
        w.body += [*s.thread(r, "x"), *s.thread(c, "y")]
    else:
        w.block, w.grid = f"[{bx}, {by}]", f'["ceil_div({cols}, {bx})", "ceil_div({rows}, {by})"]'
        w.body += [*s.thread(c, "x"), *s.thread(r, "y")]
    w.body += s.guarded([(r, rows), (c, cols)], inner(r, c))


def _at(w: Written, array: str, width: str) -> Callable[[str, str], str]:
    """How an element of a matrix is named: by hand, or through a macro."""
    if w.style.chance.random() < 0.3:
        w.style.prelude.append("#define AT(m, r, c, w) m[(r) * (w) + (c)]")
        return lambda r, c: f"AT({array}, {r}, {c}, {width})"
    return lambda r, c: f"{array}[{r} * {width} + {c}]" if r.isidentifier() else f"{array}[({r}) * {width} + {c}]"


@body
def transpose(chance: random.Random) -> Written:
    """Rows to columns."""
    w = Written(style_of(chance, "float", "double", "__half", "int"))
    s = w.style
    rows, cols = matrix_sizes(w)
    x, y = w.takes(s.given(), f'"{rows}", "{cols}"'), w.gives(s.made(), f'"{cols}", "{rows}"')
    a, b = _at(w, x, cols), _at(w, y, rows)
    _two_axes(w, lambda r, c: [f"{b(c, r)} = {a(r, c)};"], (rows, cols))
    return w


@body
def stencil(chance: random.Random) -> Written:
    """Five points; the border is copied, clamped, or left out of the sum."""
    w = Written(style_of(chance, "float", "float", "double"))
    s = w.style
    rows, cols = matrix_sizes(w)
    x, y = w.takes(s.given(), f'"{rows}", "{cols}"'), w.gives(s.made(), f'"{rows}", "{cols}"')
    at, to = _at(w, x, cols), _at(w, y, cols)
    way = chance.randrange(3)

    def inner(r: str, c: str) -> list[str]:
        if way == 0:
            beside = f"{x}[{r} * {cols} + {c} - 1] + {x}[{r} * {cols} + {c} + 1]"
            five = f"{at(r, c)} + {at(f'{r} - 1', c)} + {at(f'{r} + 1', c)} + {beside}"
            return [
                f"if ({r} > 0 && {r} + 1 < {rows} && {c} > 0 && {c} + 1 < {cols})",
                f"    {to(r, c)} = {s.number('0.2')} * ({five});",
                "else",
                f"    {to(r, c)} = {at(r, c)};",
            ]
        if way == 1:
            return [
                f"int up = {r} > 0 ? {r} - 1 : 0, down = {r} + 1 < {rows} ? {r} + 1 : {r};",
                f"int left = {c} > 0 ? {c} - 1 : 0, right = {c} + 1 < {cols} ? {c} + 1 : {c};",
                f"{s.acc} v = {at('up', c)} + {at('down', c)} + {at(r, 'left')} + {at(r, 'right')};",
                f"{to(r, c)} = v * {s.number('0.25')};",
            ]
        return [
            f"{s.acc} v = {at(r, c)};",
            f"if ({r} > 0) v += {at(f'{r} - 1', c)};",
            f"if ({r} + 1 < {rows}) v += {at(f'{r} + 1', c)};",
            f"{to(r, c)} = v;",
        ]

    _two_axes(w, inner, (rows, cols))
    return w


@body
def gemm(chance: random.Random) -> Written:
    """C = alpha A B (+ beta C), in any layout."""
    w = Written(style_of(chance))
    s = w.style
    rows, cols = w.size("rows", 1, 200, 96), w.size("cols", 1, 200, 96)
    depth = w.size("depth", 1, 200, 64)
    turned = chance.random() < 0.3
    a = w.takes(s.given(), f'"{rows}", "{depth}"')
    b = w.takes(s.given("1"), f'"{cols}", "{depth}"' if turned else f'"{depth}", "{cols}"')
    keep = chance.random() < 0.3 and s.el != "__half"
    c = w.gives(s.made(), f'"{rows}", "{cols}"', role="inout" if keep else "out")
    beta = w.scalar("beta", "0.5", "1") if keep else ""
    w.counts(depth)
    w.tolerance = f'sum_length = "{depth}"'
    total = chance.choice(("sum", "acc", "tmp", "value"))

    def inner(r: str, q: str) -> list[str]:
        left = s.load(f"{a}[{r} * {depth} + k]")
        right = s.load(f"{b}[{q} * {depth} + k]" if turned else f"{b}[k * {cols} + {q}]")
        done = f"{total} + {beta} * {c}[{r} * {cols} + {q}]" if keep else total
        return [
            f"{s.acc} {total} = {s.number('0.0')};",
            *s.loop("k", depth, [s.add(total, f"{left} * {right}")]),
            s.store(f"{c}[{r} * {cols} + {q}]", done),
        ]

    _two_axes(w, inner, (rows, cols))
    return w


@body
def volume(chance: random.Random) -> Written:
    """Three axes, a thread a point."""
    w = Written(style_of(chance, "float", "double"))
    s = w.style
    nz, ny, nx = (w.size(k, 1, 80, 24) for k in ("depth", "rows", "cols"))
    shape = f'"{nz}", "{ny}", "{nx}"'
    x, y = w.takes(s.given(), shape), w.gives(s.made(), shape)
    w.counts(nz, ny, nx)
    w.block, w.grid = "[8, 4, 4]", f'["ceil_div({nx}, 8)", "ceil_div({ny}, 4)", "ceil_div({nz}, 4)"]'
    w.body += [*s.thread("i", "x"), *s.thread("j", "y"), *s.thread("l", "z")]
    at = f"(l * {ny} + j) * {nx} + i"
    w.body += s.guarded([("i", nx), ("j", ny), ("l", nz)], [f"{y}[{at}] = {x}[{at}] * {s.number('0.5')};"])
    return w
