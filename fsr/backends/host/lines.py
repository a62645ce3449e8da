"""Instruction addresses of an image to lines of the candidate, by binutils' addr2line."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable

from fsr.sandbox.environment import run_tool

SOURCE_NAME = "candidate.cu"  # what the toolchain calls the candidate's text in debug information
_CHUNK = 2000
_BACK = range(8, 97, 8)  # bytes; about two instructions a step


class Lines:
    """Line numbers of one image; each address is looked up once."""

    def __init__(self, image: bytes) -> None:
        self._image = image
        self._known: dict[int, int | None] = {}

    def find(self, addresses: Iterable[int]) -> dict[int, int | None]:
        """Line in the candidate for each address (offset in the image), through inlined calls: the innermost
        frame that lies in the candidate's text. None where it is unknown."""
        wanted = set(addresses)
        missing = sorted(wanted - self._known.keys())
        if missing:
            self._known |= dict.fromkeys(missing)
            self._look_up(missing)
        return {address: self._known[address] for address in wanted}

    def _look_up(self, addresses: list[int]) -> None:
        tool = shutil.which("addr2line") or shutil.which("llvm-addr2line")
        if tool is None:
            return
        file = os.memfd_create("fsr-image")
        try:
            os.write(file, self._image)
            command = [tool, "-a", "-i", "-e", f"/proc/self/fd/{file}"]
            self._known |= self._ask(command, file, {address: address for address in addresses})
            lost = [address for address in addresses if self._known[address] is None]
            if lost:
                # Code that the compiler merged from two places has no line: take that of what stands before it.
                before = {address - back: address for back in _BACK for address in lost if address > back}
                self._known |= self._ask(command, file, before)
        finally:
            os.close(file)

    def _ask(self, command: list[str], file: int, meaning: dict[int, int]) -> dict[int, int]:
        """Lines for the values of ``meaning``, from looking up its keys; the first that has a line counts."""
        found: dict[int, int] = {}
        keys = list(meaning)
        for start in range(0, len(keys), _CHUNK):
            text = "\n".join(f"{key:#x}" for key in keys[start : start + _CHUNK])
            run = run_tool(command, input=text, pass_fds=(file,))
            key = -1
            for line in run.stdout.splitlines():
                if line.startswith("0x"):
                    key = int(line, 16)
                    continue
                path, _, rest = line.rpartition(":")
                number = rest.split()[0] if rest else ""
                if path.endswith(SOURCE_NAME) and number.isdigit() and int(number):
                    found.setdefault(meaning[key], int(number))
        return found
