"""One computation in many disguises: do they lift to the same, and never to a different one?

    python benchmarks/disguises.py OUT.jsonl [--each 12] [--seed 0] [--only NAME ...]
        [--workers 4] [--seconds 600]

Each computation is written by a seeded writer in ``--each`` ways: a thread a point in two dimensions or in one that is
taken apart by / and %, a grid-stride loop, a thread, a warp or a block a row, folds in a register, in memory, unrolled,
backwards, by shuffles, by a tree in shared memory; indices of several types, guards either way round, values staged
through shared memory, templates. Every one is lifted. Two that differ in the fold's order are the same computation.
Told are the pairs that lifted to the same one, those of which one was not lifted, and those that differ. OUT.jsonl gets
a line a disguise as soon as it is lifted; disguises that have one are left out: a sweep that was cut off goes on.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from fsr.computation.canonical import same  # noqa: E402
from fsr.computation.computation import from_record, to_record  # noqa: E402
from fsr.computation.printing import lines  # noqa: E402
from fsr.contract.load import load_contract  # noqa: E402
from fsr.lifting.lift import lift  # noqa: E402
from fsr.records import Candidate  # noqa: E402
from fsr.source.file import KernelFile  # noqa: E402

LIMIT_S = 30.0  # of one lifting, and of compiling for it


@dataclass(frozen=True)
class Work:
    """``folds``: name, operation and text of what is folded along a row; ``point``: what each element becomes, or
    ``row``: what each row becomes. Texts are over X(i, j), Z(i, j), W(j) and the folds before. ``columns``: x and z
    lie by columns, so that X(i, j) is x[j][i]."""

    folds: tuple[tuple[str, str, str], ...] = ()
    point: str = ""
    row: str = ""
    columns: bool = False


WORK = {
    "relu": Work(point="fmaxf(X(i, j), 0.0f)"),
    "silu": Work(point="X(i, j) / (1.0f + expf(-X(i, j)))"),
    "sigmoid": Work(point="1.0f / (1.0f + expf(-X(i, j)))"),
    "gelu": Work(point="0.5f * X(i, j) * (1.0f + tanhf(0.79788456f * (X(i, j) + 0.044715f * X(i, j) * X(i, j))))"),
    "square": Work(point="X(i, j) * X(i, j) + 1.0f"),
    "add": Work(point="X(i, j) + Z(i, j)"),
    "axpy": Work(point="2.5f * X(i, j) + Z(i, j)"),
    "scale": Work(point="X(i, j) * W(j)"),
    "affine": Work(point="X(i, j) * W(j) + Z(i, j)"),
    "difference": Work(point="fabsf(X(i, j) - Z(i, j))"),
    "clamp": Work(point="fminf(fmaxf(X(i, j), -1.0f), 1.0f)"),
    "root": Work(point="sqrtf(fabsf(X(i, j)))"),
    "shift": Work(point="(j > 0 ? X(i, j - 1) : 0.0f)"),
    "upwind": Work(point="X(i, j) - 0.25f * (j > 0 ? X(i, j - 1) : X(i, j))"),
    "reverse": Work(point="X(i, cols - 1 - j)"),
    "sum": Work((("s", "sum", "X(i, j)"),), row="s"),
    "mean": Work((("s", "sum", "X(i, j)"),), row="s / cols"),
    "largest": Work((("s", "max", "X(i, j)"),), row="s"),
    "smallest": Work((("s", "min", "X(i, j)"),), row="s"),
    "squares": Work((("s", "sum", "X(i, j) * X(i, j)"),), row="s"),
    "norm": Work((("s", "sum", "X(i, j) * X(i, j)"),), row="sqrtf(s)"),
    "gemv": Work((("s", "sum", "X(i, j) * W(j)"),), row="s"),
    "dot": Work((("s", "sum", "X(i, j) * Z(i, j)"),), row="s"),
    "sum of exp": Work((("s", "sum", "expf(X(i, j))"),), row="s"),
    "absolute": Work((("s", "sum", "fabsf(X(i, j))"),), row="s"),
    "softmax": Work((("m", "max", "X(i, j)"), ("s", "sum", "expf(X(i, j) - m)")), point="expf(X(i, j) - m) / s"),
    "rms norm": Work((("s", "sum", "X(i, j) * X(i, j)"),), point="X(i, j) * rsqrtf(s / cols + 1e-5f) * W(j)"),
    "centred": Work((("s", "sum", "X(i, j)"),), point="X(i, j) - s / cols"),
    "transpose": Work(point="X(i, j)", columns=True),
    "add turned": Work(point="X(i, j) + Z(i, j) * W(j)", columns=True),
    "column sums": Work((("s", "sum", "X(i, j)"),), row="s", columns=True),
    "column largest": Work((("s", "max", "X(i, j)"),), row="s", columns=True),
    "column softmax": Work((("m", "max", "X(i, j)"), ("s", "sum", "expf(X(i, j) - m)")), point="expf(X(i, j) - m) / s",
                           columns=True),
    "gemv turned": Work((("s", "sum", "X(i, j) * W(j)"),), row="s", columns=True),
}  # fmt: skip
START = {"sum": "0.0f", "max": "-INFINITY", "min": "INFINITY"}
JOIN = {"sum": "{a} + {b}", "max": "fmaxf({a}, {b})", "min": "fminf({a}, {b})"}
POINTS = ("plane", "swapped", "flat", "stride", "row a block", "row a thread")
ROWS = ("thread", "thread", "thread", "warp", "block")
LOOPS = ("for", "backwards", "unrolled", "while", "memory")


class Disguise:
    """One way of writing a computation."""

    def __init__(self, work: Work, chance: random.Random) -> None:
        self.work, pick = work, chance.choice
        self.way = pick(ROWS if work.folds else POINTS)
        self.loop, self.index = pick(LOOPS), pick(("int", "int", "unsigned", "long long", "size_t"))
        self.turned, self.staged, self.block = pick((True, False)), pick((True, False, False)), pick((32, 64, 128))
        self.template = pick(("", "", "template <class T> ", "template <int BLOCK> "))
        if self.loop == "memory" and (not work.row or len(work.folds) > 1):
            self.loop = "for"
        if self.loop == "backwards":
            self.index = pick(("int", "long long"))

    def told(self) -> str:
        """In words."""
        loop = self.loop if self.way == "thread" else ""
        staged = "staged" if self.staged and self.way in ("plane", "swapped") else ""
        turned = "turned" if self.turned else ""
        parts = [self.way, loop, self.index, turned, staged, self.template.strip(), str(self.block)]
        return ", ".join(p for p in parts if p)

    def text(self) -> str:
        """The file, with its contract."""
        out = "float" if not self.template.startswith("template <class") else "T"
        entry = {"": "k", "T": "k<float>"}.get("T" if out == "T" else "", "k")
        entry = f"k<{self.block}>" if "BLOCK" in self.template else entry
        shape = '["rows"]' if self.work.row else '["rows", "cols"]'
        given = '["cols", "rows"]' if self.work.columns else '["rows", "cols"]'
        head = ["/// fsr", f'entry = "{entry}"', "[sizes]", "rows = {min = 1, max = 3000, timed = 2000}",
                "cols = {min = 1, max = 3000, timed = 1500}", "[args]", f'x = {{role = "in", shape = {given}}}',
                f'z = {{role = "in", shape = {given}}}', 'w = {role = "in", shape = ["cols"]}',
                f'y = {{role = "out", shape = {shape}}}', 'rows = {value = "rows"}', 'cols = {value = "cols"}',
                "[launch]", *self._launch(), "///"]  # fmt: skip
        at = "(j) * rows + (i)" if self.work.columns else "(i) * cols + (j)"
        macros = [f"#define X(i, j) x[{at}]", f"#define Z(i, j) z[{at}]", "#define W(j) w[j]"]
        sign = f"const {out}* x, const {out}* z, const {out}* w, {out}* y, int rows, int cols"
        body = self._rows() if self.work.folds else self._points()
        kernel = [f"{self.template}__global__ void k({sign}) {{", *("  " + line for line in body), "}"]
        return "\n".join([*("// " + line for line in head), *macros, *kernel]) + "\n"

    def _launch(self) -> list[str]:
        side = {32: (8, 4), 64: (16, 4), 128: (16, 8)}[self.block]
        grid = {"plane": f'["ceil_div(cols, {side[0]})", "ceil_div(rows, {side[1]})"]',
                "swapped": f'["ceil_div(rows, {side[0]})", "ceil_div(cols, {side[1]})"]',
                "flat": f'"ceil_div(rows * cols, {self.block})"', "stride": "5", "row a block": '"rows"',
                "row a thread": f'"ceil_div(rows, {self.block})"', "thread": f'"ceil_div(rows, {self.block})"',
                "warp": f'"ceil_div(rows, {self.block // 32})"', "block": '"rows"'}[self.way]  # fmt: skip
        block = f"[{side[0]}, {side[1]}]" if self.way in ("plane", "swapped") else str(self.block)
        return [f"grid = {grid}", f"block = {block}"]

    def _guarded(self, test: str, opposite: str, body: Sequence[str]) -> list[str]:
        if self.turned:
            return [f"if ({test}) {{", *("  " + line for line in body), "}"]
        return [f"if ({opposite}) return;", *body]

    # ------------------------------------------------------------ a value a point

    def _points(self) -> list[str]:
        t, store = self.index, f"y[i * cols + j] = {self.work.point};"
        across = f"for ({t} j = 0; j < cols; ++j) {store}"
        match self.way:
            case "plane" | "swapped":
                one, other = ("j", "i") if self.way == "plane" else ("i", "j")
                lead = [f"{t} {one} = blockIdx.x * blockDim.x + threadIdx.x;",
                        f"{t} {other} = blockIdx.y * blockDim.y + threadIdx.y;"]  # fmt: skip
                if self.staged:
                    return [*lead, "__shared__ float held[128];", "int me = threadIdx.y * blockDim.x + threadIdx.x;",
                            f"if (i < rows && j < cols) held[me] = {self.work.point};", "__syncthreads();",
                            "if (i < rows && j < cols) y[i * cols + j] = held[me];"]  # fmt: skip
                return [*lead, *self._guarded("i < rows && j < cols", "i >= rows || j >= cols", [store])]
            case "flat":
                inside = [f"{t} i = at / cols, j = at % cols;", store]
                return [f"{t} at = threadIdx.x + blockIdx.x * ({t}){self.block};",
                        *self._guarded(f"at < ({t})rows * cols", f"at >= ({t})rows * cols", inside)]  # fmt: skip
            case "stride":
                return [f"for ({t} at = blockIdx.x * blockDim.x + threadIdx.x; at < ({t})rows * cols;",
                        f"     at += ({t})gridDim.x * blockDim.x) {{", f"  {t} i = at / cols, j = at - i * cols;",
                        f"  {store}", "}"]  # fmt: skip
            case "row a block":
                return [f"{t} i = blockIdx.x;", f"for ({t} j = threadIdx.x; j < cols; j += {self.block}) {store}"]
        lead = [f"{t} i = blockIdx.x * blockDim.x + threadIdx.x;"]
        return [*lead, *self._guarded("i < rows", "!(i < rows)", [across])]

    # ------------------------------------------------------------ folds along a row

    def _rows(self) -> list[str]:
        t, w = self.index, self.work
        if self.way == "thread":
            body = [line for fold in w.folds for line in self._serial(*fold)]
            body += [f"y[i] = {w.row};"] if w.row else [f"for ({t} j = 0; j < cols; ++j) y[i * cols + j] = {w.point};"]
            lead = [f"{t} i = blockIdx.x * blockDim.x + threadIdx.x;"]
            return [*lead, *self._guarded("i < rows", "i >= rows", body)]
        lane, step = ("threadIdx.x % 32", 32) if self.way == "warp" else ("threadIdx.x", self.block)
        row = f"blockIdx.x * {self.block // 32} + threadIdx.x / 32" if self.way == "warp" else "blockIdx.x"
        body = [f"{t} i = {row};", *(["if (i >= rows) return;"] if self.way == "warp" else [])]
        for name, op, what in w.folds:
            joined = JOIN[op].format(a=name, b=what)
            body += [f"float {name} = {START[op]};",
                     f"for ({t} j = {lane}; j < cols; j += {step}) {name} = {joined};"]  # fmt: skip
            body += self._shuffled(name, op) if self.way == "warp" else self._tree(name, op)
        if w.row:
            return [*body, f"if ({lane} == 0) y[i] = {w.row};"]
        return [*body, f"for ({t} j = {lane}; j < cols; j += {step}) y[i * cols + j] = {w.point};"]

    def _serial(self, name: str, op: str, what: str) -> list[str]:
        t, add = self.index, f"{name} = {JOIN[op].format(a=name, b=what)};"
        lead = [f"float {name} = {START[op]};"]
        match self.loop:
            case "backwards":
                return [*lead, f"for ({t} j = cols; j-- > 0;) {add}"]
            case "unrolled":
                four = [f"  {{ {t} j = j0 + {n}; {add} }}" for n in range(4)]
                return [*lead, f"{t} e{name} = cols / 4 * 4;", f"for ({t} j0 = 0; j0 < e{name}; j0 += 4) {{", *four,
                        "}", f"for ({t} j = e{name}; j < cols; ++j) {add}"]  # fmt: skip
            case "while":
                return [*lead, "{", f"  {t} j = 0;", f"  while (j < cols) {{ {add} j++; }}", "}"]
            case "memory":
                there = JOIN[op].format(a="y[i]", b=what)
                return [
                    f"y[i] = {START[op]};",
                    f"for ({t} j = 0; j < cols; ++j) y[i] = {there};",
                    f"float {name} = y[i];",
                ]
        return [*lead, f"for ({t} j = 0; j < cols; ++j) {add}"]

    def _shuffled(self, name: str, op: str) -> list[str]:
        other = f"__shfl_xor_sync(0xffffffffu, {name}, d)"
        return [f"for (int d = 16; d > 0; d >>= 1) {name} = {JOIN[op].format(a=name, b=other)};"]

    def _tree(self, name: str, op: str) -> list[str]:
        joined = JOIN[op].format(a=f"p{name}[threadIdx.x]", b=f"p{name}[threadIdx.x + d]")
        return [f"__shared__ float p{name}[{self.block}];", f"p{name}[threadIdx.x] = {name};", "__syncthreads();",
                f"for (int d = {self.block // 2}; d > 0; d /= 2) {{",
                f"  if (threadIdx.x < d) p{name}[threadIdx.x] = {joined};", "  __syncthreads();", "}",
                f"{name} = p{name}[0];"]  # fmt: skip


def disguises(work: Work, count: int, seed: str) -> list[Disguise]:
    """So many different ways at most."""
    chance, found = random.Random(seed), dict[str, Disguise]()
    for _ in range(20 * count):
        one = Disguise(work, chance)
        found.setdefault(one.text(), one)
        if len(found) == count:
            break
    return list(found.values())


def lifted(work: str, disguise: Disguise) -> dict[str, Any]:
    """What is told of one disguise."""
    source = KernelFile.from_text(disguise.text())
    contract = load_contract(source)
    began = time.monotonic()
    found = lift(contract, Candidate(source.text, contract.plan), limit_s=LIMIT_S, compile_s=LIMIT_S)
    c = found.computation
    return {"work": work, "disguise": disguise.told(), "why": found.why, "lines": lines(c) if c else [],
            "seconds": round(time.monotonic() - began, 2), "text": disguise.text(),
            "computation": to_record(c) if c else None}  # fmt: skip


def table(rows: Sequence[Mapping[str, Any]]) -> tuple[list[str], int]:
    """A line a computation and the counts; how many pairs differ."""
    told, total, alike, different = list[str](), 0, 0, 0
    for name in dict.fromkeys(r["work"] for r in rows):
        found = [from_record(r["computation"]) if r["computation"] else None for r in rows if r["work"] == name]
        both = list(itertools.combinations(found, 2))
        good = sum(a is not None and b is not None and same(a, b) for a, b in both)
        wrong = sum(a is not None and b is not None and not same(a, b) for a, b in both)
        total, alike, different = total + len(both), alike + good, different + wrong
        told.append(f"{name:14} {sum(f is not None for f in found)} of {len(found)} lifted, pairs: {good} of "
                    f"{len(both)} the same, {wrong} differ")  # fmt: skip
    share = 100 * alike / max(total, 1)
    told.append(f"{len(told)} computations: {alike} of {total} pairs the same ({share:.1f} %), {different} differ")
    return told, different


def main() -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--each", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no other disguise later than this")
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.out.open()] if options.out.exists() else []
    done, began = {r["text"] for r in rows}, time.monotonic()
    asked = [(name, one) for name, work in WORK.items() if not options.only or name in options.only
             for one in disguises(work, options.each, f"{options.seed}:{name}")]  # fmt: skip
    todo = iter([(name, one) for name, one in asked if one.text() not in done])
    with ProcessPoolExecutor(options.workers, get_context("spawn")) as pool, options.out.open("a") as file:
        running = {pool.submit(lifted, *one) for one in itertools.islice(todo, options.workers)}
        while running:
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            for one in ended:
                rows.append(one.result())
                print(json.dumps(rows[-1]), file=file, flush=True)
            left = time.monotonic() - began < options.seconds
            running |= {pool.submit(lifted, *one) for one in itertools.islice(todo, len(ended) if left else 0)}
    texts = {one.text(): n for n, (_, one) in enumerate(asked)}
    told, different = table(sorted((r for r in rows if r["text"] in texts), key=lambda r: texts[r["text"]]))
    print("\n".join(told))
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
