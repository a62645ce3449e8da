"""The fidelity corpus: small programs, one language or library feature each, and how they are run and compared.

A program is a .cu file whose kernel ``k(const In* x, Out* out, int n)`` reads one buffer and writes one. Its header:

    // words
    // fidelity: in=float32:special out=int32 ulp=0 [launch=4x64] [n=256] [outs=16] [shared=0] [abs=1e-6] [entry=k<3>]
    // numpy: expression        (optional) what comes out, from x, d (x as float64), i (0 .. n-1), n, np

``in`` names the dtype and a family of values, ``launch`` grid x block (three numbers each, commas between),
``outs`` the length of the output (n), ``ulp`` what is allowed between two devices and against the expression (0: the
same bits), ``abs`` an error that is allowed as well. Outputs start as zeros. Any two NaNs are equal.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fsr.backends.protocol import Buffer, Device
from fsr.backends.toolchain import Toolchain
from fsr.records import Candidate, CompileFailure, ConcreteLaunch, Dim3, Launch, Plan, Role, ScalarArgument, ScalarValue

Array = npt.NDArray[Any]

HERE = Path(__file__).parent
RECORDED = HERE / "recorded"
UNIT = 40  # programs compiled together: one start of the compiler serves them all


@dataclass(frozen=True)
class Program:
    """One program of the corpus."""

    name: str
    includes: tuple[str, ...]
    body: str
    in_dtype: str
    family: str
    out_dtype: str
    n: int
    outs: int
    grid: Dim3
    block: Dim3
    shared_bytes: int
    entry: str
    ulp: int
    abs_error: float
    expression: str | None

    def digest(self) -> str:
        """Changes with anything that changes the result."""
        shape = (self.in_dtype, self.family, self.out_dtype, self.n, self.outs, self.grid, self.block, self.entry)
        return hashlib.sha256(repr((self.includes, self.body, shape, self.shared_bytes)).encode()).hexdigest()[:16]

    def input(self) -> Array:
        """The input buffer: always the same values, on every machine."""
        return values(self.in_dtype, self.family, self.n, self.name)


def load_programs() -> list[Program]:
    """The corpus, by name. Raises ValueError naming a file whose header cannot be read."""
    return [read_program(path) for path in sorted((HERE / "programs").glob("*.cu"))]


def read_program(path: Path) -> Program:
    """One file. Raises ValueError."""
    lines = path.read_text().splitlines()
    head = [line for line in lines if line.startswith("// fidelity: ")]
    if len(head) != 1:
        raise ValueError(f"{path.name}: expected one line '// fidelity: in=... out=... ulp=...'")
    options = dict(word.split("=", 1) for word in head[0].removeprefix("// fidelity: ").split())
    expressions = [line.removeprefix("// numpy: ") for line in lines if line.startswith("// numpy: ")]
    dtype, _, family = options["in"].partition(":")
    n = int(options.get("n", 256))
    grid, _, block = options.get("launch", f"1x{n}").partition("x")
    return Program(
        name=path.stem,
        includes=tuple(line for line in lines if line.startswith("#include")),
        body="\n".join("" if line.startswith("#include") else line for line in lines),
        in_dtype=dtype, family=family, out_dtype=options["out"], n=n, outs=int(options.get("outs", n)),
        grid=_dim3(grid), block=_dim3(block), shared_bytes=int(options.get("shared", 0)),
        entry=f"fidelity_{path.stem}::{options.get('entry', 'k')}",
        ulp=int(options["ulp"]), abs_error=float(options.get("abs", 0)),
        expression=expressions[0] if expressions else None,
    )  # fmt: skip


def _dim3(text: str) -> Dim3:
    parts = [int(part) for part in text.split(",")]
    x, y, z = parts + [1] * (3 - len(parts))
    return x, y, z


# ---------------------------------------------------------------- values, from bits and exact arithmetic alone


def values(dtype: str, family: str, n: int, seed: str) -> Array:
    """``n`` values of a family; the same on every machine and with every NumPy."""
    blocks = (hashlib.sha256(f"{seed}/{k}".encode()).digest() for k in range(n // 2 + 1))
    words = np.frombuffer(b"".join(blocks), dtype="<u8")[: 2 * n].reshape(2, n)
    if family == "bfloat16":
        floats = _wide(words, "float32", 8)
        return (floats.view(np.uint32) >> 16).astype(np.uint16)
    if np.dtype(dtype).kind in "iu":
        return _integers(words, np.dtype(dtype), family)
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(_floats(words, dtype, family))


def _integers(words: Array, dtype: np.dtype[Any], family: str) -> Array:
    if family == "small":
        return (words[0] % np.uint64(100)).astype(dtype)
    if family == "medium":
        return ((words[0] % np.uint64(200_001)).astype(np.int64) - 100_000).astype(dtype)
    raw = (words[0] >> np.uint64(64 - 8 * dtype.itemsize)).astype(f"u{dtype.itemsize}").view(dtype).copy()
    limits = np.iinfo(dtype)
    extremes = np.array([limits.min, limits.max, 0, 1, limits.max - 1, limits.min + 1], dtype)
    raw[: len(extremes)] = extremes[: len(raw)]
    return raw


def _uniform(words: Array) -> Array:
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _wide(words: Array, dtype: str, reach: int) -> Array:
    exponent = (words[1] % np.uint64(2 * reach + 1)).astype(np.int64) - reach
    sign = np.where(words[1] >> np.uint64(63), -1.0, 1.0)
    return (sign * np.ldexp(1.0 + _uniform(words[0]), exponent)).astype(dtype)


def _floats(words: Array, dtype: str, family: str) -> Array:
    reach = {"float16": 8, "float32": 20, "float64": 60}[dtype]
    u = _uniform(words)
    match family:
        case "normal":
            return ((u[0] + u[1] - 1.0) * 3.0).astype(dtype)
        case "unit":
            return (np.floor(u[0] * 2**20) * 2.0**-20 + 2.0**-21).astype(dtype)
        case "small":
            return ((u[0] - 0.5) * 8.0).astype(dtype)
        case "angle":
            return ((u[0] - 0.5) * 200.0).astype(dtype)
        case "wide":
            return _wide(words, dtype, reach)
        case "positive":
            return np.abs(_wide(words, dtype, reach))
        case "tiny":
            return (np.ldexp(u[0] - 0.5, -123)).astype(dtype)
        case "halves":
            return (np.floor(u[0] * 200.0) * 0.5 - 50.0).astype(dtype)
        case "halfrange":
            return _wide(words, dtype, 26)
        case "special" | "nonzero":
            return _special(_wide(words, dtype, reach), family == "nonzero")
    raise ValueError(f"unknown family {family!r}")


_SPECIAL = (
    np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -1.5, 0.25, -0.75, 3.4028234663852886e38, 65504.0, 65520.0,
    2.0**-149, -(2.0**-149), 2.0**-126, 2.0**-24, 2.0**-25, 2.0**31, 2.0**31 - 128, -(2.0**31), -(2.0**31) - 256,
    2.0**32, 2.0**32 - 256, 2.0**63, 2.0**63 - 2.0**39, -(2.0**63), 2.0**64, 2.0**64 - 2.0**40, 1e30, -1e30,
    2147483647.0, 2147483647.5, 4294967295.0, 16777217.0, 32767.5, -32768.5, 0.0, -0.0,
)  # fmt: skip


def _special(wide: Array, no_zeros: bool) -> Array:
    """Special values spread among others, so that their mirror images (n - 1 - i) are other special ones."""
    found = wide.copy()
    chosen = [v for v in _SPECIAL if v != 0.0] if no_zeros else list(_SPECIAL)
    with np.errstate(over="ignore", under="ignore"):
        special = np.array(chosen).astype(wide.dtype)
    if no_zeros:
        special = special[special != 0]
    found[: len(special)] = special[: len(found)]
    found[-2 * len(special) :: 2] = np.roll(special, 5)[: len(found[-2 * len(special) :: 2])]
    return found


# ---------------------------------------------------------------- running


def units(programs: Iterable[Program]) -> Iterator[list[Program]]:
    """Programs to compile together: those with heavy headers, and those that need Hopper, apart from the rest."""
    groups: dict[str, list[Program]] = {"plain": [], "heavy": [], "Hopper": []}
    for program in programs:
        heavy = any("cooperative" in line for line in program.includes)
        groups["Hopper" if "wgmma." in program.body else "heavy" if heavy else "plain"].append(program)
    for group in groups.values():
        yield from (group[start : start + UNIT] for start in range(0, len(group), UNIT))


def unit_candidate(programs: list[Program]) -> Candidate:
    """One candidate of many programs, each in a namespace of its own and launched once."""
    includes = dict.fromkeys(line for program in programs for line in program.includes)
    bodies = [f"namespace fidelity_{p.name} {{\n{p.body}\n}}" for p in programs]
    launches = tuple(
        Launch(
            p.entry, (str(p.grid[0]), str(p.grid[1]), str(p.grid[2])),
            (str(p.block[0]), str(p.block[1]), str(p.block[2])), str(p.shared_bytes),
            (f"{p.name}.x", f"{p.name}.out", ScalarArgument("int32", str(p.n))),
        )
        for p in programs
    )  # fmt: skip
    return Candidate("\n".join([*includes, *bodies]) + "\n", Plan(launches))


def run_unit(toolchain: Toolchain, device: Device, programs: list[Program]) -> dict[str, Array]:
    """Outputs by program name. Raises AssertionError with the compiler's log, and DeviceFault."""
    image = toolchain.compile(unit_candidate(programs), timeout_s=300.0)
    assert not isinstance(image, CompileFailure), image.log
    launches, buffers = [], []
    for p in programs:
        args = (f"{p.name}.x", f"{p.name}.out", ScalarValue("int32", p.n))
        launches.append(ConcreteLaunch(p.entry, p.grid, p.block, p.shared_bytes, args))
        buffers.append(Buffer(f"{p.name}.x", p.input(), Role.IN))
        buffers.append(Buffer(f"{p.name}.out", np.zeros(p.outs, p.out_dtype), Role.OUT))
    with device.prepare(image, launches, buffers) as prepared:
        prepared.reset()
        prepared.run(timeout_s=60.0)
        outputs, wrong = prepared.read(), prepared.violations()
    assert not wrong, wrong
    return {p.name: outputs[f"{p.name}.out"] for p in programs}


# ---------------------------------------------------------------- comparing


def difference(program: Program, got: Array, want: Array) -> str | None:
    """None when the two agree within what the program allows, else the worst element in words."""
    with np.errstate(all="ignore"):
        apart = ulp_distance(got, want)
        allowed = apart <= program.ulp
        if program.abs_error and got.dtype.kind == "f":
            allowed |= np.abs(got.astype(np.float64) - want.astype(np.float64)) <= program.abs_error
    if allowed.all():
        return None
    worst = int(np.argmax(np.where(allowed, 0.0, apart)))
    count = int((~allowed).sum())
    return (
        f"{program.name}: {count} of {len(got)} differ, worst at [{worst}]: {got[worst]!r} against {want[worst]!r}, "
        f"{apart[worst]:g} ulp apart, {program.ulp} allowed"
    )


def ulp_distance(a: Array, b: Array) -> npt.NDArray[np.float64]:
    """How many representable numbers apart, elementwise; 0 for two NaNs, infinite for a NaN and a number; zeros of
    different sign are 0.5 apart. Integers: the absolute difference."""
    if a.dtype.kind != "f":
        return np.abs(a.astype(np.float64) - b.astype(np.float64)) + (a != b)
    bits = a.dtype.itemsize * 8
    whole_a, whole_b = (v.view(f"i{a.dtype.itemsize}").astype(object) for v in (a, b))
    lowest = -(2 ** (bits - 1))
    line_a = np.where(whole_a < 0, lowest - whole_a, whole_a)
    line_b = np.where(whole_b < 0, lowest - whole_b, whole_b)
    apart = np.abs(line_a - line_b).astype(np.float64)
    apart[(apart == 0) & (np.signbit(a) != np.signbit(b))] = 0.5
    apart[np.isnan(a) != np.isnan(b)] = np.inf
    apart[np.isnan(a) & np.isnan(b)] = 0.0
    return apart


def expected(program: Program) -> Array | None:
    """What the program's NumPy expression gives, in the output's dtype and length; None without one."""
    if program.expression is None:
        return None
    x = program.input()
    names: dict[str, Any] = {"np": np, "x": x, "i": np.arange(program.n), "n": program.n}
    with np.errstate(all="ignore"):
        names["d"] = x.astype(np.float64)
        result = np.asarray(eval(program.expression, names))  # the corpus is our own
        return np.broadcast_to(result.ravel(), (program.outs,)).astype(program.out_dtype)


# ---------------------------------------------------------------- recordings


def save_recording(
    path: Path, device: str, toolchain: str, programs: Iterable[Program], outs: Mapping[str, Array]
) -> None:
    """Write what a device gave."""
    stored = {
        p.name: {
            "program": p.digest(),
            "input": hashlib.sha256(p.input().tobytes()).hexdigest()[:16],
            "out": base64.b64encode(zlib.compress(np.ascontiguousarray(outs[p.name]).tobytes(), 9)).decode(),
        }
        for p in programs
    }
    head = {"device": device, "toolchain": toolchain, "programs": stored}
    path.write_text(json.dumps(head, indent=1, sort_keys=True) + "\n")


def load_recording(path: Path) -> dict[str, dict[str, str]]:
    """Recorded entries by program name."""
    programs: dict[str, dict[str, str]] = json.loads(path.read_text())["programs"]
    return programs


def recorded_output(program: Program, recording: Mapping[str, Mapping[str, str]]) -> Array | None:
    """What the device gave for exactly this program and input, or None when it was not recorded."""
    entry = recording.get(program.name)
    if entry is None or entry["program"] != program.digest():
        return None
    assert entry["input"] == hashlib.sha256(program.input().tobytes()).hexdigest()[:16], "the inputs are not the same"
    raw = zlib.decompress(base64.b64decode(entry["out"]))
    return np.frombuffer(raw, dtype=program.out_dtype)
