"""CUDA text to the loop-nest form, with tree-sitter.

Every kernel gets a form: what the form or the grammar cannot express stays verbatim as an opaque node. Kernels
are located by :mod:`fsr.source.text` and parsed one by one, so that trouble elsewhere in a file stays there.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fsr.source.form import KernelForm, OpaqueStmt, Param
from fsr.source.parse_statements import Reader, squeeze
from fsr.source.text import Located, blanks, locate, locate_kernels, unbracketed

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
    data, found = text.encode(), dict[str, KernelForm]()
    for located in locate_kernels(data):
        kernel = _definition(data, located)
        if kernel is not None:
            found.setdefault(kernel.name, kernel)
    return found


def parse_device_functions(text: str) -> dict[str, KernelForm]:
    """The __device__ functions defined in a translation unit, in the same form; ``prefix`` holds everything
    before the name's return type that is no template. For analysis only: emitting them is not supported."""
    data, found = text.encode(), dict[str, KernelForm]()
    for located in locate(data, rb"\b__device__\b"):
        kernel = _definition(data, located)
        if kernel is not None:
            found.setdefault(kernel.name, kernel)
    return found


def _definition(data: bytes, located: Located) -> KernelForm | None:
    piece = data[located.start : located.end]
    cleaned, taken = blanks(piece)
    reader = Reader(piece, taken, located.start)
    header_end = located.body - located.start
    root = _grammar().parse(unbracketed(cleaned)).root_node
    function = _function_node(root)
    body = None if function is None else function.child_by_field_name("body")
    if body is not None and body.start_byte == header_end and body.end_byte == len(piece):
        statements = reader.block(body)
    else:  # brackets that the grammar sees elsewhere than the text has them: keep the body as it is
        inner = piece[header_end + 1 : -1].decode("utf-8", "replace").strip("\n")
        statements = (OpaqueStmt(inner, (located.body + 1, located.end - 1)),)
        root = _grammar().parse(cleaned[:header_end] + b"{}").root_node
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
        span=(located.start, located.end),
    )


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
    return (*found, *(t for t in kept if t != "__grid_constant__"))


def _arguments(call: str) -> tuple[str, ...]:
    inner, parts, depth = call[call.index("(") + 1 : call.rindex(")")], [""], 0
    for char in inner:
        depth += (char in "([{") - (char in ")]}")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return tuple(part.strip() for part in parts if part.strip())


def _params(reader: Reader, declarator: Node) -> tuple[Param, ...]:
    parameters = declarator.child_by_field_name("parameters")
    nodes = [] if parameters is None else parameters.named_children
    found = [_param(reader, node) for node in nodes if node.type != "comment"]
    return () if [p.type for p in found] == ["void"] else tuple(found)


def _param(reader: Reader, node: Node) -> Param:
    constant = [b.text for b in reader.taken if b.kind == "__grid_constant__" and node.start_byte <= b.start]
    constant = [t for t, b in zip(constant, reader.taken, strict=False) if b.end <= node.end_byte]
    variable = reader.variable(node)
    if variable is None or node.type != "parameter_declaration":
        return Param(squeeze(reader.text(node)), "")
    type_, name, dims = variable
    if dims:
        type_ = f"{type_} *" if not type_.endswith("*") else f"{type_}*"
    restrict = "__restrict__" in type_ or "__restrict" in type_
    if restrict:
        type_ = squeeze(type_.replace("__restrict__", "").replace("__restrict", ""))
    return Param(" ".join([*constant, type_]), name, restrict)
