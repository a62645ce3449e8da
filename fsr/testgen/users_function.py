"""A Python function of the user's that a contract names, called with care.

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
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import numpy as np

from fsr.errors import ContractError

FIRST_S, LATER_S = 5.0, 60.0  # the first case is a small one: a function that hangs is told soon
_ANSWERED: set[tuple[str, str]] = set()  # functions of this process that have answered once


class _TooLong(BaseException):
    """Raised inside a function that does not end; not an Exception, which it may catch."""


@dataclass(frozen=True, slots=True)
class UsersFunction:
    """``key``: of the contract that names it. ``spec``: 'module.py:function'. ``folder``: where the file lies.
    ``expected``: what it is to return."""

    key: str
    spec: str
    folder: Path
    expected: str

    def __call__(self, given: Mapping[str, Any]) -> Any:
        """What it returns for those of the ``given`` that it has parameters for. Raises ContractError when it is
        missing, raises, or takes longer than a minute (the first time: 5 s)."""
        known = (self.spec, str(self.folder))
        with self._guarded(LATER_S if known in _ANSWERED else FIRST_S):
            function = _loaded(self.key, self.spec, self.folder)
            wanted = inspect.signature(function).parameters
            every = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in wanted.values())
            answer = function(**{k: v for k, v in given.items() if every or k in wanted})
        _ANSWERED.add(known)
        return answer

    def bad(self, why: str, expected: str = "") -> ContractError:
        """The error for what it did, at its first line."""
        return self._failed(why, _line_of(self.key, self.spec, self.folder), expected)

    @contextlib.contextmanager
    def _guarded(self, limit_s: float) -> Iterator[None]:
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
            raise self._failed(f"did not answer within {limit_s:g} s") from None
        except BaseException as fault:
            steps = [s for s in traceback.extract_tb(fault.__traceback__) if Path(s.filename).parent == self.folder]
            line = fault.lineno if isinstance(fault, SyntaxError) else steps[-1].lineno if steps else None
            raise self._failed(f"raised {type(fault).__name__}: {str(fault)[:300]}", line) from None
        finally:
            if timed:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, before)

    def _failed(self, why: str, line: int | None = None, expected: str = "") -> ContractError:
        file = self.folder / self.spec.partition(":")[0]
        return ContractError(
            f"{_SAID[self.key]} {self.spec!r} {why}", expected=expected or self.expected,
            where=f"{file}:{line}" if line else str(file),
            fix=f"correct that function, or leave {self.key} out of the contract",
        )  # fmt: skip


_SAID = {"reference": "the reference", "inputs": "the function of inputs"}


def as_numpy(value: Any) -> np.ndarray[Any, Any]:
    """What is returned, an array of NumPy or torch or what one is made of, as an array."""
    if hasattr(value, "detach"):  # a torch tensor
        value = value.detach().cpu().numpy()
    return np.asarray(value)


@lru_cache(maxsize=32)
def _loaded(key: str, spec: str, folder: Path) -> Callable[..., Any]:
    path, _, function = spec.partition(":")
    file = folder / path
    described = importlib.util.spec_from_file_location(f"fsr_{key}_{file.stem}", file)
    if not function or described is None or described.loader is None or not file.is_file():
        raise ContractError(
            f"{_SAID[key]} {spec!r} cannot be loaded", expected='"module.py:function", the file beside the kernel',
            where=str(file), fix=f"correct {key} in the contract",
        )  # fmt: skip
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    found = getattr(module, function, None)
    if not callable(found):
        raise ContractError(f"{path} has no function {function!r}", where=str(file), fix=f"correct {key}")
    return found  # type: ignore[no-any-return]


def _line_of(key: str, spec: str, folder: Path) -> int | None:
    """Where it begins, as far as that can be told."""
    code = getattr(_loaded(key, spec, folder), "__code__", None)
    return None if code is None else int(code.co_firstlineno)
