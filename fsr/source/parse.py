"""CUDA text to the loop-nest form, with tree-sitter.

Every kernel gets a form: what the form or the grammar cannot express stays verbatim as an opaque node. Kernels
are found by :mod:`fsr.source.items` and parsed one by one, so that trouble elsewhere in a file stays there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from fsr.source.blanks import blanks, one_head, readable, unqualified
from fsr.source.form import KernelForm, OpaqueStmt, Param
from fsr.source.inner_branches import blanked_out, by_architecture, by_the_text, with_all_decided
from fsr.source.items import Item, flat, parse_items
from fsr.source.macros import Macro, expand, macro_words, qualifying, spelled_otherwise, spelling, statement_macros
from fsr.source.parse_statements import Reader, squeeze
from fsr.source.references import by_reference
from fsr.source.tokens import source_of, split_commas, tokenize

if TYPE_CHECKING:
    from tree_sitter import Node

_SPECIFIERS = frozenset(["storage_class_specifier", "inline", "constexpr", "__device__", "__host__"])


@lru_cache(maxsize=1)
def _grammar() -> Any:
    import tree_sitter  # heavy: only where a kernel is parsed
    import tree_sitter_cuda

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cuda.language()))


def parse_kernels(text: str) -> dict[str, KernelForm]:
    """The __global__ functions defined in a translation unit, by bare name, in the order of the text.

    Spans are byte ranges of ``text`` as UTF-8. Of several definitions with one name the first counts. Never
    raises on text it does not understand.
    """
    return dict(_kernels(text))


@lru_cache(maxsize=128)
def _kernels(text: str) -> dict[str, KernelForm]:
    words, changed = macro_words(text), by_reference(text)
    return {
        name: replace(kernel, macro_words=words, by_reference=changed)
        for name, kernel in _functions(text, "__global__", spelling("__global__", text)).items()
    }


def parse_device_functions(text: str) -> dict[str, KernelForm]:
    """The __device__ functions defined in a translation unit, in the same form; ``prefix`` holds everything
    before the name's return type that is no template. For analysis only: emitting them is not supported.
    Conditionals in them are decided by the file's own macros."""
    return dict(_device_functions(text))


@lru_cache(maxsize=128)  # actions ask for them at each call that they see
def _device_functions(text: str) -> dict[str, KernelForm]:
    return _functions(text, "__device__", spelling("__device__", text))


def misread_lines(text: str) -> list[int]:
    """The lines, from 1, of the first place in each function that is no CUDA as the grammar has it: a semicolon that
    is missing, brackets that do not close. Compilers take some constructs that the grammar does not know."""
    code = text.encode().decode("latin-1")
    items = list(flat(parse_items(code, strict=False)))
    defined = {i.names[0] for i in items if i.kind == "define" and i.names}
    found = []
    for item in items:
        if item.kind == "function" and item.body is not None:
            piece = one_head(code[item.start : item.end].rstrip("; \t\n"), item.body - item.start, defined)
            wrong = _first_error(syntax_tree(readable(blanks(piece)[0])))
            if wrong is not None:
                found.append(code.count("\n", 0, item.start + wrong.start_byte) + 1)
    return found


def _first_error(node: Node) -> Node | None:
    """The first node, in the order of the text, that is an error or missing; None where there is none."""
    if not node.has_error:
        return None
    if node.type == "ERROR" or node.is_missing:
        return node
    return next((found for child in node.children if (found := _first_error(child)) is not None), node)


def _functions(text: str, marker: str, others: Collection[str] = ()) -> dict[str, KernelForm]:
    """``others``: macros that stand for the marker."""
    found = dict[str, KernelForm]()
    code = text.encode().decode("latin-1")  # a character a byte: offsets in it are offsets in UTF-8
    if marker == "__device__" and "#" in code:  # nobody emits these: what is not compiled need not stay
        code = with_all_decided(code, {})
    items = list(flat(parse_items(code, strict=False)))
    defined = {i.names[0] for i in items if i.kind == "define" and i.names}
    types = {n for i in items if i.kind in ("alias", "record", "using") for n in i.names}
    written, qualifiers = statement_macros(code) | spelled_otherwise(code), qualifying(code) | set(others)
    read = _as_compiled(code, items) if marker == "__global__" and "#" in code else code
    for item in items:
        if item.kind == "function" and item.body is not None and not item.head.isdisjoint({marker, *others}):
            kernel = _definition(read, item, (defined, types, qualifiers), written)
            if kernel is not None:
                found.setdefault(kernel.name, kernel)
    return found


def _as_compiled(code: str, items: Sequence[Item]) -> str:
    """The text as long, without branches in functions that are not compiled: by what the text itself defines, or on no
    GPU."""
    bodies = _bodies(items)
    read = blanked_out(code, chain(*(group for group in by_the_text(code) if _within(group, bodies))))
    return _for_any_gpu(read, items) if "__CUDA_ARCH__" in read else read


def _bodies(items: Sequence[Item]) -> list[tuple[int, int]]:
    return [(item.body, item.end) for item in items if item.kind == "function" and item.body is not None]


def _within(group: Sequence[tuple[int, int]], bodies: Sequence[tuple[int, int]]) -> bool:
    """Whether a conditional stands in a function."""
    return any(start < group[0][0] and group[-1][1] <= end for start, end in bodies)


def _for_any_gpu(code: str, items: Sequence[Item]) -> str:
    """The text as long, without branches in functions that no GPU compiles. As it is where conditionals elsewhere that
    ask for the GPU hold more than macros: what is declared there, nvcc's pass for the host would not find."""
    bodies, gone = _bodies(items), list[tuple[int, int]]()
    for group in by_architecture(code):
        if _within(group, bodies):
            gone += group
        elif any(t.kind not in ("directive", "comment") for t in tokenize(code[group[0][0] : group[-1][1]])):
            return code
    return blanked_out(code, gone)


def _definition(
    code: str, item: Item, names: tuple[Collection[str], Collection[str], Collection[str]], written: Mapping[str, Macro]
) -> KernelForm | None:
    """``names``: of the file's macros, of its types, of those macros that qualify a parameter at most; ``written``:
    macros that are written out."""
    defined, types, qualifiers = names
    header_end = (item.body or item.end) - item.start
    piece = one_head(code[item.start : item.end].rstrip("; \t\n"), header_end, defined)
    length = len(piece)
    if written:
        piece = piece[:header_end] + expand(piece[header_end:], written)
    cleaned, taken = blanks(piece)
    cleaned = unqualified(cleaned, header_end, qualifiers)
    reader = Reader(piece.encode("latin-1"), taken, item.start, {*defined, *types})
    root = syntax_tree(readable(cleaned, types))
    function = _function_node(root)
    body = None if function is None else function.child_by_field_name("body")
    if body is not None and body.start_byte == header_end and body.end_byte == len(piece):
        statements = reader.block(body)
    else:  # brackets that the grammar sees elsewhere than the text has them: keep the body as it is
        span = (item.start + header_end + 1, item.start + len(piece) - 1)
        statements = (OpaqueStmt(reader.slice(header_end + 1, len(piece) - 1).strip("\n"), span),)
        root = syntax_tree(cleaned[:header_end] + "{}")
        function = _function_node(root)
    declarator = None if function is None else function.child_by_field_name("declarator")
    name = None if declarator is None else declarator.child_by_field_name("declarator")
    if function is None or declarator is None or name is None:
        return None
    bounds = [b for b in taken if b.kind == "__launch_bounds__" and b.start < header_end]
    return KernelForm(
        name=reader.text(name),
        params=_params(reader, declarator),
        body=statements,
        template=_template(reader, root),
        launch_bounds=_arguments(bounds[0].text) if bounds else (),
        prefix=_prefix(reader, root, function, header_end),
        span=(item.start, item.start + length),
    )


def syntax_tree(cleaned: str) -> Node:
    """The grammar's tree of a text of Latin-1 characters, so that bytes are characters; see :mod:`fsr.source.blanks`
    for what to take out before."""
    root: Node = _grammar().parse(cleaned.encode("latin-1")).root_node
    return root


def _function_node(root: Node) -> Node | None:
    pending = [root]
    while pending:
        node = pending.pop(0)
        if node.type == "function_definition":
            return node
        if node.type in ("translation_unit", "template_declaration", "linkage_specification", "ERROR"):
            pending.extend(node.named_children)
    return None


def _template(reader: Reader, root: Node) -> str | None:
    for node in root.named_children:
        if node.type == "template_declaration":
            parameters = node.child_by_field_name("parameters")
            if parameters is not None:
                return squeeze(reader.text(parameters)[1:-1])
    return None


def _prefix(reader: Reader, root: Node, function: Node, header_end: int) -> tuple[str, ...]:
    found = ['extern "C"'] if any(n.type == "linkage_specification" for n in root.named_children) else []
    found += [reader.text(c) for c in function.children if c.type in _SPECIFIERS]
    kept = [b.text for b in reader.taken if b.start < header_end and b.kind not in ("__launch_bounds__", "pragma")]
    return (*found, *(t for t in kept if t not in ("__grid_constant__", "__global__")))


def _arguments(call: str) -> tuple[str, ...]:
    return tuple(source_of(call, split_commas(tokenize(call)[2:-1])))


def _params(reader: Reader, declarator: Node) -> tuple[Param, ...]:
    parameters = declarator.child_by_field_name("parameters")
    nodes = [] if parameters is None else parameters.named_children
    found = [_param(reader, node) for node in nodes if node.type != "comment"]
    return () if [p.type for p in found] == ["void"] else tuple(found)


def _param(reader: Reader, node: Node) -> Param:
    constant = [b.text for b in reader.taken if b.kind == "__grid_constant__" and node.start_byte <= b.start]
    constant = [t for t, b in zip(constant, reader.taken, strict=False) if b.end <= node.end_byte]
    variable = reader.variable(node)
    if variable is None or node.type not in ("parameter_declaration", "optional_parameter_declaration"):
        return Param(squeeze(reader.text(node)), "")
    value = node.child_by_field_name("default_value")
    type_, name, dims = variable
    if dims:
        type_ = f"{type_} *" if not type_.endswith("*") else f"{type_}*"
    restrict = "__restrict__" in type_ or "__restrict" in type_
    if restrict:
        type_ = squeeze(type_.replace("__restrict__", "").replace("__restrict", ""))
    return Param(" ".join([*constant, type_]), name, restrict, "" if value is None else squeeze(reader.text(value)))
