"""Instruction addresses of an image to lines of the candidate, by binutils' addr2line."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from fsr.sandbox.environment import run_tool

SOURCE_NAME = "candidate.cu"  # what the toolchain calls the candidate's text in debug information
_CHUNK = 2000
_BACK = range(8, 97, 8)  # bytes; about two instructions a step


class Lines:
    """Line numbers of one image; each address is looked up once."""

    def __init__(self, image: bytes) -> None:
        self._image = image
        self._known: dict[int, int | None] = {}
        self._own: dict[int, int] | None = None

    def find(self, addresses: Iterable[int]) -> dict[int, int | None]:
        """Line in the candidate for each address (offset in the image), through inlined calls: the innermost
        frame that lies in the candidate's text. None where it is unknown."""
        wanted = set(addresses)
        missing = sorted(wanted - self._known.keys())
        if missing:
            self._known |= dict.fromkeys(missing)
            self._look_up(missing)
        return {address: self._known[address] for address in wanted}

    def own(self, addresses: Iterable[int]) -> dict[int, int]:
        """Lines of those addresses whose code stands in the candidate's text, rather than in a function of a header
        that was inlined there. Asked for all of an image at once: the first answer stays."""
        if self._own is None:
            with self._command() as ask:
                self._own = ask({address: address for address in addresses}, True)
        return self._own

    def _look_up(self, addresses: list[int]) -> None:
        with self._command() as ask:
            self._known |= ask({address: address for address in addresses}, False)
            lost = [address for address in addresses if self._known[address] is None]
            if lost:
                # Code that the compiler merged from two places has no line: take that of what stands before it.
                self._known |= ask(
                    {address - back: address for back in _BACK for address in lost if address > back}, False
                )

    @contextmanager
    def _command(self) -> Iterator[Callable[[dict[int, int], bool], dict[int, int]]]:
        """What answers for the addresses that are the keys, see :func:`_ask`; with nothing, where no tool is there."""
        tool = shutil.which("addr2line") or shutil.which("llvm-addr2line")
        if tool is None:
            yield lambda *_: {}
            return
        file = os.memfd_create("fsr-image")
        try:
            os.write(file, self._image)
            yield partial(_ask, [tool, "-a", "-i", "-e", f"/proc/self/fd/{file}"], file)
        finally:
            os.close(file)


def _ask(command: list[str], file: int, meaning: dict[int, int], innermost: bool) -> dict[int, int]:
    """Lines for the values of ``meaning``, from looking up its keys; the first that has a line counts. ``innermost``:
    only what stands in the candidate's text itself."""
    found: dict[int, int] = {}
    keys = list(meaning)
    for start in range(0, len(keys), _CHUNK):
        text = "\n".join(f"{key:#x}" for key in keys[start : start + _CHUNK])
        run = run_tool(command, input=text, pass_fds=(file,))
        key, outer = -1, False
        for line in run.stdout.splitlines():
            if line.startswith("0x"):
                key, outer = int(line, 16), False
                continue
            path, _, rest = line.rpartition(":")
            number = rest.split()[0] if rest else ""
            if path.endswith(SOURCE_NAME) and number.isdigit() and int(number) and not (innermost and outer):
                found.setdefault(meaning[key], int(number))
            outer = True
    return found
