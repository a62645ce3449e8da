"""select-chains: a thread's small arrays stay in registers, whatever they are indexed by.

Registers have no addresses: an array of which one access has an index that is no constant lies in local memory, which
is memory behind caches (CUDA C++ Programming Guide, "Local Memory"). Where the loops that lead through it are unrolled
and an element that data chooses is found by comparing its number with each, ``i == 0 ? a0 : i == 1 ? a1 : ...``, all
of it is in registers, and each comparison an instruction or two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fsr.analysis.instances import instances
from fsr.analysis.local_arrays import in_local_memory, indexed_at_run_time
from fsr.records import Candidate
from fsr.source.entry import function_name
from fsr.source.form import KernelForm
from fsr.source.rewrite import insert_helpers, is_plain, redefinition, with_definitions
from fsr.transform.inlining.calls import inlined
from fsr.transform.protocol import Move, Subject
from fsr.transform.selects.arrays import Place, given_arrays, place_of, small_arrays
from fsr.transform.selects.elements import ChosenElements, Unfit
from fsr.transform.selects.followed import with_followed
from fsr.transform.selects.loops import UnrolledLoops
from fsr.transform.selects.rows import with_rows
from fsr.transform.selects.walks import with_walks

_GAIN = 1.5
_MOST = (16, 32)  # elements: each access costs an instruction or two for every one of them


@dataclass(frozen=True, slots=True)
class SelectChains:
    """All arrays of up to so many elements, of a plan's kernels and of the functions that these reach."""

    name: str = "select-chains"
    aims_at: frozenset[str] = frozenset(["latency", "uncoalesced", "bandwidth", "instructions"])

    def moves(self, subject: Subject) -> Iterator[Move]:
        """One for each number of elements that takes more arrays."""
        before = subject.candidate.source
        for most in _MOST:
            made = _made(subject, most)
            if made != before:
                yield Move(self.name, "plan", (("most", most),), _GAIN)
                before = made

    def apply(self, subject: Subject, move: Move) -> Candidate:
        """The candidate whose arrays are registers."""
        old = subject.candidate
        return replace(old, source=_made(subject, int(move.param("most"))), actions=(*old.actions, move.name))


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A kernel or function with its elements chosen, and the functions that do it, by name."""

    form: KernelForm
    helpers: tuple[tuple[str, str], ...]


def _made(subject: Subject, most: int) -> str:
    return subject.once(("select-chains", most), lambda: _rewritten(subject.candidate, most))


def _rewritten(candidate: Candidate, most: int) -> str:
    """The text with every array in registers that may be; as it is where there is none."""
    source, entries = candidate.source, dict[str, str]()
    for entry in candidate.plan.entries:  # of several instances none
        entries[function_name(entry)] = "" if function_name(entry) in entries else entry
    found: dict[str, _Chosen] = {}
    forms = {one.form.name: one.form for one in instances(candidate)}
    for name, form in forms.items():
        chosen = _chosen(form, source, entries.get(name), most)
        if chosen is not None:
            found[name] = chosen
    texts = {name: redefinition(source, forms[name], chosen.form) for name, chosen in found.items()}
    text = with_definitions(source, [forms[name] for name in texts], lambda old: [texts[old.name]])
    helpers = {name: helper for chosen in found.values() for name, helper in chosen.helpers}
    for name in sorted(helpers):
        text = insert_helpers(text, helpers[name])
    return text


def _chosen(form: KernelForm, source: str, entry: str | None, most: int) -> _Chosen | None:
    """A kernel with its arrays in registers, or a function; None where that changes nothing, or cannot be said.
    ``entry``: a kernel's, '' where it has several, None of a function."""
    if form.span is None or (entry is None and not is_plain(source, form)):
        return None
    written = with_rows(form if entry is None else inlined(form, source, given_arrays(form)))
    best: _Chosen | None = None
    most_arrays = 0
    for one in (written, form) if written is not form else (form,):
        place = place_of(one, source, entry or "")
        count, made = _in_registers(place, most)
        if made is not None and count > most_arrays:
            best, most_arrays = made, count
    return best


def _in_registers(place: Place, most: int) -> tuple[int, _Chosen | None]:
    """How many arrays leave local memory, and how."""
    local = {s.name for s in in_local_memory(place.form)}
    arrays = small_arrays(place, most) if local else []
    while any(a.name in local for a in arrays):
        walked = replace(place, form=replace(place.form, body=with_walks(place, arrays)))
        followed = replace(walked, form=replace(walked.form, body=with_followed(walked, arrays)))
        loops = UnrolledLoops(followed, arrays)
        body = loops.body()
        form = replace(followed.form, body=body)
        turns = {id(loop): count for loop, count in loops.unrolled}
        elements = ChosenElements(followed, arrays, indexed_at_run_time(form, turns), turns)
        try:
            made = replace(form, body=elements.block(body))
        except Unfit as unfit:
            arrays = [a for a in arrays if a.name != unfit.array.name]
            continue
        return sum(a.name in local for a in arrays), _Chosen(made, tuple(elements.helpers.items()))
    return 0, None
