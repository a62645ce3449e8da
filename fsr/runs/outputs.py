"""Writing what a run found: the winner, its launcher, its evidence; all or nothing."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from fsr.contract.show import with_block
from fsr.errors import StorageError, UsageError
from fsr.records import Candidate, Json, Plan
from fsr.runs.kernel import Kernel
from fsr.source.folding import as_handed_out, folded
from fsr.source.launched_structures import structures_of
from fsr.source.launcher import launcher_header
from fsr.source.output import render_output
from fsr.source.parse import parse_kernels
from fsr.source.tokens import renamed

OURS = b"// Launches what replaces "  # how fsr/source/launcher.py begins a header


def require_writable(output: Path, kernel: Path) -> None:
    """Fail before the search rather than after it. Raises StorageError; UsageError when the output would replace
    the kernel or is a folder or device."""
    if output.exists() and (not output.is_file() or (kernel.exists() and output.samefile(kernel))):
        raise UsageError(
            f"the output is {'the kernel itself' if output.is_file() else 'no plain file'}",
            expected="a file of its own", where=str(output), fix="name another with -o OUT",
        )  # fmt: skip
    folder = output.parent
    while not folder.exists() and folder != folder.parent:  # made when there is something to write, not before
        folder = folder.parent
    if not folder.is_dir():
        raise _unwritable(folder, "it is no folder")
    if not os.access(folder, os.W_OK) or (output.exists() and not os.access(output, os.W_OK)):
        raise _unwritable(folder, "permission denied")
    try:
        output.resolve(strict=True)
    except FileNotFoundError:
        pass
    except (OSError, RuntimeError) as fault:
        raise _unwritable(output, getattr(fault, "strerror", None) or "a link that leads to itself") from None
    try:  # what the access bits do not say: a file system that takes no files, or has no room for names
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".fsr-"):
            pass
    except OSError as fault:
        raise _unwritable(folder, fault.strerror or str(fault)) from None


def same_launch(kernel: Kernel, candidate: Candidate) -> bool:
    """Whether the candidate is launched exactly as the original: one launch of the same grid, block, arguments."""
    old, new = _plain(kernel.baseline.plan), _plain(candidate.plan)
    return old == new


def published(kernel: Kernel, candidate: Candidate) -> Candidate:
    """The candidate as it is handed out. When its launch differs from the original's, its kernel gets a name of its
    own (``softmax_fsr``) and the original stays in the file: a call site that nobody changed then runs the original,
    where the new kernel under the old launch would compute something else without a word. So it does when it takes
    members of structures, and cannot have the structures again."""
    if same_launch(kernel, candidate):
        structures = kernel.contract.structures
        handed = as_handed_out(candidate, kernel.contract.plan, kernel.contract.entry, structures)
        if len(handed) == len(structures):
            return candidate
    old = kernel.unit.kernel.rpartition("::")[2]
    new = f"{old}_fsr"
    while re.search(rf"\b{new}\b", kernel.file.text) or re.search(rf"\b{new}\b", candidate.source):
        new += "_"
    launches = tuple(replace(launch, entry=renamed(launch.entry, old, new)) for launch in candidate.plan.launches)
    plan = replace(candidate.plan, launches=launches)
    return replace(candidate, source=renamed(candidate.source, old, new), plan=plan)


def _plain(plan: Plan) -> Plan:
    return replace(plan, flags=())


def render_files(kernel: Kernel, candidate: Candidate, evidence: Mapping[str, Json], stem: str) -> dict[str, str]:
    """Name to text of the files a build uses: the output, and the launcher header when the launch changed.

    ``candidate``: as :func:`published` gives it."""
    suffix = kernel.file.path.suffix or ".cu"
    spliced = folded(candidate.source, kernel.contract.structures, unchanged=False)
    taken = structures_of(kernel.contract)
    text = render_output(kernel.file, kernel.unit, replace(candidate, source=spliced), dict(evidence), taken)
    alone = len({k.name for k in kernel.contract.structures} - {kernel.unit.kernel}) == 0
    if not same_launch(kernel, candidate) and kernel.contract.origin.kind == "block" and alone:
        entry = candidate.plan.launches[0].entry  # the block in the file names the old kernel and its launch
        own = tuple(replace(a, member="") for a in kernel.contract.args)  # of structures it takes the members
        text = with_block(text, replace(kernel.contract, entry=entry, plan=candidate.plan, args=own, structures=()))
    files = {f"{stem}{suffix}": text}
    if not same_launch(kernel, candidate):
        forms = {**parse_kernels(kernel.baseline.source), **parse_kernels(candidate.source)}
        files[f"{stem}.cuh"] = launcher_header(kernel.contract.entry, kernel.contract, candidate.plan, forms)
    return files


def write_outputs(files: Mapping[str, str], evidence: Mapping[str, Json], output: Path) -> dict[str, str]:
    """Write the files beside ``output`` and the evidence as JSON; kind to path. Nothing is left half-written: each
    file is written beside its place and moved there when all of them are complete. Raises StorageError."""
    texts = {output.parent / name: text for name, text in files.items()}
    texts[output.with_suffix(".json")] = json.dumps(dict(evidence), indent=2) + "\n"
    drafts: dict[Path, Path] = {}
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            draft = path.with_name(f".{path.name}.{os.getpid()}")
            drafts[path] = draft
            draft.write_bytes(text.encode("utf-8", "surrogateescape"))
        for path, draft in drafts.items():
            draft.replace(path)
        launcher = output.with_suffix(".cuh")
        if launcher not in texts and launcher.is_file() and launcher.read_bytes().startswith(OURS):
            launcher.unlink()  # of an earlier winner: it launches a kernel that is not in the output any more
    except OSError as fault:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)
        raise _unwritable(output.parent, fault.strerror or str(fault)) from None
    kinds = {".cuh": "launcher", ".json": "evidence"}
    return {kinds.get(path.suffix, "source"): str(path) for path in texts}


def _unwritable(folder: Path, why: str) -> StorageError:
    return StorageError(
        f"the output cannot be written: {why}", expected="a folder with space that you may write to",
        where=str(folder), fix="name another place with -o OUT",
    )  # fmt: skip
