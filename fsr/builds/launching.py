"""``fsr launch COMPILER ARGUMENT...``: what fsr-launch asks when a file may have a winner.

The compiler runs on the winner, which lies in a folder of the cache under the original's file name, with the
original's folder searched for its includes and the original's path in __FILE__ and in the dependency file. Whatever
does not fit, and a winner that does not compile, ends with the compiler called as it was.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from fsr.builds.command import Command, read_command
from fsr.builds.depfile import restore_source
from fsr.builds.queue import put as put_job
from fsr.builds.queue import queue_of
from fsr.builds.serving import Served, served, unfit
from fsr.cache.layers import Found, Layers
from fsr.errors import EXIT_USAGE, FsrError
from fsr.given import latest, why_no_define

USAGE = """usage: fsr-launch COMPILER ARGUMENT...

Runs the compiler. A .cu file with a winner for this GPU, proven for this launch and these flags, is replaced by it;
everything else is compiled as it is. FSR_LAUNCH=off leaves fsr out; words joined by commas: verbose says what is done,
queue leaves a job for `fsr daemon` where there is no winner."""


def main(arguments: list[str], layers: Layers, home: str) -> int:
    """Run the compiler; its exit code. Does not return where the compiler is called as it was. ``home``: that of
    the queue of jobs."""
    words = arguments[1:] if arguments[:1] == ["--"] else arguments
    if not words or words[0] in ("-h", "--help"):
        print(USAGE)
        return 0 if words else EXIT_USAGE
    environment = os.environ
    more = f"{environment.get('NVCC_PREPEND_FLAGS', '')} {environment.get('NVCC_APPEND_FLAGS', '')}"
    command = read_command(words, more)
    if isinstance(command, str):
        return as_it_is(words, command)
    try:
        found = layers.find(command.path, given=None)
        if found is None:
            queue(command, home)
        chosen = "no winner for this GPU and these includes" if found is None else chosen_for(command, found)
    except (FsrError, OSError, KeyError, TypeError, ValueError) as fault:
        chosen = f"the cache cannot be used: {fault}"
    if isinstance(chosen, str) or found is None:
        return as_it_is(words, f"{command.path}: {chosen}; compiled as it is")
    try:
        return compiled(command, found, chosen)
    except OSError as fault:
        return as_it_is(words, f"{command.path}: the winner cannot be placed: {fault}")


def chosen_for(command: Command, found: Found) -> Served | str:
    """The winner for this command, or why not."""
    kernel = Path(command.path)
    return unfit(command, found.hit, kernel) or served(found.hit, kernel)


def compiled(command: Command, found: Found, chosen: Served) -> int:
    """Compile the winner; the compiler's exit code, or the original's where the winner does not compile."""
    folder = os.path.dirname(command.path) or "."  # noqa: PTH120
    place = found.folder / "kept" / Path(command.path).name
    if any(mark in f"{folder}{place.parent}" for mark in ",=\n"):
        return as_it_is(list(command.words), f"{command.path}: its path holds a comma or =; compiled as it is")
    put(place, chosen.text)
    words = list(command.words)
    words[command.source] = str(place)
    words += [*chosen.flags, f"-Xcompiler=-iquote,{folder},-fmacro-prefix-map={place.parent}={folder}"]
    ran = subprocess.run(words, capture_output=True, check=False)
    if ran.returncode:
        return as_it_is(list(command.words), f"{command.path}: the winner does not compile here; compiled as it is")
    depfile = command.depfile()
    if depfile is not None:
        restore_source(depfile, str(place), command.path)
    sys.stdout.buffer.write(ran.stdout)
    sys.stderr.buffer.write(ran.stderr)
    flags = f" with {' '.join(chosen.flags)}" if chosen.flags else ""
    say(f"{command.path}: compiled the winner {found.hit.key[:16]} in its place{flags}")
    return 0


def put(place: Path, text: str) -> None:
    """Write a file atomically, unless it holds the text already. Raises OSError."""
    data = text.encode("utf-8", "surrogateescape")
    if place.is_file() and place.read_bytes() == data:
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.with_name(f".{place.name}.{os.getpid()}")
    draft.write_bytes(data)
    draft.replace(place)


def as_it_is(words: list[str], why: str) -> int:
    """Become the compiler. Returns, with 127, only where it cannot be started."""
    say(why)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execvp(words[0], words)
    except OSError as fault:
        print(f"fsr-launch: {words[0]} cannot be started: {fault.strerror}", file=sys.stderr)
    return 127


def queue(command: Command, home: str) -> None:
    """Leave a job for the daemon where FSR_LAUNCH asks for it; a queue that cannot be written never stops a build."""
    if asked("queue") and home:
        with suppress(OSError, ValueError, FsrError):
            put_job(queue_of(home), Path(command.path), *seen(command))


def seen(command: Command) -> tuple[list[str], list[str]]:
    """The command's folders of includes and macros that its kernel sees: where a file comes from that is not found
    without them, and what a file names. Whatever else it sets makes no other kernel. Raises FsrError."""
    from fsr.source.file import KernelFile  # 60 ms that only a miss pays

    kernel = Path(command.path)
    folders = [folder for value in command.values("include") for folder in value.split(",")]
    plain, whole = KernelFile.read(kernel).included, KernelFile.read(kernel, [Path(f) for f in folders]).included
    more = [path.resolve() for path in whole - plain]
    used = [f for f in dict.fromkeys(folders) if any(path.is_relative_to(Path(f).resolve()) for path in more)]
    texts = [path.read_text(errors="surrogateescape") for path in (kernel, *whole)]
    named = {word for text in texts for word in re.findall(r"[A-Za-z_]\w*", text)}
    macros = [text for text in latest(command.values("define")) if text.partition("=")[0] in named]
    return used, [text for text in macros if not why_no_define(text)]


def asked(word: str) -> bool:
    """Whether FSR_LAUNCH holds a word."""
    return word in os.environ.get("FSR_LAUNCH", "").split(",")


def say(text: str) -> None:
    """A line on standard error where FSR_LAUNCH asks for it."""
    if asked("verbose"):
        print(f"fsr-launch: {text}", file=sys.stderr)
