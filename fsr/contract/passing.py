"""Whether what a launch passes is as wide as what its kernel takes: else the device reads bytes that nobody wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fsr.contract.model import Argument
from fsr.hardware.c_types import BY_DTYPE
from fsr.records import Launch, Plan, Role, ScalarArgument
from fsr.source.file import KernelFile
from fsr.source.signature import Parameter, Signature, signature


def plan_misfit(file: KernelFile, plan: Plan, args: Iterable[Argument]) -> str:
    """:func:`misfit` of the first launch of a plan that has one; '' when all fit. ``args``: the contract's. Raises
    SourceError where a kernel's head cannot be read."""
    dtypes = scalar_dtypes(args)
    found = (misfit(launch, signature(file, launch.entry), dtypes) for launch in plan.launches)
    return next(filter(None, found), "")


def scalar_dtypes(args: Iterable[Argument]) -> dict[str, str]:
    """The types of a contract's scalars by name."""
    return {a.name: a.dtype for a in args if a.role is Role.SCALAR}


def misfit(launch: Launch, taken: Signature, dtypes: Mapping[str, str]) -> str:
    """What is wrong with the first argument that does not fit its parameter, in words; '' when all do.

    ``dtypes``: of the contract's scalars by name; other names are buffers. Types that are not known fit anything."""
    if len(launch.args) != len(taken.params):
        return f"{taken.kernel} takes {len(taken.params)} arguments and is launched with {len(launch.args)}"
    for arg, param in zip(launch.args, taken.params, strict=True):
        dtype = arg.dtype if isinstance(arg, ScalarArgument) else dtypes.get(arg)
        told = "a number" if isinstance(arg, ScalarArgument) else f"{arg!r}"
        why = _buffer_misfit(param) if dtype is None else _scalar_misfit(dtype, param)
        if why:
            return f"{taken.kernel} takes {param.name} as {param.type!r}{why} and is passed {told}" + (
                f" as {dtype} ({BY_DTYPE[dtype].bytes} bytes)" if dtype is not None else ", a buffer"
            )
    return ""


def _buffer_misfit(param: Parameter) -> str:
    return "" if param.pointer or param.dtype is None else ", which is no pointer,"


def _scalar_misfit(dtype: str, param: Parameter) -> str:
    """A number passed by value: as wide, and both whole or both floating."""
    if param.pointer:
        return ", a pointer,"
    if param.dtype is None:
        return ""
    width = BY_DTYPE[param.dtype].bytes * param.lanes
    if width == BY_DTYPE[dtype].bytes and ("float" in dtype) == ("float" in param.dtype):
        return ""
    return f" ({param.dtype}{f' times {param.lanes}' if param.lanes > 1 else ''}, {width} bytes)"
