"""``fsr contract``: show what a kernel promises, or infer it, and write it down."""

from __future__ import annotations

import json
from pathlib import Path

import click

from fsr.cli.options import source_options
from fsr.errors import EXIT_DONE, StorageError


@click.command("contract")
@click.argument("kernel", type=click.Path(path_type=Path))
@source_options
@click.option("--write", is_flag=True, help="Write the contract into the file, or into the sidecar it came from.")
@click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON object.")
def contract_command(
    kernel: Path, entry: str | None, include_dirs: tuple[str, ...], defines: tuple[str, ...], write: bool, as_json: bool
) -> int:
    """Show what KERNEL promises, as the block that states it.

    The contract comes from the block in the file, from KERNEL.fsr.toml beside it, or from the code itself.
    Where the code leaves doubt, the message holds a block to complete. The format: docs/contract.md.
    """
    from fsr.contract.show import contract_block, contract_toml
    from fsr.identity import to_json
    from fsr.runs.kernel import load_kernel

    loaded = load_kernel(kernel, entry, include_dirs, defines)
    contract = loaded.contract
    sidecar = contract.origin.kind == "sidecar"
    if write:
        written = Path(contract.origin.path) if sidecar else kernel
        _write(loaded.file, contract, written)
    if as_json:
        click.echo(json.dumps(to_json(contract)))
    else:
        told = {
            "block": "stated in the file",
            "sidecar": "stated beside the file",
            "inferred": "inferred from the code",
        }
        click.echo(f"{told[contract.origin.kind]}: {contract.origin.path}:{contract.origin.line}", err=True)
        click.echo(contract_toml(contract) if sidecar else contract_block(contract), nl=False)
    if write:
        click.echo(f"written to {written}", err=True)
    return EXIT_DONE


def _write(file: object, contract: object, path: Path) -> None:
    from fsr.contract.model import Contract
    from fsr.contract.show import contract_toml, with_block
    from fsr.source.file import KernelFile

    assert isinstance(file, KernelFile) and isinstance(contract, Contract)  # noqa: PT018
    text = contract_toml(contract) if contract.origin.kind == "sidecar" else with_block(file.text, contract)
    draft = path.with_name(f".{path.name}.fsr-draft")
    try:
        draft.write_bytes(KernelFile.encode(text))
        draft.replace(path)
    except OSError as fault:
        draft.unlink(missing_ok=True)
        raise StorageError(
            f"the contract cannot be written: {fault.strerror}", expected="a file and a folder that may be written",
            where=str(path), fix="correct the permissions, or paste by hand what fsr contract prints without --write",
        ) from None  # fmt: skip
