"""The queue folder: kernels that a build compiled without a winner, for the daemon to refine.

``$FSR_HOME/queue/`` holds one file a job, ``<SHA-256 of the kernel file>.job``: text in UTF-8, one field a line, the
name up to the first space, unknown names ignored::

    fsr-queue 1
    kernel /absolute/path/of/kernel.cu
    source <SHA-256 of its bytes when it was queued>
    given -I/absolute/folder
    given -DNAME=VALUE

``given`` stands once for each folder of includes and macro that the kernel is compiled under; where there are any, the
file is named by the digest of the source's and theirs, since each of these is a job of its own.
Writers create a draft whose name begins with a dot and rename it, so that a job is there whole or not at all; a job
that is there already stays: a winner holds for all files of these bytes. The daemon of this home reads them
(:func:`read`) and removes a file once its own queue holds the job, so that none is lost between the two. A job whose
file has other bytes by now is void: the next build queues the new ones.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fsr.cache.digest import text_digest

HEAD, SUFFIX = "fsr-queue 1", ".job"
MOST_LINES = 256


@dataclass(frozen=True, slots=True)
class Job:
    """A kernel file, the digest of the bytes that are to be refined, and -I (absolute) and -D in their order."""

    kernel: Path
    source: str
    given: tuple[str, ...] = ()

    @property
    def current(self) -> bool:
        """Whether the file still has those bytes."""
        try:
            return text_digest(self.kernel.read_bytes()) == self.source
        except OSError:
            return False


def queue_of(home: str | os.PathLike[str]) -> Path:
    """The queue folder of a home folder."""
    return Path(home) / "queue"


def put(folder: Path, kernel: Path, include_dirs: Iterable[str] = (), defines: Iterable[str] = ()) -> Job:
    """Queue a kernel file as it is now, to be compiled under these; one that is queued already stays. Raises OSError,
    and ValueError for a path that holds a line break."""
    path = kernel.absolute()
    given = (*(f"-I{Path(name).absolute()}" for name in include_dirs), *(f"-D{text}" for text in defines))
    for text in (str(path), *given):
        if "\n" in text:
            raise ValueError(f"the path of a job holds a line break: {text!r}")
    job = Job(path, text_digest(path.read_bytes()), given)
    name = text_digest("\n".join((job.source, *given)).encode("utf-8", "surrogateescape")) if given else job.source
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / (name + SUFFIX)
    if not place.exists():
        lines = [HEAD, f"kernel {path}", f"source {job.source}", *(f"given {text}" for text in given)]
        draft = folder / f".{name}.{os.getpid()}"
        draft.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
        draft.replace(place)
    return job


def waiting(folder: Path) -> Iterator[Path]:
    """The files of the jobs that wait, oldest first."""
    found = []
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # taken meanwhile: the others wait nevertheless
                if entry.name.endswith(SUFFIX):
                    found.append((entry.stat().st_mtime_ns, entry.path))
    yield from (Path(path) for _, path in sorted(found))


def read(place: Path) -> Job | None:
    """The job of a file of the queue; None when the file is gone or is no job. Raises OSError."""
    try:
        text = place.read_bytes().decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        return None
    head, *lines = text.split("\n")[:MOST_LINES]
    pairs = [line.partition(" ")[::2] for line in lines]
    fields = dict(pairs)
    if head != HEAD or not {"kernel", "source"} <= set(fields) or not fields["kernel"].startswith("/"):
        return None
    return Job(Path(fields["kernel"]), fields["source"], tuple(value for name, value in pairs if name == "given"))
