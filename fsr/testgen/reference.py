"""The reference that a contract names: a Python function of the user's, which decides what is right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fsr.contract.model import Contract
from fsr.hardware.dtypes import doubled, is_float, numpy_dtype
from fsr.records import Case, Role
from fsr.testgen.users_function import UsersFunction, as_numpy
from fsr.testgen.values import Array, CaseData, outputs

_EXPECTED = "an array, a tuple of arrays in the order of the outputs, or a dictionary by name"


def reference_outputs(contract: Contract, case: Case, data: CaseData, folder: Path) -> dict[str, Array]:
    """The outputs of the contract's ``module.py:function``, called with inputs (floating ones as float64),
    scalars, None for null pointers, and sizes by name, as far as it has parameters of these names. It returns an array,
    a tuple in the order of the outputs, or a dictionary. Structures are dictionaries of their members, and returned
    member by member (``pairs.weight``). Raises ContractError when it is missing, raises, takes longer
    than a minute (the first time: 5 s) or returns something else."""
    assert contract.reference is not None
    function = UsersFunction("reference", contract.reference, folder, _EXPECTED)
    wide = _widened(data.apart())
    given: dict[str, Any] = {**contract.with_derived(case.size_map()), **wide.arrays}
    for name, layout in data.layouts.items():
        given[name] = {f.path: given.pop(f"{name}.{f.path}") for f in layout.fields}
    given |= dict.fromkeys(a.name for a in contract.args if a.role is Role.NULL)
    given |= {name: value.value for name, value in wide.scalars.items()}
    answer, names = function(given), outputs(contract.apart(), case)
    if not isinstance(answer, Mapping):
        several = isinstance(answer, tuple) or (isinstance(answer, list) and len(names) > 1)
        parts = answer if several else (answer,)
        if len(parts) != len(names):
            raise function.bad(f"returned {len(parts)} arrays for the outputs {', '.join(names)}")
        answer = dict(zip(names, parts, strict=True))
    return {name: _array(function, name, answer, wide.arrays[name].shape) for name in names}


def _array(function: UsersFunction, name: str, answer: Mapping[str, Any], shape: tuple[int, ...]) -> Array:
    if name not in answer:
        raise function.bad(f"returned no {name!r}")
    try:
        found = as_numpy(answer[name])
        if found.dtype.kind not in "fiub" and not is_float(found.dtype):  # ml_dtypes' own are of kind V
            raise function.bad(f"returned elements of type {found.dtype} for {name}")
        return found.reshape(shape)
    except (ValueError, TypeError, OverflowError) as fault:
        raise function.bad(f"returned no array of shape {shape} for {name}: {fault}") from None


def widened_data(data: CaseData) -> CaseData:
    """The data with every floating array, scalar and member of structures as float64; other types unchanged."""
    layouts = {name: layout.widened() for name, layout in data.layouts.items()}
    return replace(_widened(data.apart()), layouts=layouts).together()


def _widened(data: CaseData) -> CaseData:
    arrays = {n: doubled(a, copy=True) if is_float(a.dtype) else a for n, a in data.arrays.items()}
    scalars = {
        n: type(s)("float64", float(np.asarray(s.value, numpy_dtype(s.dtype)))) if is_float(numpy_dtype(s.dtype)) else s
        for n, s in data.scalars.items()
    }
    return replace(data, arrays=arrays, scalars=scalars)
