"""How many GPU instructions a basic block stands for, judged from its x86 code.

There is no GPU code to count here. What the instrumentation added, copies between registers, spills and call
frames are left out; what one x86 instruction does and a GPU needs several for is weighted. The weights are rough
(see the comments); compare candidates with them, not devices.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass

from fsr.sandbox.environment import run_tool

_MARKER = "__sanitizer_cov_trace_pc"
_CHECK = "__ubsan_handle"
_LINE = re.compile(r"^\s*([0-9a-f]+):\t(\S+)\s*(.*)$")
_NEVER = re.compile(r"^(nop|data16|cs|xchg|push|pop|ret|leave|endbr|jmp|ud2|int3|lock|rep|vzeroupper|notrack)")
_COPY = re.compile(r"^(mov|movl|movq|vmov|movaps|movups|movss|movsd|movabs)")
_REGISTERS = re.compile(r"^%\w+,%\w+$")
_STACK = re.compile(r"\((%rsp|%rbp)")
_MEMORY = re.compile(r"\(%r")
_DIVIDE = {"div": 16.0, "idiv": 20.0, "divl": 16.0, "idivl": 20.0, "divq": 40.0, "idivq": 50.0}
# Integer arithmetic and branches: nvcc unrolls the loops that this build keeps, and folds addresses into its loads.
_INTEGER = 0.35
# The recorder's own, and what looks at the addresses of inline PTX: a GPU spends nothing on them.
_NO_WORK = ("__tsan", "__ubsan", "fsr_note", "fsr_shared_place", "fsr_global_check", "fsr_is_shared", "fsr_added")
_LIBRARY = re.compile(r"<((?:exp|exp2|exp10|expm1|log|log2|log10|log1p|pow|tanh|erf|erfc|sin|cos|sincos|cbrt)f?)@plt>")
_DOUBLE_FUNCTION, _DOUBLE_DIVISION = 20.0, 8.0  # FP64 instructions of a call, a polynomial, and of a quotient or root
_CALL = 12.0  # a library function: exp, log, sin and the like are 8 to 20 SASS instructions
# Of units narrower than the issue: bits are counted and found, and reciprocals, roots and functions begun, by the unit
# for special functions.
_SPECIAL = re.compile(r"^(popcnt|lzcnt|tzcnt|bsr|bsf)")
_DIVISION = re.compile(r"^v(div|sqrt)s[sd]$")
_DOUBLE = re.compile(r"^v(add|sub|mul|max|min|u?comi|cmp\w*|fn?m(add|sub)\d+|rounds?|cvt\w+2)sd$|^vcvtt?sd2")


@dataclass(slots=True)
class Block:
    """A basic block: the GPU instructions that it stands for, those of them that :class:`Arithmetic` tells apart, and
    where the function that it belongs to begins."""

    function: int
    weight: float = 0.0
    special: float = 0.0
    doubles: float = 0.0
    divisions: float = 0.0
    functions: float = 0.0


def blocks_of(image: bytes) -> dict[int, Block]:
    """The instrumented basic blocks of an image, by the offset that its marker call returns to; without those that only
    tell of a check that failed. Empty when objdump is not installed."""
    tool = shutil.which("objdump") or shutil.which("llvm-objdump")
    if tool is None:
        return {}
    file = os.memfd_create("fsr-image")
    try:
        os.write(file, image)
        command = [tool, "-d", "--no-show-raw-insn", "-j", ".text", f"/proc/self/fd/{file}"]
        run = run_tool(command, pass_fds=(file,))
    finally:
        os.close(file)
    return read_blocks(run.stdout)


def read_blocks(listing: str) -> dict[int, Block]:
    """The same from objdump's listing: what follows a marker call up to the next one or the function's end."""
    blocks: dict[int, Block] = {}
    checks = set[int]()
    block: int | None = None
    function, starts = 0, False
    for text in listing.splitlines():
        if text.endswith(">:"):
            block, function = None, int(text.split()[0], 16)
            continue
        found = _LINE.match(text)
        if found is None:
            continue
        address, name, operands = int(found[1], 16), found[2], found[3]
        if starts:
            block, starts = address, False
            blocks[block] = Block(function)
        if _MARKER in operands:
            starts = True
            continue
        if block is not None:
            _count(blocks[block], name, operands.partition("#")[0].strip())
            if _CHECK in operands:
                checks.add(block)
    return {address: block for address, block in blocks.items() if address not in checks}


def _count(block: Block, name: str, operands: str) -> None:
    """Add an instruction to its block."""
    block.weight += _weight(name, operands)
    if name.startswith("call"):
        function = _LIBRARY.search(operands)
        if function is not None and function[1].endswith("f"):
            block.special += 1.0
            block.functions += 1.0
        elif function is not None:
            block.doubles += _DOUBLE_FUNCTION
    elif _DIVISION.match(name):
        block.special += 1.0
        if name.endswith("sd"):
            block.doubles += _DOUBLE_DIVISION
        else:
            block.divisions += 1.0
    elif _SPECIAL.match(name):
        block.special += 1.0
    elif _DOUBLE.match(name):
        block.doubles += 1.0


def _weight(name: str, operands: str) -> float:
    if name.startswith("call"):
        return 0.0 if any(name in operands for name in _NO_WORK) else _call(operands)
    if _NEVER.match(name):
        return 0.0
    copy = _COPY.match(name) is not None
    if copy and (_REGISTERS.match(operands) or _STACK.search(operands) or operands.startswith("$")):
        return 0.0
    if name in _DIVIDE:
        return _DIVIDE[name]
    if name.startswith(("vdiv", "vsqrt")):
        return 8.0  # reciprocal, two refinements, the range check
    # Arithmetic on memory is a load and an operation on a GPU; loads and stores count once.
    if not copy and not name.startswith("lea") and _MEMORY.search(operands) and not _STACK.search(operands):
        return 2.0
    return 1.0 if copy or name.startswith("v") else _INTEGER


def _call(operands: str) -> float:
    return 1.0 if "fsr_" in operands else _CALL
