"""Where the ways of a branch meet again: post-dominators of a function's blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

EXIT = ""  # the end of the function, where every way leads


def meeting_points(successors: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """For each block the nearest one that every way from it to the function's end passes; EXIT where there is none.
    Blocks without successors return. (Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm", 2001, on the
    reversed graph.)"""
    after = {name: list(next_) or [EXIT] for name, next_ in successors.items()}
    order = _postorder(after)
    rank = {name: number for number, name in enumerate(order)}
    found: dict[str, str] = {EXIT: EXIT}
    changed = True
    while changed:
        changed = False
        for name in order:
            known = [s for s in after.get(name, []) if s in found]
            if name == EXIT or not known:
                continue
            meet = known[0]
            for other in known[1:]:
                meet = _common(meet, other, found, rank)
            if found.get(name) != meet:
                found[name], changed = meet, True
    return {name: found.get(name, EXIT) for name in successors}


def arriving(successors: Mapping[str, Sequence[str]], branch: str, meeting: str) -> set[str]:
    """The blocks from which the ways of a branch go on to where they meet."""
    seen, todo, found = set[str](), list(successors[branch]), set[str]()
    if meeting in successors[branch]:
        found.add(branch)
    while todo:
        name = todo.pop()
        if name == meeting or name in seen:
            continue
        seen.add(name)
        todo += successors.get(name, ())
        if meeting in successors.get(name, ()):
            found.add(name)
    return found


def _common(one: str, other: str, found: Mapping[str, str], rank: Mapping[str, int]) -> str:
    while one != other:
        while rank[one] > rank[other]:
            one = found[one]
        while rank[other] > rank[one]:
            other = found[other]
    return one


def _postorder(after: Mapping[str, Sequence[str]]) -> list[str]:
    """Blocks in reverse postorder of the reversed graph, from the exit; those that never get there come last."""
    before: dict[str, list[str]] = {EXIT: []}
    for name, nexts in after.items():
        for one in nexts:
            before.setdefault(one, []).append(name)
    seen, order = set[str](), list[str]()
    for root in (EXIT, *after):
        stack: list[tuple[str, int]] = [] if root in seen else [(root, 0)]
        seen.add(root)
        part = list[str]()
        while stack:
            name, at = stack.pop()
            nexts = before.get(name, [])
            if at < len(nexts):
                stack.append((name, at + 1))
                if nexts[at] not in seen:
                    seen.add(nexts[at])
                    stack.append((nexts[at], 0))
            else:
                part.append(name)
        order += reversed(part)
    return order
