"""How many GPU instructions a basic block stands for, judged from its x86 code.

There is no GPU code to count here. What the instrumentation added, copies between registers, spills and call
frames are left out; what one x86 instruction does and a GPU needs several for is weighted. The weights are rough
(see the comments); compare candidates with them, not devices.
"""

from __future__ import annotations

import os
import re
import shutil

from fsr.sandbox.environment import run_tool

_MARKER = "__sanitizer_cov_trace_pc"
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
_CALL = 12.0  # a library function: exp, log, sin and the like are 8 to 20 SASS instructions


def block_weights(image: bytes) -> dict[int, float]:
    """Instructions of each instrumented basic block, by the offset that its marker call returns to. Empty when
    objdump is not installed."""
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
    return read_weights(run.stdout)


def read_weights(listing: str) -> dict[int, float]:
    """The same from objdump's listing: what follows a marker call up to the next one or the function's end."""
    weights: dict[int, float] = {}
    block: int | None = None
    starts = False
    for text in listing.splitlines():
        if text.endswith(">:"):
            block = None
            continue
        found = _LINE.match(text)
        if found is None:
            continue
        address, name, operands = int(found[1], 16), found[2], found[3]
        if starts:
            block, starts = address, False
            weights[block] = 0.0
        if _MARKER in operands:
            starts = True
            continue
        if block is not None:
            weights[block] += _weight(name, operands.partition("#")[0].strip())
    return weights


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
