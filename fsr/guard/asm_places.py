"""Where an address goes inside inline assembly: into brackets, or into a register that C++ gets back."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fsr.guard.places import Misuse

_CARRIES = frozenset(("mov", "cvta", "cvt", "add", "sub"))  # as C++ may do with a place
_TAKES = frozenset((
    "wgmma", "tcgen05", "mbarrier", "cp", "fence", "bar", "barrier", "prefetch", "prefetchu", "discard",
    "applypriority", "isspacep", "ld", "ldu", "ldmatrix", "stmatrix", "mma", "wmma", "elect", "griddepcontrol",
    "createpolicy", "tensormap",
))  # fmt: skip
_NUMBER = re.compile(r"-?\.?\d|0[fFdDxX]")
_REGISTERS = re.compile(r"\.reg\s+[.\w]+\s+([^;]*);")


def carried(template: str, given: Mapping[str, str]) -> dict[str, str]:
    """The kind of address ('place', 'shared') that registers hold when the template is through, operands (%0, %[name])
    among them. ``given``: the kinds that operands hold before. Raises Misuse where an address is compared, stored or
    computed with beyond sums."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", template.replace("\\n", "\n").replace("\\t", " "), flags=re.DOTALL)
    own = {name for m in _REGISTERS.finditer(text) for name in re.findall(r"[%\w$]+", m[1])}
    held = dict(given)
    for _ in range(3):  # a loop of assembly carries backwards
        for instruction in re.split(r"[;]|[{}](?![^;{}]*\})", re.sub(r"\{([^{};]*)\}", r" \1 ", text)):
            _step(instruction.split(":")[-1] if ":" in instruction.split(".")[0] else instruction, held, own)
    return held


def _step(instruction: str, held: dict[str, str], own: set[str]) -> None:
    words = re.sub(r"^\s*@!?\S+", "", instruction).split(None, 1)
    if not words or words[0] == ".reg":
        return
    root = words[0].lstrip("%").split(".")[0]
    bare = re.sub(r"\[(?!\w+\])[^\]]*\]", " ", re.sub(r"%\[(\w+)\]", r"%<\1>", words[1] if len(words) > 1 else ""))
    bare = re.sub(r"\[[^\]]*\]", " ", bare)
    operands = [o.replace("<", "[").replace(">", "]") for o in re.findall(r"[%\w$<>.]+", bare)]
    if root == "ld" and ".param" in words[0] and operands:
        held[operands[0]] = "place"
    if not operands or root in _TAKES:
        return
    stores = root in ("st", "red", "atom")
    kinds = {_kind(o, held, own, root) for o in (operands if root in ("st", "red") else operands[1:])} - {""}
    if not kinds:
        return
    if stores or root in ("setp", "set", "slct", "testp") or ("place" in kinds and root not in _CARRIES):
        raise Misuse
    for to in operands if root == "mov" else operands[:1]:  # of parts as many as there are
        held[to] = "shared" if ".to.shared" in words[0] or "place" not in kinds else "place"


def _kind(operand: str, held: Mapping[str, str], own: set[str], root: str) -> str:
    symbol = root == "mov" and not operand.startswith("%") and not _NUMBER.match(operand) and operand not in own
    return held.get(operand, "place" if symbol else "")
