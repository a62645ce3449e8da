"""From a model's words to a candidate: fenced code, search/replace blocks, launch lines. Pure; runs nothing.

A candidate file is what ``fsr tell`` takes too: comment lines on top say how it is launched, the rest is device code.
"""

from __future__ import annotations

import re

from fsr.contract.model import Contract
from fsr.errors import FsrError
from fsr.expressions import parse
from fsr.llm.unusable import Unusable
from fsr.records import Candidate, Plan
from fsr.source.entry import function_name
from fsr.source.tokens import tokenize
from fsr.testgen.candidate_file import candidate_of, notes_of, plan_notes

MOST_CHARACTERS = 200_000
_FENCE = re.compile(
    r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+#.-]*)[^\n]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE
)
_BLOCK = re.compile(
    r"^[ \t]*<{5,}[ \t]*SEARCH[^\n]*\n(.*?)^[ \t]*={5,}[ \t]*\n(.*?)^[ \t]*>{5,}[ \t]*REPLACE", re.DOTALL | re.MULTILINE
)
_CUDA = {"", "cuda", "cu", "c", "cpp", "c++", "cxx", "cc", "h", "hip"}
_KEYS = {"grid", "block", "shared", "entry", "args", "repeat", "scratch", "launch", "flags"}
# Programming models by their marks. Those in the first table may hold a CUDA kernel in a text of their own, or be taken
# for one; the others are looked for only where no __global__ stands.
_BESIDE = (
    (re.compile(r"\b(?:import|from)\s+pycuda\b|\bSourceModule\s*\("), "PyCUDA"),
    (re.compile(r"\bRawKernel\b|\b(?:import|from)\s+cupy\b"), "CuPy"),
    (re.compile(r"#\s*include\s*<hip/|\bhip(?:LaunchKernelGGL|Malloc|Memcpy|Free|DeviceSynchronize)\b"), "HIP"),
    (re.compile(r"#pragma\s+omp\b"), "OpenMP"),
    (re.compile(r"#pragma\s+acc\b"), "OpenACC"),
    (re.compile(r"\bsycl::|\bcl::sycl\b"), "SYCL"),
    (re.compile(r"\bKokkos::"), "Kokkos"),
)
_OTHER = (
    *_BESIDE,
    (re.compile(r"@triton\.jit|\btl\.load\b"), "Triton"),
    (re.compile(r"@(?:numba\.)?cuda\.jit|\b(?:import|from)\s+numba\b"), "Numba"),
    (re.compile(r"@cuda\s+threads|\busing\s+(?:CUDA|AMDGPU|KernelAbstractions)\b|@kernel\s+function\b"), "Julia"),
    (re.compile(r"^\s*(?:import|from)\s+\w+|^\s*def \w+\(", re.MULTILINE), "Python"),
    (re.compile(r"\bparallel_for\s*\("), "SYCL"),
    (re.compile(r"\b__kernel\b|\bget_global_id\s*\("), "OpenCL"),
    (re.compile(r"#include\s*<metal_stdlib>|\bthread_position_in_grid\b"), "Metal"),
    (re.compile(r"^\s*(?:fn|func|function|subroutine|program)\s+\w+", re.MULTILINE | re.I), "another language"),
)
_HOST = re.compile(
    r"\bint\s+main\s*\(|<<<|\bcuda(?:Malloc|Memcpy|Free|Launch|DeviceSynchronize|Stream|Event)\w*\s*\("
    r"|#\s*include\s*<(?:iostream|cstdio|stdio\.h|stdlib\.h|cstdlib|vector|torch|string|fstream)[^>]*>|\bstd::(?:cout|vector|system)\b"
    r"|\b(?:printf|system|popen|fopen)\s*\("
)


def file_of(candidate: Candidate) -> str:
    """A candidate as the file that a model is shown: launch lines, then code."""
    return plan_notes(candidate.plan) + strip_notes(candidate.source)


def strip_notes(source: str) -> str:
    """The code without launch lines on top of it; other comments stay."""
    lines = source.split("\n")
    at = 0
    while at < len(lines) and (not lines[at].strip() or lines[at].lstrip().startswith("//")):
        at += 1
    kept = [line for line in lines[:at] if not (_KEYS & set(notes_of(line.lstrip())))]
    return "\n".join([*kept, *lines[at:]]).lstrip("\n")


def fences(text: str) -> list[tuple[str, str]]:
    """(language, content) of every fenced block; one that is never closed goes to the end."""
    return [(m[2].lower(), m[3]) for m in _FENCE.finditer(text)]


def whole(text: str, base: Candidate, contract: Contract) -> Candidate:
    """The candidate of an answer that holds a whole file. Raises Unusable."""
    _bounded(text)
    found = fences(text)
    mine = [content for language, content in found if language in _CUDA and "__global__" in content]
    if not mine:
        others = [content for _, content in found] or [text]
        for content in others:
            _language(content)
        if found or "__global__" not in text:
            raise Unusable("prose" if not found else "wrong entry", "the answer holds no kernel")
        mine = [text[max(0, text.find("// launch:")) :] if "// launch:" in text else text[_start(text) :]]
    return _candidate(max(mine, key=len), base, contract)


def edited(text: str, base: Candidate, contract: Contract) -> Candidate:
    """The candidate of an answer that holds search/replace blocks; a whole file instead will do. Raises Unusable."""
    _bounded(text)
    blocks = _BLOCK.findall(text)
    if not blocks:
        if re.search(r"^[ \t]*<{5,}[ \t]*SEARCH", text, re.MULTILINE):
            raise Unusable("truncated", "a SEARCH block without its REPLACE")
        return whole(text, base, contract)
    file = file_of(base)
    for old, new in blocks:
        file = _replaced(file, old, new)
    return _candidate(file, base, contract)


def _replaced(file: str, old: str, new: str) -> str:
    """Exactly where it stands, else where it stands but for blanks at the ends of lines and the indentation."""
    old_lines = old.rstrip("\n").split("\n")
    if not old.strip():
        raise Unusable("does not apply", "an empty SEARCH block")
    lines = file.split("\n")
    for same in (str.rstrip, str.strip):
        wanted = [same(line) for line in old_lines]
        places = [
            at
            for at in range(len(lines) - len(wanted) + 1)
            if [same(x) for x in lines[at : at + len(wanted)]] == wanted
        ]
        if len(places) > 1:
            raise Unusable("does not apply", f"{old_lines[0].strip()[:60]!r} stands at {len(places)} places")
        if places:
            at = places[0]
            return "\n".join(
                [*lines[:at], *(new.rstrip("\n").split("\n") if new.strip() else []), *lines[at + len(wanted) :]]
            )
    raise Unusable("does not apply", f"{old_lines[0].strip()[:60]!r} is not in the file")


def _candidate(file: str, base: Candidate, contract: Contract) -> Candidate:
    _language(file)
    host = _HOST.search(_bare(file))
    if host and not _HOST.search(_bare(base.source)):
        raise Unusable("host code", f"{host[0].strip()!r} is no device code")
    plan = _plan(file, base, contract)
    source = strip_notes(file).rstrip() + "\n"
    words = {t.text for t in tokenize(source) if t.kind == "name"}
    missing = [name for name in dict.fromkeys(function_name(x.entry) for x in plan.launches) if name not in words]
    if missing:
        raise Unusable("wrong entry", f"the kernel {missing[0]!r} that is launched is not in the answer")
    if normal_form(Candidate(source, plan)) == normal_form(base):
        raise Unusable("unchanged")
    return Candidate(source, plan, base.actions, base.language)


def _plan(file: str, base: Candidate, contract: Contract) -> Plan:
    """What the launch lines say; without any, the base's plan. Raises Unusable for what cannot be evaluated."""
    said = notes_of("\n".join(line.lstrip() for line in file.split("\n") if line.strip()))
    if not _KEYS & set(said):
        return base.plan
    try:
        plan = candidate_of(file.lstrip(), contract, "the answer").plan
        for launch in plan.launches:
            for expression in (*launch.shape, launch.repeat):
                parse(expression)
        for scratch in plan.scratch:
            parse(scratch.count)
    except (FsrError, ValueError) as fault:
        raise Unusable("bad plan", str(fault).split("\n")[0][:200]) from None
    known = contract.names_for(plan)
    unknown = [a for x in plan.launches for a in x.args if isinstance(a, str) and a not in known]
    if unknown or not plan.launches or any(len(x.args) == 0 for x in plan.launches):
        raise Unusable("bad plan", f"the argument {unknown[0]!r} is not known" if unknown else "no arguments")
    return plan


def normal_form(candidate: Candidate) -> str:
    """Tokens and plan: what is left of a candidate without comments and layout; equal for what is the same code."""
    return " ".join(t.text for t in tokenize(strip_notes(candidate.source))) + "\n" + repr(candidate.plan)


def _bounded(text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise Unusable("too long", f"{len(text)} characters")


def _language(content: str) -> None:
    own = "__global__" in content
    for pattern, name in _BESIDE if own else _OTHER:
        if pattern.search(_bare(content) if own else content):
            raise Unusable("other language", name)


def _start(text: str) -> int:
    """Where code begins in an answer without a fence: at the line of the first directive, template or kernel."""
    found = re.search(r"^[ \t]*(?:#\s*\w+|template|extern|__global__|static|__device__)", text, re.MULTILINE)
    return found.start() if found else 0


def _bare(text: str) -> str:
    """The text without comments and strings."""
    return " ".join(t.text for t in tokenize(text) if t.kind != "string")
