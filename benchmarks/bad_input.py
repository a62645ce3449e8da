"""What `fsr` answers to input that is wrong: generated and hand-written, every command, each in a folder of its own.

    python benchmarks/bad_input.py OUT_DIR [--seed 0] [--generated 520] [--at-once 2] [--only NAME] [--keep]

Every input is run by a fork of this process, in which fsr is imported already, so that hundreds take minutes. Judged:

* the exit code is one that docs/command-line.md names for this fault;
* a refusal is one message on standard error of at most a screen, that begins with ``fsr:`` and says what to do next
  (a wrong word on the command line: click's usage), and nothing on standard output;
* no traceback, no "fault of fsr itself", no death by a signal;
* an answer within 10 s of wall time, times the runnable processes a core where the machine is busy, and no process
  left behind;
* the folder as it was before, byte for byte; no draft, no empty run, nothing in the folder for temporary files.

OUT_DIR/bad_input.json: the figures by group, and every fault with the command, the code and what was printed.
"""

from __future__ import annotations

import argparse
import ctypes
import fcntl
import hashlib
import importlib
import json
import os
import resource
import shutil
import signal
import stat
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.bad.drawn import drawn  # noqa: E402  # the checkout, installed or not
from benchmarks.bad.inputs import Bad  # noqa: E402
from benchmarks.bad.places import elsewhere  # noqa: E402
from benchmarks.bad.written import given  # noqa: E402

LIMIT_S, KILL_AFTER_S, GRACE_S = 10.0, 15.0, 1.0
MOST_BYTES, MOST_HASHED, PIPE_BYTES = 2 << 30, 1 << 20, 1 << 20
SCREEN, WIDEST = 24, 1500
PR_SET_CHILD_SUBREAPER = 36
NOBODY = 65534
Shot = dict[str, tuple[int, str]]


@dataclass
class Running:
    """An input on its way. folder: holds ``work``, ``home`` and ``tmp``. streams: the ends to read its outputs
    from, pipes, since limits on files are among what is tested."""

    bad: Bad
    folder: Path
    before: Shot
    home: Shot
    pid: int = 0
    streams: tuple[int, ...] = ()
    started: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class Judged:
    """faults: in words; empty for an input that was answered as it should be."""

    name: str
    group: str
    arguments: tuple[str, ...]
    code: int
    seconds: float
    faults: tuple[str, ...]
    out: str
    err: str


# ---------------------------------------------------------------- running


def warm() -> None:
    """Import what commands import when they are used, and what is imported late: nobody may not read all of Python."""
    for late in ("colorsys", "fractions"):
        importlib.import_module(late)

    import fsr.app.checking
    import fsr.app.explaining
    import fsr.cli.main
    import fsr.runs.run

    for name in fsr.cli.main.COMMANDS:
        fsr.cli.main.fsr.get_command(None, name)  # type: ignore[arg-type]  # the context is not asked


def start(bad: Bad, folder: Path) -> Running:
    """Make the folder and begin."""
    for name in ("work", "home", "tmp"):
        (folder / name).mkdir(parents=True)
    bad.prepare(folder / "work", folder / "home")
    if bad.as_nobody:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    running = Running(bad, folder, shot(folder / "work"), shot(folder / "home"))
    streams = [os.pipe2(os.O_CLOEXEC) for _ in range(2)]
    running.pid = os.fork()
    if running.pid == 0:
        child(bad, folder, [write for _, write in streams])
    for read, write in streams:
        os.close(write)
        os.set_blocking(read, False)
        fcntl.fcntl(read, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    running.streams = tuple(read for read, _ in streams)
    return running


def spoken(running: Running) -> tuple[str, str]:
    """What it wrote to its standard output and error, up to PIPE_BYTES each."""
    found = []
    for read in running.streams:
        text = b""
        with suppress(BlockingIOError):  # nothing, and a process that it left behind still has the other end
            text = os.read(read, PIPE_BYTES)
        os.close(read)
        found.append(text.decode(errors="replace"))
    return found[0], found[1]


def child(bad: Bad, folder: Path, streams: list[int]) -> NoReturn:
    """The fork: as a process that was just started."""
    code = 99
    try:
        os.setsid()
        for number, stream in enumerate(streams, 1):
            os.dup2(stream, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.closerange(3, 256)
        os.chdir(folder / "work")
        places = {"work": str(folder / "work"), "home": str(folder / "home")}
        tempfile.tempdir = None
        os.environ.update(FSR_HOME=places["home"], TMPDIR=str(folder / "tmp"), COLUMNS="100")
        os.environ.update({k: v.format(**places) for k, v in bad.env.items()})
        for which, value in bad.limits.items():
            resource.setrlimit(which, (value, value))
        if bad.as_nobody:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        sys.argv = ["fsr", *(a.replace("{work}", places["work"]) for a in bad.arguments)]
        code = called()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def called() -> int:
    """fsr's own main, with what Python does at the end of a process."""
    from fsr.__main__ import main

    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
        code = 98
    import atexit

    atexit._run_exitfuncs()
    return code


def reaped(running: Running) -> tuple[int, float] | None:
    """(exit code or minus the signal, seconds); None while it runs. Kills what is far beyond its time or memory."""
    seconds = time.monotonic() - running.started
    pid, status = os.waitpid(running.pid, os.WNOHANG)
    if not pid and (seconds > allowed_s() + KILL_AFTER_S or resident(running.pid) > MOST_BYTES):
        os.kill(running.pid, signal.SIGKILL)
        pid, status = os.waitpid(running.pid, 0)
    return (os.waitstatus_to_exitcode(status), seconds) if pid else None


def allowed_s() -> float:
    """How long an answer may take now."""
    return LIMIT_S * max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0)))


def resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    with suppress(OSError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()
    return 0


def left_behind(folder: Path) -> list[int]:
    """Processes that were started with this folder in their environment or arguments and still live; ends them."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            pid = int(entry.name)
            told = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
            if f"{folder}/".encode() in told and "Z" not in (entry / "stat").read_text().rpartition(")")[2][:3]:
                found.append(pid)
    return found


# ---------------------------------------------------------------- judging


def shot(folder: Path) -> Shot:
    """Path to (mode, digest or target) of everything in a folder."""
    found: Shot = {}
    for path in sorted(folder.rglob("*")):
        told = path.lstat()
        content = ""
        if stat.S_ISREG(told.st_mode) and told.st_size > MOST_HASHED:
            content = f"{told.st_size} bytes of {told.st_mtime_ns}"
        elif stat.S_ISREG(told.st_mode):
            with suppress(OSError):
                content = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        found[str(path.relative_to(folder))] = (told.st_mode, content)
    return found


def judged(running: Running, code: int, seconds: float) -> Judged:
    """All that is asked of an answer."""
    bad, folder = running.bad, running.folder
    out, err = spoken(running)
    faults = []
    if code == -signal.SIGKILL and seconds < LIMIT_S + KILL_AFTER_S:
        faults.append("took over 2 GB of memory")
    if code not in bad.codes:
        faults.append(f"exit code {code}, expected {sorted(bad.codes)}")
    if "Traceback (most recent" in out + err or "fault of fsr itself" in err:
        faults.append("traceback")
    if seconds > allowed_s():
        faults.append(f"took {seconds:.1f} s at load {os.getloadavg()[0]:.1f}")
    if code not in (0, 3):
        faults += message_faults(bad, out, err)
    if bad.words and bad.words not in err + out:
        faults.append(f"does not say {bad.words!r}")
    if code != -signal.SIGKILL:  # what was killed could not tidy up
        faults += [f"left: {name}" for name in leftovers(running, code)]
    deadline = time.monotonic() + GRACE_S
    while (alive := left_behind(folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    faults += [f"process {pid} goes on" for pid in alive]
    for pid in alive:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    return Judged(bad.name, bad.group, bad.arguments, code, round(seconds, 2), tuple(faults), out[:2000], err[:3000])


def message_faults(bad: Bad, out: str, err: str) -> Iterator[str]:
    """What is wrong with a refusal's words."""
    said = "\n".join(line for line in err.splitlines() if not line.startswith("fsr: ") or ", " not in line[-12:])
    verdict = bad.arguments[:1] in (("check",), ("evaluate",)) and out.startswith(("failed", "{"))
    if verdict or bad.arguments[:1] == ("doctor",) or bad.arguments[:2] == ("cache", "verify"):
        return
    if out:
        yield "something on standard output"
    if not err.startswith(("fsr: ", "Usage: ")):
        yield "no message of fsr"
    if err.startswith("fsr: ") and "\n  next: " not in err:
        yield "does not say what to do next"
    if len(said.splitlines()) > SCREEN or max(map(len, err.splitlines()), default=0) > WIDEST:
        yield "more than a screen"


def leftovers(running: Running, code: int) -> Iterator[str]:
    """What stands in the folders that did not stand there, or not so."""
    folder = running.folder
    after = shot(folder / "work")
    for name in sorted(set(after) | set(running.before)):
        changed = after.get(name) != running.before.get(name)
        if changed and (code != 0 or name.rpartition("/")[2].startswith(".")):
            yield f"work/{name}"
    yield from (f"tmp/{p.name}" for p in (folder / "tmp").iterdir())
    for path in (folder / "home").rglob("*"):
        empty_run = path.name == "events.jsonl" and path.is_file() and not path.stat().st_size
        new = str(path.relative_to(folder / "home")) not in running.home
        if new and (empty_run or "draft" in path.name):
            yield f"home/{path.relative_to(folder / 'home')}"


# ---------------------------------------------------------------- all of it


def run_all(inputs: list[Bad], at_once: int, base: Path, *, keep: bool) -> Iterator[Judged]:
    """Each in turn, so many at a time."""
    waiting, going = list(enumerate(inputs)), list[Running]()
    while waiting or going:
        while waiting and len(going) < at_once:
            index, bad = waiting.pop(0)
            going.append(start(bad, base / str(index)))
        time.sleep(0.02)
        for running in list(going):
            ended = reaped(running)
            if ended is None:
                continue
            going.remove(running)
            result = judged(running, *ended)
            if not keep or not result.faults:
                shutil.rmtree(running.folder, ignore_errors=True)
            yield result


def main() -> None:
    """Run them and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--generated", type=int, default=520)
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", action="store_true", help="Keep the folders of those that were answered wrongly.")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    warm()
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    inputs = [*given(), *elsewhere(), *drawn(asked.seed, asked.generated)]
    inputs = [bad for bad in inputs if asked.only in f"{bad.group}/{bad.name}"]
    base = Path(tempfile.mkdtemp(prefix="bad-input-"))
    base.chmod(0o755)
    found: list[Judged] = []
    for result in run_all(inputs, asked.at_once, base, keep=asked.keep):
        found.append(result)
        if len(found) % 100 == 0:
            print(f"{len(found)} of {len(inputs)}", file=sys.stderr, flush=True)
        if result.faults:
            print(f"{result.group}/{result.name}: {'; '.join(result.faults)}", flush=True)
    report = summary(found)
    report["faults"] = [asdict(r) for r in found if r.faults]
    (asked.out / "bad_input.json").write_text(json.dumps(report, indent=1, default=str))
    print(json.dumps({k: v for k, v in report.items() if k != "faults"}, indent=1))
    if not asked.keep:
        shutil.rmtree(base, ignore_errors=True)


def summary(found: list[Judged]) -> dict[str, Any]:
    """Counts by group."""
    groups: Mapping[str, Counter[str]] = {r.group: Counter() for r in found}
    for r in found:
        groups[r.group].update(inputs=1, faulty=bool(r.faults))
    return {
        "inputs": len(found), "faulty": sum(bool(r.faults) for r in found),
        "tracebacks": sum("traceback" in r.faults for r in found),
        "too_slow": sum(any("took" in f for f in r.faults) for r in found),
        "left_something": sum(any(f.startswith(("left", "process")) for f in r.faults) for r in found),
        "longest_s": max((r.seconds for r in found), default=0.0),
        "by_group": {name: dict(count) for name, count in sorted(groups.items())},
    }  # fmt: skip


if __name__ == "__main__":
    main()
