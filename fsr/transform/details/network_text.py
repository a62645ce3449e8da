"""A sorting network as text: a function for each type, number and direction, and what stands where loops sorted."""

from __future__ import annotations

from collections.abc import Sequence

from fsr.analysis.sorting_networks import merge_exchange
from fsr.source.names import indent, unrolled
from fsr.source.tokens import tokenize
from fsr.transform.details.sorted_arrays import SortedArray

_A_LINE = 4  # comparators
_NO_NUMBER = 0x7FF00000  # the upper word of what is infinite, or is no number
_HEAD = "static __device__ __forceinline__"


def network(kind: SortedArray, name: str, order: str) -> str:
    """The function ``name`` that sorts as many elements. Of floating-point numbers it tells whether it did: not where
    there are NaNs, or zeros with a sign, which minima put elsewhere than exchanges. ``order``: of two elements."""
    last = kind.count - 1
    pairs = [(last - a, last - b) if kind.descends else (a, b) for a, b in merge_exchange(kind.count)]
    steps = [f"{order}(x[{low}], x[{high}]);" for low, high in pairs]
    lines = [" ".join(steps[at : at + _A_LINE]) for at in range(0, len(steps), _A_LINE)]
    result = "void"
    if kind.is_floating:
        result, lines = "bool", [*_looked_at(kind), *lines, "return true;"]
    text = [
        "// Batcher's merge exchange (Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M).",
        f"{_HEAD} {result} {name}({kind.element} *x)",
        "{",
        *indent(lines),
        "}",
    ]
    return "\n".join(text) + "\n"


def _looked_at(kind: SortedArray) -> list[str]:
    """The test for elements without a place in the order. Infinite ones, which have one, fail it too, and so do
    negative doubles under 2^-1042, of which the upper word is that of -0.0."""
    lowest = "(-2147483647 - 1)"
    if kind.element == "double":
        turn = [
            "const int word = __double2hiint(x[i]), size = word & 2147483647;",
            "least = word < least ? word : least;",
            "greatest = size > greatest ? size : greatest;",
        ]
        begin, test = "int least = 0, greatest = 0;", f"least == {lowest} || greatest >= {_NO_NUMBER}"
        return [begin, *unrolled("i", kind.count, turn), f"if ({test})", "    return false;"]
    turn = [
        "const int word = __float_as_int(x[i]);",
        "least = word < least ? word : least;",
        "sum += x[i] * 0.0f;",
    ]
    return [
        "int least = 0;",
        "float sum = 0.0f;",
        *unrolled("i", kind.count, turn),
        f"if (least == {lowest} || !(sum == 0.0f))",
        "    return false;",
    ]


def ordering(element: str, name: str) -> str:
    """The function that puts two elements in order."""
    least, most = ("fminf(a, b)", "fmaxf(a, b)") if element == "float" else ("b < a ? b : a", "b < a ? a : b")
    lines = [f"const {element} least = {least};", f"b = {most};", "a = least;"]
    if element == "double":  # of which GPUs have no minimum: one comparison and four moves
        lines = ["const bool turned = b < a;", "const double least = turned ? b : a;"]
        lines += ["b = turned ? a : b;", "a = least;"]
    return "\n".join([f"{_HEAD} void {name}({element} &a, {element} &b)", "{", *indent(lines), "}"]) + "\n"


def in_place(ways: Sequence[tuple[SortedArray, str]], text: str, names: Sequence[str]) -> str:
    """What stands in the place of a statement that sorts: for each length the network of that name. ``names``: of a
    copy and of a counter."""
    first, _ = ways[0]
    own = text[first.start : first.end].strip()
    lines, otherwise = list[str](), ""
    for kind, name in ways:
        done = _done(kind, name, own, names)
        if not kind.given:
            lines += [f"{otherwise}{{", *indent(done), "}"] if otherwise else done
            return "\n".join(["{", *lines, "}"])
        test = " && ".join(f"{name} == {value}" for name, value in kind.given)
        lines += [f"{otherwise}if ({test}) {{", *indent(done), "}"]
        otherwise = "else "
    return "\n".join(["{", *lines, "else {", own, "}", "}"])


def _done(kind: SortedArray, name: str, own: str, names: Sequence[str]) -> list[str]:
    """The statements that sort one length."""
    if not kind.is_floating:
        return [f"{name}({kind.array});"]
    copy, turn = names
    there, here = f"{copy}[{turn}]", f"{kind.array}[{turn}]"
    return [
        f"if (!{name}({kind.array})) {{",
        *indent([
            f"{kind.element} {copy}[{kind.count}];  // so that the array itself is indexed by constants alone",
            *unrolled(turn, kind.count, [f"{there} = {here};"]),
        ]),
        _renamed(own, kind.array, copy),
        *indent(unrolled(turn, kind.count, [f"{here} = {there};"])),
        "}",
    ]  # fmt: skip


def _renamed(text: str, old: str, new: str) -> str:
    """The text of a statement with another array."""
    tokens, out, end = tokenize(text), list[str](), 0
    for before, token in zip([None, *tokens], tokens, strict=False):
        is_member = before is not None and before.text in (".", "->", "::")
        out += [text[end : token.start], new if token.text == old and not is_member else token.text]
        end = token.end
    return "".join(out) + text[end:]


def forced_inline(text: str, function: int) -> list[tuple[int, int, str]]:
    """The edits that have a device function, which begins at a place of the text, written out wherever it is called:
    only there are its argument's elements registers. None for kernels, nor where the file says otherwise."""
    head = []
    for token in tokenize(text[function:]):
        if token.text in ("{", ";"):
            break
        head.append(token)
    told = {token.text for token in head}
    if "__device__" not in told or told & {"__forceinline__", "__noinline__", "__global__"}:
        return []
    inline = [token for token in head if token.text in ("inline", "__inline__", "__inline")]
    if inline:
        return [(function + t.start, function + t.end, "__forceinline__" if t is inline[0] else "") for t in inline]
    end = next(function + token.end for token in head if token.text == "__device__")
    return [(end, end, " __forceinline__")]
