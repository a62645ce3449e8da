"""Two candidates as one: the first where a condition on the sizes holds, the second everywhere else.

What is faster at some sizes alone is no win, and most rewrites are: wider accesses want whole multiples of their width,
and dealing work out to more threads wants enough of it. An empty grid is no launch, so that a plan may hold the
launches of both, each with a grid that is empty where the other's is not; nothing within a kernel changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fsr.contract.model import Contract
from fsr.errors import SourceError
from fsr.expressions import evaluate
from fsr.records import STEP, Candidate, Launch, Plan, Scratch
from fsr.source.conditionals import IF, directive_name
from fsr.source.entry import function_name
from fsr.source.items import CONTAINERS, Item, parse_items
from fsr.source.tokens import renamed, tokenize
from fsr.source.walk import fresh

ACTION = "by-size"
_IF = " if "  # in a grid
_LONGEST = 500  # characters of an expression
_OWN = ("function", "prototype", "record", "alias", "variable", "define")  # items that may get another name


def is_split(candidate: Candidate) -> bool:
    """Whether a candidate is two already."""
    return any(move.startswith(ACTION) for move in candidate.actions)


def by_size(fast: Candidate, slow: Candidate, condition: str) -> Candidate | None:
    """Both, by an expression of the contract's sizes; the flags are those of ``fast``. None where their texts cannot
    stand in one file: parts of a namespace or under preprocessor conditions differ, or names that cannot be changed."""
    if fast.language != slow.language:
        return None
    try:
        joined = _joined(fast.source, slow.source)
    except SourceError:
        return None
    if joined is None:
        return None
    source, names = joined
    taken = {s.name for s in fast.plan.scratch}
    buffers = {s.name: _free(s.name, taken) for s in slow.plan.scratch if s.name in taken}
    other = [_called(launch, names, buffers) for launch in slow.plan.launches]
    launches = (
        *(_where(launch, "({0}) if {1} else 0", condition) for launch in fast.plan.launches),
        *(_where(launch, "0 if {1} else ({0})", condition) for launch in other),
    )
    scratch = (
        *(replace(s, count=f"({s.count}) if {condition} else 1") for s in fast.plan.scratch),
        *(
            replace(s, name=buffers.get(s.name, s.name), count=f"1 if {condition} else ({s.count})")
            for s in slow.plan.scratch
        ),
    )
    if max(map(len, _texts(launches, scratch))) > _LONGEST:
        return None
    plan = replace(fast.plan, launches=launches, scratch=scratch)
    return replace(fast, source=source, plan=plan, actions=(*fast.actions, move_name(condition)))


def move_name(condition: str) -> str:
    """How the move that makes such a candidate is called."""
    return f"{ACTION}@plan[where={condition.replace(' ', '')}]"


def _texts(launches: Sequence[Launch], scratch: Sequence[Scratch]) -> list[str]:
    return [*(launch.grid[0] for launch in launches), *(s.count for s in scratch)]


def idle_kernels(plan: Plan, contract: Contract) -> frozenset[str]:
    """Names of the kernels of a plan that only sizes which are not timed launch."""
    split = any(_IF in launch.grid[0] for launch in plan.launches)
    busy = {function_name(x.entry) for x in plan.launches if not split or _launched(x, contract)}
    return frozenset(function_name(x.entry) for x in plan.launches) - busy


def _launched(launch: Launch, contract: Contract) -> bool:
    return any(evaluate(launch.grid[0], {**sizes, STEP: 0}) for sizes in contract.timed_sizes())


def _where(launch: Launch, form: str, condition: str) -> Launch:
    x, y, z = launch.grid
    return replace(launch, grid=(form.format(x, condition), y, z))


def _called(launch: Launch, names: dict[str, str], buffers: dict[str, str]) -> Launch:
    """A launch of what got other names."""
    entry = launch.entry
    for old, new in names.items():
        entry = renamed(entry, old, new)
    return replace(launch, entry=entry, args=tuple(buffers.get(a, a) if isinstance(a, str) else a for a in launch.args))


def _free(name: str, taken: set[str]) -> str:
    taken.add(found := fresh(f"{name}_2", taken))
    return found


def _joined(fast: str, slow: str) -> tuple[str, dict[str, str]] | None:
    """One text of both, and what names of the second became in it. Parts that are alike stand once."""
    there = {_plain(fast, item) for item in parse_items(fast)}
    own = parse_items(slow)
    declared = {name for item in parse_items(fast) for each in item.walk() for name in each.names}
    missing = [item for item in own if _plain(slow, item) not in there]
    names = {name for item in missing for name in item.names if name in declared}
    while more := [i for i in own if i not in missing and i.uses & names]:  # what stands there uses another of the name
        missing += more
        names |= {name for item in more for name in item.names}
    if any(item.kind in CONTAINERS for item in missing) or not _stand_free(slow, own, missing):
        return None
    if any(set(item.names) & names and item.kind not in _OWN for item in missing):
        return None
    taken = {t.text for text in (fast, slow) for t in tokenize(text)}
    called = {name: _free(name, taken) for name in sorted(names)}
    parts = [slow[item.start : item.end] for item in own if item in missing]
    text = "\n\n".join(parts)
    for old, new in called.items():
        text = _renamed_everywhere(text, old, new)
    return f"{fast.rstrip()}\n\n{text}\n", called


def _stand_free(text: str, items: Sequence[Item], some: Sequence[Item]) -> bool:
    """Whether none of some items depends on a preprocessor's condition, nor is one."""
    depth = 0
    for item in items:
        name = directive_name(text[item.start : item.end]) if item.kind == "conditional" else ""
        depth += (name in IF) - (name == "endif")
        if item in some and (depth or name):
            return False
    return True


def _renamed_everywhere(text: str, old: str, new: str) -> str:
    """In directives too, which are tokens of their own."""
    parts, at = list[str](), 0
    for token in tokenize(text):
        if token.kind == "directive":
            parts += [renamed(text[at : token.start], old, new), _in_directive(token.text, old, new)]
            at = token.end
    return "".join([*parts, renamed(text[at:], old, new)])


def _in_directive(text: str, old: str, new: str) -> str:
    return "#" + renamed(text.partition("#")[2], old, new)


def _plain(text: str, item: Item) -> str:
    return " ".join(t.text for t in tokenize(text[item.start : item.end]))
