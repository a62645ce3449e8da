"""Launches of one kernel that differ in the numbers they pass, as one launch with a name for each of those numbers.

The halves of a step, the levels of a pyramid, the steps of a loop that a host unrolled: what is shown of a launch that
passes any number of a range holds for all of them.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_low

from fsr.contract.model import Argument, Contract, Size
from fsr.errors import ContractError
from fsr.expressions import evaluate_int, replaced
from fsr.hardware.dtypes import is_float, numpy_dtype
from fsr.records import Launch, ScalarArgument
from fsr.transform.sizes import sample_sizes

_MOST = 3  # numbers that differ: each is another dimension of what has to be shown


@dataclass(frozen=True, slots=True)
class Told:
    """How launches are told apart. ``names``: for places among their arguments, the name of what each passes there;
    ``shaped``: the places in their shapes, ``sized``: those of buffers whose extents follow from that."""

    names: tuple[tuple[int, str], ...] = ()
    shaped: frozenset[int] = frozenset()
    sized: frozenset[int] = frozenset()

    def general(self, launch: Launch) -> Launch:
        """A launch with the names in the place of its numbers."""
        args = list(launch.args)
        for place, name in self.names:
            own = args[place]
            assert isinstance(own, ScalarArgument)
            args[place] = replace(own, value=name)
        return replace(_shaped(launch, self._named(launch), self.shaped), args=tuple(args))

    def buffers(self, launch: Launch, buffers: Mapping[str, Argument]) -> Mapping[str, Argument]:
        """The buffers as the general launch has them in the place of a launch's."""
        named, found = self._named(launch), dict(buffers)
        for place in self.sized:
            own = buffers[str(launch.args[place])]
            found[own.name] = replace(own, shape=tuple(replaced(text, named) for text in own.shape))
        return found

    def counted(self, launches: Iterable[Launch]) -> bool:
        """Whether each of these numbers is written as such: any that is drawn between them fits all sizes, then."""
        return all(value.isdigit() for launch in launches for value in self.values(launch).values())

    def _named(self, launch: Launch) -> dict[str, str]:
        return {text: name for name, text in reversed(self.values(launch).items())}

    def values(self, launch: Launch) -> dict[str, str]:
        """What a launch passes, by name."""
        passed = ((name, launch.args[place]) for place, name in self.names)
        return {name: a.value for name, a in passed if isinstance(a, ScalarArgument)}

    def own(self, launch: Launch, values: Mapping[str, str]) -> Launch:
        """A launch made of the general one, with such numbers in the place of the names."""
        args = (
            replace(a, value=replaced(a.value, values)) if isinstance(a, ScalarArgument) else a for a in launch.args
        )
        return replace(_shaped(launch, values, range(len(launch.shape))), args=tuple(args)) if self.names else launch


def told_apart(launches: Sequence[Launch], contract: Contract, buffers: Mapping[str, Argument]) -> Told | None:
    """How launches of one kernel may be told apart by numbers alone; None where that is not so, or by too many."""
    if len({len(x.args) for x in launches}) != 1:
        return None
    taken, names = {s.name for s in contract.sizes} | {a.name for a in contract.args}, list[tuple[int, str]]()
    sized = set[int]()
    for place, own in enumerate(zip(*(x.args for x in launches), strict=True)):
        numbers = [a for a in own if isinstance(a, ScalarArgument)]
        if len({buffers[a].shape for a in own if isinstance(a, str) and a in buffers}) > 1:
            sized.add(place)
        if len(set(numbers)) < 2:
            continue
        if len(numbers) != len(own) or len({a.dtype for a in numbers}) > 1 or len(names) == _MOST:
            return None
        names.append((place, next(n for k in range(len(taken) + 1) if (n := f"told{place}{'_' * k}") not in taken)))
    shaped = (place for place, own in enumerate(zip(*(x.shape for x in launches), strict=True)) if len(set(own)) > 1)
    return Told(tuple(names), frozenset(shaped), frozenset(sized))


def with_told(contract: Contract, told: Told, launches: Iterable[Launch]) -> Contract | None:
    """The contract with these names as sizes; None where one may be less than nought."""
    found = list[Size]()
    try:
        for place, name in told.names:
            own = [a for x in launches if isinstance(a := x.args[place], ScalarArgument)]
            if is_float(numpy_dtype(own[0].dtype)):
                found.append(Size(name, 0, 1 << 20, (1,)))  # no index: nothing is shown by what it is
                continue
            values = {evaluate_int(a.value, sizes) for a in own for sizes in sample_sizes(contract)}
            timed = tuple(median_low(evaluate_int(a.value, at) for a in own) for at in contract.timed_sizes())
            found.append(Size(name, min(values), max(values), timed))
    except ContractError:
        return None
    return None if any(size.minimum < 0 for size in found) else replace(contract, sizes=(*contract.sizes, *found))


def _shaped(launch: Launch, others: Mapping[str, str], places: Container[int]) -> Launch:
    shape = [replaced(text, others) if place in places else text for place, text in enumerate(launch.shape)]
    grid, block = (shape[0], shape[1], shape[2]), (shape[3], shape[4], shape[5])
    return replace(launch, grid=grid, block=block, shared_bytes=shape[6])
