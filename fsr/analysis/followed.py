"""The functions of a file that can be gone through, statement by statement, and what tells that one cannot."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from fsr.analysis.definitions import shadowing
from fsr.analysis.macros import expanded, hides_names
from fsr.source.braces import without_braces
from fsr.source.form import KernelForm
from fsr.source.items import flat, parse_items
from fsr.source.parse import parse_device_functions


@lru_cache(maxsize=64)
def functions_to_follow(source: str) -> Mapping[str, tuple[KernelForm, str]]:
    """The functions of a file that are no overloads, with the types of their results."""
    items = [i for i in flat(parse_items(source, strict=False)) if i.kind == "function" and i.body is not None]
    times = Counter(n for i in items for n in i.names)
    heads = {n: source[i.start : i.body] for i in items for n in i.names}
    forms = {n: as_read(f, source) for n, f in parse_device_functions(source).items() if times[n] == 1}
    return {n: (f, _result_type(heads.get(n, ""), n)) for n, f in forms.items()
            if not hides_names(f, source) and not shadows(f)}  # fmt: skip


def shadows(form: KernelForm) -> bool:
    """Whether a name stands for two variables at one place: here a name of a function is one."""
    return bool(shadowing(form.body, frozenset(p.name for p in form.params)))


def as_read(form: KernelForm, source: str) -> KernelForm:
    """The form with macros and lists in braces written out."""
    return replace(form, body=without_braces(expanded(form, source).body))


def _result_type(head: str, name: str) -> str:
    before = re.split(rf"\b{re.escape(name)}\s*\(", head)[0]
    kept = re.sub(r"\b(__\w+__|static|inline|constexpr|extern|template\s*<[^>]*>)(?!\w)", " ", before)
    return " ".join(kept.split())
