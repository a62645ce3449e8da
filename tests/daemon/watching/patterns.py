"""What people and their tools do to files, over a world that knows which kernels have what content.

The world's own model says what is expected: it reads includes by following them in its own texts.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

Content = tuple[str, ...]


class World:
    """A watched folder ``root`` and folders outside it. Every kernel's first line counts its contents up."""

    def __init__(self, base: Path, chance: random.Random, kernels: int = 12) -> None:
        self.root, self.outside, self.chance = base / "root", base / "outside", chance
        self.operations = self._count = 0
        self.begin()
        for folder in (self.root / "sub" / "deep", self.outside):
            folder.mkdir(parents=True)
        self.header, self.far = self.root / "sub" / "shared.cuh", self.outside / "far.cuh"
        self.write(self.header, "// shared\n")
        self.write(self.far, "// far\n")
        for number in range(kernels):
            self.write(self.root / "sub" / f"k{number}.cu", self.text(["shared.cuh"] if number % 3 == 0 else []))
        self.write(self.root / "far.cu", self.text(["../outside/far.cuh"]))
        self.write(self.root / "sub" / "deep" / "nested.cu", self.text(["../chain.cuh"]))
        self.write(self.root / "sub" / "chain.cuh", '#include "shared.cuh"\n')
        self.write(self.root / "host.cu", "int main() { return 0; }\n")

    def text(self, includes: list[str] | None = None) -> str:
        self._count += 1
        lines = [f"// {self._count}", *(f'#include "{name}"' for name in includes or [])]
        return "\n".join([*lines, "__global__ void k(float *x) { x[0] = 1.0f; }", ""])

    def changed(self, kernel: Path) -> str:
        """The kernel's text with another first line."""
        self._count += 1
        return f"// {self._count}\n" + kernel.read_text().partition("\n")[2]

    # ------------------------------------------------------------ operations, counted

    def write(self, path: Path, text: str) -> None:
        self._paced()
        self.operations += 2  # created or truncated, and written
        path.write_text(text)

    def move(self, source: Path, target: Path) -> None:
        self._paced()
        self.operations += 1
        source.replace(target)

    def remove(self, path: Path) -> None:
        self.operations += 1
        path.unlink()

    def link(self, path: Path, target: Path | str) -> None:
        self.operations += 1
        path.symlink_to(target)

    def begin(self) -> None:
        """From here on ``slowest`` tells the longest time between two operations: a busy machine makes of one save in
        steps two saves."""
        self.slowest, self._last = 0.0, time.monotonic()

    def _paced(self) -> None:
        now = time.monotonic()
        self.slowest, self._last = max(self.slowest, now - self._last), now

    def pick(self) -> Path:
        return Path(self.chance.choice(sorted(k for k in self.kernels() if "/sub/k" in k)))

    # ------------------------------------------------------------ what is true

    def kernels(self) -> dict[str, Content]:
        """Every kernel of the root, by the name that no link leads to where there is one, and what it consists of."""
        found: dict[str, Content] = {}
        for folder, folders, names in os.walk(self.root, followlinks=True):
            folders[:] = [name for name in folders if name not in (".git", ".fsr", "CMakeFiles")]
            for name in names:
                path = Path(folder, name)
                if path.suffix != ".cu" or name.startswith(".") or name.endswith(".fsr.cu") or not path.is_file():
                    continue
                real = path.resolve()
                own = real if self.root in real.parents and real.suffix == ".cu" else path
                content = self.content(own)
                if any("__global__" in text for text in content):
                    found[str(own)] = content
        return found

    def content(self, path: Path) -> Content:
        texts, seen, todo = list[str](), set[str](), [path]
        while todo:
            here = todo.pop(0)
            if str(here) in seen or not here.is_file():
                continue
            seen.add(str(here))
            texts.append(here.read_text())
            names = [line.split('"')[1] for line in texts[-1].splitlines() if line.startswith('#include "')]
            todo += [Path(os.path.normpath(here.parent / name)) for name in names]
        return tuple(texts)


def plain_write(world: World) -> None:
    kernel = world.pick()
    world.write(kernel, world.changed(kernel))


def write_in_parts(world: World) -> None:
    kernel, parts = world.pick(), 4
    text = world.changed(kernel)
    step = len(text) // parts + 1
    with kernel.open("w") as file:
        for at in range(0, len(text), step):
            file.write(text[at : at + step])
            file.flush()
            world.operations += 1
            time.sleep(0.02)


def rename_over(world: World) -> None:
    kernel = world.pick()
    draft = kernel.with_name(f".{kernel.name}.{world.chance.randrange(10**6)}.tmp")
    world.write(draft, world.changed(kernel))
    world.move(draft, kernel)


def vim(world: World) -> None:
    kernel = world.pick()
    text = world.changed(kernel)
    swap, probe, backup = kernel.with_name(f".{kernel.name}.swp"), kernel.with_name("4913"), Path(f"{kernel}~")
    world.write(swap, "swap")
    world.write(probe, "")
    world.remove(probe)
    world.move(kernel, backup)
    time.sleep(world.chance.uniform(0, 0.1))
    world.write(kernel, text)
    world.remove(backup)
    world.remove(swap)


def emacs(world: World) -> None:
    kernel = world.pick()
    lock, auto = kernel.with_name(f".#{kernel.name}"), kernel.with_name(f"#{kernel.name}#")
    world.link(lock, "someone@host.1234:5")
    world.write(auto, "half of it __global__")
    shutil.copy2(kernel, f"{kernel}~")
    world.write(kernel, world.changed(kernel))
    world.remove(auto)
    world.remove(lock)
    world.remove(Path(f"{kernel}~"))


def jetbrains(world: World) -> None:
    kernel = world.pick()
    new, old = Path(f"{kernel}___jb_tmp___"), Path(f"{kernel}___jb_old___")
    world.write(new, world.changed(kernel))
    world.move(kernel, old)
    world.move(new, kernel)
    world.remove(old)


def quick_saves(world: World) -> None:
    kernel = world.pick()
    for _ in range(world.chance.randint(2, 6)):
        world.write(kernel, world.changed(kernel))
        time.sleep(0.03)


def touched(world: World) -> None:
    for _ in range(5):
        kernel = world.pick()
        world.operations += 2
        os.utime(kernel)
        kernel.chmod(0o600)
        kernel.chmod(0o644)


def same_content(world: World) -> None:
    kernel = world.pick()
    world.write(kernel, kernel.read_text())


def header(world: World) -> None:
    world.write(world.header, f"// shared {world.text()}".replace("__global__", ""))


def header_outside(world: World) -> None:
    draft = world.far.with_suffix(".new")
    world.write(draft, f"// far {world.chance.random()}\n")
    world.move(draft, world.far)


def header_goes_and_comes(world: World) -> None:
    text = world.header.read_text()
    world.remove(world.header)
    time.sleep(0.1)
    world.write(world.header, text + "// and back\n")


def delete_and_create(world: World) -> None:
    kernel = world.pick()
    world.remove(kernel)
    world.write(kernel.with_name(f"k{world.chance.randrange(100, 10**6)}.cu"), world.text())


def moved_folder(world: World) -> None:
    folder = world.root / f"moved{world.chance.randrange(10**6)}"
    folder.mkdir()
    for number in range(3):
        world.write(folder / f"m{number}.cu", world.text())
    world.operations += 1
    folder.rename(folder.with_name(folder.name + "-on"))


def tree_from_elsewhere(world: World) -> None:
    folder = world.outside / f"tree{world.chance.randrange(10**6)}"
    (folder / "a" / "b").mkdir(parents=True)
    for place in ("a", "a/b"):
        world.write(folder / place / "t.cu", world.text())
    world.operations += 1
    folder.rename(world.root / folder.name)


def tree_removed(world: World) -> None:
    for folder in [p for p in sorted(world.root.iterdir()) if p.name.startswith(("tree", "moved", "linked", "copy"))][
        :4
    ]:
        world.operations += 5
        if folder.is_symlink():
            folder.unlink()
        else:
            shutil.rmtree(folder)


def copied_tree(world: World) -> None:
    source, target = world.outside / "source", world.root / f"copy{world.chance.randrange(10**6)}"
    shutil.rmtree(source, ignore_errors=True)
    (source / "x" / "y").mkdir(parents=True)
    for number in range(10):
        world.write(source / "x" / "y" / f"c{number}.cu", world.text(["../near.cuh"]))
    world.write(source / "x" / "near.cuh", f"// {world.chance.random()}\n")
    world.operations += 20
    shutil.copytree(source, target)


def linked_file(world: World) -> None:
    target, name = world.outside / f"l{world.chance.randrange(10**6)}.cu", world.root / "link.cu"
    world.write(target, world.text())
    draft = world.root / "link.tmp"
    world.link(draft, target)
    world.move(draft, name)
    time.sleep(1.5)  # it is followed by now
    world.write(target, world.changed(target))


def linked_folder(world: World) -> None:
    target = world.outside / f"folder{world.chance.randrange(10**6)}"
    target.mkdir()
    world.write(target / "in.cu", world.text())
    world.link(world.root / f"linked{world.chance.randrange(10**6)}", target)
    time.sleep(1.5)
    world.write(target / "later.cu", world.text())
    world.write(target / "in.cu", world.changed(target / "in.cu"))


def noise(world: World) -> None:
    build = world.root / "CMakeFiles"
    results = world.root / "sub" / ".fsr"
    for folder in (build, results):
        folder.mkdir(exist_ok=True)
    for number in range(10):
        world.write(build / f"CompilerId{number}.cu", world.text())
        world.write(results / f"k{number}.fsr.cu", world.text())
        world.write(world.root / "sub" / f"k{number}.fsr.cu", world.text())
        world.write(world.root / f"o{number}.o", "object")


def becomes_a_kernel(world: World) -> None:
    path = world.root / f"host{world.chance.randrange(10**6)}.cu"
    world.write(path, "int main() { return 0; }\n")
    time.sleep(1.0)
    world.write(path, world.text())


def git(world: World, *arguments: str) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "core.fsync=none"]
    subprocess.run(["git", *who, "-C", str(world.root / "repo"), *arguments], check=True, capture_output=True)


def checkout(world: World, files: int = 40) -> None:
    """Between two branches that differ in every file, a header among them."""
    repository = world.root / "repo"
    if not repository.exists():
        staging = world.outside / "repo"
        staging.mkdir()
        subprocess.run(["git", "init", "-q", "-b", "one", str(staging)], check=True)
        for branch in ("one", "two"):
            for number in range(files):
                (staging / f"g{number}.cu").write_text(world.text(["g.cuh"] if number % 4 == 0 else []))
            (staging / "g.cuh").write_text(f"// {branch}\n")
            for command in (["checkout", "-q", "-B", branch], ["add", "."], ["commit", "-q", "-m", branch]):
                who = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
                subprocess.run(["git", *who, "-C", str(staging), *command], check=True, capture_output=True)
        staging.rename(repository)
        world.operations += 1
        return
    head = (repository / ".git" / "HEAD").read_text()
    world.operations += 2 * files
    git(world, "checkout", "-q", "one" if "two" in head else "two")


PATTERNS: tuple[Callable[[World], None], ...] = (
    plain_write, write_in_parts, rename_over, vim, emacs, jetbrains, quick_saves, touched, same_content, header,
    header_outside, header_goes_and_comes, delete_and_create, moved_folder, tree_from_elsewhere, tree_removed,
    copied_tree, linked_file, linked_folder, noise, becomes_a_kernel, checkout,
)  # fmt: skip
STEPS_OF = {linked_file: 2, linked_folder: 2}
"""Patterns that wait in between: kernels may be told of that often."""
