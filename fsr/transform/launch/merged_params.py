"""The parameters of a kernel that stands for several launches, one for all that pass the same."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from fsr.analysis.types import bare
from fsr.records import Launch, ScalarArgument
from fsr.source.entry import function_name
from fsr.source.form import KernelForm, Param
from fsr.source.tokens import tokenize
from fsr.source.walk import fresh


class MergedParams:
    """Parameters of the new kernel, and what is passed for them. ``taken``: names in use."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)
        self._own: set[str] = set()  # names of its parameters and numbers
        self._params: dict[tuple[str, str, str], Param] = {}
        self._sizes: dict[str, str] = {}  # size to what the kernel calls it
        self._args: list[str | ScalarArgument] = []

    def fresh(self, wanted: str) -> str:
        """A name that nothing has yet."""
        found = fresh(wanted, self._taken)
        self._taken.add(found)
        return found

    def named(self, wanted: str, other: str) -> str:
        """A name that a kernel of before has for it, where no other has it; else another."""
        found = wanted if wanted not in self._own else self.fresh(other)
        self._own.add(found)
        return found

    def param(self, param: Param, arg: str | ScalarArgument) -> str:
        """The kernel's parameter for what a launch passes; one for all that pass the same."""
        kind = bare(param.type)
        key = (arg, kind, "*" if param.is_pointer else "") if isinstance(arg, str) else (arg.value, kind, arg.dtype)
        known, const = self._params.get(key), "const" in param.type.split("*")[0]
        if known is None:
            name = self.named(param.name, arg if isinstance(arg, str) else param.name)
            type_ = f"{'const ' if const else ''}{kind} *" if param.is_pointer else kind
            self._args.append(arg)
            known = self._params[key] = Param(type_, name)
        elif param.is_pointer and not const:
            self._params[key] = replace(known, type=f"{kind} *")
        return known.name

    def size(self, name: str) -> str:
        """What the kernel calls a size."""
        if name not in self._sizes:
            self._sizes[name] = self.fresh(f"size_{name}")
        return self._sizes[name]

    @property
    def params(self) -> tuple[Param, ...]:
        """All of them, sizes last."""
        return (*self._params.values(), *(Param("long long", name) for name in self._sizes.values()))

    @property
    def args(self) -> tuple[str | ScalarArgument, ...]:
        """What is passed for them."""
        return (*self._args, *(ScalarArgument("int64", size) for size in self._sizes))


def still_needed(source: str, kernel: KernelForm, launches: Iterable[Launch]) -> bool:
    """Whether one of the launches that are left, or something else in the text, mentions a kernel."""
    launched = {function_name(one.entry) for one in launches}
    mentioned = sum(t.text == kernel.name for t in tokenize(source))
    return kernel.name in launched or mentioned > 1
