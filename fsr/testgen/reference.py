"""The reference that a contract names: a Python function of the user's, called with care.

It may raise, hang, print, leave or answer with nonsense: each is told as a fault of the contract, at its own line.
"""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from fsr.contract.model import Contract
from fsr.errors import ContractError
from fsr.hardware.dtypes import doubled, is_float, numpy_dtype
from fsr.records import Case, Role
from fsr.testgen.values import Array, CaseData, outputs

FIRST_S, LATER_S = 5.0, 60.0  # the first case is a small one: a reference that hangs is told soon
_EXPECTED = "an array, a tuple of arrays in the order of the outputs, or a dictionary by name"
_ANSWERED: set[tuple[str, str]] = set()  # references of this process that have answered once


class _TooLong(BaseException):
    """Raised inside a reference that does not end; not an Exception, which it may catch."""


def reference_outputs(contract: Contract, case: Case, data: CaseData, folder: Path) -> dict[str, Array]:
    """The outputs of the contract's ``module.py:function``, called with inputs (floating ones as float64),
    scalars, None for null pointers, and sizes by name, as far as it has parameters of these names. It returns an array,
    a tuple in the order of the outputs, or a dictionary. Raises ContractError when it is missing, raises, takes longer
    than a minute (the first time: 5 s) or returns something else."""
    assert contract.reference is not None
    key = (contract.reference, str(folder))
    with _guarded(contract.reference, folder, LATER_S if key in _ANSWERED else FIRST_S):
        function = _load_reference(*key)
        wide = widened_data(data)
        given: dict[str, Any] = {**case.size_map(), **wide.arrays}
        given |= dict.fromkeys(a.name for a in contract.args if a.role is Role.NULL)
        given |= {name: value.value for name, value in wide.scalars.items()}
        wanted = inspect.signature(function).parameters
        if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in wanted.values()):
            given = {k: v for k, v in given.items() if k in wanted}
        answer = function(**given)
    names = outputs(contract, case)
    if not isinstance(answer, Mapping):
        several = isinstance(answer, tuple) or (isinstance(answer, list) and len(names) > 1)
        parts = answer if several else (answer,)
        if len(parts) != len(names):
            raise _bad_reference(contract, f"returned {len(parts)} arrays for the outputs {', '.join(names)}")
        answer = dict(zip(names, parts, strict=True))
    found = {name: _array(contract, name, answer, data.arrays[name].shape) for name in names}
    _ANSWERED.add(key)
    return found


@contextlib.contextmanager
def _guarded(spec: str, folder: Path, limit_s: float) -> Iterator[None]:
    """Runs what is the user's: what it raises becomes a ContractError at its line, what it prints goes to standard
    error, and where signals can be had it ends after ``limit_s``."""

    def over(number: int, frame: FrameType | None) -> NoReturn:
        raise _TooLong

    timed = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGALRM, over) if timed else None
    if timed:
        signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    except ContractError:
        raise
    except _TooLong:
        raise _failed(spec, folder, f"did not answer within {limit_s:g} s") from None
    except BaseException as fault:
        steps = [s for s in traceback.extract_tb(fault.__traceback__) if Path(s.filename).parent == folder]
        line = fault.lineno if isinstance(fault, SyntaxError) else steps[-1].lineno if steps else None
        raise _failed(spec, folder, f"raised {type(fault).__name__}: {str(fault)[:300]}", line) from None
    finally:
        if timed:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def _failed(spec: str, folder: Path, why: str, line: int | None = None) -> ContractError:
    file = folder / spec.partition(":")[0]
    return ContractError(
        f"the reference {spec!r} {why}", expected=_EXPECTED, where=f"{file}:{line}" if line else str(file),
        fix="correct the reference function, or leave reference out of the contract",
    )  # fmt: skip


def _array(contract: Contract, name: str, answer: Mapping[str, Any], shape: tuple[int, ...]) -> Array:
    if name not in answer:
        raise _bad_reference(contract, f"returned no {name!r}")
    try:
        found = _as_numpy(answer[name])
        if found.dtype.kind not in "fiub" and not is_float(found.dtype):  # ml_dtypes' own are of kind V
            raise _bad_reference(contract, f"returned elements of type {found.dtype} for {name}")
        return found.reshape(shape)
    except (ValueError, TypeError, OverflowError) as fault:
        raise _bad_reference(contract, f"returned no array of shape {shape} for {name}: {fault}") from None


def _as_numpy(value: Any) -> Array:
    if hasattr(value, "detach"):  # a torch tensor
        value = value.detach().cpu().numpy()
    return np.asarray(value)


def widened_data(data: CaseData) -> CaseData:
    """The data with every floating array and scalar as float64; other types unchanged."""
    arrays = {n: doubled(a, copy=True) if is_float(a.dtype) else a for n, a in data.arrays.items()}
    scalars = {
        n: type(s)("float64", float(np.asarray(s.value, numpy_dtype(s.dtype)))) if is_float(numpy_dtype(s.dtype)) else s
        for n, s in data.scalars.items()
    }
    return CaseData(arrays, scalars)


@lru_cache(maxsize=32)
def _load_reference(spec: str, folder: str) -> Callable[..., Any]:
    path, _, function = spec.partition(":")
    file = Path(folder) / path
    described = importlib.util.spec_from_file_location(f"fsr_reference_{file.stem}", file)
    if not function or described is None or described.loader is None or not file.is_file():
        raise ContractError(
            f"the reference {spec!r} cannot be loaded",
            expected='"module.py:function", the file beside the kernel',
            where=str(file),
            fix="correct reference in the contract",
        )
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    found = getattr(module, function, None)
    if not callable(found):
        raise ContractError(f"{path} has no function {function!r}", where=str(file), fix="correct reference")
    return found  # type: ignore[no-any-return]


def _bad_reference(contract: Contract, why: str) -> ContractError:
    return ContractError(
        f"the reference {contract.reference!r} {why}", expected=_EXPECTED, fix="correct the reference function"
    )
