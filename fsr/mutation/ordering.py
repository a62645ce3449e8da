"""Faults in what happens before what: barriers, fences, scopes, atomics, shuffles, volatile."""

from __future__ import annotations

from collections.abc import Iterator

from fsr.mutation.ground import Edit, Function
from fsr.source.form import Assign, ExprStmt

_FENCES = {"__threadfence": "__threadfence_block", "__threadfence_system": "__threadfence"}
_ATOMICS = {"atomicMax": "atomicMin", "atomicMin": "atomicMax", "atomicAdd": "atomicExch", "atomicSub": "atomicAdd",
            "atomicAnd": "atomicOr", "atomicOr": "atomicAnd", "atomicXor": "atomicOr"}  # fmt: skip
_PLAIN = {"atomicAdd": "+=", "atomicSub": "-=", "atomicOr": "|=", "atomicAnd": "&=", "atomicXor": "^=",
          "atomicExch": "="}  # fmt: skip
_SHUFFLES = {
    "__shfl_down_sync": "__shfl_up_sync", "__shfl_up_sync": "__shfl_down_sync", "__shfl_xor_sync": "__shfl_down_sync",
    "__shfl_sync": "__shfl_xor_sync", "__any_sync": "__all_sync", "__all_sync": "__any_sync",
}  # fmt: skip


def barriers(function: Function) -> Iterator[Edit]:
    """A barrier that is lost, that a warp keeps to itself, and one that stands a statement too early or too late."""
    statements = function.statements
    by_end = {end: (s, start) for s, start, end in statements if isinstance(s, Assign | ExprStmt)}
    by_start = {start: (s, end) for s, start, end in statements if isinstance(s, Assign | ExprStmt)}
    tokens = function.tokens
    for index, token in enumerate(tokens[:-1]):
        if token.text not in ("__syncthreads", "__syncwarp"):
            continue
        close = function.close(index + 1)
        if close is None or close + 2 >= len(tokens) or tokens[close + 1].text != ";":
            continue
        start, end = token.start, tokens[close + 1].end
        yield Edit("barrier-dropped", start, end, ";")
        if token.text == "__syncthreads":
            yield Edit("barrier-narrowed", token.start, token.end, "__syncwarp")
        call = function.text(start, end)
        before = by_end.get(tokens[index - 1].end) if index else None
        if before is not None:
            yield Edit("barrier-early", before[1], end, f"{call} {function.text(before[1], tokens[index - 1].end)}")
        after = by_start.get(tokens[close + 2].start)
        if after is not None:
            yield Edit("barrier-late", start, after[1], f"{function.text(tokens[close + 2].start, after[1])} {call}")


def fences(function: Function) -> Iterator[Edit]:
    """A fence that is lost or that only the block sees; volatile that is lost."""
    tokens = function.tokens
    for index, token in enumerate(tokens[:-1]):
        if token.text in ("__threadfence", "__threadfence_block", "__threadfence_system"):
            close = function.close(index + 1)
            if close is not None:
                yield Edit("fence-dropped", token.start, tokens[close].end, "(void)0")
            if token.text in _FENCES:
                yield Edit("fence-narrowed", token.start, token.end, _FENCES[token.text])
        if token.text == "volatile":
            yield Edit("volatile-dropped", token.start, token.end, "")


def atomics(function: Function) -> Iterator[Edit]:
    """An atomic operation that is none, that only the block sees, or that is another."""
    tokens = function.tokens
    for index, token in enumerate(tokens[:-1]):
        if not token.text.startswith("atomic") or tokens[index + 1].text != "(":
            continue
        given, close = function.arguments(index + 1), function.close(index + 1)
        if token.text in _ATOMICS:
            yield Edit("atomic-other", token.start, token.end, _ATOMICS[token.text])
        if token.text in _PLAIN and len(given) == 2 and close is not None:
            where, value = (function.text(*place).strip() for place in given)
            alone = not index or tokens[index - 1].text in (";", "{", "}", ")", "else")
            if alone and close + 1 < len(tokens) and tokens[close + 1].text == ";":
                text = f"*({where}) {_PLAIN[token.text]} {value}"
                yield Edit("atomic-plain", token.start, tokens[close].end, text)
            else:
                text = f"([&]() {{ auto was = *({where}); *({where}) {_PLAIN[token.text]} {value}; return was; }}())"
                yield Edit("atomic-plain", token.start, tokens[close].end, text)
        if not token.text.endswith(("_block", "_system")) and len(given) >= 2:
            yield Edit("atomic-narrowed", token.start, token.end, f"{token.text}_block")


def shuffles(function: Function) -> Iterator[Edit]:
    """A value from the wrong lane."""
    for token in function.tokens:
        if token.text in _SHUFFLES:
            yield Edit("shuffle-swapped", token.start, token.end, _SHUFFLES[token.text])
