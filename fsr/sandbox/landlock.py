"""Landlock: which files a process may touch, given up for good. https://docs.kernel.org/userspace-api/landlock.html"""

from __future__ import annotations

import ctypes
import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# The same numbers on every architecture (asm-generic/unistd.h).
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1  # flag of create_ruleset: answer the ABI version
_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}  # handled, by first ABI
_TCP, _SCOPES = 0b11, 0b11  # bind and connect (ABI 4); abstract sockets and signals (ABI 6)

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def abi_version() -> int:
    """Landlock's ABI version in the running kernel; 0 where it is not available."""
    answer: int = _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    return max(answer, 0)


def no_new_privileges() -> None:
    """Give up gaining rights through setuid programs; needed before Landlock and seccomp, kept for ever."""
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def restrict(read: Iterable[str], write: Iterable[str] = ()) -> bool:
    """Confine the calling thread and all that it starts: only files beneath ``read`` may be opened (not written)
    and only those beneath ``write`` changed; no TCP, no signal to a process outside, where the kernel's ABI knows
    them. Paths that are not there are left out. False where the kernel has no Landlock. Raises OSError."""
    abi = abi_version()
    if not abi:
        return False
    handled = max((first, rights) for first, rights in _FILE_RIGHTS.items() if first <= abi)[1]
    ruleset = _Ruleset(handled, _TCP if abi >= 4 else 0, _SCOPES if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    file = _checked(_libc.syscall(_CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(size), ctypes.c_uint32(0)))
    try:
        for path in read:
            _allow(file, path, _READ & handled)
        for path in write:
            _allow(file, path, handled & ~_EXECUTE)
        no_new_privileges()
        _checked(_libc.syscall(_RESTRICT_SELF, ctypes.c_int(file), ctypes.c_uint32(0)))
    finally:
        os.close(file)
    return True


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return
    try:
        if not stat.S_ISDIR(os.fstat(parent).st_mode):
            rights &= _OF_FILES
        rule = _Beneath(rights, parent)
        _checked(_libc.syscall(_ADD_RULE, ctypes.c_int(ruleset), _PATH_BENEATH, ctypes.byref(rule), ctypes.c_uint32(0)))
    finally:
        os.close(parent)


def _checked(answer: int) -> int:
    if answer < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock: {os.strerror(code)}")
    return answer
