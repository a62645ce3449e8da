"""The peer kernel-tuner: a kernel with macros, written for a workload, tuned by Kernel Tuner in a process of its own.

    NAME.tune.toml   source = "gemm.tune.cu" (beside it), entry, args (in its order), problem = [size expressions],
                     divisors = [expressions of the parameters], restrictions = [Python expressions], [parameters]

A dimension of the grid is its problem over its divisor, rounded up; block_size_x, _y and _z are the block. The best
configuration is written as a candidate file, which fsr's own launcher then times beside the others by equal rules.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fsr.contract.model import Contract
from fsr.errors import MissingToolError, UsageError
from fsr.expressions import evaluate_int
from fsr.hardware.dtypes import numpy_dtype
from fsr.records import Json
from fsr.runs.kernel import load_kernel
from fsr.testgen.cases import timed_cases
from fsr.testgen.values import CaseData, build

_AXES = ("block_size_x", "block_size_y", "block_size_z")
_KEYS = {"source", "entry", "args", "problem", "divisors", "restrictions", "parameters"}


@dataclass(frozen=True, slots=True)
class Space:
    """A tuning space, as the file says it; ``source`` is the text of the kernel."""

    source: str
    entry: str
    args: Sequence[str]
    problem: Sequence[str]
    divisors: Sequence[str]
    restrictions: Sequence[str]
    parameters: Mapping[str, Sequence[int]]


def read_space(path: Path) -> Space:
    """A tuning space. Raises UsageError for one that lacks something."""
    try:
        told = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as fault:
        raise UsageError(f"it is no TOML: {fault}", where=str(path), fix="correct it there") from None
    if set(told) != _KEYS:
        odd = min(set(told) ^ _KEYS)
        raise UsageError(f"{odd!r} is missing or unknown", expected=", ".join(sorted(_KEYS)), where=str(path))
    return Space(**told | {"source": (path.parent / told["source"]).read_text()})


@dataclass(frozen=True, slots=True)
class TunerAsked:
    """output: the candidate file to write. device: 'cuda:N'."""

    kernel: Path
    space: Path
    device: str
    budget_s: float
    seed: int
    output: Path


class Tuner:
    """One tuning. Raises MissingToolError without Kernel Tuner."""

    def __init__(self, asked: TunerAsked) -> None:
        try:
            import kernel_tuner
        except ImportError as error:
            raise MissingToolError(
                f"Kernel Tuner cannot be imported ({error})", expected="it, for the peer kernel-tuner",
                fix="pip install 'fsr[tuner]', or leave it out of --peers",
            ) from error  # fmt: skip
        self._tune_kernel = kernel_tuner.tune_kernel
        self._asked, self._space = asked, read_space(asked.space)

    def tune(self) -> dict[str, Json]:
        """Tune for the budget and write the best. Raises what Kernel Tuner raises, UsageError when nothing ran."""
        asked, space = self._asked, self._space
        contract = load_kernel(asked.kernel).contract
        case = timed_cases(contract, asked.seed, 1)[0]
        sizes = case.size_map()
        results, _ = self._tune_kernel(
            space.entry, space.source, tuple(evaluate_int(p, sizes) for p in space.problem),
            _arguments(contract, space.args, build(contract, case)), {n: list(v) for n, v in space.parameters.items()},
            restrictions=list(space.restrictions), lang="CUDA", device=int(asked.device.partition(":")[2] or 0),
            strategy="random_sample", strategy_options={"fraction": 1.0, "time_limit": asked.budget_s}, quiet=True,
            seed=asked.seed, **{f"grid_div_{axis}": [d] for axis, d in zip("xyz", space.divisors, strict=False)},
        )  # fmt: skip
        ran = [r for r in results if isinstance(r.get("time"), float)]
        if not ran:
            raise UsageError(f"none of {len(results)} configurations ran", where=str(asked.space))
        best = min(ran, key=lambda r: r["time"])
        chosen = {name: int(best[name]) for name in space.parameters}
        asked.output.write_text(candidate_text(space, chosen))
        return {"configurations": len(results), "ran": len(ran), "best": dict(chosen)}

    def configurations(self) -> list[dict[str, int]]:
        """Every configuration that the restrictions leave, in a fixed order, as Kernel Tuner sees its space."""
        from kernel_tuner.searchspace import Searchspace

        space = self._space
        names = list(space.parameters)
        told = Searchspace({n: list(v) for n, v in space.parameters.items()}, list(space.restrictions), 1024)
        return [dict(zip(names, map(int, values), strict=True)) for values in sorted(told.list)]

    def close(self) -> None:
        """Nothing is held."""


def _arguments(contract: Contract, names: Sequence[str], data: CaseData) -> list[Any]:
    """Arrays and NumPy scalars in the tuned kernel's order."""
    scalars = {n: numpy_dtype(s.dtype).type(s.value) for n, s in data.scalars.items()}
    return [scalars[n] if n in scalars else np.ascontiguousarray(data.arrays[n]) for n in names]


def candidate_text(space: Space, chosen: Mapping[str, int]) -> str:
    """The tuned kernel under chosen parameters, as a candidate file of :mod:`fsr.testgen.candidate_file`."""
    values = dict(chosen)
    grid = [f"ceil_div({p}, {evaluate_int(d, values)})" for p, d in zip(space.problem, space.divisors, strict=True)]
    block = [str(values.get(axis, 1)) for axis in _AXES]
    lines = [f"// entry: {space.entry}", f"// grid: {' | '.join(grid)}", f"// block: {' '.join(block)}"]
    lines += [f"// args: {' '.join(space.args)}", *(f"#define {n} {v}" for n, v in values.items())]
    return "\n".join(lines) + "\n" + space.source
