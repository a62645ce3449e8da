"""A kernel with its contract as it is written."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.kernels.style import NUMPY, Style, indent


@dataclass
class Written:
    """A kernel as it grows. ``sizes``: name to the line of its limits; ``args``: name to its contract."""

    style: Style
    params: list[str] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    sizes: dict[str, str] = field(default_factory=dict)
    args: dict[str, str] = field(default_factory=dict)
    grid: str = "1"
    block: str = "128"
    tolerance: str = ""
    aliasing: str = ""
    plan: str = ""
    before: str = ""

    def size(self, key: str, low: int = 1, high: int = 4096, timed: int = 512) -> str:
        """A size with a parameter of its name."""
        name = self.style.size(key)
        self.sizes[name] = f"{{min = {low}, max = {high}, timed = {timed}}}"
        return name

    def takes(self, name: str, shape: str, type_: str | None = None, more: str = "") -> str:
        """An input."""
        self.params.append(self.style.pointer_in(name, type_))
        self.args[name] = f'{{role = "in", shape = [{shape}], dtype = "{NUMPY[type_ or self.style.el]}"{more}}}'
        return name

    def gives(self, name: str, shape: str, type_: str | None = None, role: str = "out", more: str = "") -> str:
        """An output."""
        self.params.append(self.style.pointer_out(name, type_))
        self.args[name] = f'{{role = "{role}", shape = [{shape}], dtype = "{NUMPY[type_ or self.style.el]}"{more}}}'
        return name

    def counts(self, *names: str, type_: str | None = None) -> None:
        """Sizes as parameters, of the given type or each of its own."""
        for name in names:
            self.params.append(self.style.scalar(name, type_))
            self.args[name] = f'{{value = "{name}"}}'

    def scalar(self, name: str, low: str, high: str) -> str:
        """A value of the type that is reckoned in."""
        kind = self.style.acc
        self.params.append(self.style.scalar(name, kind))
        self.args[name] = f'{{role = "scalar", dtype = "{NUMPY[kind]}", low = "{low}", high = "{high}"}}'
        return name

    def text(self) -> str:
        """The file."""
        style = self.style
        macros = style.macros(" ".join([*style.prelude, *style.template, *self.params, *self.body, self.before]))
        style.prelude += [f"#define {name} {style.chance.choice((2, 4, 32))}" for name in macros]
        used = [f'static_assert({" + ".join(macros)} > 0, "");'] if macros else []  # else the reader leaves them out
        name = style.chance.choice(("k", "kernel", "compute", "run_kernel", "op_kernel"))
        entry = name + (f"<{', '.join(style.template_args)}>" if style.template_args else "")
        lines = [f'entry = "{entry}"', *([f"aliasing = {self.aliasing}"] if self.aliasing else []), "[sizes]"]
        lines += [f"{n} = {limits}" for n, limits in self.sizes.items()]
        lines += ["[args]", *(f"{n} = {a}" for n, a in self.args.items())]
        lines += self.plan.replace("ENTRY", entry).splitlines() or [
            "[launch]",
            f"grid = {self.grid}",
            f"block = {self.block}",
        ]
        lines += ["[tolerance]", self.tolerance] if self.tolerance else []
        contract = "\n".join(["// /// fsr", *(f"// {line}" for line in lines), "// ///"])
        template = f"template <{', '.join(style.template)}>\n" if style.template else ""
        params = style.chance.choice((", ", ",\n    ")).join(self.params)
        prelude = "\n".join(dict.fromkeys(style.prelude))
        return (
            f"{contract}\n{prelude}\n{self.before}\n{template}__global__ void {name}({params})\n{{\n"
            + "\n".join(indent([*used, *self.body]))
            + "\n}\n"
        )
