"""Branches on data whose sides compute, read and write, as selects in LLVM's text: whichever way a run goes, both
values are told.

LLVM does that itself where no side reads memory (``if (a && b[i])`` and ``if (d < best) colour = c[i]`` do). Here a
read is asked for whatever the condition says, by a call that answers nought where nothing lies (``fsr_guess_*``,
tracer.cpp): nobody looks at it then. What a side writes is asked for likewise (``fsr_put_*``): it is written where the
condition holds, and told as the one value or what lay there before.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass

from fsr.backends.host.branches import LABEL
from fsr.backends.host.llvm_text import ARITHMETIC, CASTS, MADE, TYPES, VALUE

GUESS, PUT = "fsr_guess_", "fsr_put_"
_LONGEST = 400  # lines of a side
_IF = re.compile(r"^\s*br i1 (%[\w.$-]+), label %([\w.$-]+), label %([\w.$-]+)")
_GO = re.compile(r"^\s*br label %([\w.$-]+)")
_PHI = re.compile(rf"^(\s*({VALUE}) = phi )((?:[a-z]+ )*?)(<\d+ x \w+>|[^\s<]\S*) (\[.*)$")
_ARM = re.compile(r"\[ ([^\[\]]+?), %([\w.$-]+) \]")
_READ = re.compile(rf"^\s*({VALUE}) = load (\w+), ptr (\S+?)(?:, |$)(?:align \d+)?(?:, !.*)?$")
_WRITE = re.compile(r"^\s*store (\w+) (\S+), ptr (\S+?)(?:, |$)(?:align \d+)?(?:, !.*)?$")
_PUT = re.compile(rf"^\s*call void @{PUT}(\w+)\(i1 (\S+), i1 (true|false), (.*)\)$")
_PLACE = re.compile(rf"^\s*({VALUE}) = select i1 ({VALUE}), ptr (\S+), ptr (\S+)$")
_CALLED = re.compile(r"^(.*?)\b(\w+) @([\w.$]+)\(")
_DIVISIONS = frozenset(("sdiv", "udiv", "srem", "urem"))
_PURE = (ARITHMETIC - _DIVISIONS) | CASTS | {"fneg", "icmp", "fcmp", "select", "getelementptr", "freeze"}


@dataclass
class _Block:
    """``name``: None of the first one, which has no label; ``lines``: without the label, the last one goes on."""

    name: str | None
    label: str
    lines: list[str]


def selected(body: Sequence[str], tainted: Container[str], defined: Container[str]) -> list[str] | None:
    """A function's lines with such branches as selects; None where there are none. ``tainted``: values that data takes
    part in; ``defined``: the functions of the module, which may do anything."""
    read = _read_both(body, tainted)
    function = _Function(_blocks(body if read is None else read), defined, tainted)
    changed = read is not None
    while any(function.one(block) for block in list(function.blocks)):
        changed = True
    if not changed:
        return None
    return [line for b in function.blocks for line in ([b.label] if b.label else []) + b.lines]


def _put(kind: str, condition: str, turned: bool, what: str) -> str:
    return f"  call void @{PUT}{kind}(i1 {condition}, i1 {str(turned).lower()}, {what})"


def put_of(line: str) -> tuple[str, str, str, str, str] | None:
    """What is written under a condition: its type, the condition, whether that must fail, the value and the place. None
    of any other line."""
    found = _PUT.match(line)
    what = re.match(r"\w+ (\S+), ptr (\S+)$", found[4]) if found else None
    return (found[1], found[2], found[3], what[1], what[2]) if found and what else None


def named(head: str, body: Sequence[str]) -> tuple[str, list[str]]:
    """A function's first line and the others with names for its numbers, which would have to be in order."""
    first = len(re.findall(r"%\d+", head))
    label = [] if body and LABEL.match(body[0]) else [f"v.{first}:"]
    lines = [re.sub(r"%(\d+)\b", r"%v.\1", re.sub(r"^(\d+):", r"v.\1:", line)) for line in body]
    return re.sub(r"%(\d+)\b", r"%v.\1", head), [*label, *lines]


def _read_both(body: Sequence[str], tainted: Container[str]) -> list[str] | None:
    """The lines with reads at one place or another, which data decides, as reads of both; None where there are none."""
    lines, changed = list(body), False
    for chosen in [found for line in body if (found := _PLACE.match(line)) and found[2] in tainted]:
        name, condition, one, other = chosen.groups()
        users = [n for n, line in enumerate(lines) if re.search(rf"{re.escape(name)}(?![\w.$-])", line)]
        reads = [(n, _READ.match(lines[n])) for n in users if lines[n] != chosen[0]]
        if not reads or not all(read and read[3] == name and read[2] in TYPES for _, read in reads):
            continue
        for n, read in reads:
            assert read is not None
            value, kind, _ = read.groups()
            sides = [f"{value}.{side}" if value[1].isalpha() else f"%v{value[1:]}.{side}" for side in ("one", "other")]
            lines[n] = "\n".join(
                [*(f"  {v} = call {kind} @{GUESS}{kind}(ptr {at})" for v, at in zip(sides, (one, other), strict=True)),
                 f"  {value} = select i1 {condition}, {kind} {sides[0]}, {kind} {sides[1]}"]
            )  # fmt: skip
        lines.remove(chosen[0])
        changed = True
    return "\n".join(lines).split("\n") if changed else None


def _blocks(body: Sequence[str]) -> list[_Block]:
    found = [_Block(None, "", [])]
    for line in body:
        if label := LABEL.match(line):
            found.append(_Block(label[1], line, []))
        elif line.strip():
            found[-1].lines.append(line)
    return found


class _Function:
    def __init__(self, blocks: list[_Block], defined: Container[str], tainted: Container[str]) -> None:
        self.blocks, self.defined, self.tainted, self.fresh = blocks, defined, tainted, 0

    def one(self, block: _Block) -> bool:
        """Makes selects of the branch at the end of a block, or takes what follows it alone into it; whether it did."""
        last = block.lines[-1] if block.lines else ""
        if block not in self.blocks:
            return False
        if found := _GO.match(last):
            return self._taken_in(block, found[1])
        found = _IF.match(last)
        if not found or found[1] not in self.tainted or found[2] == found[3]:
            return False
        sides = [self._side(name) for name in found.groups()[1:]]
        ends = [end for _, end in sides if end is not None]
        targets = {found[2 + n] if end is None else end for n, (_, end) in enumerate(sides)}
        if not ends or len(targets) != 1 or block.name in targets:
            return False
        target = next(b for b in self.blocks if b.name == targets.copy().pop())
        arms = [side.name if end is not None and side else None for side, end in sides]
        return self._joined(block, target, found[1], arms)

    def _side(self, name: str) -> tuple[_Block | None, str | None]:
        """A block that only computes, reached from one place, and where it goes; None for others."""
        block = next(b for b in self.blocks if b.name == name)
        end = _GO.match(block.lines[-1]) if block.lines else None
        alone = self._arrivals()[name] == 1 and end is not None and len(block.lines) <= _LONGEST
        return (block, end[1]) if alone and end and all(map(self._harmless, block.lines[:-1])) else (block, None)

    def _arrivals(self) -> Counter[str]:
        return Counter(n for b in self.blocks for n in re.findall(r"label %([\w.$-]+)", b.lines[-1] if b.lines else ""))

    def _harmless(self, line: str) -> bool:
        made = MADE.match(line)
        if made is None:
            write = _WRITE.match(line)
            own = write is not None and write[1] in TYPES and write[3] not in self.tainted
            return own or _PUT.match(line) is not None or line.strip().startswith(";")
        _, op, rest = made.groups()
        if op == "load":
            read = _READ.match(line)
            return read is not None and read[2] in TYPES
        if op in _DIVISIONS:
            return re.search(r", [1-9]\d*$", rest) is not None
        if op == "call":
            called = _CALLED.match(rest)
            if called is None or called[2] not in TYPES:
                return False
            return called[3].startswith(GUESS) or not (called[3].startswith("fsr_") or called[3] in self.defined)
        return op in _PURE

    def _joined(self, block: _Block, target: _Block, condition: str, arms: Sequence[str | None]) -> bool:
        """The sides (None: no block of its own) as part of the block before them."""
        phis = [(n, found) for n, line in enumerate(target.lines) if (found := _PHI.match(line))]
        here = block.name or self._first_name(target)
        sides = [arm if arm is not None else here for arm in arms]
        values = [{at: value for value, at in _ARM.findall(found[5])} for _, found in phis]
        pairs = [tuple(of_phi[side] for side in sides) for of_phi in values]
        if any(yes != no and found[4] not in TYPES for (_, found), (yes, no) in zip(phis, pairs, strict=True)):
            return False
        own = [b for b in self.blocks if b.name in arms and b.name is not None]
        before = list(block.lines[:-1])
        for side in own:
            before += self._hoisted(side.lines[:-1], condition, turned=side.name == arms[1])
        for (n, found), (yes, no) in zip(phis, pairs, strict=True):
            chosen = yes
            if yes != no:
                chosen = self._name()
                before.append(f"  {chosen} = select i1 {condition}, {found[4]} {yes}, {found[4]} {no}")
            kept = [(v, at) for v, at in _ARM.findall(found[5]) if at not in arms and at != here]
            texts = ", ".join(f"[ {v}, %{at} ]" for v, at in [*kept, (chosen, here)])
            target.lines[n] = f"{found[1]}{found[3]}{found[4]} {texts}"
        block.lines = [*before, f"  br label %{target.name}"]
        self.blocks = [b for b in self.blocks if b not in own]
        return True

    def _name(self) -> str:
        self.fresh += 1
        return f"%fsr.if.{len(self.blocks)}.{self.fresh}"

    def _hoisted(self, lines: Sequence[str], condition: str, *, turned: bool) -> list[str]:
        """A side's lines where they are reached whatever the condition says; ``turned``: the side where it fails."""
        found = list[str]()
        for line in lines:
            if write := _WRITE.match(line):
                kind, value, at = write.groups()
                found.append(_put(kind, condition, turned, f"{kind} {value}, ptr {at}"))
            elif put := _PUT.match(line):
                sure, inner, outer, both = (self._name() for _ in range(4))
                found.append(f"  {sure} = freeze i1 {put[2]}")
                found.append(f"  {inner} = xor i1 {sure}, {put[3]}")
                found.append(f"  {outer} = xor i1 {condition}, {str(turned).lower()}")
                found.append(f"  {both} = and i1 {outer}, {inner}")
                found.append(_put(put[1], both, False, put[4]))
            else:
                found.append(_guessed(line))
        return found

    def _first_name(self, target: _Block) -> str:
        """What the phis of a block call the first one, which has no label."""
        names = {b.name for b in self.blocks}
        rows = (at for line in target.lines if (found := _PHI.match(line)) for _, at in _ARM.findall(found[5]))
        return next((at for at in rows if at not in names), "0")

    def _taken_in(self, block: _Block, name: str) -> bool:
        """A block that follows this one alone, which nothing else goes to, as part of it."""
        target = next(b for b in self.blocks if b.name == name)
        if target is block or self._arrivals()[name] != 1 or block.name is None:
            return False
        names = {found[2]: _ARM.findall(found[5])[0][0] for line in target.lines if (found := _PHI.match(line))}
        lines = [line for line in target.lines if not _PHI.match(line)]
        block.lines = [*block.lines[:-1], *lines]
        self.blocks = [b for b in self.blocks if b is not target]
        for b in self.blocks:
            b.lines = [_renamed(line, names, name, block.name) for line in b.lines]
        return True


def _renamed(line: str, names: dict[str, str], old: str, new: str) -> str:
    """The line with values called by other names, and a block as that from which a value comes."""
    if names:
        line = re.sub(VALUE, lambda m: names.get(m[0], m[0]), line)
    return re.sub(rf", %{re.escape(old)} \]", f", %{new} ]", line) if "phi" in line else line


def _guessed(line: str) -> str:
    read = _READ.match(line)
    if read is None or read[3].startswith("@"):
        return line
    return f"  {read[1]} = call {read[2]} @{GUESS}{read[2]}(ptr {read[3]})"


__all__ = ["GUESS", "PUT", "named", "put_of", "selected"]
