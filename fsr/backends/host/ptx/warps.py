"""What lanes and threads do together: shuffles, votes, matches, reductions, barriers."""

from __future__ import annotations

from fsr.backends.host.ptx.refusal import RefusedError
from fsr.backends.host.ptx.registers import Registers
from fsr.backends.host.ptx.template import Argument, Instruction, Pair
from fsr.backends.host.ptx.words import Words

_REDUCTIONS = {"add": "u32 s32", "min": "u32 s32", "max": "u32 s32", "and": "b32", "or": "b32", "xor": "b32"}


def _results(of: Argument, use: Registers, names: tuple[str, str]) -> str:
    """Statements that put a value and a predicate where ``d|p`` says."""
    both = (of.first, of.second) if isinstance(of, Pair) else (of,)
    return " ".join(use.put(one, name) for one, name in zip(both, names, strict=False))


def shuffle(instruction: Instruction, use: Registers) -> str:
    """``shfl.sync.mode.b32 d|p, a, b, c, mask``."""
    words = Words(instruction)
    words.one("sync")
    mode = words.one("up", "down", "bfly", "idx")
    words.one("b32")
    words.end()
    to, a, *rest = instruction.arguments
    b, c, mask = (use.value(one, "u32") for one in rest)
    use.need("fsr/ptx_warps.h")
    call = f"fsr_ptx::shfl<fsr_ptx::k_{mode}>({use.value(a, 'b32')}, {b}, {c}, {mask}, fsr_p)"
    return f"{{ bool fsr_p; const auto fsr_d = {call}; {_results(to, use, ('fsr_d', 'fsr_p'))} }}"


def vote(instruction: Instruction, use: Registers) -> str:
    """``vote.sync.mode d, p, mask``."""
    words = Words(instruction)
    words.one("sync")
    mode = words.one("all", "any", "uni", "ballot")
    words.one("b32" if mode == "ballot" else "pred")
    words.end()
    to, p, mask = instruction.arguments
    use.need("fsr/ptx_warps.h")
    name = f"__{mode}_sync({use.value(mask, 'b32')}, {use.predicate(p)})"
    return use.put(to, name if mode == "ballot" else f"{name} != 0")


def match(instruction: Instruction, use: Registers) -> str:
    """``match.any.sync`` and ``match.all.sync d|p, a, mask``."""
    words = Words(instruction)
    mode, type = words.one("any", "all"), words.type()
    words.one("sync")
    words.end()
    to, a, mask = instruction.arguments
    if type not in ("b32", "b64"):
        raise RefusedError(instruction.opcode)
    use.need("fsr/ptx_warps.h")
    arguments = f"{use.value(mask, 'b32')}, {use.value(a, type)}"
    if mode == "any":
        return use.put(to, f"__match_any_sync({arguments})")
    results = _results(to, use, ("fsr_d", "fsr_p != 0"))
    return f"{{ int fsr_p; const unsigned fsr_d = __match_all_sync({arguments}, &fsr_p); {results} }}"


def reduce(instruction: Instruction, use: Registers) -> str:
    """``redux.sync.op.type d, a, mask``."""
    words = Words(instruction)
    words.one("sync")
    op, type = words.one(*_REDUCTIONS), words.type()
    words.end()
    if type not in _REDUCTIONS[op].split():
        raise RefusedError(instruction.opcode, "sums and order of integers and bits of words are known")
    to, a, mask = instruction.arguments
    use.need("fsr/ptx_warps.h")
    value = f"({'int' if type == 's32' else 'unsigned'}){use.value(a, type)}"
    return use.put(to, f"__reduce_{op}_sync({use.value(mask, 'b32')}, {value})")


def active(instruction: Instruction, use: Registers) -> str:
    """``activemask.b32 d``."""
    words = Words(instruction)
    words.one("b32")
    words.end()
    use.need("fsr/ptx_warps.h")
    return use.put(instruction.arguments[0], "fsr_activemask(__builtin_LINE())")


def elect(instruction: Instruction, use: Registers) -> str:
    """``elect.sync d|p, mask``: the first lane of those that take part."""
    words = Words(instruction)
    words.one("sync")
    words.end()
    to, mask = instruction.arguments
    use.need("fsr/ptx_warps.h")
    call = f"fsr_ptx::elect({use.value(mask, 'b32')}, fsr_p)"
    return f"{{ bool fsr_p; const unsigned fsr_d = {call}; {_results(to, use, ('fsr_d', 'fsr_p'))} }}"


def barrier(instruction: Instruction, use: Registers) -> str:
    """``bar.sync``, ``bar.arrive``, ``bar.red``, ``bar.warp.sync`` and the same by their other names."""
    words = Words(instruction)
    use.need("fsr/ptx_warps.h")
    if words.take("warp"):
        words.one("sync")
        words.end()
        return f"fsr_syncwarp({use.value(instruction.arguments[0], 'b32')}, __builtin_LINE());"
    words.take("cta")
    words.take("aligned")
    if words.take("red"):
        return _barrier_with_result(instruction, words, use)
    kind = words.one("sync", "arrive")
    words.end()
    name, *count = [use.value(one, "u32") for one in instruction.arguments]
    if len(count) > 1 or (kind == "arrive" and not count):
        raise ValueError("another number of operands than it takes")
    return f"fsr_ptx::{'barrier' if kind == 'sync' else 'arrive'}({', '.join([name, *count])});"


def _barrier_with_result(instruction: Instruction, words: Words, use: Registers) -> str:
    op = words.one("popc", "and", "or")
    words.one("u32" if op == "popc" else "pred")
    words.end()
    to, name, *count, p = instruction.arguments
    places = ", ".join(use.value(one, "u32") for one in (name, *count))
    call = f"__syncthreads_{'count' if op == 'popc' else op}({use.predicate(p)})"
    result = f"(fsr_ptx::B32){call}" if op == "popc" else f"{call} != 0"
    return f"fsr_ptx::whole_block({places}); {use.put(to, result)}"


def thread(instruction: Instruction, use: Registers) -> str:
    """``trap``, ``nanosleep``."""
    use.need("fsr/ptx_warps.h")
    return "__trap();" if instruction.words[0] == "trap" else "fsr_yield(__builtin_LINE());"
