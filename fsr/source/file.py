"""A kernel file as people have it: host code, macros, includes and several kernels, kept byte for byte."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from fsr.errors import SourceError
from fsr.source.cut import DeviceUnit, cut
from fsr.source.entry import bare_name, spelt_out, without_macros
from fsr.source.flattening import FlatKernel, Flattened, flattened, with_members_passed
from fsr.source.given import with_given
from fsr.source.launches import HostLaunch, find_launches
from fsr.source.macros import macros
from fsr.source.pieces import Piece, SourceText, device_words, flatten, global_words, read_source, scan
from fsr.source.splice import splice


@dataclass(frozen=True)
class KernelFile:
    """One file and what it includes locally. ``include_dirs``: where else local includes are looked for.
    ``defines``: macros that it is compiled under, ``NAME`` or ``NAME=VALUE``. ``members``: which a kernel takes of its
    structures beside those that it uses, as another form of it does: its name, a parameter's number, the path."""

    source: SourceText
    include_dirs: tuple[Path, ...] = ()
    defines: tuple[str, ...] = ()
    members: frozenset[tuple[str, int, str]] = frozenset()

    @classmethod
    def read(cls, path: Path | str, include_dirs: Sequence[Path] = (), defines: Sequence[str] = ()) -> KernelFile:
        """Read a file. Raises SourceError when it is unreadable, empty, no text, or its brackets do not match."""
        source = read_source(Path(path))
        if not source.text.strip():
            raise SourceError(
                "the kernel file is empty", expected="CUDA source with a __global__ function", where=str(path),
                fix="name another file, or write the kernel",
            )  # fmt: skip
        return cls(source, tuple(include_dirs), tuple(defines))

    @classmethod
    def from_text(cls, text: str, path: Path | str = "kernel.cu") -> KernelFile:
        """A file that is not on disk; ``path`` names it in messages and anchors its local includes."""
        return cls(scan(Path(path), text))

    @property
    def path(self) -> Path:
        """The file's path, as given."""
        return self.source.path

    @property
    def text(self) -> str:
        """The whole text; encode it with :meth:`encode` to get the bytes back."""
        return self.source.text

    @staticmethod
    def encode(text: str) -> bytes:
        """Text of this file, or spliced from it, as bytes: what was not UTF-8 comes back as it was."""
        return text.encode("utf-8", "surrogateescape")

    @cached_property
    def _expanded(self) -> tuple[Piece, ...]:
        return flatten(self.source, self.include_dirs)

    @cached_property
    def _flattened(self) -> Flattened:
        return flattened(with_given(self._expanded, self.defines), self.members)

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All top-level items, local includes expanded, branches left out that the macros given rule out; kernels that
        take structures by value read as if they took their members."""
        return self._flattened.pieces

    def flat_kernel(self, entry: str) -> FlatKernel | None:
        """How a kernel that takes structures by value is read; None for any other. Raises SourceError for none."""
        name = self.find(entry).qualified()
        return next((k for k in self._flattened.kernels if k.name == name), None)

    def why_not_flat(self, kernel: str, param: str) -> str:
        """Why a structure that a kernel takes is not taken apart, in words; '' where nothing is known of that."""
        found = (why for k, p, why in self._flattened.refused if k == kernel and p == param)
        return next(found, "")

    @cached_property
    def included(self) -> frozenset[Path]:
        """The local files that it includes, whatever is defined."""
        return frozenset(p.source.path for p in self._expanded) - {self.path}

    @cached_property
    def kernel_pieces(self) -> tuple[Piece, ...]:
        """The definitions of __global__ functions, in order."""
        words = global_words(self.pieces)
        return tuple(p for p in self.pieces if p.item.kind == "function" and p.item.names and p.item.head & words)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the kernels defined here or in a local include, qualified (``ns::k``), without repeats."""
        return tuple(dict.fromkeys(p.qualified() for p in self.kernel_pieces))

    @cached_property
    def launches(self) -> tuple[HostLaunch, ...]:
        """Every ``k<<<grid, block, ...>>>(...)`` in the file itself, of structures their members passed."""
        found = find_launches(self.source)
        return with_members_passed(found, self._flattened.kernels)

    def find(self, entry: str) -> Piece:
        """The definition that an entry expression (``k``, ``ns::k<256>``) names.

        Raises SourceError when there is none, or when two namespaces hold one.
        """
        bare = bare_name(entry)
        found = [p for p in self.kernel_pieces if p.qualified() == bare]
        found = found or [p for p in self.kernel_pieces if p.qualified().endswith("::" + bare)]
        if not found:
            raise self._unknown(entry)
        if len({p.qualified() for p in found}) > 1:
            raise SourceError(
                f"the entry {entry!r} fits {', '.join(p.qualified() for p in found)}",
                expected="one kernel",
                where=str(self.path),
                fix="write the name with its namespace",
            )
        primary = [p for p in found if not re.match(r"template\s*<\s*>", p.text)]
        return (primary or found)[0]

    def choose(self, entry: str | None) -> str:
        """The entry to use: the one named, with its namespaces and macros written out, or the only kernel there is.

        Raises SourceError when there is no kernel, or there are several and none is named.
        """
        if entry is not None:
            return self.written_out(spelt_out(entry, self.find(entry).qualified()))
        if not self.kernels:
            raise self._unknown(None)
        if len(self.kernels) > 1:
            listed = ", ".join(self.kernels)
            raise SourceError(
                f"the file holds {len(self.kernels)} kernels and none is named: {listed}",
                expected='an entry, for example: entry = "' + self.kernels[0] + '"',
                where=str(self.path),
                fix="name the kernel: entry in the contract, or --entry NAME",
            )
        return self.kernels[0]

    def written_out(self, entry: str) -> str:
        """An entry without the macros that this file, or who compiles it, defines."""
        kinds = ("define", "variable", "record")  # macros, and what they may name
        return without_macros(entry, "\n".join(p.text for p in self.pieces if p.item.kind in kinds))

    def _unknown(self, entry: str | None) -> SourceError:
        if not self.kernels:
            return SourceError(
                "the file holds no kernel" if entry is None else f"the file holds no kernel, so none named {entry!r}",
                expected="a __global__ function with a body, in the file or in a local include of it",
                where=str(self.path),
                fix="name the file that defines the kernel",
            )
        called = {m.name for m in macros(self.text) if m.params is not None}
        made = [k for k in self.kernels if k in called]
        if made:
            return SourceError(
                f"the file holds no kernel named {entry!r}; the macro {made[0]} makes the name of one",
                expected="kernels whose names stand in the file as they are",
                where=str(self.path),
                fix=f"write the name out in place of {made[0]}(...)",
            )
        near = difflib.get_close_matches(bare_name(entry or ""), self.kernels, 1, 0.5)
        return SourceError(
            f"the file holds no kernel named {entry!r}",
            expected="one of: " + ", ".join(self.kernels),
            where=str(self.path),
            fix=f"did you mean {near[0]!r}?" if near else "name one of these",
        )

    def cut(self, entry: str, *others: str) -> DeviceUnit:
        """The kernel and all it needs as a device translation unit of its own, with the ``others`` that a plan
        launches beside it. Raises SourceError."""
        more = [self.find(other) for other in others]
        return cut(self.pieces, self.find(entry), entry, device_words(self.pieces), global_words(self.pieces), more)

    def splice(self, unit: DeviceUnit, new_unit_text: str) -> str:
        """The whole file with the unit's kernel replaced by what is new in ``new_unit_text``; see fsr.source.splice."""
        return splice(self.source, unit, new_unit_text)
