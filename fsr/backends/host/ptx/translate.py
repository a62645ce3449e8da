"""An asm statement as C++: a lambda over its operands, one C++ statement for each instruction."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from fsr.backends.host.ptx import choices, functions, matrices, memory, moves, warps
from fsr.backends.host.ptx.refusal import RefusedError
from fsr.backends.host.ptx.registers import Registers, constraint_type
from fsr.backends.host.ptx.statement import Operand, Statement
from fsr.backends.host.ptx.template import Brace, Declaration, Instruction, Label, Part, Register, read_template

Meaning = Callable[[Instruction, Registers], str]
_MEANINGS: Mapping[str, Meaning] = {
    **dict.fromkeys(functions.ROOTS, functions.function),
    "setp": choices.set_predicate, "set": choices.set_value, "selp": choices.select, "slct": choices.select_by_sign,
    "testp": choices.test, "mov": moves.move, "cvt": moves.convert, "cvta": moves.convert_address,
    "ld": memory.load, "st": memory.store, "atom": memory.update, "red": memory.update, "membar": memory.fence,
    "fence": memory.fence, "fence.proxy": memory.proxy_fence, "cp.async": memory.copy,
    **dict.fromkeys(("prefetch", "prefetchu", "createpolicy", "applypriority"), memory.hint),
    **dict.fromkeys(("griddepcontrol", "setmaxnreg"), memory.hint),
    "shfl": warps.shuffle, "vote": warps.vote, "match": warps.match, "redux": warps.reduce,
    "activemask": warps.active, "elect": warps.elect, "bar": warps.barrier, "barrier": warps.barrier,
    "trap": warps.thread, "nanosleep": warps.thread,
    "mma": matrices.multiply, "ldmatrix": matrices.load, "stmatrix": matrices.store, "movmatrix": matrices.transpose,
}  # fmt: skip
# Where the second word makes another instruction of it.
_BULK = ("cp.async.bulk", "cp.async.mbarrier", "cp.reduce", "fence.proxy.tensormap", "fence.proxy.alias")


def translate(statement: Statement, macros: set[str] | frozenset[str] = frozenset()) -> tuple[str, tuple[str, ...]]:
    """The C++ that a statement (without its semicolon) becomes, and the headers that it needs. ``macros``: names that
    it must not have, since the preprocessor would replace them. Raises RefusedError."""
    parts = list(read_template(statement.template))
    if not any(isinstance(part, Instruction) for part in parts):
        return "((void)0)", ()
    use = Registers(statement.operands)
    use.need("fsr/ptx_registers.h")
    lines = [_line(part, use) for part in parts]
    if use.carries:
        lines.insert(0, "bool fsr_carry = false, fsr_dropped;")
    before, after, names = list[str](), list[str](), list[str]()
    for number, operand in enumerate(statement.operands):
        names.append(f"auto{'&' if operand.written else ''} fsr_p{number}")
        before.append(_taken(number, operand))
        if operand.written:
            after.append(f"fsr_ptx::given(fsr_p{number}, fsr_r{number});")
    body = " ".join([*before, *lines, *after])
    if clashes := macros & set(re.findall(r"[A-Za-z_]\w*", body)):
        raise RefusedError("asm", f"a macro of the source is called {min(clashes)}, which stands in its host meaning")
    values = ", ".join(operand.text for operand in statement.operands)
    return f"[]({', '.join(names)}) __attribute__((always_inline)) {{ {body} }}({values})", tuple(use.headers)


def _taken(number: int, operand: Operand) -> str:
    type = constraint_type(operand)
    if not operand.read:
        return f"{type} fsr_r{number};"
    return f"{type} fsr_r{number} = fsr_ptx::taken<{type}>(fsr_p{number});"


def _line(part: Part, use: Registers) -> str:
    match part:
        case Brace(opens=True):
            use.open()
            return "{"
        case Brace():
            use.close()
            return "}"
        case Declaration(type, names):
            return use.declare(type, names)
        case Label(name):
            return f"{_label(name)}: ;"
        case Instruction():
            return _guarded(part, use)


def _label(name: str) -> str:
    return "fsr_l_" + "".join(c if c.isalnum() else "_" for c in name)


def _guarded(instruction: Instruction, use: Registers) -> str:
    try:
        made = _meaning(instruction, use)
        if instruction.guard is None:
            return made
        register, negated = instruction.guard
        return f"if ({'!' if negated else ''}{use.value(register, 'pred')}) {{ {made} }}"
    except ValueError as error:
        counted = "values to unpack" in str(error)
        raise RefusedError(
            instruction.opcode, "another number of operands than it takes" if counted else str(error)
        ) from None


def _meaning(instruction: Instruction, use: Registers) -> str:
    root, opcode = instruction.words[0], instruction.opcode
    if root == "bra" and len(instruction.arguments) == 1 and isinstance(instruction.arguments[0], Register):
        return f"goto {_label(instruction.arguments[0].name)};"
    meaning = _MEANINGS.get(".".join(instruction.words[:2])) or _MEANINGS.get(root)
    if meaning is None or opcode.startswith(_BULK):
        raise RefusedError(opcode, "the host device has no meaning for it")
    return meaning(instruction, use)
