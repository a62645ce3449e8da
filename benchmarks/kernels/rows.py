"""Bodies with a thread a row or a column."""

from __future__ import annotations

import random
from collections.abc import Callable

from benchmarks.kernels.bodies import body, matrix_sizes, style_of
from benchmarks.kernels.text import Written


def _rows(w: Written, inner: Callable[[str], list[str]], sizes: tuple[str, str]) -> None:
    s, (rows, cols) = w.style, sizes
    w.counts(rows, cols)
    block = s.chance.choice((32, 64, 128))
    w.block, w.grid = str(block), f'"ceil_div({rows}, {block})"'
    r = s.fresh("row", ("row", "r", "i", "idx"))
    w.body += [*s.thread(r), *s.guarded([(r, rows)], inner(r))]


def _row_pointer(w: Written, name: str, array: str, row: str, width: str, const: bool) -> list[str]:
    t = w.style.value
    cast = w.style.chance.choice(("", "(size_t)", "(long long)"))
    declared = w.style.chance.choice((f"{array} + {cast}{row} * {width}", f"&{array}[{row} * {width}]"))
    return [f"{'const ' if const else ''}{t} *{name} = {declared};"]


def _in_row(w: Written, x: str, cols: str) -> tuple[Callable[[str], list[str]], Callable[[str], str]]:
    """(statements before the loops, an element of the row): through a pointer or by index."""
    s, row = w.style, s_row(w)
    if s.chance.random() < 0.5:
        name = s.fresh("row in", ("x_row", "row_ptr", "p", "in_row"))
        return (lambda _r: _row_pointer(w, name, x, row, cols, True)), lambda j: s.load(f"{name}[{j}]")
    if s.chance.random() < 0.4:
        return (lambda _r: [f"{s.loop_index} base = {row} * {cols};"]), lambda j: s.load(f"{x}[base + {j}]")
    return (lambda _r: []), lambda j: s.load(f"{x}[{row} * {cols} + {j}]")


def s_row(w: Written) -> str:
    """The name of the row's index."""
    return w.style.fresh("row", ("row", "r", "i", "idx"))


def _out_row(w: Written, y: str, cols: str) -> tuple[list[str], Callable[[str], str]]:
    """(a pointer to the row to write, declared where it is first wanted; an element of that row)."""
    s, row = w.style, s_row(w)
    if s.chance.random() < 0.6:
        name = s.fresh("row out", ("out_row", "o", "dst_row", "y_row"))
        return _row_pointer(w, name, y, row, cols, False), lambda j: f"{name}[{j}]"
    return [], lambda j: f"{y}[{row} * {cols} + {j}]"


@body
def row_sum(chance: random.Random) -> Written:
    """A sum, a mean, a largest or a root of squares for every row."""
    w = Written(style_of(chance, "float", "double", "__half", "int"))
    s = w.style
    rows, cols = matrix_sizes(w)
    x, y = w.takes(s.given(), f'"{rows}", "{cols}"'), w.gives(s.made(), f'"{rows}"')
    before, at = _in_row(w, x, cols)
    way = chance.choice(("sum", "mean", "max")) if s.el != "int" else chance.choice(("sum", "max"))
    if way != "max":
        w.tolerance = f'sum_length = "{cols}"'

    def inner(r: str) -> list[str]:
        if way == "max":
            start = [
                f"{s.acc} best = {at('0')};",
                *s.loop("j", cols, [f"{s.acc} v = {at('j')};", *s.larger("best", "v")], "1"),
            ]
            return [*before(r), *start, s.store(f"{y}[{r}]", "best")]
        lines = [f"{s.acc} total = 0;", *s.loop("j", cols, [s.add("total", at("j"))])]
        if way == "mean":
            lines += [chance.choice((f"total /= {cols};", f"total = total / ({s.acc}){cols};"))]
        return [*before(r), *lines, s.store(f"{y}[{r}]", "total")]

    _rows(w, inner, (rows, cols))
    return w


@body
def softmax(chance: random.Random) -> Written:
    """Three passes over a row, the pointer to the output declared when it is wanted."""
    w = Written(style_of(chance))
    s = w.style
    rows, cols = matrix_sizes(w)
    x, y = w.takes(s.given(), f'"{rows}", "{cols}"'), w.gives(s.made(), f'"{rows}", "{cols}"')
    before, at = _in_row(w, x, cols)
    late, to = _out_row(w, y, cols)
    w.tolerance = f'sum_length = "{cols}"'
    early = chance.random() < 0.3

    def inner(r: str) -> list[str]:
        exp = f"{s.call('exp')}({at('j')} - top)"
        return [
            *before(r),
            *(late if early else []),
            f"{s.acc} top = {at('0')};",
            *s.loop("j", cols, [f"{s.acc} v = {at('j')};", *s.larger("top", "v")]),
            f"{s.acc} total = {s.number('0.0')};",
            *s.loop("j", cols, [s.add("total", exp)]),
            *([] if early else late),
            *s.loop("j", cols, [s.store(to("j"), f"{exp} / total")]),
        ]

    _rows(w, inner, (rows, cols))
    return w


@body
def layer_norm(chance: random.Random) -> Written:
    """Mean and variance, then scale and shift by column."""
    w = Written(style_of(chance))
    s = w.style
    rows, cols = matrix_sizes(w)
    x, g = w.takes(s.given(), f'"{rows}", "{cols}"'), w.takes("gamma", f'"{cols}"')
    y = w.gives(s.made(), f'"{rows}", "{cols}"')
    before, at = _in_row(w, x, cols)
    late, to = _out_row(w, y, cols)
    eps = w.scalar("eps", "0.00001", "0.001")
    w.tolerance = f'sum_length = "{cols}"'
    kept = chance.random() < 0.4
    if kept:
        means = w.gives("means", f'"{rows}"')

    def inner(r: str) -> list[str]:
        delta = [f"{s.acc} d = {at('j')} - mean;", s.add("var", "d * d")]
        scaled = f"({at('j')} - mean) * inv * {s.load(f'{g}[j]')}"
        return [
            *before(r),
            f"{s.acc} mean = 0;",
            *s.loop("j", cols, [s.add("mean", at("j"))]),
            f"mean /= {cols};",
            *([s.store(f"{means}[{r}]", "mean")] if kept else []),
            f"{s.acc} var = 0;",
            *s.loop("j", cols, delta),
            *late,
            f"{s.acc} inv = {s.call('rsqrt')}(var / {cols} + {eps});",
            *s.loop("j", cols, [s.store(to("j"), scaled)]),
        ]

    _rows(w, inner, (rows, cols))
    return w


@body
def argmax(chance: random.Random) -> Written:
    """Where the largest of a row stands."""
    w = Written(style_of(chance, "float", "double"))
    s = w.style
    rows, cols = matrix_sizes(w)
    x, y = w.takes(s.given(), f'"{rows}", "{cols}"'), w.gives(s.made(), f'"{rows}"', "int")
    before, at = _in_row(w, x, cols)

    def inner(r: str) -> list[str]:
        step = [f"if ({at('j')} > best)" + " {", f"    best = {at('j')};", "    where = j;", "}"]
        return [
            *before(r),
            f"{s.acc} best = {at('0')};",
            "int where = 0;",
            *s.loop("j", cols, step, "1"),
            f"{y}[{r}] = where;",
        ]

    _rows(w, inner, (rows, cols))
    return w


@body
def running_sum(chance: random.Random) -> Written:
    """A prefix sum along each row, which no thread can share out carelessly."""
    w = Written(style_of(chance, "float", "double", "int"))
    s = w.style
    rows, cols = matrix_sizes(w, 300)
    x, y = w.takes(s.given(), f'"{rows}", "{cols}"'), w.gives(s.made(), f'"{rows}", "{cols}"')
    before, at = _in_row(w, x, cols)
    late, to = _out_row(w, y, cols)
    w.tolerance = f'sum_length = "{cols}"'
    _rows(
        w,
        lambda r: [
            *before(r),
            *late,
            f"{s.acc} total = 0;",
            *s.loop("j", cols, [s.add("total", at("j")), s.store(to("j"), "total")]),
        ],
        (rows, cols),
    )
    return w


@body
def welford(chance: random.Random) -> Written:
    """Mean and variance in one pass, in a struct with a member function's worth of update."""
    w = Written(style_of(chance, "float", "double"))
    s = w.style
    rows, cols = matrix_sizes(w)
    x, y = w.takes(s.given(), f'"{rows}", "{cols}"'), w.gives(s.made(), f'"{rows}", 2')
    before, at = _in_row(w, x, cols)
    w.before = f"struct Moments {{ {s.acc} mean, m2; int count; }};"
    w.tolerance = f'sum_length = "{cols}"'

    def inner(r: str) -> list[str]:
        step = [
            "m.count += 1;",
            f"{s.acc} d = {at('j')} - m.mean;",
            "m.mean += d / m.count;",
            f"m.m2 += d * ({at('j')} - m.mean);",
        ]
        return [
            *before(r),
            "Moments m = {0, 0, 0};",
            *s.loop("j", cols, step),
            f"{y}[2 * {r}] = m.mean;",
            f"{y}[2 * {r} + 1] = m.m2 / {cols};",
        ]

    _rows(w, inner, (rows, cols))
    return w


@body
def columns(chance: random.Random) -> Written:
    """A thread a column, or a product of a matrix and a vector by rows."""
    w = Written(style_of(chance))
    s = w.style
    rows, cols = w.size("rows", 1, 500, 200), w.size("cols", 1, 600, 200)
    x = w.takes(s.given(), f'"{rows}", "{cols}"')
    across = chance.random() < 0.5
    v = w.takes(s.given("1"), f'"{rows}"' if across else f'"{cols}"')
    y = w.gives(s.made(), f'"{cols}"' if across else f'"{rows}"')
    w.counts(rows, cols)
    own, other = (cols, rows) if across else (rows, cols)
    w.grid, w.tolerance = f'"ceil_div({own}, 128)"', f'sum_length = "{other}"'
    t = "tid"
    place = f"{x}[k * {cols} + {t}]" if across else f"{x}[{t} * {cols} + k]"
    term = f"{s.load(place)} * {s.load(f'{v}[k]')}"
    w.body += [
        *s.thread(t),
        *s.guarded(
            [(t, own)], [f"{s.acc} acc = 0;", *s.loop("k", other, [s.add("acc", term)]), s.store(f"{y}[{t}]", "acc")]
        ),
    ]
    return w
