"""Where an action works: one launch of a candidate's plan with its kernel as a domain, and the way back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from fsr.contract.model import Contract
from fsr.records import Candidate, Launch
from fsr.search.actions.protocol import Subject
from fsr.search.idioms.domain import Domain, domain, flattened
from fsr.search.idioms.names import settle, words
from fsr.search.idioms.placement import Placed, placed
from fsr.search.idioms.polynomial import integer_literal
from fsr.search.idioms.rewrite import nodes, rewrite, substitute
from fsr.source.emit import emit_kernel
from fsr.source.form import Assign, Call, Expr, Index, KernelForm, Literal, Name, OpaqueStmt
from fsr.source.parse import parse_kernels
from fsr.source.text import close_of, skeleton


@dataclass(frozen=True, slots=True)
class Site:
    """One launch (by position) whose kernel is launched nowhere else in the plan. ``region``: 'kernel', or
    'kernel:<name>' in a plan of several launches."""

    at: int
    launch: Launch
    form: KernelForm
    placed: Placed
    region: str

    @property
    def domain(self) -> Domain:
        """The kernel over points, every axis bounded."""
        return self.placed.domain


def sites(subject: Subject) -> Iterator[Site]:
    """Every launch of the plan whose kernel is a map over points."""
    launches = subject.candidate.plan.launches
    names = [_bare(launch.entry) for launch in launches]
    for at, launch in enumerate(launches):
        form = subject.kernels.get(names[at]) or subject.kernels.get(names[at].split("::")[-1])
        if form is None or form.span is None or names.count(names[at]) > 1 or len(launch.args) != len(form.params):
            continue
        region = "kernel" if len(launches) == 1 else f"kernel:{form.name}"
        ready = _placed(subject.candidate.source, form, launch, subject.contract)
        if ready is not None:
            yield Site(at, launch, form, ready, region)


@lru_cache(maxsize=256)
def _placed(source: str, form: KernelForm, launch: Launch, contract: Contract) -> Placed | None:
    facts = constants(source, form, launch.entry)
    found = domain(expanded(form, source), launch, facts)
    if found is None:
        return None
    return placed(flattened(found) or found, contract)


def _bare(entry: str) -> str:
    return entry.split("<", 1)[0].strip()


def constants(source: str, form: KernelForm, entry: str) -> dict[str, int]:
    """Integers known at compile time by name: object-like macros, file-level constants, template arguments."""
    found: dict[str, int] = {}
    macro = r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+\(?[ \t]*(\w+)[ \t]*\)?[ \t]*(?://.*|/\*.*)?$"
    words_before = r"^(?:(?:static|inline|__device__|__constant__)\s+)*(?:constexpr|const)\s+(?:static\s+)?"
    constant = words_before + r"(?:int|unsigned|size_t|unsigned int)\s+(\w+)\s*=\s*(\w+)\s*;"
    for pattern in (macro, constant):
        for name, text in re.findall(pattern, source, re.MULTILINE):
            value = integer_literal(text)
            if value is not None:
                found[name] = value
    if form.template and "<" in entry:
        declared = [p.split("=")[0].split()[-1] for p in form.template.split(",")]
        given = entry[entry.index("<") + 1 : entry.rindex(">")].split(",")
        for name, text in zip(declared, given, strict=False):
            value = integer_literal(text.strip())
            if value is not None:
                found[name] = value
    return found


def expanded(form: KernelForm, source: str) -> KernelForm:
    """The kernel with function-like macros of one expression written out, so that indexes inside them show."""
    macros = _macros(source)

    def change(expr: Expr) -> Expr | None:
        match expr:
            case Call(callee=Name(text=text), args=args) if text in macros and len(macros[text][0]) == len(args):
                parameters, body = macros[text]
                inner = tuple(rewrite(a, change) for a in args)
                return substitute(body, dict(zip(parameters, inner, strict=True)))
        return None

    return replace(form, body=rewrite(form.body, change)) if macros else form


@lru_cache(maxsize=64)
def _macros(source: str) -> Mapping[str, tuple[tuple[str, ...], Expr]]:
    """Function-like macros whose body is one expression over their parameters, each used as a whole operand."""
    found: dict[str, tuple[tuple[str, ...], Expr]] = {}
    joined = re.sub(r"\\\r?\n", " ", source)
    for name, listed, body in re.findall(
        r"^[ \t]*#[ \t]*define[ \t]+(\w+)\(([\w, \t]*)\)[ \t]+(.+)$", joined, re.MULTILINE
    ):
        parameters = tuple(p.strip() for p in listed.split(",") if p.strip())
        if "#" in body or not _careful(body, parameters):
            continue
        kernels = parse_kernels(f"__global__ void f() {{\n    x = {re.sub('//.*', '', body)};\n}}\n")
        match kernels["f"].body if "f" in kernels else ():
            case (Assign(target=Name(text="x"), value=value),) if _closed(body, value):
                if any(_opaque(n) for n in nodes(value)):
                    continue
                found[name] = (parameters, value)
    return found


def _careful(body: str, parameters: tuple[str, ...]) -> bool:
    """Whether every parameter stands in brackets of its own, so that the order of operations cannot change."""
    bare = body.strip()
    for parameter in parameters:
        bare = re.sub(rf"\(\s*{parameter}\s*\)|\[\s*{parameter}\s*\]|(?<=[(,])\s*{parameter}\s*(?=[,)])", " ", bare)
    return not words(bare) & set(parameters)


def _closed(body: str, value: Expr) -> bool:
    """Whether a macro's body binds as tightly as an operand, whatever stands around its use."""
    whole = body.strip().encode()
    return isinstance(value, Index | Call) or (whole[:1] == b"(" and close_of(whole, 0) == len(whole) - 1)


def _opaque(node: object) -> bool:
    return type(node).__name__.startswith("Opaque")


def rebuilt(
    candidate: Candidate, site: Site, body: str, launch: Launch, action: str, *,
    threads: int | None = None, min_blocks: int = 1, before: str = "", final: bool = True,
) -> Candidate:  # fmt: skip
    """The candidate with the site's kernel body replaced by ``body`` (``$names`` are settled) and its launch by
    ``launch``. ``threads``: the launch bound to declare; ``before``: declarations to stand before the kernel."""
    taken = words(skeleton(candidate.source.encode()).decode())
    text = settle(body, taken).strip()
    bounds = () if threads is None else (str(threads),) if min_blocks <= 1 else (str(threads), str(min_blocks))
    form = replace(site.form, body=(OpaqueStmt(text),), params=site.placed.params, launch_bounds=bounds)
    kernel = before + emit_kernel(form).rstrip("\n")
    data = candidate.source.encode()
    start, end = site.form.span or (0, 0)
    source = (data[:start] + kernel.encode() + data[end:]).decode()
    launches = list(candidate.plan.launches)
    launches[site.at] = launch
    plan = replace(candidate.plan, launches=tuple(launches))
    return replace(candidate, source=source, plan=plan, actions=(*candidate.actions, action))


def expression(text: str) -> Expr:
    """A number or a name as an expression."""
    return Literal(text) if text.isdigit() else Name(text)
