"""Arrays of a thread that live in local memory are made known to the recorder, which takes the rest of a stack for
registers."""

from __future__ import annotations

from dataclasses import replace

from fsr.analysis.local_arrays import in_local_memory
from fsr.errors import SourceError
from fsr.records import Candidate
from fsr.source.form import Declare, Scope, While
from fsr.source.parse import parse_device_functions, parse_kernels
from fsr.source.walk import walk_stmts


def with_locals_told(candidate: Candidate) -> Candidate:
    """What the host device records of a candidate: line for line the same text, each such array told of where it is
    declared. The very candidate where there is none."""
    try:
        functions = [*parse_kernels(candidate.source).values(), *parse_device_functions(candidate.source).values()]
    except SourceError:
        return candidate
    data, told = candidate.source.encode(), dict[int, str]()
    for function in functions:
        # ``for (int i = 0, a[3]; ...)`` has no place for a statement behind the declaration.
        heads = {id(x) for s in walk_stmts(function.body) if isinstance(s, Scope) and _is_for(s) for x in s.body}
        for array in in_local_memory(function):
            if id(array) not in heads and _stands_alone(data, array):
                end = (array.span or (0, 0))[1]
                told[end] = told.get(end, "") + f" fsr_note_local({array.name}, sizeof({array.name}));"
    for end in sorted(told, reverse=True):
        data = data[:end] + told[end].encode() + data[end:]
    return replace(candidate, source=data.decode()) if told else candidate


def _is_for(scope: Scope) -> bool:
    last = scope.body[-1] if scope.body else None
    return isinstance(last, While) and last.span == scope.span


def _stands_alone(data: bytes, array: Declare) -> bool:
    text = data[slice(*(array.span or (0, 0)))].decode(errors="replace").rstrip()
    return text.endswith(";") and array.name in text
