"""The host device's child process: a confined child with a page of memory in which it leaves its last fault."""

from __future__ import annotations

import mmap
import os
import sys
from pathlib import Path

from fsr.backends.host.abi import FaultRecord
from fsr.sandbox.child import Child, ChildDied, ChildTimedOut


class HostChild(Child):
    """One running child. ``contain``: 'module:function', called in it before any candidate is loaded."""

    def __init__(self, contain: str = "") -> None:
        fault_file = os.memfd_create("fsr-fault")
        os.ftruncate(fault_file, mmap.PAGESIZE)
        self._page = mmap.mmap(fault_file, mmap.PAGESIZE)
        path = os.pathsep.join([str(Path(__file__).parents[3]), *filter(None, sys.path)])
        command = [sys.executable, "-m", "fsr.backends.host.server", str(fault_file), contain]
        try:
            super().__init__(command, "the host device's child process", [fault_file], {"PYTHONPATH": path})
        finally:
            os.close(fault_file)

    def fault(self) -> FaultRecord:
        """A copy of what the last launch did wrong."""
        return FaultRecord.from_buffer_copy(self._page)


__all__ = ["ChildDied", "ChildTimedOut", "HostChild"]
