"""Inputs that a function of the user's makes together: a symmetric matrix, rows with where they begin, sorted pairs.

Independent draws have none of what such arrays promise one another, and limits of each cannot say it. What the function
makes is held to all that the contract says of each array, and is changed by nothing but the oracle's small moves. Tests
see no other arrays, so what the function never makes is not tested, but for floating ones with both limits stated:
:func:`drawn_instead` says in which cases these are drawn as if there were no function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import numpy as np

from fsr.contract.fields import did_you_mean
from fsr.contract.model import Argument, Contract
from fsr.hardware.dtypes import is_float, numpy_dtype
from fsr.records import Case, Role, ScalarValue
from fsr.testgen.bounds import has_limits
from fsr.testgen.draws import word
from fsr.testgen.formulas import generator, key_of
from fsr.testgen.held_to import forbidden
from fsr.testgen.kept_made import kept
from fsr.testgen.users_function import UsersFunction, as_numpy

Array = np.ndarray[Any, Any]

MOST_ELEMENTS = 1 << 24  # of all buffers together: what a function in Python makes in seconds, mostly
TWICE = 4  # times that a process asks a function again, to see whether it says the same
DRAWN_SHARE = 2  # one of so many cases draws what may be drawn
_EXPECTED = "a dictionary from the names of inputs to arrays of their shapes"
_NAMES: dict[tuple[str, str], frozenset[str]] = {}  # what each function of this process makes
_ASKED: dict[tuple[str, str], int] = {}


def made_inputs(contract: Contract, case: Case, scalars: Mapping[str, ScalarValue]) -> dict[str, Array]:
    """What the contract's function makes for a case, by argument: fresh arrays of the argument's type. {} without one.
    It is called with the sizes, the scalars and ``rng``, a generator of the case's own, as far as it has parameters of
    these names. Raises ContractError at its line."""
    named, contract = contract.inputs, contract.apart()
    if named is None:
        return {}
    function = UsersFunction("inputs", named.function, Path(named.folder), _EXPECTED)
    if not named.kept:
        return _made(function, contract, case, scalars)
    return kept(Path(named.kept), case, lambda: _made(function, contract, case, scalars))


def _made(
    function: UsersFunction, contract: Contract, case: Case, scalars: Mapping[str, ScalarValue]
) -> dict[str, Array]:
    """What the function answers; the first few times it is asked whether it says the same once more."""
    found = _answer(function, contract, case, scalars)
    known = (function.spec, str(function.folder))
    before = _NAMES.setdefault(known, frozenset(found))
    if before != frozenset(found):
        told = [", ".join(sorted(names)) or "nothing" for names in (frozenset(found), before)]
        raise function.bad(
            f"made {told[0]} at {_sizes(case)}, and before that {told[1]}", "the same arrays at all sizes"
        )
    if _ASKED.setdefault(known, 0) < TWICE:
        _ASKED[known] += 1
        again = _answer(function, contract, case, scalars)
        for name, array in found.items():
            if name not in again or array.tobytes() != again[name].tobytes():
                raise function.bad(
                    f"made two different arrays {name} for the same rng and sizes ({_sizes(case)})",
                    "the same for the same: all chance from rng, which is its argument",
                )
    return found


def most_elements(contract: Contract, most: int) -> int:
    """Elements of all buffers together of a case of at most so many, where some of them are made here, by a function or
    as structures."""
    alone = contract.inputs is None and not contract.structured()
    return most if alone else min(most, MOST_ELEMENTS)


def drawn_instead(argument: Argument, case: Case) -> bool:
    """Whether an array that the function makes is drawn by itself in a case: one case in two, none that is timed, of
    a floating one of which the contract states both limits, which says that all between them may be."""
    varies = is_float(numpy_dtype(argument.dtype)) and has_limits(argument) and not case.kind.timed
    return varies and word(key_of(case.seed, f"instead {argument.name}"), 0) % DRAWN_SHARE == 0


def notes(contract: Contract, cases: tuple[Case, Case], scalars: Mapping[str, ScalarValue]) -> list[str]:
    """What is to be said of the function: which arrays tests know from it alone, and whether it makes anything else for
    another seed. ``cases``: of equal sizes, with different seeds."""
    if contract.inputs is None:
        return []
    one, two = (made_inputs(contract, case, scalars) for case in cases)
    varied = [n for n in one if is_float(one[n].dtype) and has_limits(contract.argument(n))]
    alone = [n for n in one if n not in varied]
    said = []
    if alone:
        said.append(f"{_listed(contract, alone)}: tests have what {contract.inputs.function} makes, and nothing else")
    if varied:
        said.append(
            f"{_listed(contract, varied)}: made by {contract.inputs.function}, and in half of the tests drawn "
            "between their limits"
        )
    if one and all(array.tobytes() == two[name].tobytes() for name, array in one.items()):
        said.append(f"{contract.inputs.function} makes the same whatever its seed: tests differ by sizes alone there")
    return said


def _listed(contract: Contract, names: list[str]) -> str:
    return ", ".join(contract.argument(n).member or n for n in names)


def _answer(
    function: UsersFunction, contract: Contract, case: Case, scalars: Mapping[str, ScalarValue]
) -> dict[str, Array]:
    given = {**contract.with_derived(case.size_map()), **{name: value.value for name, value in scalars.items()}}
    answer = function({**given, "rng": generator(case.seed, f"inputs {case.family}")})
    if not isinstance(answer, Mapping):
        raise function.bad(f"returned {type(answer).__name__}")
    by_name = {key: a for a in contract.args for key in (a.member, a.name) if key}
    found = dict[str, Array]()
    for key, value in answer.items():
        for name, part in _elements(function, by_name, str(key), value):
            argument = _argument(function, contract, by_name, name)
            found[argument.name] = _held(function, contract, argument, case, part)
    return found


def _elements(
    function: UsersFunction, by_name: Mapping[str, Argument], key: str, value: Any
) -> Iterator[tuple[str, Any]]:
    """An array as it is; one of an array within structures, whose elements are arguments, along its last extent."""
    names = list(takewhile(by_name.__contains__, (f"{key}[{n}]" for n in count())))
    if key in by_name or not names:
        yield key, value
        return
    made = as_numpy(value)
    if not made.ndim or made.shape[-1] != len(names):
        raise function.bad(f"made {key} of shape {made.shape}", f"{len(names)} along the last extent, one an element")
    yield from ((name, made[..., n]) for n, name in enumerate(names))


def _argument(function: UsersFunction, contract: Contract, by_name: Mapping[str, Argument], key: str) -> Argument:
    makeable = [a.member or a.name for a in contract.buffers() if a.role is not Role.OUT]
    argument, expected = by_name.get(key), f"some of the inputs: {', '.join(makeable) or 'there are none'}"
    if argument is None:
        fault = function.bad(f"made {key!r}, which is no argument", expected)
        fault.fix = did_you_mean(key, makeable)
        raise fault
    if argument.role in (Role.SCALAR, Role.NULL):
        raise function.bad(f"made {key!r}, which is no array", expected)
    if argument.role is Role.OUT:
        raise function.bad(f"made {key!r}, of which the contract says that nobody reads what it holds", expected)
    return argument


def _held(function: UsersFunction, contract: Contract, argument: Argument, case: Case, value: Any) -> Array:
    """What was made as an array of the argument's type, if it is one that the contract allows."""
    sizes, name, dtype = case.size_map(), argument.member or argument.name, numpy_dtype(argument.dtype)
    shape = contract.shape(argument, sizes)
    try:
        found = as_numpy(value)
    except (ValueError, TypeError) as fault:
        raise function.bad(f"made no array for {name}: {fault}") from None
    if found.shape != shape:
        raise function.bad(
            f"made {name} of shape {found.shape} at {_sizes(case)}", f"{shape}, which is {list(argument.shape)}"
        )
    made = _cast(found, dtype)
    if made is None:
        raise function.bad(
            f"made {name} of {found.dtype}, with elements that {argument.dtype} does not hold, at {_sizes(case)}",
            f"numbers of {argument.dtype}",
        )
    broken = forbidden(argument, made, sizes)
    if broken is not None:
        raise function.bad(f"made a {name} that the contract forbids: {broken[0]}, at {_sizes(case)}", broken[1])
    return made


def _cast(found: Array, dtype: np.dtype[Any]) -> Array | None:
    """A fresh array of that type, floating numbers rounded as any constant is; None where it would lose more."""
    if found.dtype.kind not in "fiub" and not is_float(found.dtype):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        made = np.array(found, dtype=dtype, order="C")
        if is_float(found.dtype) and is_float(dtype):
            wide = found.astype(np.float64)
            kept = np.isfinite(made.astype(np.float64)) | ~np.isfinite(wide)
        else:
            kept = made.astype(found.dtype) == found
            if found.dtype.kind == "i" and dtype.kind == "u":
                kept &= found >= 0
            if found.dtype.kind == "u" and dtype.kind == "i":
                kept &= made >= 0
    return made if bool(np.all(kept)) else None


def _sizes(case: Case) -> str:
    return ", ".join(f"{name} = {value}" for name, value in case.sizes) or "no sizes"
