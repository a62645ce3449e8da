"""Errors that reach a user: each says what arrived, what was expected, where, and what to do next.

A bad candidate is never an error (it is an :class:`fsr.records.Outcome`); only bad input, a missing tool
and faults of fsr itself raise. Every class survives pickling, since workers raise in other processes.
"""

from __future__ import annotations

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
        lines = [f"{self.where}: {self.what}" if self.where else self.what]
        if self.expected:
            lines.append(f"  expected: {self.expected}")
        if self.fix:
            lines.append(f"  next: {self.fix}")
        return "\n".join(lines)


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
    """The user's own kernel fails its tests, hangs or cannot be compiled."""


class BudgetError(FsrError):
    """The budget does not suffice to begin a search; says what would."""


class StorageError(FsrError):
    """A file or database cannot be read or written: full disk, read-only folder, damage, a lock."""


class TrustError(FsrError):
    """A file or answer from elsewhere that is not what somebody trusted has signed, or comes a second time."""


class MissingToolError(FsrError):
    """A device, driver, compiler or package that the request needs is not there."""

    exit_code = EXIT_MISSING_TOOL


class HarnessError(FsrError):
    """A fault of fsr itself: never the candidate's."""
