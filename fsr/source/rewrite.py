"""Splicing re-emitted kernels into the text they came from."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fsr.errors import HarnessError
from fsr.source.emit import emit_kernel
from fsr.source.form import KernelForm
from fsr.source.items import parse_items


def replace_kernel(text: str, old: KernelForm, new: KernelForm | Sequence[KernelForm], helpers: str = "") -> str:
    """The text with the definition ``old`` (as parsed from this very text) replaced by ``new``.

    ``helpers`` (device functions, includes) goes once before it, at file scope, unless the text before the kernel
    holds it already. Everything else stays byte for byte.

    Raises:
        HarnessError: ``old`` was parsed from another text, or was not parsed at all.
    """
    data, kernels = text.encode(), [new] if isinstance(new, KernelForm) else list(new)
    if old.span is None or old.name.encode() not in data[slice(*old.span)]:
        raise HarnessError(f"the kernel {old.name!r} has no place in this text", fix="parse the text again")
    start, end = old.span
    code = "\n".join(emit_kernel(k) for k in kernels).rstrip("\n")
    result = data[:start].decode() + code + data[end:].decode()
    return insert_helpers(result, start, helpers)


def insert_helpers(text: str, at: int, helpers: str) -> str:
    """``helpers`` placed at file scope before byte ``at``, unless the text before that point holds them."""
    data, block = text.encode(), helpers.strip("\n")
    if not block or block in data[:at].decode():
        return text
    place = _file_scope(data, at)
    return data[:place].decode() + block + "\n\n" + data[place:].decode()


def _file_scope(data: bytes, at: int) -> int:
    """``at``, or the start of the ``extern "C" {`` that encloses it (templates may not stand in one)."""
    for top in parse_items(data.decode("latin-1"), strict=False):
        for item in top.walk():
            if item.kind == "linkage" and item.start < at < item.end:
                return item.start
    return at


def add_include(text: str, header: str) -> str:
    """The text with ``#include <header>`` as its first line, unless it is included already."""
    if re.search(rf'^[ \t]*#[ \t]*include[ \t]*[<"]{re.escape(header)}[>"]', text, re.MULTILINE):
        return text
    return f"#include <{header}>\n{text}"
