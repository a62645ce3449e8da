"""A contract as text: complete, or with gaps that a person must fill."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

GAP = '"?"'


@dataclass
class Draft:
    """The lines of a contract. Values are TOML texts; notes become comments; gaps are values of ``"?"``."""

    entry: str = ""
    top: list[tuple[str, str]] = field(default_factory=list)
    sizes: list[tuple[str, str]] = field(default_factory=list)
    args: list[tuple[str, str]] = field(default_factory=list)
    launches: list[list[tuple[str, str]]] = field(default_factory=list)
    scratch: list[tuple[str, str]] = field(default_factory=list)
    tolerance: list[tuple[str, str]] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)  # "args.x" → why it is a gap
    is_plan: bool = False

    def toml(self) -> str:
        """The TOML text."""
        lines = [f"entry = {quoted(self.entry)}", *(f"{k} = {v}" for k, v in self.top)]
        for title, rows in (("sizes", self.sizes), ("args", self.args)):
            lines += ["", f"[{title}]", *self._aligned(title, rows)] if rows else []
        for launch in self.launches:
            lines += ["", "[[launch]]" if self.is_plan else "[launch]", *self._aligned("launch", launch, pad=False)]
        for title, rows in (("scratch", self.scratch), ("tolerance", self.tolerance)):
            lines += ["", f"[{title}]", *self._aligned(title, rows, pad=title == "scratch")] if rows else []
        return "\n".join(lines) + "\n"

    def block(self) -> str:
        """The TOML text as the comment block that goes on top of a kernel file."""
        inside = "".join(f"// {line}".rstrip() + "\n" for line in self.toml().rstrip("\n").split("\n"))
        return f"// /// fsr\n{inside}// ///\n"

    def _aligned(self, title: str, rows: Sequence[tuple[str, str]], pad: bool = True) -> list[str]:
        width = max((len(k) for k, _ in rows), default=0) if pad else 0
        found = []
        for key, value in rows:
            note = self.notes.get(f"{title}.{key}")
            found.append(f"{key:<{width}} = {value}" + (f"   # {note}" if note else ""))
        return found


def quoted(text: str) -> str:
    """A TOML string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def number_or_text(text: str) -> str:
    """A size expression as TOML: a plain number unquoted, anything else in quotes."""
    try:
        int(text)
    except ValueError:
        return quoted(text)
    return (
        text if text.strip() == text and "_" not in text and not (len(text) > 1 and text[0] in "0+") else quoted(text)
    )


def listed(texts: Sequence[str]) -> str:
    """Size expressions as a TOML array."""
    return "[" + ", ".join(number_or_text(t) for t in texts) + "]"


def dimensions(texts: Sequence[str]) -> str:
    """A grid or block: trailing ones left out, a single extent without brackets."""
    parts = list(texts)
    while len(parts) > 1 and parts[-1] == "1":
        parts.pop()
    return number_or_text(parts[0]) if len(parts) == 1 else listed(parts)


def inline(rows: Sequence[tuple[str, str]]) -> str:
    """An inline table."""
    return "{" + ", ".join(f"{k} = {v}" for k, v in rows) + "}"
