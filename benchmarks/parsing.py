"""Kernels that fsr's reader finds in other people's files, against those that a C++ front end finds.

    python benchmarks/parsing.py FOLDER OUT_DIR [--part tuned|aside|all] [--most 250] [--workers 2] [--seed 0]

FOLDER holds one folder a repository, with its .cu and .cuh files. At most ``--most`` files of each are taken, drawn
with the seed. One repository in three, told by the digest of its name, is set aside: nothing is tuned to it.

The front end is Clang (the package ``libclang``; ``--libclang PATH`` names another build of the library), which reads
CUDA for the device side with a small header in the place of CUDA's own and no other header: a kernel is one whatever
its types are, and a file takes a tenth of a second. What it reports as a definition with the
attribute ``__global__`` in the file itself counts as a kernel, by name and line; those that a macro makes stand where
the macro is called. Where it does not start, crashes or takes over a minute, definitions are counted in the text with
comments, strings and ``#if 0`` taken out. fsr has found a kernel when one of its definitions of that name spans that
line, and has read it when the unit cut for it parses into a form (asked of
four kernels a file). That count of the text is told for every file too.

OUT_DIR/parsing.json: the figures by repository, every kernel missed with file and line, every exception.
OUT_DIR/front_end.jsonl: what the front end found, a file a line; what stands there is not asked for again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from fsr.errors import FsrError  # noqa: E402  # the checkout, installed or not
from fsr.source.file import KernelFile  # noqa: E402
from fsr.source.parse import parse_kernels  # noqa: E402

LIMIT_S = 60.0
MOST_READ = 4  # kernels of a file that are cut and parsed
KEEP_GOING = 0x200  # libclang: a header that is not there ends nothing
SHIM = """
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
#define __cluster_dims__(...)
#define __CUDACC__ 1
#define __NVCC__ 1
#define CUDART_VERSION 13000
#define CUDA_VERSION 13000
typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint; typedef unsigned long ulong;
struct uint3 { unsigned x, y, z; };
struct dim3 { unsigned x, y, z; __host__ __device__ dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1); };
extern const uint3 threadIdx, blockIdx; extern const dim3 blockDim, gridDim; extern const int warpSize;
typedef struct CUstream_st *cudaStream_t; typedef int cudaError_t;
extern "C" cudaError_t cudaConfigureCall(dim3, dim3, decltype(sizeof(0)) = 0, cudaStream_t = 0);
__device__ void __syncthreads();
"""
Kernels = list[tuple[str, int]]  # (name, line)
_COMMENTS = re.compile(r'//(?:\\\n|[^\n])*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*#(?:\\\n|[^\n])*", re.MULTILINE)


@dataclass
class Told:
    """One file: how its kernels were told, those found by the front end, and those that fsr misses."""

    path: str
    lines: int
    by: str = "front end"
    kernels: Kernels = field(default_factory=list)
    missed: Kernels = field(default_factory=list)
    unread: list[tuple[str, str]] = field(default_factory=list)
    counted: int = 0
    found: int = 0
    more: int = 0
    exception: str = ""
    seconds: float = 0.0


def front_end_kernels(path: Path, shim: Path, library: str) -> Kernels | None:
    """(name, line) of every kernel defined in the file, in order; None where the front end does not start."""
    from clang import cindex

    if library:
        cindex.Config.set_library_file(library)
    arguments = [
        "-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_90", "-nocudainc", "-nocudalib", "-std=c++17",
        "-nostdinc", "-nostdinc++", "-ferror-limit=0", "-w", "-include", str(shim),
    ]  # fmt: skip
    try:
        unit = cindex.Index.create().parse(str(path), arguments, options=KEEP_GOING)
    except cindex.TranslationUnitLoadError:
        return None
    return [(c.spelling.split("<")[0], c.location.line) for c in _kernels(unit.cursor, path)]


def _kernels(cursor: Any, path: Path) -> Iterator[Any]:
    for child in cursor.get_children():
        where = child.location.file
        if where is None or Path(where.name) != path:
            continue
        kind = child.kind.name
        if kind in ("FUNCTION_DECL", "FUNCTION_TEMPLATE"):
            if child.is_definition() and any(c.kind.name == "CUDAGLOBAL_ATTR" for c in child.get_children()):
                yield child
        elif kind in ("NAMESPACE", "LINKAGE_SPEC", "UNEXPOSED_DECL"):
            yield from _kernels(child, path)


def counted_kernels(text: str) -> Kernels:
    """(name, line) of what looks like a kernel's definition: ``__global__`` with a body before the next semicolon."""
    code = _COMMENTS.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
    code = re.sub(r"^[ \t]*#[ \t]*if[ \t]+0\b.*?^[ \t]*#[ \t]*(?:endif|else)\b", _blank, code, flags=re.M | re.S)
    code = _DIRECTIVE.sub(_blank, code)
    found = []
    for match in re.finditer(r"\b__global__\b", code):
        head = re.sub(r"\b(?:__\w+__|alignas)\s*\((?:[^()]|\([^()]*\))*\)", _blank, code[match.end() :])
        name = re.search(r"(\w+)\s*(?:<[^;{}()]*>)?\s*\(", head)
        end = re.search(r"[;{]", head)
        if name and end and end[0] == "{" and name.start() < end.start():
            found.append((name[1], code.count("\n", 0, match.end() + name.start()) + 1))
    return found


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def told(path: Path, shim: Path | None, library: str, send: Any) -> None:
    """Sends what fsr finds, then what the front end finds, if ``shim``: a crash then costs nothing of the first."""
    started = time.perf_counter()
    spans: list[tuple[str, int, int]] = []
    unread: list[tuple[str, str]] = []
    names: list[str] = []
    fault = ""
    try:
        file = KernelFile.read(path)
        for piece in file.kernel_pieces:
            if not piece.via:
                name, text = piece.item.names[-1], file.text
                lines = [text.count("\n", 0, at) + 1 for at in (piece.item.start, piece.item.end)]
                spans.append((name, lines[0], lines[1]))
                names.append(piece.qualified())
        unread = [(name, why) for name in sorted(set(names))[:MOST_READ] for why in _unread(file, name)]
    except FsrError as error:
        fault = f"{error}".splitlines()[0]
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"[:300]
    send.send((spans, unread, fault, time.perf_counter() - started))
    if shim is not None:
        send.send(front_end_kernels(path, shim, library))


def _unread(file: KernelFile, name: str) -> Iterator[str]:
    """Why a kernel that was found is not read: nothing when its unit can be cut and parsed."""
    try:
        if name.rsplit("::", 1)[-1] not in parse_kernels(file.cut(name).text):
            yield "no form"
    except FsrError as error:
        if "fits" not in str(error):  # one name in two namespaces under #if: the user has to choose
            yield f"{error}".splitlines()[0]
    except Exception as error:
        yield f"{type(error).__name__}: {error}"[:300]


@dataclass
class FrontEnd:
    """What the front end found, kept in a file. ``shim``: the header that stands in for CUDA's."""

    shim: Path
    library: str
    path: Path
    answers: dict[str, Kernels | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        self.answers = {name: found and [(n, at) for n, at in found] for name, found in map(json.loads, lines)}

    def keep(self, name: str, found: Kernels | None) -> None:
        """Remember an answer; None: the front end did not give one."""
        self.answers[name] = found
        with self.path.open("a") as out:
            out.write(json.dumps([name, found]) + "\n")


def measured(job: tuple[Path, Path], front_end: FrontEnd) -> Told:
    """One file, in a process of its own."""
    path, repository = job
    name, text = str(path.relative_to(repository.parent)), path.read_bytes().decode("utf-8", "replace")
    result = Told(name, text.count("\n") + 1)
    known = name in front_end.answers
    receive, send = multiprocessing.Pipe(duplex=False)
    shim = None if known else front_end.shim
    child = multiprocessing.Process(target=told, args=(path, shim, front_end.library, send), daemon=True)
    child.start()
    send.close()
    spans: list[tuple[str, int, int]] = []
    found: Kernels | None = None
    try:
        if not receive.poll(LIMIT_S):
            raise EOFError
        spans, result.unread, result.exception, result.seconds = receive.recv()
        found = None if known or not receive.poll(LIMIT_S) else receive.recv()
    except EOFError:
        result.exception = result.exception or ("" if result.seconds else f"died, or took over {LIMIT_S:g} s")
    child.kill()
    child.join()
    if not known:
        front_end.keep(name, found)
    judged(result, spans, front_end.answers[name], text)
    return result


def judged(result: Told, spans: list[tuple[str, int, int]], found: Kernels | None, text: str) -> None:
    """Notes which kernels fsr misses: a kernel is found by a definition of that name whose lines hold it."""
    if found is None:
        found, result.by = counted_kernels(text), "count"
    result.counted = len(counted_kernels(text))
    left = list(spans)
    for name, line in found:
        span = next((s for s in left if s[0] == name and s[1] <= line <= s[2]), None)
        if span is None:
            result.missed.append((name, line))
        else:
            left.remove(span)
    result.kernels, result.found, result.more = found, len(spans), len(left)


def aside(repository: str) -> bool:
    """Whether a repository is one of the third that nothing is tuned to."""
    return hashlib.sha256(repository.encode()).digest()[0] % 3 == 0


def chosen(folder: Path, part: str, most: int, seed: int) -> Iterator[tuple[Path, Path]]:
    """(file, repository) of every file to read."""
    for repository in sorted(p for p in folder.iterdir() if p.is_dir()):
        if part != "all" and aside(repository.name) != (part == "aside"):
            continue
        files = sorted(p for p in repository.rglob("*") if p.suffix in (".cu", ".cuh") and p.is_file())
        files = [p for p in files if p.stat().st_size]
        yield from ((p, repository) for p in random.Random(seed).sample(files, min(most, len(files))))


def table(results: Sequence[Told]) -> list[dict[str, Any]]:
    """A row a repository and a last one for all."""
    rows = []
    for name in [*sorted({r.path.split("/")[0] for r in results}), "all"]:
        own = [r for r in results if name in ("all", r.path.split("/")[0])]
        kernels, missed = sum(len(r.kernels) for r in own), sum(len(r.missed) for r in own)
        rows.append({
            "repository": name, "aside": name != "all" and aside(name), "files": len(own),
            "by_front_end": Counter(r.by for r in own)["front end"], "kernels": kernels, "missed": missed,
            "share": (kernels - missed) / kernels if kernels else 1.0, "more": sum(r.more for r in own),
            "counted": sum(r.counted for r in own),
            "found": sum(r.found for r in own),
            "unread": sum(len(r.unread) for r in own), "exceptions": sum(bool(r.exception) for r in own),
            "lines": sum(r.lines for r in own), "seconds": round(sum(r.seconds for r in own), 2),
        })  # fmt: skip
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--part", choices=("tuned", "aside", "all"), default="all")
    parser.add_argument("--most", type=int, default=250)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--libclang", default="")
    options = parser.parse_args()
    if find_spec("clang") is None:
        parser.error("the front end is the package libclang, which is not installed: pip install -e '.[bench]'")
    jobs = list(chosen(options.folder.resolve(), options.part, options.most, options.seed))
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.workers) as pool:
        shim = Path(folder) / "shim.h"
        shim.write_text(SHIM)
        front_end = FrontEnd(shim, options.libclang, options.out / "front_end.jsonl")
        results = list(pool.map(partial(measured, front_end=front_end), jobs))
    rows = table(results)
    files = [asdict(r) for r in results if r.missed or r.unread or r.exception or r.by != "front end"]
    (options.out / "parsing.json").write_text(json.dumps({"table": rows, "files": files}, indent=1))
    print(f"{'repository':44}{'files':>6}{'clang':>6}{'kernels':>8}{'missed':>7}{'share':>8}{'found':>7}{'counted':>8}{'unread':>7}"
          f"{'exc':>5}{'lines':>8}{'s':>7}")  # fmt: skip
    for row in rows:
        name = row["repository"] + (" (aside)" if row["aside"] else "")
        print(f"{name:44}{row['files']:6}{row['by_front_end']:6}{row['kernels']:8}{row['missed']:7}"
              f"{row['share']:8.2%}{row['found']:7}{row['counted']:8}{row['unread']:7}{row['exceptions']:5}{row['lines']:8}"
              f"{row['seconds']:7.1f}")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
