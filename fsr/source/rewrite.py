"""Splicing re-emitted kernels into the text they came from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from fsr.errors import HarnessError
from fsr.source.emit import emit_kernel, emit_stmts
from fsr.source.form import KernelForm
from fsr.source.tokens import close_of, tokenize


def replace_kernel(text: str, old: KernelForm, new: KernelForm | Sequence[KernelForm], helpers: str = "") -> str:
    """The text with the definition ``old`` (as parsed from this very text) replaced by ``new``.

    ``helpers`` (device functions) go before everything but includes, see :func:`insert_helpers`. Everything else stays
    byte for byte.

    Raises:
        HarnessError: ``old`` was parsed from another text, or was not parsed at all.
    """
    data, kernels = text.encode(), [new] if isinstance(new, KernelForm) else list(new)
    if old.span is None or old.name.encode() not in data[slice(*old.span)]:
        raise HarnessError(f"the kernel {old.name!r} has no place in this text", fix="parse the text again")
    start, end = old.span
    code = "\n".join(emit_kernel(k) for k in kernels).rstrip("\n")
    result = data[:start].decode() + code + data[end:].decode()
    return insert_helpers(result, helpers)


def definition(text: str, kernel: KernelForm) -> str:
    """A kernel, or a function, as it is written in the text that it was parsed from."""
    assert kernel.span is not None
    return text.encode()[slice(*kernel.span)].decode()


def is_plain(text: str, form: KernelForm) -> bool:
    """Whether a device function can be written anew: no branch of its text was decided when it was read."""
    tokens = tokenize(definition(text, form))
    return all(t.kind != "directive" or t.text.split()[:1] == ["#pragma"] for t in tokens)


def redefinition(text: str, old: KernelForm, new: KernelForm) -> str:
    """The definition of a kernel that was parsed from the text with another form, or a function's with its own head."""
    if "__device__" not in " ".join(old.prefix):
        return emit_kernel(new).rstrip("\n")
    own = definition(text, old)
    tokens = tokenize(own)
    at = next(i for i, t in enumerate(tokens) if t.text == old.name and tokens[i + 1].text == "(")
    close = close_of(tokens, at + 1) or at
    brace = next(t for t in tokens[close:] if t.text == "{")
    return f"{own[: brace.start].rstrip()} {{\n{emit_stmts(new.body, 1)}}}"


def with_definitions(text: str, kernels: Iterable[KernelForm], parts: Callable[[KernelForm], Iterable[str]]) -> str:
    """The text with other definitions in the place of each of some kernels."""
    data = text.encode()
    for kernel in sorted(kernels, key=lambda k: k.span or (0, 0), reverse=True):
        assert kernel.span is not None
        start, end = kernel.span
        data = data[:start] + "\n\n".join(parts(kernel)).encode() + data[end:]
    return data.decode()


def insert_helpers(text: str, helpers: str) -> str:
    """``helpers`` placed at file scope behind the includes that the text begins with and the helpers that came before,
    unless the text holds them. There no macro of the file has been defined yet, which could change their names, and no
    namespace is open that would hide them from another kernel."""
    block = helpers.strip("\n")
    if not block or block in text:
        return text
    place = _INCLUDES.match(text).end()  # type: ignore[union-attr]  # it matches nothing at least
    while earlier := _HELPER.match(text, place):
        place = earlier.end()
    return f"{text[:place]}{block}\n\n{text[place:]}"


def insert_includes(text: str, headers: Iterable[str]) -> str:
    """Headers included behind those that the text begins with, where it includes them nowhere yet."""
    missing = [h for h in headers if not re.search(rf"^[ \t]*#[ \t]*include[ \t]*<{re.escape(h)}>", text, re.MULTILINE)]
    place = _INCLUDES.match(text).end()  # type: ignore[union-attr]  # it matches nothing at least
    return text[:place] + "".join(f"#include <{h}>\n" for h in missing) + text[place:]


_INCLUDES = re.compile(r"(?:(?:[ \t]*(?://[^\n]*)?\n)*[ \t]*#[ \t]*(?:include|pragma[ \t]+once)\b[^\n]*\n)*")
_HELPER = re.compile(
    r"\n*(?://[^\n]*\n)*template <[^\n]*>\n[^\n]*\bfsr_\w+[^;]*?\{.*?^\};?\n\n*", re.DOTALL | re.MULTILINE
)
