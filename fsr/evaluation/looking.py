"""What the tests of a promotion leave out, of the original and of the candidate, and the cases that run it.

Beside a GPU the host device looks while the tests run, for as long as they and its own time last; where tests run on
the host device itself, when it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from threading import Event

from fsr.backends.protocol import RecordingDevice, can_record
from fsr.backends.select import recording_backend
from fsr.evaluation.coverage import covered, in_words
from fsr.evaluation.session import Session
from fsr.evaluation.spec import SessionSpec
from fsr.records import Candidate, Case
from fsr.testgen.coverage import Covered

Looked = tuple[list[Case], str]


@contextmanager
def looking(session: Session, candidate: Candidate, own: Sequence[Case]) -> Iterator[Callable[[], Looked]]:
    """What gives cases for code of the original and of the candidate that the others hardly run, ``own`` ones of the
    candidate among them, and a word on what none runs of the candidate. What was not asked for ends with the block."""
    look = partial(_look, session.spec, candidate, own)
    if not session.spec.backend.sanitizes:
        yield lambda: _told(session, candidate, look(session.recorder(), _before(session)))
        return
    before, stop = _before(session), Event()  # here: the session is not for several threads
    host = recording_backend().open(0)
    assert can_record(host)
    try:
        with ThreadPoolExecutor(1, "looking") as aside:
            found = aside.submit(look, host, before, stop.is_set)
            try:
                yield lambda: _told(session, candidate, found.result())
            finally:
                stop.set()
    finally:
        host.close()


def _before(session: Session) -> tuple[list[Case], list[Case] | None]:
    """The cases that are known without looking, and those that were found for the original, once they are."""
    return session.known_cases(), session.coverage_cases() if session.looked else None


def _look(
    spec: SessionSpec,
    candidate: Candidate,
    own: Sequence[Case],
    host: RecordingDevice,
    before: tuple[list[Case], list[Case] | None],
    stopped: Callable[[], bool] = lambda: False,
) -> tuple[Covered | None, Covered]:
    """What is found for the original, None where it is known, and for the candidate."""
    known, found = before
    first = covered(spec, host, spec.baseline, known, stopped) if found is None else None
    for_original = first.cases if first is not None else found or ()
    return first, covered(spec, host, candidate, [*known, *own, *for_original], stopped)


def _told(session: Session, candidate: Candidate, found: tuple[Covered | None, Covered]) -> Looked:
    original, own = found
    if original is not None:
        session.covers(original)
    unrun = in_words(candidate.source, own.never, "the candidate") if own.never else ""
    return [*session.coverage_cases(), *own.cases], unrun
