"""The instruction mix of a kernel's machine code (SASS): what stands there, not how often it runs.

Opcodes: NVIDIA, CUDA Binary Utilities, "Instruction Set Reference".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from fsr.features.schema import Binary

_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^,\s]+)")
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:\{\s*)?(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)")
_KINDS = (
    ("tensor", re.compile(r"(HMMA|IMMA|DMMA|BMMA|QMMA|OMMA|HGMMA|QGMMA|IGMMA|BGMMA|UTC\w*MMA)\b")),
    ("memory", re.compile(r"(LDG|STG|LDS|STS|LDL|STL|LDC|ULDC|LD|ST|LDSM|STSM|LDGSTS|ATOM\w*|RED\w*|UBLK\w+|UTMA\w+"
                          r"|TEX|TLD\w*|SULD|SUST|SUATOM|SURED|LDTM|STTM|LDTRAM)\b")),
    ("control", re.compile(r"(BRA|BRX|JMP|JMX|EXIT|RET|CALL|BAR|BSSY|BSYNC|BREAK|WARPSYNC|DEPBAR|MEMBAR|ERRBAR|CCTL"
                           r"|YIELD|NANOSLEEP|SYNCS|KILL|BPT|ELECT|UBAR\w*)\b")),
    ("float", re.compile(r"([FDH](ADD|MUL|FMA|SETP?|MNMX3?|SEL|CHK|SWZADD)\w*|MUFU|F2[FI]P?|I2FP?|FRND|R2F\w*)\b")),
)  # fmt: skip
_GLOBAL = re.compile(r"(?:LDG|STG|LD|ST|LDGSTS)(?:\.|$)")
_WIDTHS = (("128", 16), ("64", 8), ("U8", 1), ("S8", 1), ("U16", 2), ("S16", 2))


def mix(sass: str, symbol: str) -> Binary:
    """The shares of one kernel's instructions; no field is known where the text has no such kernel. Padding (NOP) does
    not count."""
    opcodes = [name for name in opcodes_of(sass, symbol) if not name.startswith("NOP")]
    if not opcodes:
        return Binary()
    kinds = Counter(_kind(name) for name in opcodes)
    widths = [_width(name) for name in opcodes if _GLOBAL.match(name)]
    total = len(opcodes)
    return Binary(
        instructions=total,
        float_share=kinds["float"] / total,
        tensor_share=kinds["tensor"] / total,
        integer_share=kinds["integer"] / total,
        memory_share=kinds["memory"] / total,
        control_share=kinds["control"] / total,
        access_bytes=sum(widths) / len(widths) if widths else None,
        wide_share=widths.count(16) / len(widths) if widths else None,
        local_accesses=sum(name.startswith(("LDL", "STL")) for name in opcodes),
    )


def opcodes_of(sass: str, symbol: str) -> Iterator[str]:
    """The opcodes with their modifiers ('LDG.E.128') of one kernel in nvdisasm's text."""
    inside = False
    for line in sass.splitlines():
        if (section := _SECTION.match(line)) is not None:
            inside = section[1] == symbol
        elif inside and (found := _INSTRUCTION.match(line)) is not None:
            yield found[1]


def _kind(opcode: str) -> str:
    name = opcode.partition(".")[0]
    return next((kind for kind, pattern in _KINDS if pattern.fullmatch(name)), "integer")


def _width(opcode: str) -> int:
    parts = opcode.split(".")
    return next((size for part, size in _WIDTHS if part in parts), 4)
