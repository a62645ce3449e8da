"""``fsr cache key|trust|export|import``: winners that go from one machine to another."""

from __future__ import annotations

import os
from pathlib import Path

import click

from fsr.cache.store import Store
from fsr.errors import EXIT_DONE, StorageError, UsageError
from fsr.report.words import number_text
from fsr.settings import Settings, read_settings


@click.command("key")
def key_command() -> None:
    """Print this user's public key, made on first use: others give it to `fsr cache trust`."""
    from fsr.cache.signing import Keys

    click.echo(Keys(read_settings().home).own())


@click.command("trust")
@click.argument("name")
@click.argument("key")
def trust_command(name: str, key: str) -> None:
    """Take in winners that KEY has signed, under NAME; to end it, delete keys/trusted/NAME.pub in the home folder."""
    from fsr.cache.signing import Keys

    Keys(read_settings().home).trust(name, key)
    click.echo(f"winners signed by {name} can be imported")


@click.command("export")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--key", "prefixes", multiple=True, help="Only winners whose key begins so; several may be given.")
def export_command(file: Path, prefixes: tuple[str, ...]) -> None:
    """Write the measured winners into one signed FILE."""
    from fsr.cache.bundle import packed
    from fsr.cache.signing import Keys

    settings = read_settings()
    with Store(Path(settings.cache)) as store:
        found = [e for row, e in store.entries() if e is not None and row["key"].startswith(prefixes or ("",))]
    found = [entry for entry in found if entry.basis == "measured"]
    if not found:
        raise UsageError("there is no measured winner to export", fix="`fsr cache list` shows what is stored")
    data = packed(found, Keys(settings.home))
    try:
        draft = file.with_name(f".{file.name}.{os.getpid()}")
        draft.write_bytes(data)
        draft.replace(file)
    except OSError as fault:
        raise StorageError(f"the bundle cannot be written: {fault.strerror}", where=str(file)) from None
    click.echo(f"{number_text(len(found), 'winner')} in {file}")


@click.command("import")
@click.argument("source", metavar="FILE|URL")
def import_command(source: str) -> int:
    """Take the winners of a signed FILE, or of one behind a URL, into quarantine, where they are kept until `fsr cache
    verify KERNEL...` has tested and timed them on this machine. A URL is fetched again only when it changed."""
    from fsr.cache.remote import Remote, is_address

    settings = read_settings()
    if not is_address(source):
        try:
            data = Path(source).read_bytes()
        except OSError as fault:
            raise UsageError(f"the bundle cannot be read: {fault.strerror}", where=source) from None
        _take_in(data, settings)
        return EXIT_DONE
    remote = Remote(source, Path(f"{settings.cache}.remote"))
    fetched = remote.fetch()
    if fetched.data is None:
        click.echo(f"{source} is as it was: nothing is new")
        return EXIT_DONE
    _take_in(fetched.data, settings)
    remote.taken(fetched)
    return EXIT_DONE


def _take_in(data: bytes, settings: Settings) -> None:
    from fsr.cache.bundle import unpacked
    from fsr.cache.quarantine import take_in
    from fsr.cache.signing import Keys

    bundle = unpacked(data, Keys(settings.home))
    with Store(Path(settings.cache)) as store:
        count = take_in(store, bundle)
    click.echo(
        f"{number_text(count, 'winner')} of {bundle.name} in quarantine; "
        "`fsr cache verify KERNEL...` tests what is there and serves what holds"
    )


SHARING = (key_command, trust_command, export_command, import_command)
