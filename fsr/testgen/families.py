"""Value families: what the elements of an argument look like, one formula (:class:`fsr.testgen.draws.Draw`) a family.

What an argument's constraints forbid is bent back into range. Families of floating values give integers their own
meaning; what makes no sense for integers is uniform over their range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

from fsr.hardware.dtypes import FloatLimits
from fsr.testgen.draws import BLOCK, NORMAL_UNIT, TABLE, Draw, Kind, word

FEW = 5  # distinct values of the 'repeated' family
SPIKE = "spike"
CLOSE = "close"  # numbers next to one another that a narrower floating type does not tell apart
MOTLEY = "motley"  # zeros, ones, the ends of limits and ordinary values side by side, in each array for itself
ENDS_OF_TYPE = "whole ends"  # the smallest number of a type, mostly, the largest, what is next to them, and the middle
FloatFamily = Callable[[Draw, FloatLimits], Draw]
"""From a draw that has its key, its count and its rows to the family's own."""


def _normal(a: float = 1.0, b: float = 0.0, kind: Kind = Kind.NORMAL, c: float = 0.0) -> FloatFamily:
    scale = a / (NORMAL_UNIT * 37837.0)  # deviation 1
    return lambda draw, limits: replace(draw, kind=kind, a=scale, b=b, c=c, row=0)


def _choice(*table: float) -> FloatFamily:
    return lambda draw, limits: replace(draw, kind=Kind.CHOICE, table=table, row=0)


def _share(draw: Draw, number: int) -> float:
    """A number of [-1, 1) that belongs to this draw."""
    return word(draw.key ^ 0x5EED, number) * 2.0**-63 - 1.0


def _place(draw: Draw, number: int) -> int:
    return word(draw.key ^ 0x91ACE, number) % max(draw.count, 1)


def _one_hot(draw: Draw, limits: FloatLimits) -> Draw:
    # The last element is the one that tail code loses.
    planted = ((_place(draw, 0), 1.0), (draw.count - 1, 1.0)) if draw.count else ()
    return replace(draw, kind=Kind.CHOICE, table=(0.0,), planted=planted, row=0)


def _repeated(draw: Draw, limits: FloatLimits) -> Draw:
    return replace(draw, kind=Kind.CHOICE, table=tuple(2.0 * _share(draw, i) for i in range(FEW)), row=0)


def _constant(draw: Draw, limits: FloatLimits) -> Draw:
    return replace(draw, kind=Kind.CHOICE, table=(2.0 * _share(draw, 0),), row=0)


def _alternating(draw: Draw, limits: FloatLimits) -> Draw:
    size = 1.25 + 0.75 * _share(draw, 0)
    return replace(draw, kind=Kind.CYCLE, table=(size, -size), row=0)


def _outliers(draw: Draw, limits: FloatLimits) -> Draw:
    """A few elements far above or below all others, the last among them: what is cut short misses one."""
    large = min(1e4, limits.largest / 16.0)
    places = ((_place(draw, 1), large), (_place(draw, 2), -large), (draw.count - 1, large))
    return replace(_normal()(draw, limits), planted=places if draw.count else ())


def _crowned(draw: Draw, limits: FloatLimits) -> Draw:
    """Of one sign, the last element above all others, which in long arrays come again after 2^20: a maximum that leaves
    the later ones out is that of all, else."""
    planted = ((draw.count - 1, 2.0),) if draw.count else ()
    return replace(draw, kind=Kind.UNIFORM, a=1.0, planted=planted, row=0)


def _deep_denormals(draw: Draw, limits: FloatLimits) -> Draw:
    """So far below the smallest normal value that a reciprocal overflows."""
    most = limits.tiny * 2.0 ** -(-math.log2(limits.eps) // 2)
    return replace(draw, kind=Kind.UNIFORM, a=2.0 * most, b=-most, row=0)


def _faint(draw: Draw, limits: FloatLimits) -> Draw:
    """Normal values so small that squares, or products of four, are none, and with them a length or a direction."""
    return _normal(limits.tiny ** (0.4 + 0.15 * _share(draw, 7)))(draw, limits)


def _summable(draw: Draw, limits: FloatLimits) -> float:
    """The largest number of which as many as a buffer has, or a block's, sum to one that is finite."""
    return limits.largest / (4.0 * max(min(draw.count, BLOCK), 1))


def _near_overflow(draw: Draw, limits: FloatLimits) -> Draw:
    # Plain sums of all elements stay finite, so that overflow does not depend on the order of summing;
    # products overflow far beyond the edge, whatever the order.
    largest = max(_summable(draw, limits), 1.0)
    return replace(draw, kind=Kind.UNIFORM, a=2.0 * largest, b=-largest, row=0)


def _whole_numbers(draw: Draw, limits: FloatLimits) -> Draw:
    """As large as there are, but for halves, of which a row's sum would overflow in some orders."""
    most = max(_summable(draw, limits), 16.0)
    return replace(draw, kind=Kind.GRID, a=1.0, c=min(2.0 / limits.eps, most), row=0)


def _spike(draw: Draw, limits: FloatLimits) -> Draw:
    """One element next to the largest number: its products overflow, and no other is there for an order to matter."""
    planted = ((_place(draw, 5), math.copysign(0.99 * limits.largest, _share(draw, 6))),) if draw.count else ()
    return replace(_normal()(draw, limits), planted=planted)


def _cancelling(draw: Draw, limits: FloatLimits) -> Draw:
    return _normal(kind=Kind.PAIRS, c=4.0 * limits.eps)(draw, limits)


def _exponents(draw: Draw, limits: FloatLimits) -> Draw:
    """Every magnitude from the denormal values to the root of the largest."""
    low = max(round(math.log2(limits.smallest)), -1022)
    return replace(draw, kind=Kind.EXPONENTS, a=low, b=int(math.log2(limits.largest) / 2) - low, row=0)


def _far_rows(draw: Draw, limits: FloatLimits) -> Draw:
    """Rows around numbers that a careless initial value, or a difference of squares, takes for none."""
    far = 3e30 if limits.largest > 1e38 else limits.largest / 4.0
    return replace(_normal()(draw, limits), row=draw.row, table=(-far, far, -0.5 * far, 0.0, 1e3, -1e3))


def _uniform_rows(draw: Draw, limits: FloatLimits) -> Draw:
    """Each row of one value, some of zeros: a sum that is exactly zero stands beside others."""
    values = [4.0 * _share(draw, i) for i in range(4)]
    return replace(draw, kind=Kind.NORMAL, table=(*values[:2], 0.0, *values[2:]))


def _planted(*specials: float) -> FloatFamily:
    """Special values among normal ones: at the first and the last place too, now and then."""

    def family(draw: Draw, limits: FloatLimits) -> Draw:
        places = {0: _place(draw, 1), 1: _place(draw, 2)}
        if word(draw.key, 3) % 2:
            places |= {2: 0, 3: draw.count - 1}
        planted = tuple((p, specials[(n + word(draw.key, 4)) % len(specials)]) for n, p in places.items())
        return replace(_normal()(draw, limits), planted=planted if draw.count else ())

    return family


def _special_rows(draw: Draw, limits: FloatLimits) -> Draw:
    return replace(_normal()(draw, limits), row=draw.row, table=(-math.inf, 0.0, math.inf, 0.0, -math.inf))


FLOAT: dict[str, FloatFamily] = {
    "normal": _normal(),
    "uniform": lambda draw, limits: replace(draw, kind=Kind.UNIFORM, a=1.0, row=0),
    "small": _normal(0.01),
    "large": _normal(3.0),
    "negated": lambda draw, limits: replace(draw, kind=Kind.UNIFORM, a=-3.0, b=-0.25, row=0),
    "zeros": _choice(0.0),
    "ones": _choice(1.0),
    "constant": _constant,
    "alternating": _alternating,
    "sorted": lambda draw, limits: replace(draw, kind=Kind.RAMP, a=-3.0, b=3.0, row=0),
    "reverse": lambda draw, limits: replace(draw, kind=Kind.RAMP, a=3.0, b=-3.0, row=0),
    "one-hot": _one_hot,
    "repeated": _repeated,
    "wide": _normal(100.0),  # exp() of these overflows: stable formulas must stay stable
    "raised": _normal(1.0, 1000.0),  # differences of large numbers
    "outliers": _outliers,
    "sunk": _normal(100.0, -1000.0),  # a maximum that starts at 0 never moves
    "mixed": lambda draw, limits: replace(draw, kind=Kind.EXPONENTS, a=-10, b=20, row=0),
    "denormals": lambda draw, limits: replace(
        draw, kind=Kind.UNIFORM, a=2.0 * limits.tiny, b=-limits.tiny, row=0
    ),
    "deep denormals": _deep_denormals,
    "faint": _faint,
    "near-overflow": _near_overflow,
    SPIKE: _spike,
    "cancelling": _cancelling,
    "signed zeros": _choice(0.0, -0.0, 1.0, -0.0, -1.0, 0.0, 0.5),
    "only zeros": _choice(-0.0, 0.0, -0.0),
    "ties": lambda draw, limits: replace(draw, kind=Kind.GRID, a=0.5, c=1024.0, row=0),
    "whole numbers": _whole_numbers,
    "exponents": _exponents,
    "far rows": _far_rows,
    "uniform rows": _uniform_rows,
}  # fmt: skip


def _extreme_rows(draw: Draw, limits: FloatLimits) -> Draw:
    """Rows of the largest number, or of its negative, which careless code starts a maximum from."""
    return replace(_normal()(draw, limits), row=draw.row, table=(-limits.largest, 0.0, limits.largest, -limits.largest))


def _close(draw: Draw, limits: FloatLimits) -> Draw:
    """A number, those next to it, its negative."""
    number = 1.5 + 0.5 * _share(draw, 0)
    step = limits.eps
    table = (number, number + step, number - step, number + 2.0 * step, number, -number, step - number, 0.0)
    return replace(draw, kind=Kind.CHOICE, table=table, row=0)


def _motley(draw: Draw, limits: FloatLimits) -> Draw:
    """What code treats apart beside what it does not: an element that is passed over in one array for being 0 meets
    ends, or what is far above all others, in another."""
    far, ordinary = min(1e4, limits.largest / 16.0), 2.0 * _share(draw, 0)
    return replace(draw, kind=Kind.CHOICE, table=(0.0, 0.0, 0.0, -far, far, ordinary, 1.0, -1.0), row=0)


EXTREME: dict[str, FloatFamily] = {"extreme rows": _extreme_rows}  # sums of these overflow in some orders alone
OVERFLOWING = frozenset(("near-overflow", "far rows", SPIKE, *EXTREME))  # products of these do
NON_FINITE: dict[str, FloatFamily] = {
    "infinite": _planted(math.inf, -math.inf),
    "nan": _planted(math.nan, math.inf, math.nan),
    "special rows": _special_rows,
    "lowest": lambda draw, limits: replace(
        draw, kind=Kind.CHOICE, table=(-math.inf, -limits.largest, -math.inf, -math.inf), row=0
    ),
}
CROWNED = "crowned"
APART: dict[str, FloatFamily] = {
    CROWNED: _crowned,
    CLOSE: _close,
    MOTLEY: _motley,
}  # which only cases made on purpose have
INTEGER = ("uniform", "zeros", "ones", "constant", "alternating", "sorted", "reverse", "one-hot", "repeated", "limits")
# Unconstrained signed integers over the whole of their type, or all but so many of its bits. Where the original's own
# arithmetic overflows on them its answer is undefined, and the case does not count.
WHOLE: dict[str, Callable[[int], int]] = {
    "whole": lambda largest: largest + 1,
    "whole/8": lambda largest: (largest + 1) >> 3,
    "whole/256": lambda largest: (largest + 1) >> 8,
    "whole/4096": lambda largest: (largest + 1) >> 12,
    "whole root": math.isqrt,  # squares just fit
    ENDS_OF_TYPE: lambda largest: largest + 1,
}
FREE: dict[str, Callable[[int], int]] = WHOLE | {CLOSE: lambda largest: (largest + 1) >> 1}  # two of which may be added


ENDS = "ends:"  # every array of one value, the upper end of what it may hold, of those that are named the lower one
AMONG = "among:"  # of values that are each one of several numbers
LEVELS = "levels:"  # of arrays at the levels of a scale (k / 255), and in the middle between two
SPELLED = "spelled:"  # of arrays without limits that are, beside others as they are drawn evenly: no indices, no sizes
BESIDE = "beside:"  # of scalars that are, beside ordinary arrays


ALL_FOLLOW = (
    LEVELS,
    SPELLED,
    AMONG,
    ENDS,
    SPIKE,
    CLOSE,
    MOTLEY,
    ENDS_OF_TYPE,
)  # how families begin that no argument of a case stays out of


NEAR = "near:"  # how the names of families begin that lie around a number: at it, next to it, its negative, its double


MOSTLY = "mostly:"  # the same with every second value at it: so neighbours are too, and what is made of several


def near(number: float) -> str:
    """The family of values at and around a number."""
    return NEAR + _spelled(number)


def mostly(number: float) -> str:
    """The same, with half of the values at the number."""
    return MOSTLY + _spelled(number)


def middle(family: str) -> float | None:
    """The number of a family of :func:`near`; None for others."""
    return float(family.partition(":")[2]) if family.startswith(NEAR) else None


def ends(low: Iterable[str]) -> str:
    """The family of arguments at their upper ends, those of the names at their lower ones."""
    return ENDS + ",".join(low)


def end(family: str, argument: str, limits: tuple[float, float]) -> float | None:
    """The end at which an argument with limits stands, or an element of one (``box[2]``); None in families that have
    none, and without both limits."""
    if not family.startswith(ENDS) or not all(map(math.isfinite, limits)):
        return None
    return limits[argument.partition("[")[0] not in family.partition(":")[2].split(",")]


def among(numbers: Iterable[float]) -> tuple[str, str]:
    """The family of values that are each one of the numbers, and that in which only the scalars are."""
    listed = ",".join(_spelled(number) for number in numbers)
    return AMONG + listed, BESIDE + listed


def named(family: str) -> tuple[float | int, ...]:
    """The numbers that the scalars of a family are among; none for other families."""
    if family.startswith(LEVELS):
        return (1,)  # a level times this is one
    listed = family.partition(":")[2] if family.startswith((AMONG, BESIDE)) else ""
    return tuple(_number(text) for text in listed.split(",") if text)


def told(family: str) -> tuple[float | int, ...]:
    """The numbers that the name of a family tells, whatever it makes of them."""
    told_ = family.startswith((NEAR, MOSTLY, AMONG, BESIDE, SPELLED))
    return tuple(_number(text) for text in family.partition(":")[2].split(",") if text) if told_ else ()


def levels(scale: int) -> str:
    """The family of floating values that are whole numbers, or in the middle between two, once they are multiplied by a
    scale: what is rounded one way for another (``round``, ``rint``, ``+ 0.5``) differs there alone."""
    return LEVELS + str(scale)


def spelled(numbers: Iterable[float]) -> str:
    """The family of arrays without limits whose values are each one of the numbers."""
    return SPELLED + ",".join(map(_spelled, numbers))


def for_array(family: str, *, limited: bool) -> str:
    """The family of one array. ``limited``: its contract says what its values lie between."""
    if not family.startswith(SPELLED):
        return family
    return "uniform" if limited else AMONG + family.removeprefix(SPELLED)


def _spelled(number: float) -> str:
    return str(number) if isinstance(number, int) else f"{number:.17g}"


def _number(text: str) -> float | int:
    return int(text) if text.lstrip("-").isdigit() else float(text)


def floating(family: str) -> FloatFamily:
    """The family of a name; 'normal' for what only makes sense for integers."""
    if family.startswith((NEAR, MOSTLY)):
        name, _, number = family.partition(":")
        return _near(float(number), 1 if f"{name}:" == NEAR else 7)
    if family.startswith(LEVELS):
        return _on_levels(int(family.removeprefix(LEVELS)))
    if family.startswith(AMONG):
        return _choice(*map(float, named(family)))
    if family.startswith(BESIDE):
        return _normal(10.0)
    if family.startswith(ENDS):  # of what has no ends
        return _constant
    return (FLOAT | EXTREME | NON_FINITE | APART).get(family, FLOAT["normal"])


def _near(number: float, times: int) -> FloatFamily:
    def family(draw: Draw, limits: FloatLimits) -> Draw:
        mantissa, exponent = math.frexp(abs(number))
        step = math.ldexp(limits.eps, exponent - 1)  # from a number to the next one away from 0
        back = step / 2 if mantissa == 0.5 else step
        away = math.copysign(max(step, limits.smallest), number)
        table = (
            *[number] * times,
            number + away,
            number - math.copysign(max(back, limits.smallest), number),
            -number,
            number + 0.25 * abs(number),
            0.5 * number,
            2 * number,
        )
        table = tuple(v for v in table if abs(v) <= limits.largest)
        return replace(draw, kind=Kind.CHOICE, table=(*table, 0.0), row=0)

    return family


def _on_levels(scale: int) -> FloatFamily:
    return lambda draw, limits: replace(draw, kind=Kind.GRID, a=0.5 / scale, c=2.0 * scale, row=0)


def _listed(family: str, low: int, high: int) -> tuple[int, ...] | None:
    """The numbers that integers of a family are each one of, those beyond the limits too; None for other families."""
    middle = low + (high - low + 1) // 2
    if family.startswith((NEAR, MOSTLY)):
        number = int(_number(family.partition(":")[2]))
        return tuple(number + step for step in (0, 1, -1, 2, -2, 0))
    if family.startswith(AMONG):  # and what is just below: the largest remainder, the last index
        listed = [int(n) for n in named(family)]
        return (*listed, *(n - 1 for n in listed), low, high, *(n + 1 for n in listed))
    if family == CLOSE:
        return (high, high - 1, high - 2, high - 3, middle, middle + 1, middle - 1, middle - 2)
    if family == MOTLEY:
        return (0, 0, 0, low, high, 1, -1, middle)
    if family == ENDS_OF_TYPE:
        return (low, low, low, high, middle, low + 1, high - 1)
    return None


def integer_draw(family: str, draw: Draw, low: int, high: int) -> Draw:
    """The draw of integers within [low, high]; families that only make sense for floating values are uniform."""
    calm_low, calm_high = max(low, -1000), min(high, 1000)
    if calm_low > calm_high:
        calm_low, calm_high = low, high
    calm = calm_low + word(draw.key, 1) % (calm_high - calm_low + 1)
    span = (high - low + 1) % 2**64
    plain = replace(draw, kind=Kind.INTEGER, low=low, span=span, row=0)
    if (table := _listed(family, low, high)) is not None:
        return replace(plain, kind=Kind.CHOICE, table=tuple(min(max(n, low), high) for n in table[:TABLE]))
    match family:
        case "zeros" | "ones":
            return replace(plain, kind=Kind.CHOICE, table=(min(max(int(family == "ones"), low), high),))
        case "constant" | "small":
            return replace(plain, kind=Kind.CHOICE, table=(calm,))
        case "alternating" | "limits" | "near-overflow":
            return replace(plain, kind=Kind.CYCLE, table=(high, low))
        case "negated" | "denormals" | "deep denormals":
            return replace(plain, kind=Kind.CHOICE, table=(low,))  # one bin, one row, one address
        case "one-hot":
            return replace(
                plain, kind=Kind.CHOICE, table=(low,), planted=((draw.count - 1, high),) if draw.count else ()
            )
        case "crowned":
            above = ((draw.count - 1, high),) if draw.count else ()
            return replace(plain, span=max((high - low + 1) // 2, 1), planted=above)
        case "repeated":
            few = tuple(low + word(draw.key, 2 + i) % (high - low + 1) for i in range(FEW))
            return replace(plain, kind=Kind.CHOICE, table=few)
        case "sorted" | "reverse" if span:
            return replace(plain, kind=Kind.STEPS, a=1.0 if family == "sorted" else -1.0)
    return plain


def names(*, floating: bool, finite: bool, sums: bool = True, free_integers: bool = False) -> tuple[str, ...]:
    """The families to test a contract with: floating ones when it has a floating input, non-finite ones when
    some input may hold inf and NaN, extremes when it declares no sum, whole types when it has integers without
    bounds."""
    whole = tuple(WHOLE) if free_integers else ()
    if not floating:
        return INTEGER + whole
    return tuple(FLOAT) + (() if sums else tuple(EXTREME)) + (() if finite else tuple(NON_FINITE)) + whole
