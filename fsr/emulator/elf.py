"""Names and places of a shared object's variables, read from its ELF symbol table (64-bit little-endian)."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

_OBJECT, _FUNCTION, _TLS = 1, 2, 6
_SYMTAB, _NOBITS = 2, 8
_PROGRAM, _WRITTEN, _LOADED = 1, 1, 2  # sh_type, and sh_flags
_TLS_SECTION = 0x400  # sh_flags
_GAP_BYTES = 256
_LOCAL = re.compile(r"E(\d+)([A-Za-z_]\w*)$")


_MARK = b"fsr-source"


def attach_source(image: bytes, source: str) -> bytes:
    """The image with the candidate's text behind it, where loaders do not look."""
    packed = zlib.compress(source.encode())
    return image + packed + struct.pack("<Q", len(packed)) + _MARK


def attached_source(image: bytes) -> str:
    """The text that attach_source put there, '' when there is none."""
    if not image.endswith(_MARK):
        return ""
    end = len(image) - len(_MARK) - 8
    (length,) = struct.unpack_from("<Q", image, end)
    return zlib.decompress(image[end - length : end]).decode()


def spread_shared(unit: bytes) -> bytes:
    """An object file, compiled with a section a variable, in which every thread-local variable is followed by a gap:
    an access that runs past one no longer reaches the next."""
    spread = bytearray(unit)
    (table_offset,) = struct.unpack_from("<Q", unit, 40)
    entry_size, count = struct.unpack_from("<HH", unit, 58)
    for at in range(table_offset, table_offset + count * entry_size, entry_size):
        kind, flags = struct.unpack_from("<IQ", unit, at + 4)
        if kind == _NOBITS and flags & _TLS_SECTION:
            (size,) = struct.unpack_from("<Q", unit, at + 32)
            struct.pack_into("<Q", spread, at + 32, size + _GAP_BYTES)
    return bytes(spread)


@dataclass(frozen=True, slots=True)
class Variable:
    """``offset``: from the image's base, or from the start of its thread-local segment. ``function`` is the
    mangled function that a local static belongs to, '' at file scope."""

    name: str
    offset: int
    size_bytes: int
    function: str = ""


@dataclass(frozen=True, slots=True)
class Variables:
    """``shared``: thread-local ones, which is what ``__shared__`` is compiled to; ``data``: all others."""

    shared: tuple[Variable, ...]
    data: tuple[Variable, ...]


def read_variables(image: bytes) -> Variables:
    """All named variables of a shared object, by offset. Raises ValueError when it is no such file."""
    shared: list[Variable] = []
    data: list[Variable] = []
    for symbol, kind, index, value, bytes_ in _symbols(image):
        if kind in (_OBJECT, _TLS) and index and bytes_:
            (shared if kind == _TLS else data).append(_variable(symbol, value, bytes_))
    return Variables(tuple(sorted(shared, key=_by_offset)), tuple(sorted(data, key=_by_offset)))


def find_variable(image: bytes, name: str, entry: str = "") -> tuple[str, int, int] | None:
    """(symbol, offset, bytes) of the variable at namespace scope that C++ calls so (``ns::table``; a namespace without
    name and what a compiler makes of a file's own are left out), in the namespace of ``entry`` or the nearest around
    it; None without one. Of a shared object or a cubin."""
    inner = entry.partition("<")[0].split("::")[:-1]
    wanted = ["::".join((*inner[:depth], name)) for depth in range(len(inner), -1, -1)]
    found: dict[str, tuple[str, int, int]] = {}
    for symbol, kind, index, value, bytes_ in _symbols(image):
        if kind == _OBJECT and index and bytes_ and (spelt := _spelt(symbol)) in wanted:
            found.setdefault(spelt, (symbol, value, bytes_))
    return next((found[each] for each in wanted if each in found), None)


def code_of(image: bytes) -> bytes:
    """The instructions and constants of a shared object: all that is loaded and never written."""
    if image[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no 64-bit little-endian ELF file")
    table_offset = struct.unpack_from("<Q", image, 40)[0]
    entry_size, count = struct.unpack_from("<HH", image, 58)
    found = b""
    for number in range(count):
        _, kind, flags, _, offset, size = struct.unpack_from("<IIQQQQ", image, table_offset + number * entry_size)
        if kind == _PROGRAM and flags & _LOADED and not flags & _WRITTEN:
            found += image[offset : offset + size]
    return found


def undefined_symbols(image: bytes) -> set[str]:
    """What an object file expects others to define. Raises ValueError when it is no such file."""
    return {name for name, _, index, _, _ in _symbols(image) if name and not index}


def _symbols(image: bytes) -> Iterator[tuple[str, int, int, int, int]]:
    """Name, kind, section, value and size of every symbol of the symbol table."""
    if image[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no 64-bit little-endian ELF file")
    table_offset = struct.unpack_from("<Q", image, 40)[0]
    entry_size, count = struct.unpack_from("<HH", image, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", image, table_offset + i * entry_size) for i in range(count)]
    for section in sections:
        if section[1] != _SYMTAB:
            continue
        offset, size, strings = section[4], section[5], sections[section[6]][4]
        for name_at, info, _, index, value, bytes_ in struct.iter_unpack("<IBBHQQ", image[offset : offset + size]):
            start = strings + name_at
            yield image[start : image.index(b"\0", start)].decode(), info & 15, index, value, bytes_


def _spelt(symbol: str) -> str:
    """``ns::table`` of ``_ZN2ns5tableE`` (Itanium C++ ABI, nested names), as far as it is a variable's."""
    nested = re.fullmatch(r"_Z(?:N(?P<parts>(?:L?\d+\w+)+)E|L?(?P<one>\d+\w+))", symbol)
    if nested is None:
        return symbol
    rest, names = nested["parts"] or nested["one"], list[str]()
    while rest and (counted := re.match(r"L?(\d+)", rest)):
        end = counted.end() + int(counted[1])
        names.append(rest[counted.end() : end])
        rest = rest[end:]
    return "::".join(n for n in names if not n.startswith(("_INTERNAL_", "_GLOBAL__N")))


def _by_offset(variable: Variable) -> int:
    return variable.offset


def _variable(symbol: str, offset: int, size: int) -> Variable:
    """``_ZZ4gemmPfE4tile`` is ``tile`` of ``4gemmPf`` (Itanium C++ ABI, local names)."""
    if symbol.startswith("_ZZ"):
        stem = re.sub(r"(_\d+|__\d+_)$", "", symbol)  # discriminators of equal names in one function
        for text in (symbol, stem):
            for at in range(len(text)):
                found = _LOCAL.match(text, at)
                if found and int(found[1]) == len(found[2]):
                    return Variable(found[2], offset, size, symbol[3:at])
    plain = re.fullmatch(r"_ZL?(\d+)(\w+)", symbol)
    if plain:
        return Variable(plain[2][: int(plain[1])], offset, size)
    return Variable(symbol, offset, size)
