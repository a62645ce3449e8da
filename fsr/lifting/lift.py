"""Lifting a candidate: watched at a few sizes, generalised, checked against the original at others."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from fsr.backends.host.compiler import HostToolchain
from fsr.backends.host.device import HostDevice, open_host_device
from fsr.backends.host.traced import TracedImage, TracingToolchain
from fsr.computation.data_rows import has_data_rows
from fsr.contract.model import Contract
from fsr.contract.row_starts import RowStarts, row_starts
from fsr.errors import ContractError, MissingToolError
from fsr.lifting.allowance import Allowance
from fsr.lifting.attempt import Attempt
from fsr.lifting.by_rows import RowAttempt
from fsr.lifting.check import Checker
from fsr.lifting.chosen import with_selects
from fsr.lifting.found import Lifting
from fsr.lifting.grouped import in_groups
from fsr.lifting.launches import Steps, apart, known_alone
from fsr.lifting.refused import Refused
from fsr.lifting.watching import Watcher
from fsr.records import Candidate, CompileFailure, Image
from fsr.transform.launch_alone import launches_alone

LIMIT_S = 10.0  # for watched runs and the thinking about one candidate (see Allowance), compiling aside
_STEPS_SHARE = 2.0  # of that, by the clock: after it no launch of a plan is lifted alone any more
_WHOLE_SHARE = 0.5  # of that for the whole of a plan whose launches may be lifted alone
_AGAIN_SHARE = 0.5  # of that where a kernel is launched again on what it made: its elements are made of many
_GROUPS_SHARE = 0.5  # of that, where launches count groups of what the contract has as one dimension
_ROWS_SHARE = 0.4  # of that, where a contract tells where rows begin: what fails then is watched as ever
_DEEP = 20_000


def lift(
    contract: Contract,
    candidate: Candidate,
    *,
    limit_s: float = LIMIT_S,
    compile_s: float = 30.0,
    stopped: Callable[[], bool] = lambda: False,
) -> Lifting:
    """What the candidate computes, checked; else why not, and which launches of its plan are known for themselves. Runs
    it confined on the host device. Never raises for a candidate's sake. ``stopped``: whether nobody waits for it."""
    whole = partial(lift_whole, stopped=stopped)
    steps = Steps(whole, time.monotonic() + _STEPS_SHARE * limit_s, limit_s / 2, compile_s)
    alone = launches_alone(contract, candidate.plan)
    whole_s = limit_s * (_WHOLE_SHARE if alone else 1.0) * (_AGAIN_SHARE if any(one.often for one in alone) else 1.0)
    found = whole(contract, candidate, limit_s=whole_s, compile_s=compile_s, steps=steps)
    if found.computation is not None and not (alone and has_data_rows(found.computation)):
        return found  # of a plan with rows of data its launches are written anew each for itself
    return replace(found, alone=tuple(known_alone(contract, candidate, steps)))


def lift_whole(
    contract: Contract,
    candidate: Candidate,
    *,
    limit_s: float,
    compile_s: float,
    steps: Steps | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Lifting:
    """As :func:`lift`, of the plan as a whole. ``steps``: how its launches are lifted, too; None: they are not."""
    for grouped in in_groups(contract):
        found = _lifted(grouped, candidate, _GROUPS_SHARE * limit_s, compile_s, steps, stopped)
        if found.computation is not None:
            return found
        limit_s *= 1.0 - _GROUPS_SHARE
    return _lifted(contract, candidate, limit_s, compile_s, steps, stopped)


def _lifted(
    contract: Contract,
    candidate: Candidate,
    limit_s: float,
    compile_s: float,
    steps: Steps | None,
    stopped: Callable[[], bool],
) -> Lifting:
    """As lift_whole, of buffers as the contract has them."""
    started = time.monotonic()
    if stopped():
        return Lifting(None, "it was stopped")
    try:
        watched = replace(candidate, source=with_selects(candidate.source))
        traced = TracingToolchain().compile(watched, compile_s)
        if isinstance(traced, CompileFailure) and watched != candidate:
            traced = TracingToolchain().compile(candidate, compile_s)  # as it stands
        image = HostToolchain().compile(candidate, timeout_s=compile_s)
    except MissingToolError as missing:
        return Lifting(None, str(missing))
    except OSError as fault:  # no place for files, say; the search goes on without a lifting
        return Lifting(None, f"the machine refused: {fault.strerror or fault}")
    for failure in (traced, image):
        if isinstance(failure, CompileFailure):
            first = next(iter(failure.log.splitlines()), "")
            return Lifting(None, f"it does not compile for the host device: {first}")
    assert isinstance(image, Image)
    assert isinstance(traced, TracedImage)
    device = open_host_device()
    deep = sys.getrecursionlimit()
    sys.setrecursionlimit(max(deep, _DEEP))
    try:
        if starts := row_starts(contract):
            within = Allowance(_ROWS_SHARE * limit_s, stopped=stopped)
            by_rows = _lifted_by_rows(contract, candidate, (traced, image), device, starts, within)
            if by_rows is not None:
                return by_rows
        watcher = Watcher(contract, candidate, traced, device, Allowance(limit_s, stopped=stopped))
        checker = Checker(contract, candidate, image, device, watcher.observed)
        attempt = Attempt(watcher, checker, traced.blind)
        if steps is None or not apart(candidate):
            return attempt.lifted(started)
        return attempt.lifted_in_steps(started, steps)
    except (Refused, ContractError) as why:
        return Lifting(None, str(why), time.monotonic() - started)
    except ValueError as why:  # sizes at which a shape is none, say
        return Lifting(None, f"not watched: {why}", time.monotonic() - started)
    finally:
        sys.setrecursionlimit(deep)
        device.close()


def _lifted_by_rows(
    contract: Contract, candidate: Candidate, images: tuple[TracedImage, Image], device: HostDevice,
    starts: Sequence[RowStarts], allowance: Allowance,
) -> Lifting | None:  # fmt: skip
    """With arrays of row starts that are chosen; None where nothing is known like that."""
    traced, image = images
    watcher = Watcher(contract, candidate, traced, device, allowance, starts)
    attempt = RowAttempt(watcher, Checker(contract, candidate, image, device), traced.blind, starts)
    try:
        return attempt.lifted(time.monotonic())
    except (Refused, ContractError, ValueError):
        return None
