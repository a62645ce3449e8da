"""Inline PTX that computes values of its operands and does nothing else."""

from __future__ import annotations

import re

# PTX ISA, sections 9.7.1 to 9.7.7 and 9.7.9: arithmetic, logic, comparison, conversion and moves between registers.
_COMPUTE = frozenset((
    "abs", "add", "addc", "and", "bfe", "bfi", "bfind", "bmsk", "brev", "clz", "cnot", "copysign", "cos", "cvt",
    "div", "dp2a", "dp4a", "ex2", "fma", "fns", "lg2", "lop3", "mad", "mad24", "madc", "max", "min", "mov", "mul",
    "mul24", "neg", "not", "or", "popc", "prmt", "rcp", "rem", "rsqrt", "sad", "selp", "set", "setp", "shf", "shl",
    "shr", "sin", "slct", "sqrt", "sub", "subc", "tanh", "testp", "vabsdiff", "vadd", "vmax", "vmin", "vset", "vshl",
    "vshr", "vsub", "xor",
))  # fmt: skip
_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
_INSTRUCTION = re.compile(r"^(?:@!?\w+\s+)?(\w+)")


def only_computes(asm: str) -> bool:
    """Whether an ``asm`` statement's text has only instructions that compute, of registers that it is given or makes
    itself: no memory, no special registers (``%tid``), no clobbers."""
    template, _, operands = asm[asm.find("(") + 1 :].partition(":")
    code = "".join(_TEXT.findall(template)).replace("\\n", "\n").replace("\\t", " ")
    constraints = _TEXT.findall(operands)
    if operands.count(":") > 1 or any(not re.fullmatch(r"[=+]?[rhlfdq]|n", c) for c in constraints):
        return False
    if re.search(r"%%|%[a-zA-Z_]|\[", code):
        return False
    found = [part.strip(" \t\n{}") for part in re.split(r"[;{}]", code)]
    words = [m.group(1) for part in found if part and not part.startswith(".reg") and (m := _INSTRUCTION.match(part))]
    return bool(words) and all(word in _COMPUTE for word in words)
