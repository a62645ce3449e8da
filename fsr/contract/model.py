"""What a kernel promises: the frozen form of a contract, and its concrete form for given sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from fsr.errors import ContractError
from fsr.expressions import Number, evaluate, evaluate_int, names
from fsr.hardware.limits import MAX_REPEATS
from fsr.records import NULL, NULL_POINTER, STEP, ConcreteLaunch, Dim3, Launch, Plan, Role, ScalarValue
from fsr.source.flattening import FlatKernel


@dataclass(frozen=True, slots=True)
class Size:
    """A named size. ``timed``: the values to time at; the i-th timed configuration takes the i-th value of
    every size (a shorter list repeats its last)."""

    name: str
    minimum: int
    maximum: int
    timed: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Constraints:
    """What values an argument may hold. ``low``/``high``: inclusive size expressions (index bounds, say).

    ``lows``/``highs``: of a buffer, the same for each element along its last extent; ``low`` and ``high`` then reach as
    far as the furthest of them. ``offsets``: each line of the last extent ascends from 0 to this size expression;
    ``low``, ``high`` and ``sorted`` say as much of it as they can then. ``values``: all that an integer may be, from
    ``low`` to ``high`` in order. ``shares``: how often each comes in timed data, as weights; () for equal ones."""

    low: str | None = None
    high: str | None = None
    sorted: bool = False
    nonnegative: bool = False
    positive: bool = False
    finite: bool = True  # False: inf and NaN are defined inputs and are tested
    unique: bool = False
    lows: tuple[str, ...] = ()
    highs: tuple[str, ...] = ()
    offsets: str | None = None
    values: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()

    @property
    def by_element(self) -> bool:
        """Whether limits differ along the last extent."""
        return bool(self.lows or self.highs)

    @property
    def whole(self) -> bool:
        """Whether an array of such values is made as a whole: no element can be told from its place alone."""
        return self.sorted or self.unique or self.by_element

    def of_element(self, number: int) -> Constraints:
        """Those of one element along the last extent."""
        low = self.lows[number] if self.lows else self.low
        high = self.highs[number] if self.highs else self.high
        return replace(self, low=low, high=high, lows=(), highs=())


@dataclass(frozen=True, slots=True)
class Field:
    """A number in each structure of a buffer: ``path`` from the structure, ``offset`` in bytes; ``wide``: the same
    where floating members are float64."""

    path: str
    dtype: str
    offset: int
    wide: int
    constraints: Constraints = Constraints()


@dataclass(frozen=True, slots=True)
class Layout:
    """A structure with members of several types, its size and alignment in bytes. ``wide_bytes``: its size with float64
    for narrower floating members; 0 where that is not known."""

    type: str
    bytes: int
    alignment: int
    fields: tuple[Field, ...]
    wide_bytes: int = 0

    @property
    def word(self) -> int:
        """Bytes of the words that hold a structure: unsigned ones, of a last extent of their own."""
        return next(n for n in (4, 2, 1) if self.alignment % n == 0 and self.bytes % n == 0)

    def widened(self) -> Layout:
        """The same with float64 for narrower floating members."""
        fields = tuple(
            replace(f, offset=f.wide, dtype="float64" if "float" in f.dtype else f.dtype) for f in self.fields
        )
        return replace(self, bytes=self.wide_bytes, fields=fields)


@dataclass(frozen=True, slots=True)
class Argument:
    """One kernel parameter, in the kernel's order.

    dtype: NumPy name, or 'bfloat16'. role: Role.NULL where callers pass a null pointer, of which nothing else is said.
    shape: size expressions, outermost first, row-major; () for scalars. value: for a scalar, a size expression or
    number; None means drawn from the constraints per case. alignment: bytes that every caller promises for the pointer
    (at least the element size). symbol: for what is no parameter but a ``__constant__`` variable that host code fills
    before it launches, its name; '' for a parameter. member: of a structure that is passed by value, ``p.width``; the
    name is then that of the parameter which stands for it (fsr.source.flattening). layout: of a buffer of structures
    with members of several types; dtype and the last extent are then those of words without meaning that hold one.
    """

    name: str
    dtype: str
    role: Role
    shape: tuple[str, ...] = ()
    value: str | None = None
    alignment: int = 0
    constraints: Constraints = Constraints()
    symbol: str = ""
    member: str = ""
    layout: Layout | None = None

    def parts(self) -> tuple[Argument, ...]:
        """The argument itself, or each member of its structures as a buffer of its own, named ``pairs.weight``."""
        if self.layout is None:
            return (self,)
        return tuple(map(self._part, self.layout.fields))

    def part(self, name: str) -> Argument:
        """The one of the parts that has this name. Raises KeyError."""
        fields = self.layout.fields if self.layout is not None else ()
        field = next((f for f in fields if f"{self.name}.{f.path}" == name), None)
        if field is None:
            raise KeyError(name)
        return self._part(field)

    def _part(self, field: Field) -> Argument:
        name = f"{self.name}.{field.path}"
        return Argument(name, field.dtype, self.role, self.shape[:-1], constraints=field.constraints)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a result may be from the reference, per element: |got - want| <= atol + rtol * scale, where scale
    is the magnitude of the result, or of the terms summed when ``sum_length`` (a size expression) is given."""

    rtol: float | None = None  # None: from the output's dtype
    atol: float | None = None
    sum_length: str | None = None
    exact: bool = False  # bit for bit

    @property
    def of_result(self) -> bool:
        """Whether a stated limit is relative to the result itself, whatever it was made of."""
        return self.rtol is not None and self.sum_length is None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a contract came from. ``kind``: 'block', 'sidecar' or 'inferred'."""

    kind: str
    path: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Inputs:
    """The function that makes inputs which belong together: "module.py:function", from the folder of the kernel's
    file. ``kept``: the folder in which processes of one run keep for one another what it made; "" for none."""

    function: str
    folder: str = field(default="", compare=False)
    kept: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Contract:
    """Entry, arguments, sizes, the baseline plan, tolerance and reference of one kernel.

    ``aliasing``: groups of argument names that may share memory; () means none do (restrict is sound).
    ``reference``: None for the kernel itself, or "module.py:function" beside the file. ``include_dirs``: where includes
    of the file are searched, from its folder; macros that it is compiled under are flags of the plan. ``structures``:
    the launched kernels that take structures by value. ``inputs``: what makes some of the inputs; None where all are
    drawn by what is said of each. ``named``: names for expressions of sizes, as candidates' launches may have them.
    """

    entry: str
    sizes: tuple[Size, ...]
    args: tuple[Argument, ...]
    plan: Plan
    tolerance: Tolerance = Tolerance()
    reference: str | None = None
    aliasing: tuple[tuple[str, ...], ...] = ()
    origin: Origin = Origin("inferred", "")
    include_dirs: tuple[str, ...] = ()
    structures: tuple[FlatKernel, ...] = ()
    inputs: Inputs | None = None
    named: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    @property
    def defines(self) -> tuple[str, ...]:
        """The macros that the file is compiled under, ``NAME`` or ``NAME=VALUE``."""
        return tuple(flag[2:].strip() for flag in self.plan.flags if flag.startswith("-D"))

    def argument(self, name: str) -> Argument:
        """The argument of that name, the part of one, or the null pointer that a launch passes under :data:`NULL`.
        Raises KeyError."""
        for argument in self.args:
            if argument.name == name:
                return argument
            if argument.layout is not None and name.startswith(f"{argument.name}."):
                return argument.part(name)
        if name == NULL:
            return Argument(NULL, "uint8", Role.NULL)
        raise KeyError(name)

    def buffers(self) -> tuple[Argument, ...]:
        """The pointer arguments that point to something and ``__constant__`` variables, in order."""
        return tuple(a for a in self.args if a.role not in (Role.SCALAR, Role.NULL))

    def structured(self) -> tuple[Argument, ...]:
        """The buffers of structures with members of several types."""
        return tuple(a for a in self.args if a.layout is not None)

    def apart(self) -> Contract:
        """The contract with each member of such structures as an argument: by which values are drawn and compared, and
        no kernel is launched."""
        if not self.structured():
            return self
        return replace(self, args=tuple(part for a in self.args for part in a.parts()))

    def drawn(self) -> tuple[Argument, ...]:
        """The arguments, or their parts, whose values tests draw: those that are read, unless an expression says what
        they are."""
        parts = (part for a in self.args for part in a.parts())
        return tuple(a for a in parts if a.role not in (Role.OUT, Role.NULL) and a.value is None)

    def passed(self) -> tuple[Argument, ...]:
        """The arguments that a launch passes, in the kernel's order."""
        return tuple(a for a in self.args if not a.symbol)

    def nulls(self, plan: Plan) -> frozenset[str]:
        """What the launches of a plan pass by name that is a null pointer."""
        taken = {a.name for a in self.args if a.role is not Role.NULL} | {s.name for s in plan.scratch}
        return frozenset({a.name for a in self.args if a.role is Role.NULL} | {NULL}) - taken

    def names_for(self, plan: Plan) -> frozenset[str]:
        """What the launches of a plan may pass by name."""
        return frozenset(a.name for a in self.passed()) | {s.name for s in plan.scratch} | {NULL}

    def at_timed_sizes(self) -> str:
        """An expression of the sizes that holds (is not 0) at the timed ones alone."""
        return self.at_sizes(self.timed_sizes())

    def at_sizes(self, configurations: Sequence[Mapping[str, int]]) -> str:
        """An expression of the sizes that holds (is not 0) at these alone, of which there is one at least."""
        names = [s.name for s in self.sizes if s.minimum < s.maximum]
        each = ("*".join(f"({name} == {sizes[name]})" for name in names) for sizes in configurations)
        return " + ".join(each) if names else "1"

    def symbols(self) -> tuple[Argument, ...]:
        """The ``__constant__`` variables that host code fills."""
        return tuple(a for a in self.args if a.symbol)

    def timed_sizes(self) -> list[dict[str, int]]:
        """The configurations to time at, at least one."""
        count = max((len(s.timed) for s in self.sizes), default=1)
        return [{s.name: s.timed[min(i, len(s.timed) - 1)] for s in self.sizes} for i in range(count)]

    def with_derived(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Sizes, and those that they tell."""
        return {**{name: evaluate_int(text, sizes) for name, text in self.named}, **sizes}

    def shape(self, argument: Argument, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The concrete shape of a buffer argument."""
        return tuple(evaluate_int(s, sizes) for s in argument.shape)


def concrete_launches(
    plan: Plan, contract: Contract, sizes: Mapping[str, int], scalars: Mapping[str, ScalarValue], *, some: bool = False
) -> tuple[ConcreteLaunch, ...]:
    """The plan for concrete sizes, repeated launches one after the other. ``scalars`` holds the drawn value of every
    scalar contract argument. ``some``: of a launch that is repeated only the first repetition, and the one in the
    middle for all others, as ``times`` says.

    Raises ContractError when an expression does not evaluate or a dimension is negative. A launch with an
    empty grid is dropped: nothing to do (CUDA refuses it).
    """
    found = []
    scalars = {**dict.fromkeys(contract.nulls(plan), NULL_POINTER), **scalars}
    for launch in plan.launches:
        shapes = _shapes(launch, sizes)
        steps = _some(shapes) if some else dict.fromkeys(shapes, 1)
        counted = {a for a in launch.args if launch.repeated and not isinstance(a, str) and STEP in names(a.value)}
        same = {a: _argument(a, sizes, scalars) for a in launch.args if a not in counted} if steps else {}
        for step, times in steps.items():
            own = {a: _argument(a, {**sizes, STEP: step}, scalars) for a in counted}
            args = tuple(own[a] if a in counted else same[a] for a in launch.args)
            found.append(ConcreteLaunch(launch.entry, *shapes[step], args, times))
    return tuple(found)


_Shape = tuple[Dim3, Dim3, int]


def _shapes(launch: Launch, sizes: Mapping[str, int]) -> dict[int, _Shape]:
    """Grid, block and shared bytes of each repetition that there is."""

    def shape(known: Mapping[str, int]) -> _Shape | None:
        grid, block = dim3(launch.grid, known), dim3(launch.block, known)
        return None if 0 in grid or 0 in block else (grid, block, evaluate_int(launch.shared_bytes, known))

    if not launch.reshaped:
        alike = shape(sizes)
        return {} if alike is None else dict.fromkeys(range(repeats_of(launch, sizes)), alike)
    each = ((step, shape({**sizes, STEP: step})) for step in range(repeats_of(launch, sizes)))
    return {step: found for step, found in each if found is not None}


def _some(shapes: Mapping[int, _Shape]) -> dict[int, int]:
    """The first repetition of each shape, once, and the one in the middle, as often as there are others."""
    found: dict[int, int] = {}
    for shape in dict.fromkeys(shapes.values()):
        steps = [step for step, own in shapes.items() if own == shape]
        found |= {steps[0]: 1, steps[len(steps) // 2]: len(steps) - 1} if len(steps) > 2 else dict.fromkeys(steps, 1)
    return found


def repeats_of(launch: Launch, sizes: Mapping[str, int]) -> int:
    """How often a launch is made. Raises ContractError for a negative number, or one beyond MAX_REPEATS."""
    found = evaluate_int(launch.repeat, sizes)
    if not 0 <= found <= MAX_REPEATS:
        raise ContractError(
            f"{launch.entry} is launched {found:,} times", expected=f"0 to {MAX_REPEATS:,} times",
            fix="correct repeat, or let the kernel do more at a time",
        )  # fmt: skip
    return found


def at_ends(launch: Launch, sizes: Mapping[str, int]) -> tuple[Mapping[str, int], ...]:
    """What a launch's shape is an expression over, at its first repetition and at its last. Raises ContractError."""
    if not launch.reshaped:
        return (sizes,)
    return tuple({**sizes, STEP: step} for step in sorted({0, max(repeats_of(launch, sizes) - 1, 0)}))


def dim3(texts: tuple[str, str, str], sizes: Mapping[str, int]) -> Dim3:
    """Three size expressions as numbers, negative ones as 0."""
    x, y, z = (max(0, evaluate_int(t, sizes)) for t in texts)
    return x, y, z


def _argument(arg: object, sizes: Mapping[str, Number], scalars: Mapping[str, ScalarValue]) -> str | ScalarValue:
    if not isinstance(arg, str):
        value = evaluate(arg.value, sizes)  # type: ignore[attr-defined]  # a ScalarArgument
        return ScalarValue(arg.dtype, value)  # type: ignore[attr-defined]
    return scalars.get(arg, arg)


__all__ = [
    "Argument", "Constraints", "Contract", "Field", "Inputs", "Launch", "Layout", "Origin", "Size", "Tolerance",
    "at_ends", "concrete_launches", "dim3", "repeats_of",
]  # fmt: skip
