"""One attempt at a lifting: runs watched at sizes that go together, generalised, and held against the original."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from fsr.computation.canonical import DIMS, canonical
from fsr.computation.computation import Buffer, Computation, Statement
from fsr.computation.expression import Affine, Number, names_in
from fsr.computation.implied import without_implied
from fsr.contract.flags import positions_of, with_choices
from fsr.contract.model import Argument
from fsr.expressions import evaluate_int
from fsr.lifting.additions import additions, unasked, zero_like
from fsr.lifting.alternate_forms import alternating, by_places, few_turns
from fsr.lifting.carrying import as_neighbours
from fsr.lifting.cases import narrow_cases, usual_cases
from fsr.lifting.check import RUN_IN_PART_S, Checker
from fsr.lifting.found import Lifting, data_chooses, explained, facing, require_short, scattered
from fsr.lifting.generalise import Generaliser
from fsr.lifting.generally import standing
from fsr.lifting.graph import Graph
from fsr.lifting.launches import Steps, by_launches
from fsr.lifting.merging import as_summed, one_type
from fsr.lifting.pace import Pace
from fsr.lifting.points import Points
from fsr.lifting.quotients import quotients
from fsr.lifting.refused import Hopeless, Refused, TooMuch, Unexplained
from fsr.lifting.sampling import (
    ROOM_NODES,
    distances,
    is_narrow,
    least_sizes,
    smaller_sizes,
    spread_sizes,
    turned_sizes,
    watched_sizes,
    wide_sizes,
)  # fmt: skip
from fsr.lifting.shares import idle, narrow
from fsr.lifting.sides import USUAL_FILLS, USUAL_FILLS_IN_PART, Sides
from fsr.lifting.spared import spared
from fsr.lifting.starts import Start, parts_of, starts
from fsr.lifting.tallies import tallied
from fsr.lifting.told import told_with
from fsr.lifting.turns import periods
from fsr.lifting.vanished import require_none
from fsr.lifting.watching import Run, Watcher
from fsr.lifting.work import is_redone
from fsr.records import Case, Role
from fsr.testgen.families import among

_SAME_FILLS, _FILLS = 32, 120  # runs in a row that show nothing new; runs at most
_ZEROS = 6  # so many runs with other data, the first among them, have zeros in some of the inputs, others in each
_ALL_ZERO = _ZEROS + 3  # in the ones after these all floating values are zero, and whole ones few
_IN_PART = ("normal", "normal", "zeros", "normal", among((0.0,))[0], "normal")  # in turn, where single blocks run
_WAYS = ((False, 1), (True, 1), (False, 2), (False, 0))  # whether reads past a row are neighbours, and the algebra
_AS_LONG = 2.0  # times what a whole took: for its launches, of which it may be that they leave less to do
Watched = Sequence[Mapping[str, int]]  # together


class _Heavy(Exception):  # noqa: N818
    """A run after which smaller sizes are tried first."""


class Attempt:
    """How far the lifting of one plan has come."""

    def __init__(self, watcher: Watcher, checker: Checker, blind: Sequence[str]) -> None:
        self.watcher, self.checker, self.blind = watcher, checker, blind
        self.contract = watcher.contract
        self.runs: list[list[Run]] = []  # by sizes, then by data
        self.ways: Sequence[tuple[bool, int]] = _WAYS
        self.carrying = False  # whether what is read past the end of a row is taken for a neighbour
        self.apart, self.parted = True, False  # whether forms that alternate are told apart, and any did
        self.distances = frozenset(distances(self.contract))
        self.positions = frozenset(a.name for a in positions_of(self.contract))
        self.quotients = quotients(self.contract, watcher.candidate.source)
        self.smaller = with_choices(self.contract, smaller_sizes(self.contract))  # to watch at first where it pays
        self._outputs = [a for a in self.contract.buffers() if a.role is not Role.IN]
        self.unexplained = False  # at sizes before
        self.turns: tuple[int, ...] = ()  # periods that what did not stand the check showed
        self.alone: Steps | None = None  # how launches are lifted that were not tried yet

    def lifted(self, started: float) -> Lifting:
        """By the first sizes and way whose result stands the check."""
        choices, least = [with_choices(self.contract, c) for c in watched_sizes(self.contract)], None
        if not choices:
            least = least_sizes(self.contract)
            if least is None:
                raise Refused("even the smallest sizes that the contract allows are too many elements to watch")
            choices, self.checker.run_s = [with_choices(self.contract, [least])], RUN_IN_PART_S
            if any(s.minimum < s.maximum for s in self.contract.sizes):  # one size tells nothing of another
                return self._lifted_in_part(started)
        why, todo = "", list(choices)
        while todo:
            sizes = todo.pop(0)
            try:
                self.runs = [[self._first_run(s, n, part=least is not None)] for n, s in enumerate(sizes)]
            except _Heavy:
                todo[:0], self.smaller = [self.smaller, sizes], []
                continue
            except TooMuch:
                if least is not None:
                    raise
                return self._lifted_in_part(started)
            except Refused:
                if why:
                    break  # it is known, and that no time is left for more
                raise
            cases = self._cases(sizes, part=least is not None)
            found, wrong = self._found(cases)
            if found is not None:
                found, cases = self._at_narrow_sizes(found, sizes, cases)
                return Lifting.of(found, started, sizes, cases)
            why = why or wrong
            few = self.parted and few_turns(self.runs)
            found, cases = (None, cases) if few else self._by_turns(sizes, cases)
            if found is not None:
                return Lifting.of(found, started, sizes, cases)
            if (steps := self._tried_in_steps(started)) is not None:
                return steps
            nothing = idle(self.runs, self._outputs)
            if sizes == choices[0] and (nothing or few or narrow(self.runs, self._outputs)):  # nearly all border
                sets = [turned_sizes(self.contract)] if few else wide_sizes(self.contract)
                wide = [with_choices(self.contract, c) for c in sets]
                todo = wide if nothing else [*wide, *todo]
        return Lifting(None, why, time.monotonic() - started, tuple(choices[0]))

    def _at_narrow_sizes(self, found: Computation, sizes: Watched, cases: list[Case]) -> tuple[Computation, list[Case]]:
        """What was found, or what is found with sizes watched too at which it is wrong, where opposite edges meet."""
        every = [*cases, *(more := narrow_cases(cases))]
        better = self._by_turns(sizes, every)[0] if self.checker.disagreement(found, more) else None
        return (found, cases) if better is None else (better, every)

    def _by_turns(self, sizes: Watched, cases: list[Case]) -> tuple[Computation | None, list[Case]]:
        """As _found, and by which cases: once more, with the ends of periods watched where the check showed some, or
        the narrow sizes at which it showed something else."""
        shown, self.checker.refuted = self.checker.refuted, None
        by = periods(shown[1]) if shown else ()
        own = shown is not None and shown[0].keys() == sizes[0].keys()  # flags stand in a case's contract
        if shown is None or not own or len(sizes) < 2 or not (by or any(map(is_narrow, shown[0].values()))):
            return None, cases
        self.turns, runs = by, self.runs
        try:
            wide = self._first_run(shown[0], len(runs), part=False)
            self.runs = [*runs, [replace(wide, periods=by) if by else wide]]
            found, _ = self._found(cases)
        except (TooMuch, _Heavy, Hopeless):
            found = None
        self.turns, self.runs = (), runs
        return found, cases

    def _lifted_in_part(self, started: float) -> Lifting:
        """By single blocks, at sizes that are few and unlike each other. Raises Refused."""
        sizes = self._watched_in_part(with_choices(self.contract, spread_sizes(self.contract)))
        cases = self._cases(sizes, part=False)
        found, why = self._found(cases)
        return Lifting.of(found, started, sizes, cases, why)

    def _found(self, cases: Sequence[Case]) -> tuple[Computation | None, str]:
        """What was watched, by the first way whose result stands the check; else why not."""
        in_rows = any(len(self.watcher.views[a.name]) > 1 for a in self._outputs) and not idle(self.runs, self._outputs)
        why, refuted, graphs = "", False, {algebra: Graph(algebra) for _, algebra in self.ways}
        for (carrying, algebra), apart in itertools.product(self.ways, (True, False)):
            if apart and ((refuted and not carrying) or (carrying and not in_rows)):
                self.parted = False
                continue
            if not apart and not self.parted:
                continue
            self.carrying, self.apart, self.parted = carrying, apart, False
            try:
                found = canonical(told := told_with(self._computation, graphs, algebra))
            except Hopeless:
                raise
            except Refused as refused:
                why = why or explained(self.runs, self.blind, str(refused))
                if isinstance(refused, Unexplained) and apart:
                    if self.unexplained:
                        raise Hopeless(str(refused)) from None  # it will be so at any sizes
                    self.unexplained = True
                    break
                if self.watcher.allowance.left_s <= 0:
                    break
                continue
            stood, wrong = standing(told, found, self.checker, cases, self._sized(self.contract.timed_sizes()[0]))
            if stood is not None:
                return stood, ""
            why = why or explained(self.runs, self.blind, f"what was found does not stand the check: {wrong}")
            refuted = True
            if self.parted and few_turns(self.runs):
                break
        return None, why

    def lifted_in_steps(self, started: float, alone: Steps) -> Lifting:
        """As a whole; where that fails at the first sizes, launch by launch before others."""
        self.ways = [way for way in _WAYS if not way[0]]  # launches alone may carry
        self.alone = alone
        try:
            found = self.lifted(started)
        except Refused as why:
            found = Lifting(None, str(why), time.monotonic() - started)
        if found.computation is None:
            return self._tried_in_steps(started) or found
        if not any(s.target.startswith("_") for s in found.computation.statements):
            return found  # nothing is made for itself that a launch might have left
        steps = self._tried_in_steps(started, _AS_LONG * (time.monotonic() - started))
        timed = self._sized(self.contract.timed_sizes()[0])
        redone = steps and steps.computation and is_redone(found.computation, steps.computation, timed)
        return steps if steps and redone else found

    def _tried_in_steps(self, started: float, most_s: float = math.inf) -> Lifting | None:
        """Launch by launch, once: before a whole plan is watched at more sizes, of which each takes long. None where it
        is not known like that."""
        alone, self.alone = self.alone, None
        sizes = watched_sizes(self.contract)
        if alone is None or not sizes:
            return None
        try:
            kept = by_launches(self.contract, self.watcher.candidate, alone.within(most_s))
        except Refused:
            return None
        cases = self._cases(sizes[0], part=False)
        if self.checker.disagreement(kept, cases):
            return None
        fewer = canonical(spared(kept, self._sized(self.contract.timed_sizes()[0])))
        if fewer != kept and not self.checker.disagreement(fewer, cases):
            kept = fewer
        return Lifting.of(kept, started, sizes[0], cases)

    def _first_run(self, sizes: Mapping[str, int], n: int, *, part: bool) -> Run:
        """The first of the runs at the n-th sizes. Raises _Heavy where there are smaller sizes and so much happens at
        these that reading it would take most of the time."""
        run = self.watcher.run(sizes, 11 + n, part=part)
        if self.smaller and not part and len(run.trace.nodes) > ROOM_NODES:
            raise _Heavy
        return run

    def _watched_in_part(self, choices: Sequence[dict[str, int]]) -> list[dict[str, int]]:
        """Those of the sizes that single blocks could be watched at. Raises Refused where they are too few."""
        self.runs, sizes, too_much = [], [], Refused("too much work at every size")
        for n, s in enumerate(choices):
            try:
                self.runs.append([self.watcher.run(s, 11 + n, part=len(self.watcher.candidate.plan.launches) == 1)])
            except TooMuch as why:
                too_much = why
            else:
                sizes.append(s)
        if len(sizes) < 2:
            raise too_much
        return sizes

    def _cases(self, watched: Watched, *, part: bool) -> list[Case]:
        return usual_cases(self.contract, watched, part=part)

    # ------------------------------------------------------------ outputs

    def _computation(self, graph: Graph) -> Computation:
        dtypes = {a.name: a.dtype for a in self.contract.args}
        shapes = [run.shapes for runs in self.runs for run in runs[:1]]
        timed = self.watcher.shapes(self.contract.timed_sizes()[0])
        # Outputs share what is known of their terms.
        self.general = Generaliser(graph, self._sizes(), shapes, timed, dtypes, self.watcher.allowance)
        written = [s for a in self._outputs for s in self._statements(graph, a)]
        buffers = tuple(Buffer(a.name, a.dtype, self.watcher.views[a.name]) for a in self.contract.buffers())
        made = (run.made(a.name).any() for runs in self.runs for run in runs for a in self._outputs)
        if not written or not any(made):  # what other data would make a thread do has not been seen
            raise Refused("nothing is written")
        used = {name for s in written if s.value is not None for name in names_in(s.value)}
        return Computation(
            tuple(n for n in self._sizes() if n in used or n not in self.quotients), buffers, tuple(written)
        )

    def _sizes(self) -> tuple[str, ...]:
        """The names of sizes, flags and positions, and the quotients of sizes."""
        return (*(s.name for s in self.contract.sizes), *sorted(self.watcher.asked), *self.quotients)

    def _sized(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """The sizes of a run, with their quotients."""
        return {**sizes, **{q: evaluate_int(q, sizes) for q in self.quotients}}

    def _statements(self, graph: Graph, output: Argument) -> list[Statement]:
        number, places, terms = list[int](), list[tuple[int, ...]](), list[int]()
        for n in range(len(self.runs)):
            at = self.runs[n][0].cells(output.name)
            found = self._elements(graph, n, output.name, at)
            at, found = self._up_to_edges(graph, n, output.name, dict(zip(at, found, strict=True)))
            number += [n] * len(at)
            places += at
            terms += found
        if not terms:
            raise Refused(f"{output.name} has no elements at the sizes watched")
        if data_chooses(graph, terms):
            return self._scatter(graph, output)
        require_none(graph, number, terms)
        require_short(graph, terms, number, output.name)
        points = self._points(number, places, as_summed(graph, terms, output.dtype))
        kept = points.where(np.array([not graph.guarded(t) for t in terms], bool))
        if len(kept) < 0.6 * len(points):
            raise Refused("branches on data were seen from one side only")
        by = alternating(self.general, kept) if self.apart else {}
        self.parted |= bool(by)
        if by and not all(run.periods for run, *_ in self.runs):
            return self._about_turns(graph, output, tuple(sorted(set(by.values()))))
        return [self._each(graph, output, kept)]

    def _about_turns(self, graph: Graph, output: Argument, turns: tuple[int, ...]) -> list[Statement]:
        """As _statements, of more elements about the ends of turns."""
        runs, self.runs = self.runs, [[replace(run, periods=turns) for run in some] for some in self.runs]
        try:
            return self._statements(graph, output)
        finally:
            self.runs = runs

    def _points(self, number: Sequence[int], places: Sequence[tuple[int, ...]], terms: Sequence[int]) -> Points:
        """Elements as samples: of which run each is, where, and what."""
        columns: dict[str, list[int]] = {}
        for n, place in zip(number, places, strict=True):
            for name, value in {**self._sized(self.runs[n][0].sizes), **dict(zip(DIMS, place, strict=False))}.items():
                columns.setdefault(name, []).append(value)
        arrays = {k: np.array(v, np.int64) for k, v in columns.items()}
        return Points(arrays, np.array(number, np.int64), tuple(terms), self.distances, self.positions, self.turns)

    def _each(self, graph: Graph, output: Argument, points: Points) -> Statement:
        """A value for each element of an output."""
        found = without_implied((by_places if self.apart else Generaliser.split)(self.general, points))
        dims = tuple(zip(DIMS, self.watcher.views[output.name], strict=False))
        place = tuple(Number(Affine(((d, 1),)), "int64") for d, _ in dims)
        return Statement("map", output.name, dims, found, place)

    def _elements(self, graph: Graph, n: int, output: str, at: Sequence[tuple[int, ...]]) -> list[int]:
        """The terms of elements in the n-th run, runs with other data merged in where data decides on branches."""
        runs = self.runs[n]
        found = [unasked(graph, t) for t in self.watcher.terms(graph, runs[0], output, at)]
        if any(graph.guarded(t) for t in found):
            found = self._added(graph, n, output, at, found) or found
        home = [graph.make("load", output, tuple(graph.integer(i, "int64") for i in c)) for c in at]
        dtype = self.contract.argument(output).dtype

        def terms(run: Run) -> Sequence[int]:
            return self.watcher.terms(graph, run, output, at)

        nodes = [len(r[0].trace.nodes) for r in self.runs[n:]]
        pace = Pace(self.watcher.allowance, sum(nodes) / max(1, nodes[0]))

        def filled(fills: int, family: str) -> Run:
            pace.require(fills, USUAL_FILLS_IN_PART if runs[0].part else USUAL_FILLS)
            return self._filled(runs[0], fills, n, family)

        told = tallied(graph, found, runs, filled, terms, dtype)
        found = Sides(graph, runs, filled, lambda run: told(terms(run)), home).found(told(found))
        if self.carrying:
            shapes = runs[0].shapes
            found = [as_neighbours(graph, t, c, shapes[output], shapes) for t, c in zip(found, at, strict=True)]
        return [one_type(graph, t, dtype) for t in found] if dtype.startswith("uint") else found

    def _filled(self, first: Run, fills: int, n: int, family: str = "") -> Run:
        """The n-th run with other data, of that family; by default zeros among them first, on which comparisons with
        nought turn, then nothing but zeros beside flags of either kind."""
        if first.part and not family:  # each takes long: what is seldom on both sides is left out
            family = _IN_PART[fills % len(_IN_PART)]
        family = family or ("zeros" if fills < _ZEROS else among((0.0,))[0] if fills < _ALL_ZERO else "normal")
        return self.watcher.run(first.sizes, 101 * fills + n, part=first.part, family=family)

    def _added(
        self, graph: Graph, n: int, output: str, at: Sequence[tuple[int, ...]], first: Sequence[int]
    ) -> list[int] | None:
        """Terms of elements that threads add to where conditions on data hold; None where they are of another kind, or
        runs go on to show more."""
        runs, dtype = self.runs[n], self.contract.argument(output).dtype
        homes = self.watcher.homes(graph, runs[0], output, at)
        known = [additions(graph, t, h) for t, h in zip(first, homes, strict=True)]
        if runs[0].part and all(a is not None and len(a.terms) <= 1 for a in known):
            return None  # one thread's update of an element of its own, which is told by fewer runs
        same = fills = 1
        while same < _SAME_FILLS or (fills < _FILLS and len({len(a.terms) for a in known if a is not None}) > 1):
            if fills == _FILLS or None in known:
                return None
            if fills == len(runs):
                runs.append(self._filled(runs[0], fills, n))
            others = self.watcher.terms(graph, runs[fills], output, at)
            more = [additions(graph, t, h) for t, h in zip(others, homes, strict=True)]
            new = [None if a is None or b is None else a.joined(b) for a, b in zip(known, more, strict=True)]
            if None in new:
                return None
            same, fills = 1 if any(new) else same + 1, fills + 1
        return [a.term(graph, zero_like(graph, a.terms, dtype)) for a in known if a is not None]

    def _up_to_edges(
        self, graph: Graph, n: int, output: str, known: dict[tuple[int, ...], int]
    ) -> tuple[list[tuple[int, ...]], list[int]]:
        """More elements between neighbours of different forms, until the edge between the forms is known."""
        forms, run = self.general.forms, self.runs[n][0]
        for d in range(len(run.shapes[output])):
            for low, high in facing(known, d, forms):
                while high[d] - low[d] > 1:
                    middle = (*low[:d], (low[d] + high[d]) // 2, *low[d + 1 :])
                    if run.part and not run.wrote(output, middle):
                        break
                    (known[middle],) = self._elements(graph, n, output, [middle])
                    same = forms.skeleton(known[middle]) == forms.skeleton(known[low])
                    low, high = (middle, high) if same else (low, middle)
        return list(known), list(known.values())

    # ------------------------------------------------------------ scatters

    def _scatter(self, graph: Graph, output: Argument) -> list[Statement]:
        """Data decides where elements go: what is written, to where, for each point of a box; and what the elements
        are before, where that is not what was given."""
        lists, ops, began = list[list[int]](), set[str](), list[Start]()
        for n, (run, *_) in enumerate(self.runs):
            at = [tuple(int(i) for i in c) for c in np.ndindex(*run.shapes[output.name])]
            terms = [unasked(graph, t) for t in self.watcher.terms(graph, run, output.name, at)]
            made = [parts_of(graph, t) for t in terms]
            ops |= {op for op, _ in made if op}
            lists.append(
                [self._event(graph, run, (output.name, place), k)
                 for place, (_, parts) in zip(at, made, strict=True) for k in parts if graph.terms[k][0] == "chosen"]
            )  # fmt: skip
            homes = self.watcher.homes(graph, run, output.name, at)
            began += starts(graph, n, at, terms, homes, output.dtype)
        if len(ops) != 1:
            raise Refused(f"data decides where elements of {output.name} go, and the last one stays")
        rows = [self._sized(runs[0].sizes) for runs in self.runs]
        sizes = {name: np.array([row[name] for row in rows]) for name in self._sizes()}
        points = Points(sizes, np.arange(len(self.runs)), (0,) * len(self.runs), self.distances, self.positions)
        added = self.general.folding.fold("sum", points, lists)
        combine = {"sum": "+"}.get(ops.copy().pop(), ops.pop())
        return [*self._begun(graph, output, began), scattered(added, output.name, combine)]

    def _begun(self, graph: Graph, output: Argument, began: Sequence[Start]) -> list[Statement]:
        """What elements are before anything is added; nothing where that is what was given."""
        if all(start.term == start.home for start in began):
            return []
        shown = [{*runs[0].cells(output.name)} for runs in self.runs]
        kept = [start for start in began if start.place in shown[start.run]]
        points = self._points([s.run for s in kept], [s.place for s in kept], [s.term for s in kept])
        return [self._each(graph, output, points)]

    def _event(self, graph: Graph, run: Run, element: tuple[str, tuple[int, ...]], term: int) -> int:
        """A term of the value and its indices. ``element``: where it is, the output and its indices."""
        reader, (output, place) = self.watcher.reader(graph, run), element
        _, value, address = graph.terms[term]
        return graph.make("chosen_at", value, *reader.indices(output, reader.led_on(output, address, place)))
