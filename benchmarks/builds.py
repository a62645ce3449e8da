"""Builds with winners, acceptance: the examples of integrations/ from a clean clone, and what the launcher costs.

    python benchmarks/builds.py OUT_DIR [--only launcher,cmake,manifest,ninja,make,ccache,setuptools,bazel,torch]
                                [--runs N]

Needs git, nvcc, cuobjdump, cmake, ninja and make on the PATH (ccache and bazel for their parts). On a machine
without an NVIDIA GPU the kernel driver's files are laid out in a folder and fsr is pointed at them, as
benchmarks/lookup_bench.py does; the winner of the example kernel is stored as if it had been measured. What is
checked is what the build makes of it: which code is in the binary is read from its SASS, where the winner's
streaming loads are LDG with an eviction hint. The part torch, left out unless it is named, builds and runs the
extension, with torch and a GPU of sm_90. A checkout that is no repository (on another machine) is copied, not cloned.

OUT_DIR/builds.json: a row a check, and the launcher's cost on a miss.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from lookup_bench import H200, STAND_IN, fake_proc  # noqa: E402

from fsr.backends.cuda.present import present  # noqa: E402
from fsr.cache.digest import hardware_of, json_digest, text_digest  # noqa: E402
from fsr.cache.entry import Entry  # noqa: E402
from fsr.cache.key import CacheKey  # noqa: E402
from fsr.cache.store import Store  # noqa: E402

PLAIN, STREAMING = "FACTOR * x[i]", "FACTOR * __ldcs(x + i)"
LIMIT_MS = 30.0


@dataclass
class Clone:
    """A clean clone with programs before it on the PATH, a home, and a stored winner."""

    folder: Path
    environment: dict[str, str]
    checks: list[dict[str, Any]] = field(default_factory=list)

    @property
    def kernel(self) -> Path:
        return self.folder / "fsr" / "integrations" / "kernels" / "scale.cu"

    def run(self, *words: object, where: str = "integrations", **more: str) -> str:
        """Output of a command. Raises RuntimeError when it fails."""
        done = subprocess.run(
            [str(word) for word in words], cwd=self.folder / "fsr" / where, env={**self.environment, **more},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{words} ended with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
        return done.stdout + done.stderr

    def holds_winner(self, binary: str, where: str) -> bool:
        """Whether the streaming load is in the machine code."""
        sass = self.run("cuobjdump", "-sass", binary, where=where)
        loads = re.findall(r"\bLDG\S*", sass)
        assert loads, "the binary holds no kernel"
        return any(".EF" in load for load in loads)

    def check(self, name: str, holds: bool) -> None:
        self.checks.append({"check": name, "holds": holds})
        print(f"{'ok  ' if holds else 'FAIL'} {name}", flush=True)

    def queued(self) -> int:
        return len(list((self.folder / "home" / "queue").glob("*.job")))

    def touch(self, text: str = "// touched\n") -> None:
        time.sleep(1.1)  # coarse time stamps of make
        self.kernel.write_text(self.kernel.read_text() + text)

    def restore(self) -> None:
        time.sleep(1.1)
        shutil.copytree(self.folder / "kernels", self.kernel.parent, dirs_exist_ok=True)
        os.utime(self.kernel)
        shutil.rmtree(self.folder / "home" / "queue", ignore_errors=True)


def prepared(folder: Path) -> Clone:
    """The clone, its programs and its cache."""
    if (ROOT / ".git").exists():
        subprocess.run(["git", "clone", "-q", str(ROOT), str(folder / "fsr")], check=True)
    else:
        for part in ("fsr", "integrations"):
            shutil.copytree(ROOT / part, folder / "fsr" / part)
    shutil.copytree(folder / "fsr" / "integrations" / "kernels", folder / "kernels")
    bin_folder, home = folder / "bin", folder / "home"
    bin_folder.mkdir()
    found = present()
    proc = None if found else fake_proc(folder / "proc")
    driver, uuids = found or present(proc or "") or ("", [""])
    start = STAND_IN.format(proc=proc) if proc else "import fsr.__main__; fsr.__main__.main()"
    line = f"import sys; sys.path.insert(0, {str(folder / 'fsr')!r}); {start}"
    (folder / "start.py").write_text(line + "\n")
    (bin_folder / "fsr").write_text(f'#!/bin/sh\nexec {sys.executable} {folder / "start.py"} "$@"\n')
    shutil.copy(folder / "fsr" / "fsr" / "builds" / "fsr-launch", bin_folder)
    (bin_folder / "fsr").chmod(0o755)
    environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "FSR_HOME": str(home)}
    for name in ("FSR_CACHE", "FSR_SYSTEM_CACHE", "FSR_LAUNCH"):
        environment.pop(name, None)
    clone = Clone(folder, environment)
    with Store(home / "cache.db") as store:
        for uuid in uuids:
            store.saw_device(uuid, driver, H200 | {"driver": driver})
        store.publish(winner(clone.kernel, driver))
    return clone


def winner(kernel: Path, driver: str) -> Entry:
    """The example's kernel with streaming loads."""
    text = kernel.read_text()
    assert PLAIN in text
    changed = text.replace(PLAIN, STREAMING)
    included = (("factor.cuh", text_digest((kernel.parent / "factor.cuh").read_bytes())),)
    key = CacheKey(text_digest(text.encode()), included, "scale", "contract", (), "nvrtc 13.0",
                   json_digest(hardware_of(H200)), driver, 1)  # fmt: skip
    candidate = {"source": changed, "plan": {"launches": [], "flags": []}, "actions": [], "language": "cuda"}
    return Entry(key, "measured", H200, {"scale.fsr.cu": changed}, {"best": {"speedup": 1.5}}, candidate)


def both_ways(clone: Clone, name: str, build: Callable[[], object], where: str, binary: str = "app") -> None:
    """Build: the winner. Touch the kernel: the original, and a job. Undo: the winner again. Nothing to do: nothing."""
    build()
    clone.check(f"{name}: the winner is in the binary", clone.holds_winner(binary, where))
    before = (clone.folder / "fsr" / where / binary).stat().st_mtime_ns
    build()
    clone.check(f"{name}: nothing is built again", before == (clone.folder / "fsr" / where / binary).stat().st_mtime_ns)
    clone.touch()
    build()
    clone.check(f"{name}: touched, the original", not clone.holds_winner(binary, where))
    if name != "manifest":
        clone.check(f"{name}: and a job is queued", clone.queued() == 1)
    clone.restore()
    build()
    clone.check(f"{name}: restored, the winner", clone.holds_winner(binary, where))
    header = clone.kernel.with_name("factor.cuh")
    header.write_text(header.read_text() + "// touched\n")
    time.sleep(1.1)
    os.utime(header)
    build()
    clone.check(f"{name}: an include touched, the original", not clone.holds_winner(binary, where))
    clone.restore()


def cmake(clone: Clone) -> None:
    for generator in ("Ninja", "Unix Makefiles"):
        folder = f"build-{generator[:4].strip()}"
        clone.run("cmake", "-S", "cmake", "-B", folder, "-G", generator, "-DCMAKE_CUDA_ARCHITECTURES=90")
        build = ("cmake", "--build", folder, "--parallel", "2")
        both_ways(clone, f"cmake, {generator}", lambda words=build: clone.run(*words), f"integrations/{folder}")


def manifest(clone: Clone) -> None:
    clone.run("fsr", "lookup", "--manifest", "winners.txt", "kernels")
    words = ["-DCMAKE_CUDA_ARCHITECTURES=90", f"-DWINNERS={clone.folder}/fsr/integrations/winners.txt"]
    clone.run("cmake", "-S", "cmake", "-B", "build-m", "-G", "Ninja", *words)
    both_ways(clone, "manifest", lambda: clone.run("cmake", "--build", "build-m"), "integrations/build-m")
    for name, more in (("fast-math", "-DCMAKE_CUDA_FLAGS=--use_fast_math"), ("sm_80", "-DCMAKE_CUDA_ARCHITECTURES=80")):
        clone.run("cmake", "-S", "cmake", "-B", f"build-{name}", "-G", "Ninja", *words, more)
        clone.run("cmake", "--build", f"build-{name}")
        clone.check(f"manifest, {name}: the original", not clone.holds_winner("app", f"integrations/build-{name}"))


def ninja(clone: Clone) -> None:
    both_ways(clone, "ninja", lambda: clone.run("ninja", where="integrations/ninja", FSR_LAUNCH="queue"),
              "integrations/ninja")  # fmt: skip


def make(clone: Clone) -> None:
    both_ways(clone, "make", lambda: clone.run("make", "-j2", where="integrations/make", FSR_LAUNCH="queue"),
              "integrations/make")  # fmt: skip


def bazel(clone: Clone) -> None:
    clone.run("fsr", "lookup", "--manifest", "bazel/winners.txt", "kernels")
    words = ("bazel", f"--output_user_root={clone.folder}/bazel", "--max_idle_secs=60")
    both_ways(clone, "bazel", lambda: clone.run(*words, "build", "app", where="integrations/bazel", FSR_LAUNCH="queue"),
              "integrations/bazel/bazel-bin", "app.bin")  # fmt: skip
    clone.run(*words, "shutdown", where="integrations/bazel")


def setuptools(clone: Clone) -> None:
    where = "integrations/setuptools"
    build = (sys.executable, "setup.py", "-q", "build_ext", "--inplace")
    clone.run(*build, where=where)
    (library,) = (clone.folder / "fsr" / where).glob("scaling*.so")
    clone.check("setuptools: the winner is in the module", clone.holds_winner(library.name, where))
    clone.run(sys.executable, "-c", "import scaling; scaling.launch", where=where)
    clone.touch()
    clone.run(*build, where=where)
    clone.check("setuptools: touched, the original", not clone.holds_winner(library.name, where))


def torch(clone: Clone) -> None:
    """Builds and runs, with the winner and after a change without it; the program ends with 1 when it scales wrong."""
    more = {"TORCH_EXTENSIONS_DIR": str(clone.folder / "torch"), "FSR_LAUNCH": "verbose"}
    for name, wanted in (("the winner", True), ("touched, the original", False)):
        told = clone.run(sys.executable, "torch/load.py", **more)
        print("\n".join(line for line in told.splitlines() if line.startswith("fsr-launch")) or told[-600:])
        clone.check(f"torch: it runs, with {name}", clone.holds_winner("scaling.so", "../torch/scaling") is wanted)
        clone.touch()


def ccache(clone: Clone) -> None:
    cached = {"CCACHE_DIR": str(clone.folder / "ccache")}
    compile_it = ("nvcc", "-arch=sm_90", "-MD", "-MF", "c.d", "-c", "kernels/scale.cu", "-o", "c.o")
    for _ in range(2):
        clone.run("fsr-launch", "ccache", *compile_it, **cached)
        clone.check("ccache below: the winner", clone.holds_winner("c.o", "integrations"))
        clone.check("ccache below: the depfile", "kernels/scale.cu" in (clone.kernel.parents[1] / "c.d").read_text())
    clone.touch()
    clone.run("fsr-launch", "ccache", *compile_it, **cached)
    clone.check("ccache below: touched, the original", not clone.holds_winner("c.o", "integrations"))
    clone.restore()
    stamp = f"{clone.folder}/home/cache.db.sources/stamp"
    clone.run("ccache", *compile_it, CCACHE_PREFIX="fsr-launch", CCACHE_EXTRAFILES=stamp, **cached)
    clone.check("ccache above: the winner", clone.holds_winner("c.o", "integrations"))
    told = clone.run("ccache", "-s", **cached)
    clone.check("ccache: it has hits", re.search(r"Hits:\s+[1-9]", told) is not None)


def launcher(clone: Clone, runs: int) -> dict[str, Any]:
    """What a miss costs: whole processes, nvcc with and without the launcher, alternating; and the same bytes."""
    other = clone.folder / "fsr" / "integrations" / "kernels" / "other.cu"
    other.write_text("__global__ void other(float *x) { x[threadIdx.x] = 1.0f; }\n")
    plain = ["nvcc", "-arch=sm_90", "--cubin", "kernels/other.cu", "-o"]
    clone.run(*plain, "plain.cubin")
    clone.run("fsr-launch", *plain, "launched.cubin")
    where = clone.folder / "fsr" / "integrations"
    same = (where / "plain.cubin").read_bytes() == (where / "launched.cubin").read_bytes()
    clone.check("launcher: a miss gives the same bytes", same)
    bare = list(_times(clone, ["/bin/true", "kernels/other.cu"], runs * 5))
    through = list(_times(clone, ["fsr-launch", "/bin/true", "kernels/other.cu"], runs * 5))
    whole = [statistics.median(_times(clone, [*start, *plain, "x.cubin"], runs)) for start in ([], ["fsr-launch"])]
    added = statistics.median(through) - statistics.median(bare)
    clone.check(f"launcher: a miss costs at most {LIMIT_MS:g} ms", added <= LIMIT_MS)
    other.unlink()
    return {
        "added_ms": round(added, 2), "added_p95_ms": round(sorted(through)[int(len(through) * 0.95)], 2),
        "nvcc_ms": round(whole[0], 1), "fsr_launch_nvcc_ms": round(whole[1], 1),
    }  # fmt: skip


def _times(clone: Clone, words: Sequence[str], runs: int) -> Iterator[float]:
    for _ in range(runs):
        started = time.perf_counter()
        clone.run(*words)
        yield (time.perf_counter() - started) * 1e3


PARTS: dict[str, Callable[[Clone], None]] = {
    "cmake": cmake, "manifest": manifest, "ninja": ninja, "make": make, "ccache": ccache,
    "setuptools": setuptools, "bazel": bazel, "torch": torch,
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Ends with 0 when every check holds."""
    parser = argparse.ArgumentParser(description="Builds with winners.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="launcher," + ",".join(part for part in PARTS if part != "torch"))
    parser.add_argument("--runs", type=int, default=10)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    told: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="fsr-builds-") as name:
        clone = prepared(Path(name))
        for part in options.only.split(","):
            if part == "launcher":
                told["launcher"] = launcher(clone, options.runs)
            else:
                PARTS[part](clone)
            clone.restore()
        told["checks"] = clone.checks
    (options.out / "builds.json").write_text(json.dumps(told, indent=1) + "\n")
    print(json.dumps(told.get("launcher", {})))
    return 0 if all(check["holds"] for check in clone.checks) else 1


if __name__ == "__main__":
    sys.exit(main())
