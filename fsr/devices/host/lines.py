"""Instruction addresses of an image to lines of the candidate, by binutils' addr2line."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable

SOURCE_NAME = "candidate.cu"  # what the toolchain calls the candidate's text in debug information
_CHUNK = 2000


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
            for start in range(0, len(addresses), _CHUNK):
                text = "\n".join(f"{address:#x}" for address in addresses[start : start + _CHUNK])
                run = subprocess.run(command, input=text, pass_fds=(file,), capture_output=True, text=True, check=False)
                self._read(run.stdout)
        finally:
            os.close(file)

    def _read(self, output: str) -> None:
        address = -1
        for line in output.splitlines():
            if line.startswith("0x"):
                address = int(line, 16)
                continue
            path, _, rest = line.rpartition(":")
            number = rest.split()[0] if rest else ""
            if path.endswith(SOURCE_NAME) and number.isdigit() and int(number) and self._known.get(address) is None:
                self._known[address] = int(number)
