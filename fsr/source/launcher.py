"""The launcher header, ``kernel.fsr.cuh``: the winner's launches behind the original kernel's arguments."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Protocol

from fsr.expressions import names
from fsr.hardware.c_types import BY_DTYPE
from fsr.hardware.limits import STATIC_SHARED_BYTES
from fsr.records import NULL, STEP, Launch, Plan, Role, Scratch
from fsr.source.entry import function_name, template_arguments
from fsr.source.flattening import FlatKernel
from fsr.source.form import KernelForm
from fsr.source.launched_structures import TakenStructures, structures_of
from fsr.source.promises import PromisedArgument, Promises, conditions, in_c


class LaunchedContract(Promises, Protocol):
    """The part of a contract that a launcher needs. plan: the original's."""

    @property
    def entry(self) -> str: ...
    @property
    def plan(self) -> Plan: ...
    @property
    def structures(self) -> Sequence[FlatKernel]: ...


Forms = Mapping[str, KernelForm]


def launcher_header(name: str, contract: LaunchedContract, plan: Plan, forms: Forms | None = None) -> str:
    """The text of a header with ``inline cudaError_t fsr_launch_NAME(arguments..., sizes..., cudaStream_t stream)``.

    ``name``: the original kernel's entry. ``forms``: the kernels that are launched, the original among them, by name:
    buffers of vectors and records are passed as it takes them (``float4 *``), and what a kernel takes otherwise is cast
    for it (a ``float *`` that is only read). Sizes come from the scalar arguments that hold them; those that none holds
    become parameters. Nothing is allocated unless the plan has scratch, which is taken from the stream's memory pool.
    Where the arguments are not what the contract promises, the original is launched as it always was.
    """
    known = _known_sizes(contract)
    used_sizes = _sizes_used(plan) | _sizes_used(contract.plan)
    wanted = sorted(used_sizes - set(known))
    forms = forms or {}
    types = {a.name: _own_type(a, contract.plan, forms) or _c_type(a) for a in contract.passed()}
    taken = structures_of(contract)
    parameters = [text for a in contract.passed() if (text := taken.parameter(a.name, types[a.name]))]
    parameters += [f"long long {size}" for size in wanted]
    promised = conditions(contract, known | dict.fromkeys(wanted, ""))
    needed = used_sizes | {size for size in known if any(f"{size}_size" in text for text in promised)}
    body = [f"    {line}" for line in taken.members(types)]
    body += [f"    const long long {size}_size = {source};" for size, source in known.items() if size in needed]
    body += [f"    const long long {size}_size = {size};" for size in wanted]
    body += ["    cudaError_t status = cudaSuccess;"]
    if promised:
        original = [f"    {line}" for line in _carried_out(contract.plan, types, forms, taken)]
        body += ["    const bool promised = " + "\n        && ".join(promised) + ";"]
        body += ["    if (!promised) {", *original, "        return status;", "    }"]
    body += _carried_out(plan, types, forms, taken)
    used = {a.dtype for a in contract.passed()} | {s.dtype for s in (*plan.scratch, *contract.plan.scratch)}
    headers = ["cuda_runtime.h", *sorted(BY_DTYPE[d].header for d in used if BY_DTYPE[d].header)]
    return "\n".join(
        [
            *_comment(name, wanted, plan),
            "#pragma once",
            *(f"#include <{header}>" for header in headers),
            "",
            f"inline cudaError_t {launcher_name(name)}({', '.join([*parameters, 'cudaStream_t stream'])})",
            "{",
            *body,
            "    return status;",
            "}",
            "",
        ]
    )


def _carried_out(plan: Plan, types: Mapping[str, str], forms: Forms, taken: TakenStructures) -> list[str]:
    """The statements that run a plan and leave what happened in ``status``. ``types``: of the arguments."""
    lines = [line for scratch in plan.scratch for line in _allocation(scratch)]
    made = {s.name: f"{BY_DTYPE[s.dtype].spelling} *" for s in plan.scratch if s.name not in types}
    for launch in plan.launches:
        passed = list(_passed(launch, {**types, **made}, made, forms))
        lines += _launch(launch, taken.passed(launch, passed))
    for scratch in reversed(plan.scratch):
        lines.append(f"    if ({scratch.name}_buffer != nullptr) {{")
        lines.append(f"        const cudaError_t freed = cudaFreeAsync({scratch.name}_buffer, stream);")
        lines += ["        if (status == cudaSuccess) status = freed;", "    }"]
    return lines


def launcher_name(entry: str) -> str:
    """``fsr_launch_softmax`` of ``softmax<256>``."""
    return "fsr_launch_" + function_name(entry)


def _comment(name: str, wanted: Sequence[str], plan: Plan) -> list[str]:
    lines = [
        f"// Launches what replaces {name}. Include it after the kernels, then call {launcher_name(name)}(...)",
        f"// where {name}<<<...>>>(...) stood: the same arguments, then the stream. Where sizes, alignments or",
        "// overlaps are not what the contract promises, it launches the original.",
    ]
    if wanted:
        listed = ", ".join(wanted)
        lines.append(f"// The grid depends on sizes that no argument holds; pass them before the stream: {listed}.")
    if plan.scratch:
        lines.append(
            "// Takes scratch memory from the stream's pool and gives it back: " + _scratch_text(plan.scratch) + "."
        )
    return lines


def _scratch_text(scratch: Sequence[Scratch]) -> str:
    return ", ".join(f"{s.count} x {s.dtype}" for s in scratch)


def _known_sizes(contract: LaunchedContract) -> dict[str, str]:
    """Sizes that a scalar argument holds as they are, with that argument."""
    found: dict[str, str] = {}
    for argument in contract.passed():
        if argument.role is Role.SCALAR and argument.value is not None and argument.value.isidentifier():
            found.setdefault(argument.value, argument.name)
    return found


def _sizes_used(plan: Plan) -> set[str]:
    texts = [launch.repeat for launch in plan.launches] + [s.count for s in plan.scratch]
    found = {n for text in texts for n in names(text)}
    for launch in plan.launches:
        values = (a.value for a in launch.args if not isinstance(a, str))
        own = {n for text in (*launch.shape, *values) for n in names(text)}
        found |= own - {STEP} if launch.repeated else own
    return found


def _c_type(argument: PromisedArgument) -> str:
    plain = BY_DTYPE[argument.dtype].spelling
    if argument.role is Role.SCALAR:
        return plain
    return f"const {plain} *" if argument.role is Role.IN else f"{plain} *"


def _parameters(launch: Launch, forms: Forms) -> dict[int, str]:
    """Position to pointer type, template parameters as the entry names them; without those that it leaves open."""
    form = forms.get(function_name(launch.entry))
    if form is None:
        return {}
    named = [name for _, name in form.template_parameters]
    given = dict(zip(named, template_arguments(launch.entry), strict=False))
    typed = {n: p.type for n, p in enumerate(form.params) if p.is_pointer}
    told = {n: re.sub(r"\w+", lambda word: given.get(word[0], word[0]), text) for n, text in typed.items()}
    return {n: told[n] for n, text in typed.items() if not (set(named) - set(given)) & set(re.findall(r"\w+", text))}


def _own_type(argument: PromisedArgument, plan: Plan, forms: Forms) -> str | None:
    """The type that the original takes a null pointer, or a buffer of vectors or records as; None where it takes the
    elements."""
    plain = BY_DTYPE[argument.dtype].spelling
    for launch in plan.launches if argument.role is not Role.SCALAR else ():
        for n, text in _parameters(launch, forms).items():
            named = launch.args[n] == argument.name if n < len(launch.args) else False
            if named and argument.role is Role.NULL:
                return text
            if named and (argument.layout is not None or _is_other(_pointed_to(text), plain)):
                return text
    return None


def _is_other(type_: str, plain: str) -> bool:
    """Whether it may be the name of a vector or a record."""
    return type_ != plain and re.fullmatch(r"\w+[1-4]", type_) is not None


def _pointed_to(pointer: str) -> str:
    return re.sub(r"\b(?:const|volatile|struct)\b|\*", "", pointer).strip()


def _allocation(scratch: Scratch) -> list[str]:
    kind, name = BY_DTYPE[scratch.dtype].spelling, f"{scratch.name}_buffer"
    lines = [
        f"    {kind} *{name} = nullptr;",
        f"    const size_t {scratch.name}_bytes = sizeof({kind}) * (size_t){in_c(scratch.count)};",
        f"    if (status == cudaSuccess && {scratch.name}_bytes > 0) {{",
        f"        status = cudaMallocAsync((void **)&{name}, {scratch.name}_bytes, stream);",
    ]
    if scratch.zeroed:
        lines.append(
            f"        if (status == cudaSuccess) status = cudaMemsetAsync({name}, 0, {scratch.name}_bytes, stream);"
        )
    return [*lines, "    }"]


def _passed(launch: Launch, types: Mapping[str, str], scratch: Container[str], forms: Forms) -> Iterator[str]:
    """The arguments of a launch: cast where the kernel takes another pointer, or one that it could write through."""
    form, told = forms.get(function_name(launch.entry)), _parameters(launch, forms)
    for n, arg in enumerate(launch.args):
        if not isinstance(arg, str):
            yield f"({BY_DTYPE[arg.dtype].spelling}){in_c(arg.value)}"
            continue
        if arg == NULL and arg not in types:
            yield "nullptr"
            continue
        given, text = types.get(arg, ""), f"{arg}_buffer" if arg in scratch else arg
        wanted = told.get(n, given)
        if form is not None and n not in told and n < len(form.params) and "const" not in form.params[n].type:  # open
            wanted = given.removeprefix("const ")
        alike = "".join(wanted.split()) in ("".join(given.split()), "const" + "".join(given.split()))
        yield text if not given.endswith("*") or alike else f"({wanted}){text}"


def _launch(launch: Launch, passed: Sequence[str]) -> list[str]:
    block = ", ".join(f"(unsigned)({in_c(t)})" for t in launch.block)
    made = [
        "if (status == cudaSuccess && grid_x > 0 && grid_y > 0 && grid_z > 0) {",
        "    const dim3 grid((unsigned)grid_x, (unsigned)grid_y, (unsigned)grid_z);",
        f"    {launch.entry}<<<grid, dim3({block}), shared, stream>>>({', '.join(passed)});",
        "    status = cudaGetLastError();",
        "}",
    ]
    if launch.repeated:
        inner = [*_shape(launch), *made] if launch.reshaped else made
        made = [
            f"const long long repeats = {in_c(launch.repeat)};",
            f"for (long long {STEP}_size = 0; {STEP}_size < repeats && status == cudaSuccess; {STEP}_size++) {{",
            *(f"    {line}" for line in inner),
            "}",
        ]
    lines = made if launch.reshaped else [*_shape(launch), *made]
    return ["    {", *(f"        {line}" for line in lines), "    }"]


def _shape(launch: Launch) -> list[str]:
    """Grid and shared bytes as variables."""
    lines = [f"const long long grid_{axis} = {in_c(text)};" for axis, text in zip("xyz", launch.grid, strict=True)]
    lines.append(f"const size_t shared = (size_t){in_c(launch.shared_bytes)};")
    if not (launch.shared_bytes.isdigit() and int(launch.shared_bytes) <= STATIC_SHARED_BYTES):
        lines.append(f"if (status == cudaSuccess && shared > {STATIC_SHARED_BYTES})")
        lines.append(f"    status = cudaFuncSetAttribute({_pointer(launch)},")
        lines.append("        cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);")
    return lines


def _pointer(launch: Launch) -> str:
    """The kernel as the argument of a runtime call."""
    return f"(const void *)&{launch.entry}"
