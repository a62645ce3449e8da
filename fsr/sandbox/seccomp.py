"""seccomp: which system calls a process may make, as a hand-assembled filter of classic BPF.

seccomp(2), linux/seccomp.h, linux/filter.h. Refused calls answer ENOSYS, as on a kernel that lacks them: the C
library then takes another way or gives up, and a candidate that tries is simply not served.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from fsr.sandbox.landlock import no_new_privileges
from fsr.sandbox.syscalls import NUMBERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# linux/audit.h; column of NUMBERS
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_X32_BIT = 0x4000_0000  # x86_64's second calling convention, with numbers of its own
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_JMP|JGE|K, BPF_RET|K
_NUMBER_AT, _ARCH_AT, _ARGS_AT = 0, 4, 16  # offsets in struct seccomp_data
_ALLOW, _KILL, _ERRNO = 0x7FFF_0000, 0x8000_0000, 0x0005_0000
_REFUSE = _ERRNO | errno.ENOSYS
_PR_GET_SECCOMP, _PR_SET_SECCOMP, _MODE_FILTER = 21, 22, 2

_FCNTL_ALLOWED = (0, 1, 2, 3, 1030)  # F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_DUPFD_CLOEXEC: F_SETOWN sends signals

_libc = ctypes.CDLL(None, use_errno=True)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def _machine() -> str:
    return os.uname().machine


def available() -> bool:
    """Whether the running kernel has seccomp and this architecture's numbers are known."""
    return _machine() in _ARCHITECTURES and _libc.prctl(_PR_GET_SECCOMP, 0, 0, 0, 0) >= 0


def only(names: Iterable[str], own_pid: int, machine: str | None = None) -> bytes:
    """A filter that allows these calls, harmless ``fcntl``, and ``tgkill`` of the process ``own_pid`` itself
    (which is how abort() ends it)."""
    column = _ARCHITECTURES[machine or _machine()][1]
    program = _head(machine)
    for name in names:
        number = NUMBERS[name][column]
        if number is not None:
            program += _if_equal(number, [_row(_RETURN, _ALLOW)])
    fcntl, tgkill = NUMBERS["fcntl"][column], NUMBERS["tgkill"][column]
    assert fcntl is not None and tgkill is not None  # noqa: PT018
    program += _if_equal(fcntl, _argument(1, _FCNTL_ALLOWED))
    program += _if_equal(tgkill, _argument(0, (own_pid,)))
    return b"".join([*program, _row(_RETURN, _REFUSE)])


def without(names: Iterable[str], machine: str | None = None) -> bytes:
    """A filter that refuses these calls, and signals to anything, and allows the rest."""
    column = _ARCHITECTURES[machine or _machine()][1]
    program = _head(machine)
    for name in (*names, "tgkill"):
        number = NUMBERS[name][column]
        if number is not None:
            program += _if_equal(number, [_row(_RETURN, _REFUSE)])
    return b"".join([*program, _row(_RETURN, _ALLOW)])


def install(program: bytes) -> bool:
    """Put the calling thread, and all that it starts, under a filter for good. False where there is no seccomp.
    Raises OSError when the kernel refuses the filter."""
    if not available():
        return False
    no_new_privileges()
    code = ctypes.create_string_buffer(program, len(program))
    described = _Program(len(program) // 8, ctypes.addressof(code))
    if _libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(described), 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"seccomp: {os.strerror(number)}")
    return True


def _row(code: int, k: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, k)


def _head(machine: str | None) -> list[bytes]:
    """Kill calls of another architecture's convention; leave the call's number in the accumulator."""
    name = machine or _machine()
    rows = [
        _row(_LOAD, _ARCH_AT), _row(_EQUAL, _ARCHITECTURES[name][0], 1, 0), _row(_RETURN, _KILL),
        _row(_LOAD, _NUMBER_AT),
    ]  # fmt: skip
    if name == "x86_64":
        rows += [_row(_AT_LEAST, _X32_BIT, 0, 1), _row(_RETURN, _KILL)]
    return rows


def _if_equal(number: int, then: list[bytes]) -> list[bytes]:
    """``then``, which returns, for one call; the accumulator is kept for the others."""
    return [_row(_EQUAL, number, 0, len(then)), *then]


def _argument(index: int, values: Iterable[int]) -> list[bytes]:
    """Allow when the argument (its lower half: ints) is one of the values, else refuse."""
    rows = [_row(_LOAD, _ARGS_AT + 8 * index)]
    for value in values:
        rows += _if_equal(value, [_row(_RETURN, _ALLOW)])
    return [*rows, _row(_RETURN, _REFUSE)]
