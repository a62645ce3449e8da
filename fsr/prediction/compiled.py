"""What the target's compiler makes of a recording that the CPU's code cannot show: loads that go past the L1, and
divisions and functions by fast mathematics.

``-Xptxas -dlcm=cg`` and ``__ldcg`` cache loads in the L2 only, and lines that ``__ldcs`` brings are evicted first (PTX
ISA, "Cache Operators"): neither is found in the L1 again. Loads through the read-only path (``ld.global.nc``: by
``__ldg``, or of what is ``__restrict__`` and never written; CUDA C++ Programming Guide, "Read-Only Data Cache Load
Function") are none that the flag speaks of and stay in the L1. ``--use_fast_math`` divides and takes roots by a
reciprocal and a product and calls the unit for special functions (the same guide, "Intrinsic Functions");
``--prec-div=false`` and ``--prec-sqrt=false`` do the former.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from fsr.backends.protocol import AccessProfile, AccessSite, LaunchProfile
from fsr.errors import SourceError
from fsr.records import Plan
from fsr.source.parse import parse_kernels

_L2_ONLY = re.compile(r"dlcm=c[gv]\b")
_PAST = re.compile(r"\b__ld(?:cg|cv|cs)\s*\(")
_OTHERWISE = re.compile(r"\b__ld(?:g|ca|lu)\s*\(")  # hints of their own, which the flag does not change
_SHORT_RESTRICT = re.compile(r"\b__restrict\b")
# What a text needs for FP64: the type's name or a literal of it. The host device does some of float16 in FP64.
_DOUBLES = re.compile(r"[dD]ouble|(?<![\w.])(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][-+]?\d+)?(?![\w.])")
# Instructions of a recording that fast mathematics saves, of the 8 that a division or root counts for and the 12 of
# a call (fsr.backends.host.instructions): two are left of the one, three of the other.
_DIVISION_SAVES, _FUNCTION_SAVES = 6.0, 9.0


def as_compiled(profile: AccessProfile, source: str, plan: Plan) -> AccessProfile:
    """The recording of a plan whose kernels are ``source``, with its loads past the L1 marked, its instructions as the
    plan's flags have them compiled, and FP64 only where the text has it."""
    if not _DOUBLES.search(source + " ".join(launch.entry for launch in plan.launches)):
        profile = replace(profile, launches=tuple(_without_doubles(x) for x in profile.launches))
    text, flags = source.splitlines(), " ".join(plan.flags)
    everywhere = _L2_ONLY.search(flags) is not None
    if not everywhere and not _PAST.search(source):
        return replace(profile, launches=tuple(_fast(x, plan.flags) for x in profile.launches))
    kept = _read_only(source, plan) if everywhere else {}

    def marked(launch: LaunchProfile) -> LaunchProfile:
        written = {s.buffer for s in launch.sites if s.kind != "read"}
        held = kept.get(launch.entry, frozenset()) - written

        def past(site: AccessSite) -> bool:
            if site.space != "global" or site.kind != "read":
                return False
            line = text[site.line - 1] if 0 < site.line <= len(text) else ""
            if _PAST.search(line):
                return True
            return everywhere and site.buffer not in held and not _OTHERWISE.search(line)

        return replace(launch, sites=tuple(replace(s, past_l1=True) if past(s) else s for s in launch.sites))

    return replace(profile, launches=tuple(_fast(marked(x), plan.flags) for x in profile.launches))


def _read_only(source: str, plan: Plan) -> dict[str, frozenset[str]]:
    """By entry the arguments that it takes by pointers declared __restrict__: of those what no one writes is loaded
    through the read-only path, const or not (LLVM, NVPTXISelDAGToDAG.cpp, canLowerToLDG)."""
    try:
        kernels = parse_kernels(_SHORT_RESTRICT.sub("__restrict__", source))
    except SourceError:
        return {}
    found = dict[str, frozenset[str]]()
    for launch in plan.launches:
        kernel = kernels.get(launch.entry.split("<")[0])
        if kernel is not None:
            pairs = zip(kernel.params, launch.args, strict=False)
            found[launch.entry] = found.get(launch.entry, frozenset()) | {
                arg for param, arg in pairs if isinstance(arg, str) and param.restrict
            }
    return found


def _without_doubles(launch: LaunchProfile) -> LaunchProfile:
    return replace(launch, arithmetic=replace(launch.arithmetic, doubles=0.0)) if launch.arithmetic.doubles else launch


def _fast(launch: LaunchProfile, flags: Sequence[str]) -> LaunchProfile:
    """A launch with the instructions that the flags leave."""
    fast = any(flag in ("--use_fast_math", "-use_fast_math") for flag in flags)
    did = launch.arithmetic
    saved = _DIVISION_SAVES * did.divisions if fast or "--prec-div=false" in flags else 0.0
    saved += _FUNCTION_SAVES * did.functions if fast else 0.0
    return replace(launch, warp_instructions=launch.warp_instructions - saved) if saved else launch
