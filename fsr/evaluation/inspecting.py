"""What tools say of a candidate that is to be promoted: the access recorder, and a GPU's sanitizers.

Their binaries are built, and the sanitizers run, in processes of their own: that begins before the tests and goes on
beside them, on other cores. All has ended before anything is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial

from fsr.backends.backend import ToolReport
from fsr.backends.protocol import Buffer
from fsr.backends.select import parse_device
from fsr.backends.toolchain import Toolchain
from fsr.errors import MissingToolError
from fsr.evaluation.compiling import run_toolchain, settled
from fsr.evaluation.session import Session
from fsr.evaluation.spec import Binaries, SessionSpec
from fsr.evaluation.testing import CaseFailure
from fsr.evaluation.watching import SILENT, watch, watched_images
from fsr.records import Candidate, Case, CaseKind, ConcreteLaunch, Image, Json
from fsr.testgen.cases import HOST_ELEMENTS
from fsr.testgen.fitting import elements
from fsr.testgen.placing import place
from fsr.testgen.values import build

_POISON = 5
Inspected = tuple[CaseFailure | None, dict[str, Json]]


@contextmanager
def inspecting(
    session: Session, candidate: Candidate, binaries: Binaries, cases: list[Case]
) -> Iterator[Callable[[], Inspected]]:
    """What gives the first fault that tools find on the cases, and what each said: 'silent' or 'not available: why'.

    The tools are the access recorder, which watches other orders of blocks and threads on the host device also where
    the candidate runs on a GPU, and there compute-sanitizer's too. At the end of the block all have ended."""
    if not session.spec.backend.sanitizes:
        yield partial(_inspected, session, candidate, cases, None, None)
        return
    host = session.recorder()  # here: the session is not for several threads
    toolchain = host.watching_toolchain()
    with ThreadPoolExecutor(2, "inspecting") as aside:
        reports = aside.submit(_reports, session, candidate, binaries, cases)
        images = aside.submit(_images, toolchain, session.spec, candidate)
        yield partial(_inspected, session, candidate, cases, images, reports)


def _inspected(
    session: Session,
    candidate: Candidate,
    cases: list[Case],
    images: Future[tuple[Image | None, Image | None]] | None,
    reports: Future[tuple[Case | None, list[ToolReport]]] | None,
) -> Inspected:
    failure, said_of_orders = watch(session, candidate, cases, *(images.result() if images is not None else ()))
    said: dict[str, Json] = {"recorder": said_of_orders}
    if failure is not None or reports is None:
        return failure, said
    case, found = reports.result()
    for report in found:
        if report.faults and case is not None:
            return CaseFailure(case, fault=report.faults[0]), said
        said[report.tool] = SILENT if report.silent else f"not available: {report.note}"
    return None, said


def _images(toolchain: Toolchain, spec: SessionSpec, candidate: Candidate) -> tuple[Image | None, Image | None]:
    try:
        return watched_images(toolchain, spec, candidate)
    except MissingToolError:
        return None, None  # watching says so


def _reports(
    session: Session, candidate: Candidate, binaries: Binaries, cases: list[Case]
) -> tuple[Case | None, list[ToolReport]]:
    """The case that the sanitizers saw, and what they say; None and nothing where no case launches anything."""
    contract = session.contract
    usable = [c for c in cases if c.kind is not CaseKind.NAMED and session.launches(c)]
    small = [c for c in usable if elements(contract, c.size_map()) <= HOST_ELEMENTS]
    if not usable:
        return None, []
    case = (small or usable[:1])[-1]  # what a tool takes grows with the accesses; its start takes a second anyway
    launches, buffers = place(contract, candidate.plan, case, build(contract, case, _POISON), _POISON)
    return case, _sanitized(session, candidate, binaries, launches, buffers) if launches else []


def _sanitized(
    session: Session,
    candidate: Candidate,
    binaries: Binaries,
    launches: Sequence[ConcreteLaunch],
    buffers: Sequence[Buffer],
) -> list[ToolReport]:
    """What compute-sanitizer's tools say; with source lines where the build with line tables succeeds."""
    built = run_toolchain(session.spec).compile(settled(session.spec, candidate), instrumented=True)
    image = built if isinstance(built, Image) else binaries.run
    return session.spec.backend.sanitize(image, launches, buffers, parse_device(session.spec.device).index)
