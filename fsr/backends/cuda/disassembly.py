"""The machine code of a cubin as text, where NVIDIA's disassembler is installed."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import tempfile
from pathlib import Path

from fsr.backends.cuda.watching import find_tool
from fsr.records import Image
from fsr.sandbox.environment import run_tool

TIMEOUT_S = 20.0


def find_disassembler() -> str | None:
    """nvdisasm: the toolkit's, or that of the package nvidia-cuda-nvdisasm. None without."""
    found = find_tool("nvdisasm")
    spec = importlib.util.find_spec("nvidia")
    for location in (spec.submodule_search_locations or ()) if spec else ():
        for folder in sorted(Path(location).glob("*/bin")):
            found = found or shutil.which("nvdisasm", path=str(folder))
    return found


def disassembled(image: Image) -> str | None:
    """SASS of every kernel, each in a section named ``.text.<symbol>``; None without nvdisasm, or where it fails."""
    program = find_disassembler()
    if program is None or image.kind != "cubin":
        return None
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(image.data)
        file.flush()
        try:
            done = run_tool([program, "-c", file.name], timeout=TIMEOUT_S)
        except (OSError, subprocess.TimeoutExpired):
            return None
    return done.stdout if done.returncode == 0 else None
