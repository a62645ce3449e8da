"""From a case to concrete arrays and scalars: reproducible, within the contract's constraints, outputs poisoned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypedDict

import numpy as np

from fsr.contract.model import Argument, Constraints, Contract, Layout
from fsr.expressions import evaluate_int
from fsr.hardware.dtypes import bits_of, float_limits, is_float, numpy_dtype
from fsr.records import Case, Role, ScalarValue
from fsr.testgen import corners, echoes, families, structured, value_sets
from fsr.testgen.bounds import element_of, float_bounds, has_limits, integer_bounds, no_value
from fsr.testgen.draws import BLOCK, Draw, Kind, word
from fsr.testgen.fitting import named_in
from fsr.testgen.formulas import formula_of, generator, key_of
from fsr.testgen.generated import drawn_instead, made_inputs
from fsr.testgen.lines import arranged, distinct, stretched
from fsr.testgen.offsets import offsets
from fsr.testgen.scalars import scalars_of

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class CaseData:
    """What a launch of one case starts from: a C-contiguous array for every buffer argument (of an aliased
    group only the first) and the value of every scalar argument. Where ``draws`` has a formula for a buffer its array
    is a placeholder of that shape and type without memory, for a device that draws it itself. ``made``: the buffers
    whose elements belong together (:mod:`fsr.testgen.generated`). ``layouts``: of buffers of structures, whose arrays
    hold words; :meth:`apart` has their members, by the names of :meth:`fsr.contract.model.Contract.apart`."""

    arrays: Mapping[str, Array]
    scalars: Mapping[str, ScalarValue]
    draws: Mapping[str, Draw] = field(default_factory=dict)
    made: frozenset[str] = frozenset()
    layouts: Mapping[str, Layout] = field(default_factory=dict)

    def apart(self) -> CaseData:
        """The data with an array for each member of structures."""
        return replace(self, arrays=structured.apart(self.arrays, self.layouts)) if self.layouts else self

    def together(self) -> CaseData:
        """What :meth:`apart` gave as structures again."""
        return replace(self, arrays=structured.together(self.arrays, self.layouts)) if self.layouts else self


def build(contract: Contract, case: Case, poison_seed: int = 0, *, drawn: bool = False) -> CaseData:
    """The data of a case: equal for equal cases, apart from outputs, which hold the poison of ``poison_seed``.

    ``drawn``: formulas in the place of arrays, as far as there are any. Raises ContractError when constraints cannot be
    met (an empty range, too few distinct values), and for what the contract's function of inputs does.
    """
    sizes, layouts = case.size_map(), structured.layouts_of(contract)
    contract = _speaking_for_group(contract.apart(), case)
    places = value_sets.by_place(contract)
    primary = _primary(contract, case)
    arrays: dict[str, Array] = {}
    draws: dict[str, Draw] = {}
    scalars = scalars_of(contract, case)
    together = _together(contract, case, scalars)
    for argument, drawn_as in zip(contract.buffers(), places.buffers(), strict=True):
        if argument.name in case.aliased[1:]:
            continue
        shape, dtype = contract.shape(argument, sizes), numpy_dtype(argument.dtype)
        if _is_pure_output(contract, case, argument):
            made: Array | Draw = poison_draw(dtype, math.prod(shape), poison_seed)
        elif argument.name in together:
            made = together[argument.name]
        else:
            made = _input(places, drawn_as, case, scalars, primary)
            if value_sets.is_set(argument):
                made = value_sets.looked_up(made, argument, shape, timed=case.kind.timed)
        if not isinstance(made, Draw):
            arrays[argument.name] = made
        elif drawn and argument.name.partition(".")[0] not in layouts:
            arrays[argument.name] = np.broadcast_to(np.zeros((), dtype), shape)
            draws[argument.name] = made
        else:
            arrays[argument.name] = made.values(dtype).reshape(shape)
    return CaseData(arrays, scalars, draws, frozenset(together), layouts).together()


def _together(contract: Contract, case: Case, scalars: Mapping[str, ScalarValue]) -> dict[str, Array]:
    """The arrays of the contract's function of inputs that a case has: of an aliased group the first that it makes."""
    found = {
        name: array
        for name, array in made_inputs(contract, case, scalars).items()
        if not drawn_instead(contract.argument(name), case)
    }
    group = [contract.argument(name) for name in case.aliased]
    shared = next((found[a.name] for a in group if a.name in found and a.dtype == group[0].dtype), None)
    return found if shared is None else {**found, group[0].name: shared}


def _input(
    contract: Contract, argument: Argument, case: Case, scalars: Mapping[str, ScalarValue], primary: str
) -> Array | Draw:
    """What is read, by a formula where there is one."""
    if (corner := _corner(contract, argument, case, scalars)) is not None:
        return corner
    sizes, key = case.size_map(), key_of(case.seed, argument.name)
    shape = contract.shape(argument, sizes)
    follows = argument.name == primary or word(key, 0) % 2 or case.family.startswith(families.ALL_FOLLOW)
    family = case.family if follows else "normal"
    if value_sets.goes_by_shares(argument, family, case, shape):
        rng = generator(case.seed, f"shares {argument.name}")
        return value_sets.shared(argument.constraints, shape, rng)
    formula = formula_of(argument, shape, sizes, family, key)
    return _whole(contract, argument, case, scalars, family) if formula is None else formula


def repoisoned(contract: Contract, case: Case, data: CaseData, poison_seed: int) -> CaseData:
    """What :func:`build` gives for another ``poison_seed``; what the kernel reads are the same arrays."""
    contract, data = contract.apart(), data.apart()
    outs = [a.name for a in contract.buffers() if a.name in data.arrays and _is_pure_output(contract, case, a)]
    drawn = {name: data.arrays[name] for name in outs if name in data.draws}
    fresh = {name: poison(np.empty_like(data.arrays[name]), poison_seed) for name in outs if name not in drawn}
    draws = {name: poison_draw(array.dtype, array.size, poison_seed) for name, array in drawn.items()}
    return replace(data, arrays={**data.arrays, **fresh}, draws={**data.draws, **draws}).together()


def poison_draw(dtype: np.dtype[Any], count: int, seed: int) -> Draw:
    """A pattern that no kernel computes, another for another seed. Floating types: a NaN with a payload of its own, or
    for odd seeds a huge positive number, since a maximum passes over NaN as if it were nothing. Others: odd bytes,
    negative in signed types for even seeds, positive for odd ones."""
    rng = np.random.default_rng([seed, 0x9015])
    width, odd = 8 * dtype.itemsize, seed % 2
    if is_float(dtype):
        mantissa = round(-math.log2(float_limits(dtype).eps))
        exponent = ((1 << (width - 1 - mantissa)) - 1 - odd) << mantissa
        pattern = exponent | (1 << (mantissa - 1)) | int(rng.integers(1, 1 << (mantissa - 1)) - 1 or 1)
    else:
        byte = int(rng.integers(0x81, 0xFE))
        pattern = int.from_bytes(bytes((byte + 0x11 * i) % 251 + 2 for i in range(width // 8)), "little")
        sign = 1 << (width - 1)
        pattern = pattern & ~sign if odd else pattern | sign
    return Draw(Kind.BITS, 0, count, table=(pattern,))


def poison(array: Array, seed: int) -> Array:
    """Fill an array in place with the pattern of :func:`poison_draw`. Returns the array."""
    array[...] = poison_draw(array.dtype, array.size, seed).values(array.dtype).reshape(array.shape)
    return array


def changed(now: Array, before: Array) -> Array:
    """The numbers of the elements whose bits differ, ascending."""
    return np.flatnonzero(~same_bits(now, before).reshape(-1))


def same_bits(a: Array, b: Array) -> Array:
    """Where two arrays of one dtype hold the same bits, as booleans of their shape."""
    return np.asarray(bits_of(a) == bits_of(b))


def outputs(contract: Contract, case: Case) -> tuple[str, ...]:
    """The names of the buffers that the kernel writes, an aliased group under its first name."""
    written = [a.name for a in contract.buffers() if a.role is not Role.IN]
    if case.aliased and any(name in case.aliased for name in written):
        written = [case.aliased[0], *(n for n in written if n not in case.aliased)]
    return tuple(written)


def _primary(contract: Contract, case: Case) -> str:
    """The input that follows the family for sure; each of the others does with a chance of one half."""
    inputs = [a for a in contract.drawn() if a.role is not Role.SCALAR]
    floating = [a for a in inputs if is_float(numpy_dtype(a.dtype))] or inputs
    if not floating:
        return ""
    return floating[int(generator(case.seed, "primary").integers(len(floating)))].name


def _is_pure_output(contract: Contract, case: Case, argument: Argument) -> bool:
    """Whether nobody reads the argument's initial values; memory shared with an input is an input."""
    shared = argument.name in case.aliased and any(contract.argument(n).role is not Role.OUT for n in case.aliased)
    return argument.role is Role.OUT and not shared


def _speaking_for_group(contract: Contract, case: Case) -> Contract:
    """The contract by which the first of an aliased group, whose array the group's is, keeps to what another of them is
    said to hold."""
    group = [contract.argument(name) for name in case.aliased]
    if not group or value_sets.is_set(group[0]):
        return contract
    listed = [a for a in group if value_sets.is_set(a) and a.dtype == group[0].dtype]
    told = listed or [a for a in group if a.constraints != Constraints() and a.dtype == group[0].dtype]
    if not told or (not listed and group[0].constraints != Constraints()):
        return contract
    leader = replace(group[0], constraints=told[0].constraints)
    return replace(contract, args=tuple(leader if a.name == leader.name else a for a in contract.args))


def _whole(
    contract: Contract, argument: Argument, case: Case, scalars: Mapping[str, ScalarValue], family: str
) -> Array:
    """An array that has no formula. ``family``: of elements that have limits of their own."""
    sizes = case.size_map()
    shape, rules = contract.shape(argument, sizes), argument.constraints
    if rules.offsets is not None:
        total = evaluate_int(rules.offsets, sizes)
        return offsets(shape, numpy_dtype(argument.dtype), total, case, generator(case.seed, argument.name))
    if not rules.by_element:
        return _ordered(argument, shape, sizes, case)
    found = np.empty(shape, numpy_dtype(argument.dtype))
    for number in range(shape[-1]):
        own = element_of(argument, number)
        made, extents = _corner(contract, own, case, scalars), contract.shape(own, sizes)
        if made is None:
            formula = formula_of(own, extents, sizes, family, key_of(case.seed, own.name))
            assert formula is not None  # neither sorted nor unique
            made = formula.values(found.dtype)
        found[..., number] = made.reshape(found.shape[:-1])
    return found


def _ordered(argument: Argument, shape: tuple[int, ...], sizes: Mapping[str, int], case: Case) -> Array:
    """An array that is sorted along its last axis, or has no element twice."""
    dtype, wanted, count = numpy_dtype(argument.dtype), argument.constraints, math.prod(shape)
    rng = generator(case.seed, argument.name)
    if wanted.unique and is_float(dtype):
        low, high = float_bounds(argument, sizes)
        low, high = max(low, -1.0), min(high, max(low, -1.0) + 2.0)
        order = distinct(count, count, rng)
        values = (low + (high - low) * (order + 0.5) / max(count, 1)).astype(dtype)
    elif wanted.unique:
        low_, high_ = integer_bounds(argument, sizes, case.family)
        if high_ - low_ + 1 < count:
            raise no_value(argument, low_, high_, sizes, f"for {count} distinct elements")
        values = (low_ + arranged(count, high_ - low_ + 1, rng, case.family)).astype(dtype)
    elif wanted.sorted and case.family.startswith(families.ENDS) and has_limits(argument):
        values = _stepped(argument, shape, sizes, rng)
    else:
        plain = replace(argument, constraints=replace(wanted, sorted=False))
        key = key_of(case.seed, argument.name)
        formula = formula_of(plain, (min(count, BLOCK),), sizes, case.family, key)
        assert formula is not None  # neither sorted nor unique
        values = stretched(np.sort(formula.values(dtype)), count)
    values = values.reshape(shape)
    return np.ascontiguousarray(np.sort(values, axis=-1) if wanted.sorted and shape else values)


def _stepped(argument: Argument, shape: tuple[int, ...], sizes: Mapping[str, int], rng: np.random.Generator) -> Array:
    """Sorted rows that go from one end of the limits to the other in one step: where they say how long lines are, one
    line is all there is."""
    dtype, row = numpy_dtype(argument.dtype), max(shape[-1], 1) if shape else 1
    low, high = float_bounds(argument, sizes) if is_float(dtype) else integer_bounds(argument, sizes)
    at = int(rng.integers(row + 1))
    return np.resize(np.array([low] * at + [high] * (row - at), dtype), math.prod(shape))


class _End(TypedDict):
    upper: bool
    share: float


def _corner(contract: Contract, argument: Argument, case: Case, scalars: Mapping[str, ScalarValue]) -> Array | None:
    """The array of a family of :mod:`fsr.testgen.corners`; None for other families, and for arguments that it does not
    change."""
    if argument.constraints.by_element or argument.constraints.offsets is not None:
        return None  # of whose elements each may be
    if case.family in echoes.FAMILIES:
        return _echo(contract, argument, case, scalars) if numpy_dtype(argument.dtype).kind in "iu" else None
    if case.family not in corners.FAMILIES or argument.value is not None or argument.constraints.unique:
        return None
    sizes, dtype = case.size_map(), numpy_dtype(argument.dtype)
    shape, rng = contract.shape(argument, sizes), generator(case.seed, f"corner {argument.name}")
    known = [*sizes.values(), *(s.value for s in scalars.values() if isinstance(s.value, int))]
    made: Array | None = None
    if dtype.kind in "iu":
        ordinary = integer_bounds(argument, sizes)
        if ordinary[0] > ordinary[1]:
            return None  # the formula says what is wrong with that, where there is an element
        if case.family in corners.EDGES:
            both = integer_bounds(argument, sizes, next(iter(families.WHOLE))), ordinary
            told = value_sets.places_of(known, argument.constraints) if value_sets.is_set(argument) else known
            made = corners.edge_integers(shape, dtype, case.family, list(map(int, told)), both, rng)
        elif case.family in corners.STRUCTURES:
            leads = math.prod(shape) == _longest(contract, sizes)
            whole = case.family == corners.LOWEST
            within = integer_bounds(argument, sizes, families.ENDS_OF_TYPE) if whole else ordinary
            made = corners.structured(shape, dtype, case.family, within, rng, leads=leads)
        elif case.family == corners.TWINS:
            made = corners.twins(rng.integers(*ordinary, shape, dtype, endpoint=True), rng)
        elif case.family in corners.LEVELS:
            made = corners.level(np.zeros(shape, dtype), case.family, ordinary, rng, **_end(contract, argument, case))
    elif corners.has_patterns(dtype) and case.family not in corners.STRUCTURES:
        formula = formula_of(argument, shape, sizes, "normal", key_of(case.seed, argument.name))
        if formula is None:
            return None
        values, (low, high) = formula.values(dtype).reshape(shape), float_bounds(argument, sizes)
        if case.family == corners.HALVES:
            made = corners.halves(values, (low, high), rng)
        elif case.family in corners.EDGES:
            floats = [float(s.value) for s in scalars.values() if is_float(numpy_dtype(s.dtype))]
            made = corners.edge_floats(values, floats, list(sizes.values()), (low, high), rng)
        elif case.family == corners.TWINS:
            made = corners.twins(values, rng)
        elif case.family in corners.LEVELS:
            most = max(abs(float(values.max())), 1.0) if values.size else 1.0
            limits = max(low, -most), min(high, most)
            made = corners.level(values, case.family, limits, rng, **_end(contract, argument, case))
        elif not argument.constraints.finite:
            made = corners.crowded(values, case.family, low, high, rng)
    return _in_order(argument, made)


def _end(contract: Contract, argument: Argument, case: Case) -> _End:
    """At which end an array stands, and up to which part of its lines: all at one, or every other one at the other."""
    names = [a.name for a in contract.args]  # parts of arrays have others
    number = names.index(argument.name) if argument.name in names else len(argument.name)
    together = case.family in corners.TOGETHER
    return _End(
        upper=(case.seed % 2 == 0) == (together or number % 2 == 0),
        share=generator(case.seed, "cliff" if together else f"cliff {argument.name}").uniform(0.2, 0.8),
    )


def _echo(contract: Contract, argument: Argument, case: Case, scalars: Mapping[str, ScalarValue]) -> Array | None:
    """The array of an input that echoes another, or is echoed; None for all others."""
    sizes = case.size_map()
    echoing = echoes.sources(contract)
    source = echoing.get(argument.name)
    if source is None:
        return _echo_source(contract, argument, case, scalars) if argument in echoing.values() else None
    limits, (least, most) = integer_bounds(argument, sizes), integer_bounds(source, sizes)
    if value_sets.is_set(source) and not value_sets.is_set(argument):
        least, most = (int(source.constraints.values[at]) for at in (0, -1))
    if not limits[0] <= least <= most <= limits[1]:
        return None
    values = _echo_source(contract, source, case, scalars)
    if value_sets.is_set(source) and not value_sets.is_set(argument):
        values = value_sets.values_at(values, source.constraints, numpy_dtype(argument.dtype))
    rng = generator(case.seed, f"echo {argument.name}")
    return _in_order(argument, echoes.echoed(values, contract.shape(argument, sizes), limits, rng))


def _echo_source(contract: Contract, source: Argument, case: Case, scalars: Mapping[str, ScalarValue]) -> Array:
    """What others echo: drawn as usual, of one family with the whole numbers that are no sizes among it."""
    sizes, dtype = case.size_map(), numpy_dtype(source.dtype)
    shape = contract.shape(source, sizes)
    formula = formula_of(source, shape, sizes, case.family, key_of(case.seed, source.name))
    if formula is None:
        return _ordered(source, shape, sizes, case)
    values = formula.values(dtype).reshape(shape)
    if case.family == echoes.ECHO:
        return values
    least, most = integer_bounds(source, sizes)
    free = [a.name for a in contract.args if a.name in scalars and not (a.value and set(sizes) & named_in([a.value]))]
    known = [int(scalars[n].value) for n in free if isinstance(scalars[n].value, int)]
    known = value_sets.places_of(known, source.constraints) if value_sets.is_set(source) else known
    rng = generator(case.seed, f"planted {source.name}")
    return echoes.planted(values, [v for v in known if least <= v <= most], rng)


def _in_order(argument: Argument, made: Array | None) -> Array | None:
    """The array with its lines in order where the argument's are."""
    sort = made is not None and argument.constraints.sorted and made.ndim
    return np.ascontiguousarray(np.sort(made, axis=-1)) if made is not None and sort else made


def _longest(contract: Contract, sizes: Mapping[str, int]) -> int:
    """Elements of the largest integer input."""
    inputs = [a for a in contract.drawn() if a.role is not Role.SCALAR]
    whole = [a for a in inputs if numpy_dtype(a.dtype).kind in "iu"]
    return max((math.prod(contract.shape(a, sizes)) for a in whole), default=0)
