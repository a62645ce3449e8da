"""The register of what generated kernels do, and what bodies share."""

from __future__ import annotations

import random
from collections.abc import Callable

from benchmarks.kernels.style import Style, indent
from benchmarks.kernels.text import Written

Body = Callable[[random.Random], Written]
BODIES: dict[str, Body] = {}


def body(function: Body) -> Body:
    """Register a body under its name."""
    BODIES[function.__name__] = function
    return function


def style_of(chance: random.Random, *elements: str) -> Style:
    return Style(chance, chance.choice(elements or ("float", "float", "float", "double", "__half")))


def over_n(w: Written, inner: Callable[[str], list[str]], name: str) -> None:
    """Deal the elements out one a thread, or many in a grid-stride loop."""
    s, n = w.style, w.size("n", least(w), 100_000, 4096)
    w.counts(n)
    block = s.chance.choice((64, 128, 256))
    w.block = str(block)
    w.grid = f'"ceil_div({n}, {block})"'
    if s.chance.random() < 0.25:
        w.grid = "8"
        head = s.thread(name)
        w.body += [*head, f"for (; {name} < {n}; {name} += blockDim.x * gridDim.x)" + " {", *indent(inner(name)), "}"]
        w.body[:] = [line.removeprefix("const ") if f" {name} = " in line else line for line in w.body]
        return
    w.body += [*s.thread(name), *s.guarded([(name, n)], inner(name))]


def least(w: Written) -> int:
    """The least a size may be: most kernels are called with nothing to do some day."""
    return w.style.chance.choice((0, 1))


def matrix_sizes(w: Written, high: int = 600) -> tuple[str, str]:
    return w.size("rows", least(w), high, 128), w.size("cols", 1, high, 200)
