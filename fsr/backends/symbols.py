"""Matches entry expressions (``ns::k<256, true>``) with the mangled symbols of a binary.

NVRTC answers this itself; with nvcc the demangled names are compared, spelling aside. What stays open is
decided only where a single possibility is left.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence

from fsr.sandbox.environment import run_tool

_CAST = re.compile(r"\([A-Za-z_][\w: ]*\)")
_SUFFIX = re.compile(r"(?<=[0-9a-fA-F])[uUlL]+\b")


def demangle(symbols: Sequence[str]) -> dict[str, str]:
    """Symbol to readable name; names that are not mangled stand for themselves. Uses the C++ runtime's own
    demangler, or c++filt; where neither is there, symbols stay as they are."""
    try:
        runtime = ctypes.CDLL(ctypes.util.find_library("stdc++") or "libstdc++.so.6")
    except OSError:
        return _demangle_with_tool(symbols)
    function = runtime.__cxa_demangle
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int)]
    release = ctypes.CDLL(None).free
    release.argtypes = [ctypes.c_void_p]
    names = {}
    for symbol in symbols:
        pointer = function(symbol.encode(), None, None, ctypes.byref(ctypes.c_int()))
        names[symbol] = (ctypes.string_at(pointer) if pointer else symbol.encode()).decode()
        release(pointer)
    return names


def _demangle_with_tool(symbols: Sequence[str]) -> dict[str, str]:
    try:
        text = run_tool(["c++filt"], input="\n".join(symbols), check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return {symbol: symbol for symbol in symbols}
    return dict(zip(symbols, text.splitlines(), strict=True))


def bare_name(demangled: str) -> str:
    """``void ns::k<256>(float*, int)`` to ``ns::k<256>``: no result type, no parameters."""
    depth, start, end = 0, 0, len(demangled)
    for position, char in enumerate(demangled):
        if char == "(" and depth == 0 and not demangled.startswith("(anonymous", position):
            end = position
            break
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(char, 0)
        if char == " " and depth == 0:
            start = position + 1
    return demangled[start:end]


def _normal(name: str) -> str:
    name = _CAST.sub("", name).removeprefix("&").strip().removeprefix("::")
    return re.sub(r"\s+", "", _SUFFIX.sub("", name.replace("unsigned int", "unsigned")))


def match_symbols(entries: Iterable[str], symbols: Sequence[str]) -> Mapping[str, str]:
    """Entry to symbol for all entries that have exactly one symbol; others are left out."""
    names = {symbol: _normal(bare_name(name)) for symbol, name in demangle(symbols).items()}
    matched: dict[str, str] = {}
    pending = []
    for entry in entries:
        exact = [symbol for symbol, name in names.items() if _normal(entry) in (name, symbol)]
        if len(exact) == 1:
            matched[entry] = exact[0]
        else:
            pending.append(entry)
    for entry in pending:
        base = _normal(entry).partition("<")[0]
        free = [s for s, name in names.items() if s not in matched.values() and name.partition("<")[0] == base]
        alone = [other for other in pending if _normal(other).partition("<")[0] == base]
        if len(free) == 1 and len(alone) == 1:
            matched[entry] = free[0]
    return matched
