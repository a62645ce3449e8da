"""Errors that reach a user: each says what arrived, what was expected, where, and what to do next.

A bad candidate is never an error (it is an :class:`fsr.records.Outcome`); only bad input, a missing tool
and faults of fsr itself raise. Every class survives pickling, since workers raise in other processes.
"""

from __future__ import annotations

MOST_LINES, MOST_WIDE = 100, 600  # of a message; a draft of a contract is as long as the kernel has parameters
EXIT_DONE, EXIT_FAILED, EXIT_USAGE, EXIT_MISS, EXIT_MISSING_TOOL = 0, 1, 2, 3, 4


class FsrError(Exception):
    """A fault told to the user in one screen.

    Args:
        what: what arrived and why it cannot be used, one sentence.
        expected: what would have been right; empty when ``what`` says it.
        where: file, line or component, for example ``softmax.cu:12``.
        fix: what to do next, one sentence, with the command to type where there is one.
    """

    exit_code = EXIT_FAILED

    def __init__(self, what: str, *, expected: str = "", where: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what, self.expected, self.where, self.fix = what, expected, where, fix

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.what, self.expected, self.where, self.fix)

    def __str__(self) -> str:
        head = f"{one_line(self.where)}: {self.what}" if self.where else self.what
        lines = head.split("\n")[:MOST_LINES]
        lines += f"  expected: {self.expected}".split("\n") if self.expected else []
        lines += f"  next: {self.fix}".split("\n") if self.fix else []
        return "\n".join(map(one_line, lines))


def one_line(text: str) -> str:
    """A text of any origin as a part of one line on a terminal: control characters spelt, the middle of what is too
    long left out."""
    shown = "".join(c if c.isprintable() or c == "\t" else c.encode("unicode_escape").decode() for c in text)
    return shown if len(shown) <= MOST_WIDE else f"{shown[: MOST_WIDE // 2]}...{shown[-MOST_WIDE // 4 :]}"


def _rebuild(cls: type[FsrError], what: str, expected: str, where: str, fix: str) -> FsrError:
    return cls(what, expected=expected, where=where, fix=fix)


class UsageError(FsrError):
    """A wrong option, an unreadable file, an unknown device."""

    exit_code = EXIT_USAGE


class SourceError(UsageError):
    """The kernel file cannot be used: no kernel, several and none named, a syntax error."""


class ContractError(UsageError):
    """The contract is missing, ambiguous or contradicts the kernel."""


class BaselineError(FsrError):
    """The user's own kernel fails its tests, hangs or cannot be compiled. ``kind``: what a case of it did, as in Fault;
    '' where no case ran."""

    kind = ""


class UnorderedError(BaselineError):
    """It fails them as a kernel does whose threads read what others write with nothing between: by a race, by results
    that depend on an order, or that are not its reference's."""


class BudgetError(FsrError):
    """The budget does not suffice to begin a search; says what would."""


class StorageError(FsrError):
    """A file or database cannot be read or written: full disk, read-only folder, damage, a lock."""


class TrustError(FsrError):
    """A file or answer from elsewhere that is not what somebody trusted has signed, or comes a second time."""


class MissingToolError(FsrError):
    """A device, driver, compiler or package that the request needs is not there."""

    exit_code = EXIT_MISSING_TOOL


def of_the_machine(fault: OSError | MemoryError | RecursionError) -> FsrError:
    """What the machine refused, wherever it was: a full disk, too many open files, no folder for temporary files."""
    if isinstance(fault, RecursionError):
        return UsageError(
            "something in this input is nested too deeply to be read", expected="what people write",
            fix="simplify the kernel, its contract or the stored file; --debug shows where",
        )  # fmt: skip
    if isinstance(fault, MemoryError):
        return StorageError("there is not enough memory", expected="what the input needs", fix="name smaller sizes")
    return StorageError(
        f"the machine refused: {fault.strerror or fault}", expected="files, space and permissions as usual",
        where=str(fault.filename or ""), fix="correct what it names (TMPDIR and FSR_HOME say where fsr writes)",
    )  # fmt: skip


class HarnessError(FsrError):
    """A fault of fsr itself: never the candidate's."""
