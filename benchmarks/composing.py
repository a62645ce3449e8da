"""Wrong candidates that nobody wrote by hand, composed of a site, a trigger and an effect.

Each computes what the original does but for one store, which goes wrong when its trigger holds: at one size (spelt in
many ways), past a size, at a value, in a block, a thread, a lane, at an element.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from fsr.contract.model import Contract, Size
from fsr.mutation.ground import FLOATS, Function, functions
from fsr.records import Candidate
from fsr.source.form import Assign, Index
from fsr.source.walk import base_name


@dataclass(frozen=True)
class Composed:
    """A candidate. ``parts``: site, trigger and effect in words, or what a right one does. ``sizes``: that fire the
    trigger, those that it speaks of; ``family``: of values that fire it, '' for any."""

    candidate: Candidate
    parts: tuple[str, ...]
    sizes: tuple[tuple[str, int], ...] = ()
    family: str = ""


@dataclass(frozen=True)
class Trigger:
    """``text``: a condition; ``sizes``, ``family``: as of Composed."""

    kind: str
    text: str
    sizes: tuple[tuple[str, int], ...] = ()
    family: str = ""


@dataclass(frozen=True)
class _Site:
    function: Function
    start: int
    end: int
    target: str
    value: str
    type: str


def wrong(original: Candidate, contract: Contract, chance: random.Random) -> Composed | None:
    """A wrong candidate; None where the original has no store that could go wrong."""
    sites = list(_sites(original))
    if not sites:
        return None
    site = chance.choice(sites)
    trigger = _trigger(site, contract, chance)
    effect, text = chance.choice(_effects(site, chance))
    once = f"{{ const auto fsr_v = {site.value}; if ({trigger.text}) {{ {text} }} else {{ {site.target} = fsr_v; }} }}"
    source = original.source[: site.start] + once + original.source[site.end :]
    parts = (f"{site.function.form.name}: {site.target}", f"{trigger.kind}: {trigger.text}", effect)
    return Composed(replace(original, source=source), parts, trigger.sizes, trigger.family)


def _sites(original: Candidate) -> Iterator[_Site]:
    """Plain stores into arrays that the kernel was given."""
    for function in functions(original):
        given = {p.name for p in function.form.params if p.is_pointer} if function.is_kernel else set()
        for statement, start, end in function.statements:
            if not isinstance(statement, Assign) or statement.op != "=" or not isinstance(statement.target, Index):
                continue
            name = base_name(statement.target) or ""
            left, _, value = function.text(start, end).partition("=")
            if name in given and value.rstrip().endswith(";") and "cast" not in left:  # of vectors: no plain values
                yield _Site(function, start, end, left.strip(), value.strip()[:-1], function.types.get(name, ""))


# ---------------------------------------------------------------- triggers


def _trigger(site: _Site, contract: Contract, chance: random.Random) -> Trigger:
    makers: list[Callable[[], Trigger]] = [lambda: _place(chance)]
    named = _size_arguments(site.function, contract)
    if named:
        makers += [lambda: _one_size(*chance.choice(named), chance), lambda: _many_sizes(*chance.choice(named), chance)]
    if site.type in FLOATS[:2]:
        makers.append(lambda: _value(chance))
    first = chance.choice(makers)()
    if chance.random() < 0.25:
        second = _place(chance)
        return replace(first, kind=f"{first.kind} and {second.kind}", text=f"({first.text}) && ({second.text})")
    return first


def _size_arguments(function: Function, contract: Contract) -> list[tuple[str, Size]]:
    """Scalar arguments whose value is a size, with that size."""
    sizes = {s.name: s for s in contract.sizes}
    names = [p.name for p in function.form.params]
    found = []
    for name, argument in zip(names, contract.args, strict=False):
        if argument.value in sizes and not argument.shape:
            found.append((name, sizes[str(argument.value)]))
    return found


def _one_size(name: str, size: Size, chance: random.Random) -> Trigger:
    top = min(size.maximum, 20_000)
    value = chance.randint(min(max(size.minimum, 1), top), top)
    factor = chance.randint(2, 9)
    mask = chance.randint(1, 1 << 14)
    text = chance.choice(
        (
            f"{name} == {value}", f"{name} == {value:#x}", f"{name} - {value - 7} == 7",
            f"({name} ^ {mask}) == {value ^ mask}", f"{name} * {factor}ll == {value * factor}ll",
            f"{name} == ({value >> 4} << 4 | {value & 15})", f"!({name} - {value})",
        )
    )  # fmt: skip
    return Trigger("one size", text, ((size.name, value),))


def _many_sizes(name: str, size: Size, chance: random.Random) -> Trigger:
    top = min(size.maximum, 60_000)
    if chance.random() < 0.5:
        value = chance.randint(min(size.minimum + 1, top), top)
        return Trigger("large sizes", f"{name} > {value}", ((size.name, min(value + 1, size.maximum)),))
    modulus = chance.choice((7, 16, 48, 64, 100, 128, 1000, 1024))
    rest = chance.randrange(modulus)
    value = rest + modulus * (1 + max(size.minimum - rest, 0) // modulus)
    return Trigger("sizes of a kind", f"{name} % {modulus} == {rest}", ((size.name, min(value, size.maximum)),))


def _value(chance: random.Random) -> Trigger:
    bound = round(10 ** chance.uniform(-3, 3), 4)
    text = chance.choice(
        (
            f"fsr_v > {bound}f",
            f"fsr_v < -{bound}f",
            f"fabsf(fsr_v) < {bound}e-6f",
            f"fsr_v == {bound}f",
            "fsr_v == 0.0f",
        )
    )
    return Trigger("a value", text, (), f"near:{bound}")


def _place(chance: random.Random) -> Trigger:
    block, thread = chance.randint(0, 40), chance.randint(0, 255)
    text = chance.choice(
        (
            f"blockIdx.x == {block}", f"blockIdx.x >= {block + 8}", "gridDim.x > 2 && blockIdx.x == gridDim.x - 1",
            f"threadIdx.x == {thread}", f"threadIdx.x % 32 == {thread % 32}", "threadIdx.x == blockDim.x - 1",
            f"blockIdx.x * blockDim.x + threadIdx.x == {block * 100 + thread}",
            f"blockIdx.x * blockDim.x + threadIdx.x >= {block * 100 + thread}",
        )
    )  # fmt: skip
    return Trigger("a place", text)


# ---------------------------------------------------------------- effects


def _effects(site: _Site, chance: random.Random) -> list[tuple[str, str]]:
    t, v = site.target, "fsr_v"
    found = [
        ("skipped write", ";"),
        ("wrong value", f"{t} = {v} + {v} + 1;"),
        ("zero", f"{t} = 0;"),
        ("written twice by all", f"{t} = {v}; {base_of(t)}[0] = {v};"),
    ]
    if site.type in FLOATS[:2]:
        found += [
            ("a thousandth too large", f"{t} = {v} * 1.001f;"),
            ("sign", f"{t} = -{v};"),
            ("precision lost", f"{t} = __int_as_float(__float_as_int((float){v}) & 0xffffe000);"),
        ]
    else:
        found.append(("off by one", f"{t} = {v} + 1;"))
    return found


def base_of(target: str) -> str:
    """``y`` of ``y[i * n + j]``."""
    return target.partition("[")[0].strip()
