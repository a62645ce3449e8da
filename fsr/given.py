"""What a compiler is given beside a file: folders of includes (-I) and macros (-D), checked once.

Light: ``fsr lookup`` imports this.
"""

from __future__ import annotations

import os

from fsr.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_VALUE = frozenset("_.+-*/()<>:, []|&!?%^~")  # what no shell and no compiler reads otherwise than it stands


def why_no_define(text: str) -> str:
    """What is wrong with a macro as -D takes it, ``NAME`` or ``NAME=VALUE``; '' for nothing."""
    name, _, value = text.partition("=")
    if not (name.isidentifier() and name.isascii()):
        return f"{name!r} is no name of a macro"
    strange = sorted({mark for mark in value if not (mark.isascii() and mark.isalnum()) and mark not in _VALUE})
    return f"its value holds {strange[0]!r}" if strange else ""


def checked_define(text: str) -> str:
    """A macro of the command line. Raises UsageError."""
    if why := why_no_define(text):
        raise UsageError(
            f"the macro {text[:60]!r} cannot be used: {why}", where="-D",
            expected="NAME or NAME=VALUE, the value of letters, digits, blanks and operators",
            fix="correct it, or write the #define into the kernel file",
        )  # fmt: skip
    return text


def checked_folder(text: str | os.PathLike[str]) -> str:
    """A folder of includes of the command line, absolute. Raises UsageError."""
    path = os.fspath(text)
    if not os.path.isdir(path):  # noqa: PTH112  # pathlib costs 4 ms
        what = "is no folder" if os.path.exists(path) else "does not exist"  # noqa: PTH110
        raise UsageError(
            f"the folder of includes {path!r} {what}", expected="a folder, from the working directory", where="-I",
            fix="check the path",
        )  # fmt: skip
    return os.path.abspath(path)  # noqa: PTH100


def latest(defines: Iterable[str]) -> tuple[str, ...]:
    """Macros in order, of each name the last alone."""
    return tuple({text.partition("=")[0]: text for text in defines}.values())


def as_key(kernel: str | os.PathLike[str], include_dirs: Iterable[str], defines: Iterable[str]) -> tuple[str, ...]:
    """Both as one list, alike wherever the kernel's tree lies: folders in order, from the kernel's own, then macros by
    name."""
    base = os.path.dirname(os.path.abspath(kernel))  # noqa: PTH100, PTH120
    folders = (f"-I{os.path.relpath(folder, base)}" for folder in include_dirs)
    return (*folders, *(f"-D{text}" for text in sorted(latest(defines))))


def of_key(kernel: str | os.PathLike[str], given: Iterable[str]) -> tuple[list[str], list[str]]:
    """The folders and the macros that :func:`as_key` made a list of."""
    base = os.path.dirname(os.path.abspath(kernel))  # noqa: PTH100, PTH120
    folders, defines = split_given(given)
    return [os.path.join(base, folder) for folder in folders], defines  # noqa: PTH118


def split_given(given: Iterable[str]) -> tuple[list[str], list[str]]:
    """Folders and macros of a list of -I and -D."""
    texts = tuple(given)
    return [text[2:] for text in texts if text.startswith("-I")], [text[2:] for text in texts if text.startswith("-D")]
