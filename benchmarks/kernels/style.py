"""The ways in which people write the same piece of a kernel; each kernel draws its own."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

NUMPY = {
    "float": "float32",
    "double": "float64",
    "__half": "float16",
    "int": "int32",
    "unsigned": "uint32",
    "unsigned int": "uint32",
    "long long": "int64",
    "uint32_t": "uint32",
    "size_t": "uint64",
    "unsigned char": "uint8",
    "short": "int16",
}
_INPUTS = ("x", "in", "src", "input", "inp", "A", "d_in", "values", "data0")
_OUTPUTS = ("y", "out", "dst", "output", "result", "out_idx", "d_out", "res")
_COUNTS = {
    "n": ("n", "N", "size", "count", "num_elements", "len", "total"),
    "rows": ("rows", "M", "height", "batch", "num_rows", "B", "nx"),
    "cols": ("cols", "N", "width", "dim", "hidden_size", "C", "ny"),
    "depth": ("depth", "K", "inner", "L", "nz"),
}


def indent(lines: Sequence[str], by: str = "    ") -> list[str]:
    """Lines one level further in."""
    return [by + line for line in lines]


@dataclass
class Style:
    """One kernel's habits. ``el``: element type as C; ``acc``: what sums are kept in; ``index``: of indices."""

    chance: random.Random
    el: str = "float"
    prelude: list[str] = field(default_factory=list)
    template: list[str] = field(default_factory=list)
    template_args: list[str] = field(default_factory=list)
    used: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        pick = self.chance.choice
        self.index = pick(
            ["int"] * 4 + ["unsigned", "unsigned int", "size_t", "long long", "index_t", "uint32_t", "auto"]
        )
        if self.index == "index_t":
            self.prelude.append(
                pick(["typedef int index_t;", "using index_t = long long;", "typedef unsigned index_t;"])
            )
        self.loop_index = self.index if self.index != "auto" else "int"
        self.value = self.el
        if self.el == "__half":
            self.prelude.insert(0, "#include <cuda_fp16.h>")
        elif pick([True, False, False, False]):
            self._named_type()
        self.acc = {"double": "double", "int": "int"}.get(self.el, "float")
        self.restrict = pick(["", "", " __restrict__"])
        self.restrict_out = self.restrict and pick(["", self.restrict])
        self.const_values = pick([True, False])
        self.post = pick([True, False])

    def macros(self, text: str) -> list[str]:
        """Names of constants that others use for variables, of those that a text has no use for."""
        names = (
            "lane",
            "WIDTH",
            "THREADS",
            "T",
            "value",
            "pack",
            "step",
            "first",
            "partial",
            "warp",
            "offset",
            "a",
            "c",
        )
        free = [name for name in names if not re.search(rf"\b{name}\b", text)]
        return self.chance.sample(free, self.chance.choice((0, 0, 0, 2, 4)))

    def _named_type(self) -> None:
        way = self.chance.choice(("typedef", "using", "macro", "template"))
        if way == "template":
            self.value = self.chance.choice(("T", "scalar_t"))
            self.template.append(f"typename {self.value}")
            self.template_args.append(self.el)
        else:
            self.value = self.chance.choice(("real", "DTYPE", "value_type"))
            self.prelude.append(
                {
                    "typedef": f"typedef {self.el} {self.value};",
                    "using": f"using {self.value} = {self.el};",
                    "macro": f"#define {self.value} {self.el}",
                }[way]
            )

    # ------------------------------------------------------------ names

    def fresh(self, key: str, options: Sequence[str]) -> str:
        """A name for a thing, the same each time and no other's."""
        if key not in self.used:
            free = [o for o in options if o not in self.used.values()]
            self.used[key] = self.chance.choice(free) if free else f"{key}_"
        return self.used[key]

    def given(self, key: str = "0") -> str:
        """The name of an input."""
        return self.fresh(f"in{key}", _INPUTS)

    def made(self, key: str = "0") -> str:
        """The name of an output."""
        return self.fresh(f"out{key}", _OUTPUTS)

    def size(self, key: str) -> str:
        """The name of a size's parameter."""
        return self.fresh(f"size {key}", _COUNTS[key])

    # ------------------------------------------------------------ parameters

    def pointer_in(self, name: str, type_: str | None = None) -> str:
        """The declaration of an input."""
        t = type_ or self.value
        return self.chance.choice(
            (
                f"const {t} *{self.restrict} {name}",
                f"{t} const*{self.restrict} {name}",
                f"const {t} *{self.restrict} {name}",
                f"const {t} {name}[]" if not self.restrict else f"const {t} *{self.restrict} {name}",
            )
        )

    def pointer_out(self, name: str, type_: str | None = None) -> str:
        """The declaration of an output."""
        return f"{type_ or self.value} *{self.restrict_out} {name}"

    def scalar(self, name: str, type_: str | None = None) -> str:
        """The declaration of a value."""
        kinds = ("int", "int", "int", "unsigned int", "size_t", "long long") if type_ is None else (type_,)
        return ("const " if self.const_values else "") + f"{self.chance.choice(kinds)} {name}"

    # ------------------------------------------------------------ values

    def load(self, place: str) -> str:
        """The value at a place, as it is reckoned with."""
        return f"__half2float({place})" if self.el == "__half" else place

    def store(self, place: str, value: str) -> str:
        """A statement that stores a value."""
        return f"{place} = __float2half({value});" if self.el == "__half" else f"{place} = {value};"

    def number(self, value: str) -> str:
        """A literal of the type that is reckoned in."""
        if self.acc == "int":
            return value.split(".")[0]
        if self.acc == "double":
            return value
        return self.chance.choice((f"{value}f", f"{value}f", value if self.value == self.el else f"{value}f"))

    def call(self, function: str) -> str:
        """A function of the maths library for the type, such as 'exp'."""
        return function + ("f" if self.acc == "float" else "")

    def larger(self, best: str, value: str) -> list[str]:
        """Statements that raise ``best`` to ``value``."""
        longest = f"{best} = {best} > {value} ? {best} : {value};"
        known = (
            f"{best} = max({best}, {value});"
            if self.acc == "int"
            else f"{best} = {self.call('fmax')}({best}, {value});"
        )
        return self.chance.choice(
            (
                [longest],
                [known],
                [f"if ({value} > {best}) {best} = {value};"],
                [f"if ({best} < {value})", "{", f"    {best} = {value};", "}"],
            )
        )

    def add(self, total: str, value: str) -> str:
        """A statement that adds."""
        return self.chance.choice((f"{total} += {value};", f"{total} = {total} + {value};", f"{total} += ({value});"))

    # ------------------------------------------------------------ shapes of code

    def thread(self, name: str, axis: str = "x") -> list[str]:
        """Declares the thread's global id along an axis."""
        plain = f"blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis}"
        ways = [
            plain,
            plain,
            f"threadIdx.{axis} + blockIdx.{axis} * blockDim.{axis}",
            f"blockDim.{axis} * blockIdx.{axis} + threadIdx.{axis}",
        ]
        way = self.chance.randrange(8)
        if way == 0:
            self.prelude.append(f"#define GLOBAL_{axis.upper()} ({plain})")
            return [f"const {self.loop_index} {name} = GLOBAL_{axis.upper()};"]
        if way == 1:
            self.prelude.append(f"__device__ __forceinline__ int global_{axis}() {{ return {plain}; }}")
            return [f"{self.loop_index} {name} = global_{axis}();"]
        if way == 2:
            return [
                f"int t{axis} = threadIdx.{axis}, b{axis} = blockIdx.{axis};",
                f"{self.loop_index} {name} = b{axis} * blockDim.{axis} + t{axis};",
            ]
        const = self.chance.choice(("", "const "))
        return [f"{const}{self.index} {name} = {self.chance.choice(ways)};"]

    def guarded(self, pairs: Sequence[tuple[str, str]], body: list[str]) -> list[str]:
        """The body for threads whose ids are below their sizes."""
        inside = " && ".join(f"{i} < {n}" for i, n in pairs)
        outside = " || ".join(f"{i} >= {n}" for i, n in pairs)
        way = self.chance.randrange(5)
        if way == 0:
            return [f"if ({outside}) return;", *body]
        if way == 1:
            return [f"if ({outside})", "    return;", "", *body]
        if way == 2:
            return [f"if (!({inside})) {{ return; }}", *body]
        return [f"if ({inside})" + " {", *indent(body), "}"]

    def loop(self, var: str, stop: str, body: list[str], start: str = "0", step: str = "1") -> list[str]:
        """A counted loop."""
        t = self.loop_index
        one = step == "1"
        forward = (f"++{var}" if not self.post else f"{var}++") if one else f"{var} += {step}"
        way = self.chance.randrange(7)
        if way == 0:
            counted = [f"{t} {var} = {start};", f"while ({var} < {stop}) {{", *indent(body), f"    {forward};", "}"]
            return ["{", *indent(counted), "}"]
        head = f"for ({t} {var} = {start}; {var} < {stop}; {forward})"
        if way == 1 and one:
            head = f"for ({t} {var} = {start}; {var} < {stop}; {var} += 1)"
        if way == 2:
            return [self.chance.choice(("#pragma unroll 4", "#pragma unroll")), head + " {", *indent(body), "}"]
        if way == 3 and len(body) == 1 and body[0].endswith(";"):
            return [head, "    " + body[0]]
        return [head + " {", *indent(body), "}"]

    def scoped(self, make: Callable[[], list[str]]) -> list[str]:
        """Statements in a block of their own, so that names can come again."""
        return ["{", *indent(make()), "}"]
