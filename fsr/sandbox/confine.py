"""Who may do what: the execution of kernels on the host device, and compilers."""

from __future__ import annotations

import os
import resource
import sys

from fsr.errors import MissingToolError
from fsr.sandbox import landlock, seccomp
from fsr.sandbox.syscalls import COMPUTING, NEVER_COMPILING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

LIBRARIES = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache")
_TOOLCHAIN = (*LIBRARIES, "/bin", "/opt", "/etc/alternatives", "/dev/urandom", "/proc/cpuinfo", "/proc/meminfo")
FIX = "a Linux kernel of 5.13 or later with Landlock and seccomp switched on"


class Support:
    """What the running kernel offers: Landlock's ABI version (0: none) and seccomp. (No dataclass: a program that
    confines itself starts with every compile, and dataclasses cost it 20 ms.)"""

    __slots__ = ("landlock", "seccomp")

    def __init__(self, landlock: int, seccomp: bool) -> None:
        self.landlock, self.seccomp = landlock, seccomp

    @property
    def complete(self) -> bool:
        """Whether code that is not trusted can be contained here."""
        return bool(self.landlock) and self.seccomp

    @property
    def missing(self) -> str:
        """What is not there, in words; empty when all is."""
        absent = [name for name, there in (("Landlock", self.landlock), ("seccomp", self.seccomp)) if not there]
        return " and ".join(absent)


def support() -> Support:
    """What can be used here."""
    return Support(landlock.abi_version(), seccomp.available())


def require_support(found: Support) -> None:
    """Raises MissingToolError where code that is not trusted cannot be contained."""
    if not found.complete:
        raise MissingToolError(
            f"code written by a model would run uncontained: this kernel offers no {found.missing}",
            expected=FIX, where="containment", fix="see fsr doctor; --device cuda:0 runs no candidate on the CPU",
        )  # fmt: skip


def limit(kind: int, value: int) -> None:
    """Lower a resource limit for good; a lower one that is set already stays."""
    _, hard = resource.getrlimit(kind)
    wanted = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (wanted, wanted))


def confine_execution(read: Iterable[str] = ()) -> None:
    """For a process that runs kernels, or holds a compiler as a library, when all that it needs is open: no file can
    be written and none read outside ``read`` and the system's and Python's libraries; no socket, process, signal to
    others or mount. Raises OSError.

    The number of processes is not limited by rlimit: it would count all of the user's, and root's not at all; the
    filter refuses to start any."""
    limit(resource.RLIMIT_CORE, 0)
    landlock.restrict([*LIBRARIES, *{sys.prefix, sys.base_prefix}, *read])
    if seccomp.available():
        seccomp.install(seccomp.only(COMPUTING, os.getpid()))


def confine_compiler(read: Iterable[str], write: Iterable[str]) -> None:
    """For a process that becomes a compiler: the system, ``read`` and nothing else may be read, ``write`` be
    written. Raises OSError."""
    landlock.restrict([*_TOOLCHAIN, *read], [*write, "/dev/null"])
    if seccomp.available():
        seccomp.install(seccomp.without(NEVER_COMPILING))
