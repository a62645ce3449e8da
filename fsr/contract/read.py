"""Find a contract's text: a TOML block in comments at the top of the kernel file, or a sidecar beside it.

The block is in the manner of PEP 723::

    // /// fsr
    // entry = "saxpy"
    // ///

Keys are traced back to their lines, since tomllib does not tell where it read them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fsr.contract.model import Origin
from fsr.errors import ContractError
from fsr.files import Unreadable, read_file

_OPEN = re.compile(r"^[ \t]*//[ \t]*///[ \t]*fsr[ \t]*\r?$")
_NEARLY = re.compile(r"^[ \t]*(//[ \t]*/{1,2}|/\*+|/{3,})[ \t]*fsr[ \t]*\r?$")
_CLOSE = re.compile(r"^[ \t]*//[ \t]*///[ \t]*\r?$")
_COMMENT = re.compile(r"^[ \t]*//[ ]?")
_HEADER = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"""^\s*((?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*'))*)\s*=""")


@dataclass(frozen=True)
class RawContract:
    """A contract as read: TOML values, and where each key stands. ``shift``: lines before the TOML text."""

    data: Mapping[str, Any]
    origin: Origin
    lines: Mapping[tuple[str, ...], int]

    def where(self, *keys: str | int) -> str:
        """``file:line`` of a key path, or of the nearest part of it that has a line."""
        path = tuple(str(k) for k in keys)
        while path and path not in self.lines:
            path = path[:-1]
        line = self.lines.get(path, self.origin.line or 1)
        return f"{self.origin.path}:{line}"


def read_contract(path: Path, text: str) -> RawContract | None:
    """The contract of a kernel file with this text; None when it has neither block nor sidecar.

    Raises ContractError when it has both, two blocks, a block without an end, or text that is not TOML.
    """
    sidecar = sidecar_path(path)
    block = _block(path, text)
    try:
        content = read_file(sidecar)
    except Unreadable as fault:
        if not fault.absent:
            raise _unreadable(sidecar, fault.why) from None
    else:
        if block is not None:
            raise ContractError(
                f"there is a contract in the file and another in {sidecar.name}",
                expected="one contract", where=f"{path}:{block[1]}", fix="delete one of the two",
            )  # fmt: skip
        try:
            text = content.decode().replace("\r\n", "\n")
        except UnicodeDecodeError as fault:
            raise _unreadable(sidecar, str(fault)) from None
        return parse_contract(text, Origin("sidecar", str(sidecar), 1), 0)
    if block is None:
        return None
    return parse_contract(block[0], Origin("block", str(path), block[1]), block[1])


def _unreadable(sidecar: Path, why: str) -> ContractError:
    return ContractError(
        f"the contract cannot be read: {why}", expected="TOML text in UTF-8", where=str(sidecar),
        fix="correct the file, or delete it and write the block into the kernel file",
    )  # fmt: skip


def sidecar_path(path: Path) -> Path:
    """``kernel.fsr.toml`` of ``kernel.cu``."""
    return path.with_name(path.stem + ".fsr.toml")


def parse_contract(toml: str, origin: Origin, shift: int) -> RawContract:
    """TOML text as a RawContract; ``shift`` is the number of lines of the file before its first line."""
    try:
        data = tomllib.loads(toml)
    except (ValueError, RecursionError) as fault:  # ValueError: a number of 5000 digits
        at = re.search(r"at line (\d+)", str(fault))
        line = shift + (int(at[1]) if at else toml.count("\n") + 1)
        reason = re.sub(r"\s*\(at [^)]*\)", "", str(fault))
        raise ContractError(
            f"the contract is not TOML: {reason}",
            expected="lines such as: n = {min = 0, max = 1024}",
            where=f"{origin.path}:{line}",
            fix="correct this line; `fsr contract --help` shows the format",
        ) from None
    return RawContract(data, origin, _key_lines(toml, shift))


def block_range(text: str) -> tuple[int, int] | None:
    """The lines (0-based, end exclusive) of the first complete block, marks included; None without one."""
    lines = text.split("\n")
    start = next((i for i, line in enumerate(lines) if _OPEN.match(line)), None)
    if start is None:
        return None
    end = next((i for i in range(start + 1, len(lines)) if _CLOSE.match(lines[i])), None)
    return None if end is None else (start, end + 1)


def _block(path: Path, text: str) -> tuple[str, int] | None:
    """The TOML of the block and the 1-based line of its opening mark."""
    lines = text.split("\n")
    starts = [i for i, line in enumerate(lines) if _OPEN.match(line)]
    if not starts:
        near = next((i for i, line in enumerate(lines) if _NEARLY.match(line)), None)
        if near is not None:
            raise ContractError(
                f"the line {lines[near].strip()!r} opens no contract", expected="the line `// /// fsr`",
                where=f"{path}:{near + 1}", fix="write it so, and `// ///` behind the contract",
            )  # fmt: skip
        return None
    found = block_range(text)
    if found is None:
        raise ContractError(
            "the contract block is opened and never closed", expected="a line `// ///` after it",
            where=f"{path}:{starts[0] + 1}", fix="add the closing line",
        )  # fmt: skip
    if len(starts) > 1:
        raise ContractError(
            "there are two contract blocks", expected="one contract a file",
            where=f"{path}:{starts[1] + 1}", fix="put the other kernel into a file of its own",
        )  # fmt: skip
    inside = lines[found[0] + 1 : found[1] - 1]
    for offset, line in enumerate(inside):
        if line.strip() and not _COMMENT.match(line):
            raise ContractError(
                f"the line {line.strip()[:40]!r} inside the contract block is no comment",
                expected="every line to begin with //", where=f"{path}:{found[0] + 2 + offset}",
                fix="begin it with //, or close the block before it with `// ///`",
            )  # fmt: skip
    return "\n".join(_COMMENT.sub("", line).rstrip("\r") for line in inside), found[0] + 1


def _key_lines(toml: str, shift: int) -> dict[tuple[str, ...], int]:
    """The line of every key at the beginning of a line, by its full path; arrays of tables count from 0."""
    found: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    counts: dict[tuple[str, ...], int] = {}
    for number, line in enumerate(toml.split("\n"), shift + 1):
        header = _HEADER.match(line)
        if header:
            table = _split_key(header[2])
            if header[1] == "[[":
                index = counts[table] = counts.get(table, -1) + 1
                table = (*table, str(index))
            found.setdefault(table, number)
            continue
        key = _KEY.match(line)
        if key:
            path = (*table, *_split_key(key[1]))
            for length in range(1, len(path) + 1):
                found.setdefault(path[:length], number)
            for inner in re.findall(r"""[{,]\s*([A-Za-z0-9_-]+)\s*=""", line[key.end() :]):
                found.setdefault((*path, inner), number)
    return found


def _split_key(text: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in text.split("."))
