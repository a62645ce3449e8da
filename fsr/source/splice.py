"""Put a changed device unit back into the file it was cut from, every other byte as it was.

Items of the new unit that stood in the old one stay where they are. A changed helper takes the place of the
old one of that name; the changed kernel and everything new take the place of the kernel.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from fsr.errors import SourceError
from fsr.source.cut import DeviceUnit, UnitItem
from fsr.source.inner_branches import undefined_asked
from fsr.source.items import Item
from fsr.source.pieces import Piece, SourceText, flatten, normalised, scan


@dataclass(frozen=True, slots=True)
class _Edit:
    """Replace ``[start, end)`` of the file that a piece stands in by ``text``."""

    piece: Piece
    start: int
    end: int
    text: str

    @property
    def path(self) -> Path:
        return self.piece.source.path


def splice(source: SourceText, unit: DeviceUnit, new_unit_text: str) -> str:
    """The text of ``source`` with the unit's changes in place.

    The kernel itself is replaced when the new unit holds a kernel of its name, and kept beside the new code
    otherwise, so that callers still compile. Raises SourceError when the new unit's brackets do not match.
    """
    new = [p for p in _pieces_of(new_unit_text) if p.item.kind not in ("empty",)]
    fresh, gone = _difference(unit.items, new)
    fresh = [p for p in fresh if not _is_pragma_once(p)]
    if not fresh:
        return source.text
    kernel = next(i for i in unit.items if i.is_kernel)
    edits, rest = _helper_edits(fresh, gone, kernel)
    defined = {name for i in unit.items if i.piece.item.kind == "define" for name in i.piece.item.names}
    edits += _kernel_edits(rest, kernel, gone, defined)
    return _apply(source, edits)


def _pieces_of(text: str) -> Sequence[Piece]:
    """The pieces of a unit; its includes stay includes, since local ones are inlined in it already."""
    return flatten(scan(Path("/nonexistent/unit.cu"), text))


def _is_pragma_once(piece: Piece) -> bool:
    return piece.item.kind == "directive" and re.match(r"#\s*pragma\s+once", piece.text) is not None


def _difference(old: Sequence[UnitItem], new: Sequence[Piece]) -> tuple[list[Piece], list[UnitItem]]:
    """New pieces that the old unit lacks, and old items that the new one lacks, by scope and text."""
    before = [(i.piece.scope_heads, _plain(i.text)) for i in old]
    after = [(p.scope_heads, _plain(p.text)) for p in new]
    fresh, gone = list(range(len(new))), list(range(len(old)))
    for block in difflib.SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            fresh.remove(block.b + offset)
            gone.remove(block.a + offset)
    for index in list(fresh):  # moved, not changed
        same = next((g for g in gone if before[g] == after[index]), None)
        if same is not None:
            fresh.remove(index)
            gone.remove(same)
    return [new[i] for i in fresh], [old[i] for i in gone]


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in normalised(text).strip().split("\n"))


def _helper_edits(
    fresh: Sequence[Piece], gone: Sequence[UnitItem], kernel: UnitItem
) -> tuple[list[_Edit], list[Piece]]:
    """Edits for changed items that are no kernel, and the pieces left over."""
    edits, rest, left = [], [], [g for g in gone if not g.is_kernel]
    for piece in fresh:
        old = next((g for g in left if _same_declaration(g.piece, piece)), None)
        if old is None:
            rest.append(piece)
            continue
        left.remove(old)
        where = old.piece
        edits.append(_Edit(where, where.item.start, where.item.end, _raw(piece)))
    return edits, rest


def _same_declaration(old: Piece, new: Piece) -> bool:
    return (
        bool(old.item.names)
        and old.item.names == new.item.names
        and old.item.kind == new.item.kind
        and old.scope_heads == new.scope_heads
        and "__global__" not in new.item.head
    )


def _kernel_edits(rest: Sequence[Piece], kernel: UnitItem, gone: Sequence[UnitItem], defined: set[str]) -> list[_Edit]:
    """Edits that put the changed kernel and all new items where the kernel stands; ``defined``: the unit's macros."""
    if not rest:
        return []
    piece = kernel.piece
    inner = [p for p in rest if p.scope_heads == piece.scope_heads and p.item.kind != "include"]
    outer = [p for p in rest if p not in inner]
    edits = []
    if inner:
        replaced = kernel in gone and any(p.item.names == piece.item.names for p in inner)
        text = "\n\n".join(_raw(p) for p in inner)
        if replaced:
            text = _only_without(undefined_asked(_raw(piece)) - undefined_asked(text) - defined) + text
            edits.append(_Edit(piece, piece.item.start, piece.item.end, text))
        else:
            edits.append(_Edit(piece, piece.item.end, piece.item.end, "\n\n" + text))
    if outer:
        before = (piece.scope[0] if piece.scope else piece.item).start
        text = "\n".join(_wrapped(p) for p in outer) + "\n\n"
        edits.append(_Edit(piece, before, before, text))
    return edits


def _only_without(names: Collection[str]) -> str:
    """What stops a build that defines one of the names: what it would compile of the old kernel is not in the new."""
    told = '#ifdef {0}\n#error "the kernel below was refined for builds without {0}"\n#endif\n'
    return "".join(told.format(name) for name in sorted(names))


def _raw(piece: Piece) -> str:
    return piece.source.text[piece.item.start : piece.item.end]


def _wrapped(piece: Piece) -> str:
    text = _raw(piece)
    for head in reversed(piece.scope_heads):
        text = f"{head} {{\n{text}\n}}"
    return text


def _apply(source: SourceText, edits: Sequence[_Edit]) -> str:
    """The edits made; edits in an included file make the #include give way to that file's changed text."""
    own = [e for e in edits if e.path == source.path]
    foreign = [e for e in edits if e.path != source.path]
    if foreign:
        own += [_inlined(source, foreign)]
    text = source.text
    newline = "\r\n" if "\r\n" in text else "\n"
    for edit in sorted(own, key=lambda e: (e.start, e.end), reverse=True):
        inserted = edit.text.replace("\r\n", "\n").replace("\n", newline)
        text = text[: edit.start] + inserted + text[edit.end :]
    return text


def _inlined(source: SourceText, edits: Sequence[_Edit]) -> _Edit:
    """One edit of the file itself for those in a header that it includes."""
    paths = {e.path for e in edits}
    piece = edits[0].piece
    if len(paths) > 1 or len(piece.via) != 1:
        raise SourceError(
            "the winner changes code in more than one included file, or in one that another includes: "
            + ", ".join(sorted(str(p) for p in paths)),
            expected="changes in the kernel file, or in one header that it includes",
            where=str(source.path),
            fix="move the kernel's helper functions into the kernel file",
        )
    text = piece.source.text
    for edit in sorted(edits, key=lambda e: (e.start, e.end), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    text = re.sub(r"(?m)^[ \t]*#[ \t]*pragma[ \t]+once[ \t]*\r?\n?", "", text)
    item: Item = piece.via[0]
    return _Edit(
        piece,
        item.start,
        item.end,
        f"// begin of {piece.source.path.name}\n{text.rstrip()}\n// end of {piece.source.path.name}",
    )
