"""Loads, stores, updates and fences: what memory is told, with the strength that the PTX memory model gives it."""

from __future__ import annotations

from fsr.backends.host.ptx.refusal import RefusedError
from fsr.backends.host.ptx.registers import Registers, cxx
from fsr.backends.host.ptx.template import Argument, Instruction
from fsr.backends.host.ptx.words import Words

SPACES = {"": "kGeneric", "global": "kGlobal", "shared": "kShared", "shared::cta": "kShared"}
_HINTS = ("ca", "cg", "cs", "lu", "cv", "wb", "wt")
_SCOPES = {"cta": " | FSR_BLOCK", "cluster": " | FSR_BLOCK", "gpu": "", "sys": ""}
_ORDERS = {
    "relaxed": "0", "acquire": "FSR_ACQUIRE", "release": "FSR_RELEASE", "acq_rel": "FSR_ACQUIRE | FSR_RELEASE",
    "sc": "FSR_ACQUIRE | FSR_RELEASE | FSR_SEQUENTIAL",
}  # fmt: skip
_UPDATES = {
    "add": "u32 s32 u64 f32 f64 f16x2 bf16x2 f16 bf16", "min": "u32 s32 u64 s64", "max": "u32 s32 u64 s64",
    "inc": "u32", "dec": "u32", "and": "b32 b64", "or": "b32 b64", "xor": "b32 b64", "exch": "b32 b64",
    "cas": "b16 b32 b64",
}  # fmt: skip


def _way(words: Words, *orders: str) -> tuple[str, str]:
    """The space, and how memory is accessed as bits of fsr_how; 0 where it is weak."""
    space = SPACES[words.take(*[name for name in SPACES if name])]
    strong = words.take("volatile", "relaxed", "weak", *orders)
    scope = words.take(*_SCOPES)
    words.take(*_HINTS)
    words.hints()
    if strong in ("", "weak"):
        if scope:
            raise ValueError("a scope without an order")
        return space, "0"
    if strong == "volatile":
        return space, "fsr_ptx::kStrong"
    if not scope:
        raise ValueError("an order without a scope")
    return space, f"fsr_ptx::kStrong | {_ORDERS[strong]}{_SCOPES[scope]}"


def _elements(words: Words, of: Argument, use: Registers) -> tuple[tuple[Argument, ...], str]:
    """The registers of a load or store, and the type of each: of halves and others the bits count."""
    count = {"v2": 2, "v4": 4}.get(words.take("v2", "v4"), 1)
    type = words.type()
    if type in ("f16", "bf16", "f16x2", "bf16x2"):
        type = "b32" if "x2" in type else "b16"
    parts = use.parts(of)
    if len(parts) != count or type in ("pred", "tf32"):
        raise ValueError("another number of registers than it moves")
    return parts, type


def load(instruction: Instruction, use: Registers) -> str:
    """``ld``. A cache policy behind the address means nothing here."""
    words = Words(instruction)
    to, at, *policy = instruction.arguments
    read_only = " | fsr_ptx::kReadOnly" if words.take("nc") else ""
    space, how = _way(words, "acquire")
    parts, type = _elements(words, to, use)
    words.end()
    if len(policy) > 1:
        raise ValueError("an operand too many")
    use.need("fsr/ptx_memory.h")
    call = f"fsr_ptx::ld<{cxx(type)}, {len(parts)}, fsr_ptx::{space}, {how}{read_only}>({use.address(at)})"
    puts = " ".join(use.put(part, f"fsr_x.at[{n}]", wide=True) for n, part in enumerate(parts))
    return f"{{ const auto fsr_x = {call}; {puts} }}"


def store(instruction: Instruction, use: Registers) -> str:
    """``st``."""
    words = Words(instruction)
    at, of, *policy = instruction.arguments
    space, how = _way(words, "release")
    parts, type = _elements(words, of, use)
    words.end()
    if len(policy) > 1:
        raise ValueError("an operand too many")
    use.need("fsr/ptx_memory.h")
    values = ", ".join(use.value(part, type, narrow=type[0] != "f") for part in parts)
    target = f"{cxx(type)}, {len(parts)}, fsr_ptx::{space}, {how}"
    return f"fsr_ptx::st<{target}>({use.address(at)}, {{{{{values}}}}});"


def update(instruction: Instruction, use: Registers) -> str:
    """``atom`` and ``red``: one read-modify-write, relaxed at device scope if nothing else is said."""
    words, returns = Words(instruction), instruction.words[0] == "atom"
    space = SPACES[words.take(*[name for name in SPACES if name])]
    order = words.take("relaxed", "acquire", "release", "acq_rel") or "relaxed"
    how = f"{_ORDERS[order]}{_SCOPES[words.take(*_SCOPES) or 'gpu']}"
    op = words.one(*_UPDATES)
    count = int((words.take("v2", "v4") or "v1")[1:])
    words.hints()
    words.take("noftz")
    type = words.type()
    words.end()
    at, *values = instruction.arguments[returns:]
    if type not in _UPDATES[op].split() or (count > 1 and (returns or op != "add" or type != "f32")):
        raise RefusedError(instruction.opcode, f"of .{op} the host device knows .{_UPDATES[op].replace(' ', ' .')}")
    if len(values) not in ((2, 3) if op == "cas" else (1, 2)):
        raise ValueError("another number of operands than it takes")
    use.need("fsr/ptx_half_updates.h" if "f16" in type else "fsr/ptx_updates.h")
    address = use.address(at)
    calls = []
    for n, value in enumerate(use.parts(values[0]) if count > 1 else values[:1]):
        operands = [use.value(one, type) for one in ([*values[:2]] if op == "cas" else [value])]
        call = f"fsr_ptx::atom_{op}<{cxx(type)}, fsr_ptx::{space}, {how}>({address} + {4 * n}, {', '.join(operands)})"
        calls.append((use.put(instruction.arguments[0], call) if returns else "") or f"(void){call};")
    if count > 1 and len(use.parts(values[0])) != count:
        raise ValueError("another number of registers than it adds")
    return " ".join(calls)


def fence(instruction: Instruction, use: Registers) -> str:
    """``membar`` and ``fence``."""
    words = Words(instruction)
    use.need("fsr/ptx_memory.h")
    if instruction.words[0] == "membar":
        scope = {"cta": "cta", "gl": "gpu", "sys": "sys"}[words.one("cta", "gl", "sys")]
        order = "sc"
    else:
        order, scope = words.take("sc", "acq_rel", "acquire", "release") or "acq_rel", words.one(*_SCOPES)
    words.end()
    return f"fsr_ptx::fence<{_ORDERS[order]}{_SCOPES[scope]}>();"


def proxy_fence(instruction: Instruction, use: Registers) -> str:
    """``fence.proxy.async``, whatever space it names."""
    words = Words(instruction)
    words.one("proxy")
    words.one("async")
    words.take("global", "shared::cta")
    words.end()
    use.need("fsr/ptx_memory.h")
    return "fsr_proxy_fence();"


def hint(instruction: Instruction, use: Registers) -> str:
    """What does nothing that a kernel could see: prefetches, priorities."""
    if instruction.words[0] == "createpolicy":
        use.need("fsr/ptx_registers.h")
        return use.put(instruction.arguments[0], "(fsr_ptx::B64)0")
    return ";"


def copy(instruction: Instruction, use: Registers) -> str:
    """``cp.async`` to shared memory, and its groups."""
    words = Words(instruction)
    words.one("async")
    use.need("fsr/ptx_copies.h")
    if kind := words.take("commit_group", "wait_group", "wait_all"):
        words.end()
        if kind == "wait_group":
            return f"fsr_ptx::copies_wait({use.value(instruction.arguments[0], 'u32')});"
        return "fsr_ptx::copies_commit();" if kind == "commit_group" else "fsr_ptx::copies_wait_all();"
    cache = words.one("ca", "cg")
    words.one("shared", "shared::cta")
    words.one("global")
    hinted = "cache_hint" in instruction.opcode
    words.hints()
    words.end()
    to, of, size, *rest = instruction.arguments
    rest = rest[: len(rest) - hinted]
    if len(rest) > 1:
        raise ValueError("an operand too many")
    bytes = use.value(size, "u32")
    kept = use.value(rest[0], "u32") if rest else bytes
    past = "true" if cache == "cg" else "false"
    return f"fsr_ptx::copy<{past}>({use.address(to)}, {use.address(of)}, {bytes}, {kept});"
