"""The frozen values that pass between stages. No I/O here; identity (hashes) is in :mod:`fsr.identity`.

Units stand in names: ``_ns``, ``_bytes``, ``_s``. Dimensions are (x, y, z). Everything here pickles, and
everything that reaches disk has a JSON form through :mod:`fsr.identity`.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fsr.features.schema import Features

Dim3 = tuple[int, int, int]
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class Status(enum.IntEnum):
    """What became of a candidate, from worst to best. Failure is a status, never a number."""

    INVALID = 0  # refused by the static guard, or not launchable on this device
    COMPILE_FAILED = 1
    CRASHED = 2  # illegal access, trap, worker death
    TIMED_OUT = 3  # hang in compiling or running
    WRONG = 4  # a test failed; evidence holds the shrunk case
    SLOW = 5  # right on the smoke case, then clearly slower than the incumbent: no full tests
    SCREENED = 6  # right on the smoke case and timed; full tests wait until it is built on or may win
    CORRECT = 7  # all search-time tests passed and it was timed
    PROMOTED = 8  # held-out tests, sanitizers and the paired final passed: a win


class Role(enum.StrEnum):
    """What a kernel does with an argument."""

    IN = "in"
    OUT = "out"
    INOUT = "inout"
    SCALAR = "scalar"
    NULL = "null"  # a pointer that callers pass as null


class Basis(enum.StrEnum):
    """Where a time comes from. A predicted time is never stored or served as a measured one."""

    MEASURED = "measured"
    PREDICTED = "predicted"


# ---------------------------------------------------------------- what is proposed

STEP = "step"  # in the scalar arguments of a repeated launch: the number of the repetition, from 0
NULL = "null"  # among the arguments of a launch: a null pointer, unless an argument or scratch buffer is called so


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A launch argument that is no contract argument: a typed size expression."""

    dtype: str
    value: str


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel launch of a plan. Grid, block and shared_bytes are size expressions (fsr.expressions).

    ``entry`` is a name expression as NVRTC takes it: ``softmax``, ``gemm<16, 4>``, ``ns::k``. ``args`` are,
    in the kernel's parameter order, names of contract arguments or of scratch buffers, :data:`NULL`, or
    ScalarArguments.
    ``repeat``, a size expression too: so many times in a row it is launched; where that is not "1", ScalarArguments,
    grid, block and shared_bytes may name :data:`STEP`, which counts the repetitions from 0.
    """

    entry: str
    grid: tuple[str, str, str]
    block: tuple[str, str, str]
    shared_bytes: str
    args: tuple[str | ScalarArgument, ...]
    repeat: str = "1"

    @property
    def repeated(self) -> bool:
        """Whether it may be launched more than once, or not at all."""
        return self.repeat.strip() != "1"

    @property
    def shape(self) -> tuple[str, ...]:
        """Grid, block and shared_bytes."""
        return (*self.grid, *self.block, self.shared_bytes)

    @property
    def reshaped(self) -> bool:
        """Whether its repetitions may have different shapes."""
        return self.repeated and any(re.search(rf"\b{STEP}\b", text) for text in self.shape)


@dataclass(frozen=True, slots=True)
class Scratch:
    """A device buffer of the plan's own. When ``zeroed``, the launcher clears it before each run of the plan,
    inside the timed region; otherwise its contents are undefined at the start of every run."""

    name: str
    dtype: str
    count: str
    zeroed: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """Launches in order on one stream, the scratch buffers they share, and compiler flags (NVRTC spelling)."""

    launches: tuple[Launch, ...]
    scratch: tuple[Scratch, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def entries(self) -> tuple[str, ...]:
        """The distinct entries that it launches, in order of first launch."""
        return tuple(dict.fromkeys(launch.entry for launch in self.launches))


@dataclass(frozen=True, slots=True)
class Candidate:
    """Device code and a launch plan: the unit of search.

    ``source`` is a self-contained device translation unit (the kernel, its helpers, macros and local
    includes already cut out of the user's file). ``actions`` are the stable names of the actions that led
    here from the baseline, oldest first; the baseline has none.
    """

    source: str
    plan: Plan
    actions: tuple[str, ...] = ()
    language: str = "cuda"


# ---------------------------------------------------------------- what is compiled and run


@dataclass(frozen=True, slots=True)
class Resources:
    """What one entry needs, as its compiler reports it. None: that compiler cannot tell."""

    registers: int | None = None
    spill_bytes: int | None = None
    static_shared_bytes: int | None = None
    local_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ParameterBlock:
    """Where the arguments of a launch lie among the parameters of a kernel that takes structures, whose members are
    arguments of their own. ``offsets``: of each argument, in bytes from the first parameter. ``parameters``: start and
    bytes of each parameter."""

    offsets: tuple[int, ...]
    parameters: tuple[tuple[int, int], ...]

    def packed(self, arguments: Sequence[bytes]) -> bytes:
        """All parameters, each argument in its place; what none fills is 0."""
        block = bytearray(max(start + size for start, size in self.parameters))
        for offset, raw in zip(self.offsets, arguments, strict=True):
            block[offset : offset + len(raw)] = raw
        return bytes(block)


@dataclass(frozen=True, slots=True)
class Image:
    """A binary: ``kind`` 'cubin' (data is the cubin) or 'host' (a shared object for the host device).

    ``symbols`` maps each entry expression of the plan to its lowered symbol; ``resources`` is keyed by entry
    expression too; ``blocks`` too, of those kernels that take structures.
    """

    kind: str
    arch: str
    data: bytes = field(repr=False)
    symbols: Mapping[str, str]
    resources: Mapping[str, Resources]
    log: str = ""
    compile_s: float = 0.0
    instrumented: bool = False
    blocks: Mapping[str, ParameterBlock] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CompileFailure:
    """Why a candidate did not become an image: an ordinary outcome."""

    log: str
    line: int | None = None  # 1-based, in Candidate.source
    timed_out: bool = False


@dataclass(frozen=True, slots=True)
class ScalarValue:
    """A scalar argument ready to launch; dtype is a NumPy name, value its Python number."""

    dtype: str
    value: int | float


NULL_POINTER = ScalarValue("uint64", 0)  # a null pointer as a launch passes it


@dataclass(frozen=True, slots=True)
class ConcreteLaunch:
    """A launch for concrete sizes. ``args``: buffer names (str) or ScalarValues, in parameter order; NULL_POINTER for a
    null pointer. ``times``: how
    many launches of the plan it stands for; more than one only where a recording is of some of them."""

    entry: str
    grid: Dim3
    block: Dim3
    shared_bytes: int
    args: tuple[str | ScalarValue, ...]
    times: int = 1


class CaseKind(enum.StrEnum):
    """Why a case is run; a case's name is for people and decides nothing."""

    SMOKE = "smoke"
    SEARCH = "search"
    NAMED = "named"  # at a size that the candidate itself names: tested whatever it costs
    LARGE = "large"  # at the upper end of the sizes
    HELD_OUT = "held-out"
    TIMED = "timed"
    HELD_OUT_TIMED = "held-out timed"

    @property
    def timed(self) -> bool:
        """Whether its sizes are for timing: too large for answers that take many runs of the original."""
        return self in (CaseKind.TIMED, CaseKind.HELD_OUT_TIMED)

    @property
    def unusual(self) -> bool:
        """Whether its sizes may cost more than an ordinary test, so that the original is asked first."""
        return self in (CaseKind.NAMED, CaseKind.LARGE)


Sizes = tuple[tuple[str, int], ...]
"""The sizes of a case, each with its name."""


@dataclass(frozen=True, slots=True)
class Case:
    """One test: concrete sizes, a value family, a seed, and the pointer alignment to test at.

    ``alignment_bytes`` 256 is what an allocator gives; smaller values place each buffer at an address that is
    a multiple of exactly that, as the contract allows; of ``apart`` only these, where there are any. ``aliased``:
    buffer arguments that share one memory in this case, as the contract allows; the first of them gives it its name.
    ``parts``: judged on what a few blocks write.
    """

    name: str
    sizes: Sizes
    family: str
    seed: int
    alignment_bytes: int = 256
    aliased: tuple[str, ...] = ()
    kind: CaseKind = CaseKind.SEARCH
    apart: tuple[str, ...] = ()
    parts: bool = False

    def size_map(self) -> dict[str, int]:
        """The sizes as a dictionary."""
        return dict(self.sizes)


# ---------------------------------------------------------------- what is found out


@dataclass(frozen=True, slots=True)
class DeviceInfo:
    """Identity of a device, all that a cache key needs. None: this device cannot tell."""

    vendor: str  # "nvidia", "amd", "host"
    name: str
    arch: str  # "sm_90", "gfx942"; for the host device the architecture of the CPU
    sm_count: int | None = None
    memory_bytes: int | None = None
    sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    l2_bytes: int | None = None
    power_limit_w: int | None = None
    driver: str | None = None
    runtime: str | None = None  # toolkit that launches
    mig: str | None = None
    max_shared_bytes: int | None = None  # opt-in limit of dynamic + static shared memory a block
    max_threads: int = 1024


class FaultKind(enum.StrEnum):
    """What a run did that a right kernel does not, or why nothing could run."""

    OUT_OF_BOUNDS = "out-of-bounds"
    GUARD = "guard"  # a guard zone around a buffer was overwritten
    INPUT_CHANGED = "input-changed"
    RACE = "race"
    UNINITIALISED = "uninitialised"
    UNSET = "unset"  # shared memory read before anything was written there: it held what an earlier block left
    DIVERGENT_BARRIER = "divergent-barrier"
    TRAP = "trap"
    UNSUPPORTED = "unsupported"  # the host device has no meaning for it
    CRASH = "crash"
    HANG = "hang"
    STARVED = "starved"  # blocks wait for others that a GPU may let begin only when these have ended
    MISALIGNED = "misaligned"
    STATE = "state"  # a variable that outlives the launch is written
    UNDEFINED = "undefined"  # what the language leaves open and a CPU and a GPU may do differently
    SANITIZER = "sanitizer"  # a tool ended with a finding that it did not name
    LAUNCH = "launch"  # refused before running: too many threads, too much shared memory
    MEMORY = "memory"  # the buffers do not fit the device
    REFUSED = "refused"  # by the static guard
    NONDETERMINISTIC = "nondeterministic"
    DIFFERS = "differs from the reference"
    UNKNOWN = "unknown"


OTHER_AT = "the other at line"  # before the line of the other access, in the detail of a race


@dataclass(frozen=True, slots=True)
class Fault:
    """Something a run did that a right kernel does not. ``line`` is 1-based in Candidate.source, if known."""

    kind: FaultKind
    detail: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """Times of whole-plan runs. ``samples_ns`` in the order taken; one predicted value has one sample. ``each_ns``: of
    the timed configurations, where there are several, whose geometric mean the median is then."""

    basis: Basis
    median_ns: float
    samples_ns: tuple[float, ...]
    note: str = ""  # e.g. "batched 16 launches a sample"
    each_ns: tuple[float, ...] = ()


class VerdictKind(enum.StrEnum):
    FASTER = "faster"
    SLOWER = "slower"
    SAME = "same"
    AMBIGUOUS = "ambiguous"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A paired comparison: ``speedup`` is incumbent time / challenger time, with its 95 % interval."""

    kind: VerdictKind
    speedup: float
    ci95: tuple[float, float]
    pairs: int
    basis: Basis


SLOWER_ELSEWHERE = "slower elsewhere"  # the kind of a refusal: faster at the timed sizes, slower at others


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one proposal. ``evidence`` is JSON; its keys depend on the status:

    compile_failed: log, line. crashed / timed_out: detail, case. wrong: case, argument, index, got, expected,
    worst_error, bound, remark, unlimited. correct: features, resources. promoted: verdict, held_out, sanitizers.
    """

    status: Status
    stage: str  # the last stage entered: guard, compile, smoke, tests, screening, promotion
    cases: int = 0
    passed: int = 0
    timing: Timing | None = None
    resources: Mapping[str, Resources] = field(default_factory=dict)
    features: Features = field(default_factory=Features)
    evidence: Mapping[str, Json] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def slower_elsewhere(self) -> bool:
        """Whether it was refused, by a glance or by promotion, for being faster at the timed sizes only."""
        return self.status >= Status.SLOW and self.evidence.get("kind") == SLOWER_ELSEWHERE
