"""A program that confines itself and becomes another: ``python launch.py OPTIONS -- COMMAND ARGUMENTS``.

Options: --read=PATH and --write=PATH (any number), --memory=BYTES, --file=BYTES, --cpu=SECONDS.
:func:`confined` writes such a command line.
"""

from __future__ import annotations

import os
import resource
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_LIMITS = {"--memory": resource.RLIMIT_AS, "--file": resource.RLIMIT_FSIZE, "--cpu": resource.RLIMIT_CPU}


def confined(
    command: Sequence[str], *, read: Sequence[str], write: Sequence[str], memory_bytes: int, file_bytes: int,
    cpu_s: float,
) -> list[str]:  # fmt: skip
    """The command line that runs ``command`` (a program with its full path first) confined: it may read the
    system's folders and ``read``, and write beneath ``write``."""
    options = [f"--read={path}" for path in read] + [f"--write={path}" for path in write]
    options += [f"--memory={memory_bytes}", f"--file={file_bytes}", f"--cpu={max(1, round(cpu_s))}"]
    # Isolated and without site packages: 20 ms instead of 100, and nothing of the user's is imported.
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), *options, "--", *command]  # noqa: PTH100


def main(arguments: list[str]) -> None:
    """Confine this process and become the command."""
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))  # noqa: PTH100, PTH120
    from fsr.sandbox.confine import confine_compiler, limit
    from fsr.sandbox.parent import die_with_parent

    die_with_parent()
    at = arguments.index("--")
    options = [option.partition("=")[::2] for option in arguments[:at]]
    command = arguments[at + 1 :]
    for name, value in options:
        if name in _LIMITS:
            limit(_LIMITS[name], int(value))
    limit(resource.RLIMIT_CORE, 0)
    paths = {kind: [value for name, value in options if name == kind] for kind in ("--read", "--write")}
    confine_compiler(paths["--read"], paths["--write"])
    os.execv(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
