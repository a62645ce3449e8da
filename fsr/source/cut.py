"""Cut a kernel and all that it needs out of a file: a device translation unit of its own.

Needed is what is named, transitively: macros, types, constants, device functions, templates with their
specialisations, conditionals around them. Host code is left out because device code cannot name it. Names are
matched as text, so a little too much may be kept, never too little.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fsr.source.dynamic_shared import without_sizes
from fsr.source.given import conditional_groups
from fsr.source.items import parse_items
from fsr.source.macros import Macro, read_define
from fsr.source.pieces import C_HEADERS, Piece, include_target
from fsr.source.tokens import close_of, line_of, source_of, split_commas, tokenize

_GROUPS = "this_thread_block this_grid tiled_partition coalesced_threads thread_block thread_block_tile grid_group"

# header → the names whose use shows that it is needed; () for headers that cost next to nothing
DEVICE_HEADERS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (re.compile(r"cuda_fp16\.hp?p?$"), ("half",)),
    (re.compile(r"cuda_bf16\.hp?p?$"), ("bfloat16", "bf16")),
    (re.compile(r"cuda_fp(8|6|4)\.h$"), ("fp8", "fp6", "fp4")),
    (re.compile(r"(cublas(_v2|_api|Lt|Xt)|cusolverDn|nccl)\.h$"), ("half", "bfloat16", "bf16")),  # they bring both
    (re.compile(r"cooperative_groups"), ("cooperative_groups", *_GROUPS.split())),
    (re.compile(r"mma\.h$"), ("wmma", "nvcuda")),
    (re.compile(r"cuda_pipeline"), ("pipeline",)),
    (re.compile(r"curand_(kernel|philox)"), ("curand",)),
    (re.compile(r"cub/"), ("cub",)),
    (re.compile(r"(cuda|nv)/"), ("cuda", "nv")),
    (re.compile(r"(cute|cutlass)/"), ("cute", "cutlass")),
    (re.compile(r"math_constants\.h$|cuComplex\.h$"), ()),
)
_DEVICE_NAMESPACES = frozenset({"cooperative_groups", "nvcuda", "wmma", "cute", "cutlass"})
_LIMITS = "numeric_limits"
# of std what device code may have constants of: numbers, and not the strings and containers of host code
_NUMBERS_OF_STD = re.compile(r"u?int(_fast|_least)?\d+_t|u?int(ptr|max)_t|size_t|ptrdiff_t")
_ALWAYS_FREE = frozenset({"define", "undef", "record", "alias"})


@dataclass(frozen=True, slots=True)
class UnitItem:
    """One item of a unit and where it came from. ``text``: the piece's, sized dynamic shared arrays open."""

    piece: Piece
    text: str
    is_kernel: bool = False


@dataclass(frozen=True)
class DeviceUnit:
    """A self-contained device translation unit.

    ``entry``: the expression it was cut for. ``kernel``: the kernel's qualified name. ``origins``: for every line
    of ``text`` the file and 1-based line it came from, None for lines made here. ``missing``: local includes
    that were not found on disk and are left out; ``foreign``: those of neither this file, C nor CUDA.
    """

    entry: str
    kernel: str
    text: str
    items: tuple[UnitItem, ...] = field(repr=False)
    origins: tuple[tuple[str, int] | None, ...] = field(repr=False)
    missing: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()

    def where(self, line: int) -> str:
        """``file:line`` in the user's file for a 1-based line of the unit, or the nearest above that has any."""
        for origin in reversed(self.origins[: max(line, 1)]):
            if origin is not None:
                return f"{origin[0]}:{origin[1]}"
        return next((f"{o[0]}:{o[1]}" for o in self.origins if o is not None), "")


def cut(
    pieces: Sequence[Piece],
    kernel: Piece,
    entry: str,
    device: frozenset[str],
    kernel_words: frozenset[str],
    others: Sequence[Piece] = (),
) -> DeviceUnit:
    """The unit of ``kernel``, and of the ``others`` that its plan launches too. ``device``, ``kernel_words``: the
    words that mark device code and kernels here."""
    kept = set[int]()
    for wanted in (kernel, *others):
        kept |= _Closure(pieces, wanted, entry, device, kernel_words).kept()
    missing, foreign = list[str](), list[str]()
    for piece in pieces:
        name, quoted = include_target(piece.item, piece.source) if piece.item.kind == "include" else ("", True)
        system = not quoted and not name.endswith((".cuh", ".hpp"))  # as far as a name tells
        if name and _header_needs(name) is None and not re.match(r"cuda|device_launch|vector_|helper_", name):
            (foreign if system else missing).append(name)
    items = [UnitItem(p, without_sizes(p.text), p is kernel) for i, p in enumerate(pieces) if i in kept]
    text, origins = _emit(items)
    others_ = tuple(name for name in foreign if "." in name and name not in C_HEADERS)
    return DeviceUnit(entry, kernel.qualified(), text, tuple(items), origins, tuple(missing), others_)


def found_with_i(unit: DeviceUnit, said: str = "") -> str:
    """What to do about includes that were not found; '' where there are none. ``said``: by a compiler; of the system's
    those count that are in a folder which it names."""
    meant = [name for name in unit.foreign if "/" in name and re.search(rf"\b{re.escape(name.split('/')[0])}\b", said)]
    lacking = list(dict.fromkeys([*meant, *unit.missing]))[:3]
    return f"name the folder of {' and '.join(lacking)} with -I or in include_dirs" if lacking else ""


class _Closure:
    """What a kernel needs, by index into the pieces."""

    def __init__(
        self, pieces: Sequence[Piece], kernel: Piece, entry: str, device: frozenset[str], kernel_words: frozenset[str]
    ) -> None:
        self.pieces, self.kernel, self.device, self.kernel_words = pieces, kernel, device, kernel_words
        self.names: set[str] = set()
        self.done: set[int] = set()
        self.providers: defaultdict[str, list[int]] = defaultdict(list)
        self.operators: list[int] = []
        macros = {m.name: m for p in pieces if p.item.kind == "define" and (m := read_define(p.text))}
        for index, piece in enumerate(pieces):
            for name in self.provided(piece, macros):
                self.providers[name].append(index)
            if piece.item.names[:1] == ("operator",) and piece.item.head & device:
                self.operators.append(index)
        self.local_types = {n for p in pieces if p.item.kind in ("record", "alias") for n in p.item.names}
        self.entry_names = {t.text for t in tokenize(entry) if t.kind == "name"}
        self.groups = conditional_groups(pieces)

    def provided(self, piece: Piece, macros: Mapping[str, Macro]) -> Sequence[str]:
        """The names for whose sake a piece is kept; () for host code and for other kernels."""
        item = piece.item
        if item.kind in _ALWAYS_FREE:
            return item.names
        if item.kind in ("function", "prototype"):
            if item.head & self.kernel_words:
                return ()
            return item.names if item.head & self.device else ()
        if item.kind == "variable":
            plain = "const" in item.head and ("std" not in item.uses or _is_number_of_std(piece))
            return item.names if plain or item.head & self.device else ()
        if item.kind == "using":
            return item.names if "namespace" not in item.uses and "std" not in item.uses else ()
        if item.kind == "call":
            return _expanded_names(piece, macros)
        return ()

    def kept(self) -> set[int]:
        """Indices of the pieces to keep, includes and conditionals among them."""
        for index, piece in enumerate(self.pieces):
            same = piece.item.names == self.kernel.item.names and piece.scope_heads == self.kernel.scope_heads
            if same and piece.item.head & self.kernel_words and self.belongs(index, piece):
                self.keep(index)
        self.need(self.entry_names)
        size = -1
        while size != len(self.done):
            size = len(self.done)
            self.keep_operators()
            self.keep_conditionals()
        self.keep_headers()
        self.keep_conditionals()
        return self.done

    def belongs(self, index: int, piece: Piece) -> bool:
        """Whether something of the kernel's name is the kernel itself, perhaps in another branch of a conditional, or
        of the same template. Its overloads are left out: no entry could tell them apart."""
        if piece.item.kind != "function":
            return _says_more(piece)
        if piece is self.kernel or "template" in piece.item.head & self.kernel.item.head:
            return True
        own = next(i for i, p in enumerate(self.pieces) if p is self.kernel)
        return any(g[0] < min(index, own) and max(index, own) < g[-1] for g in self.groups)

    def keep(self, index: int) -> None:
        if index not in self.done:
            self.done.add(index)
            self.need(self.pieces[index].item.uses)

    def need(self, names: frozenset[str] | set[str]) -> None:
        fresh = set(names) - self.names
        self.names |= fresh
        for name in sorted(fresh):
            for index in self.providers.get(name, ()):
                self.keep(index)

    def keep_operators(self) -> None:
        """Operators on kept types, or on no type of this file (float4 and the like)."""
        for index in self.operators:
            types = self.pieces[index].item.uses & self.local_types
            if types <= self.names:
                self.keep(index)

    def keep_conditionals(self) -> None:
        for group in self.groups:
            inside = range(group[0], group[-1])
            if any(i in self.done and self.pieces[i].item.kind != "conditional" for i in inside):
                for index in group:
                    self.keep(index)

    def keep_headers(self) -> None:
        for index, piece in enumerate(self.pieces):
            item = piece.item
            if item.kind == "include":
                needs = _header_needs(include_target(item, piece.source)[0])
                if needs is not None and (not needs or self.uses_any(needs)):
                    self.done.add(index)
            elif item.kind == "using":
                if "namespace" in item.uses and self.namespace_known(item.names):
                    self.done.add(index)
            elif re.match(r"#\s*pragma\s+pack", piece.text):
                self.done.add(index)

    def uses_any(self, needles: Sequence[str]) -> bool:
        return any(needle in name for name in self.names for needle in needles)

    def namespace_known(self, names: Sequence[str]) -> bool:
        local = {n for i in self.done for scope in self.pieces[i].scope for n in scope.names}
        if set(names) & local:
            return True
        if "cooperative_groups" in names:
            return self.uses_any(("cooperative_groups", *_GROUPS.split()))
        if "std" in names:  # of which a constant is made that device code may name
            return _LIMITS in self.names
        inside = ("wmma",) if "nvcuda" in names else ()  # which is what people write behind it
        return bool(set(names) & _DEVICE_NAMESPACES) and self.uses_any((*names, *inside))


def _says_more(piece: Piece) -> bool:
    """Whether a kernel's declaration ahead of it says what its definition does not: a linkage, default arguments of a
    template. Others are left out: a kernel with one argument more would be another function beside them."""
    return piece.item.kind == "prototype" and bool(piece.item.head & {"template", "extern"})


def _is_number_of_std(piece: Piece) -> bool:
    """Whether a constant that names std is a number to device code: ``const std::size_t N``, or a type's limit."""
    named = re.findall(r"\bstd\s*::\s*(\w+)", piece.text)
    return _LIMITS in piece.item.uses or all(_NUMBERS_OF_STD.fullmatch(name) for name in named)


def _header_needs(name: str) -> tuple[str, ...] | None:
    """The names that show a device header is needed; None for host headers."""
    return next((needs for pattern, needs in DEVICE_HEADERS if pattern.match(name)), None)


def _expanded_names(piece: Piece, macros: Mapping[str, Macro]) -> Sequence[str]:
    """The names that a macro call on top level declares, found by expanding it once."""
    tokens = tokenize(piece.text)
    macro = macros.get(tokens[0].text)
    close = close_of(tokens, 1) if len(tokens) > 1 and tokens[1].text == "(" else None
    if macro is None or close is None:
        return ()
    body = macro.applied(source_of(piece.text, split_commas(tokens[2:close])))
    return [name for item in parse_items(body or "", strict=False) for name in item.names]


def _emit(items: Sequence[UnitItem]) -> tuple[str, tuple[tuple[str, int] | None, ...]]:
    """The unit's text and the origin of each line."""
    lines: list[str] = []
    origins: list[tuple[str, int] | None] = []

    def put(text: str, origin: tuple[str, int] | None) -> None:
        for offset, line in enumerate(text.split("\n")):
            lines.append(line)
            origins.append(None if origin is None else (origin[0], origin[1] + offset))

    open_heads: list[str] = []
    previous = "directive"
    for unit_item in items:
        piece = unit_item.piece
        shared = _shared(open_heads, piece.scope_heads)
        for _ in open_heads[shared:]:
            put("}", None)
        for head in piece.scope_heads[shared:]:
            put(head + " {", None)
        open_heads = list(piece.scope_heads)
        small = piece.item.kind not in ("function", "record")
        if lines and not (small and previous != "function" and previous != "record"):
            put("", None)
        put(unit_item.text, (str(piece.source.path), line_of(piece.source.text, piece.item.start)))
        previous = piece.item.kind
    for _ in open_heads:
        put("}", None)
    return "\n".join(lines) + "\n", tuple(origins)


def _shared(left: Sequence[str], right: Sequence[str]) -> int:
    """The length of the common beginning."""
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
