"""A team's cache behind HTTP, read through: what a lookup misses here is asked of another machine's daemon, once an
hour.

The other side answers with a bundle of its winners for one source (fsr.cache.bundle), signed with its own key; it takes
nothing in. Only what a trusted key has signed is kept, in a database of its own beside the user's, from which lookups
are served as from a system cache. An answer that is older than one seen before is refused: it could bring back what was
withdrawn. Nothing here is loaded by a lookup that hits, or that has asked lately.
"""

from __future__ import annotations

import os
import sys
import time

from fsr.errors import FsrError, TrustError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fsr.cache.entry import Entry

ANSWER_S, FAILURE_S = 3600.0, 300.0  # until an answer, and a server that gave none, are asked again
REFUSED_S = 5.0  # until an answer is asked for again that was refused, or refused us: somebody is about to mend that
TIMEOUT_S = 3.0
SUFFIX = ".remote"


class ReadThrough:
    """address: of the daemon, http://HOST:PORT. token: of its API, '' for none. home: where the trusted keys lie.
    database: of the copies, made when something is kept."""

    __slots__ = ("_notes", "address", "database", "home", "token")

    def __init__(self, address: str, token: str, home: str, user: str) -> None:
        self.address, self.token, self.home = address.rstrip("/"), token, home
        self.database, self._notes = f"{user}{SUFFIX}.db", f"{user}{SUFFIX}.asked"

    def asked_lately(self, source: str) -> bool:
        """Whether an answer of this source, by its digest, is still good."""
        try:
            return os.stat(self._note(source)).st_mtime > time.time()  # noqa: PTH116
        except OSError:
            return False

    def ask(self, source: str) -> None:
        """Bring the copies of a source's winners to what the other side has. Whatever goes wrong is said on standard
        error and costs nothing but the hit."""
        try:
            self._keep(source, self._fetched(source))
            good_s = ANSWER_S
        except (FsrError, OSError, ValueError) as fault:
            good_s = REFUSED_S if isinstance(fault, TrustError | PermissionError) else FAILURE_S
            print(f"fsr: remote cache {self.address}: {str(fault).splitlines()[0]}", file=sys.stderr)
        try:
            os.makedirs(self._notes, exist_ok=True)  # noqa: PTH103
            with open(self._note(source), "a"):  # noqa: PTH123
                pass
            until = time.time() + good_s
            os.utime(self._note(source), (until, until))
        except OSError:
            return  # it is asked again at the next lookup

    def _note(self, source: str) -> str:
        return f"{self._notes}/{source}"

    def _fetched(self, source: str) -> bytes | None:
        """The bundle for a source, None where the other side has no winner. Raises OSError."""
        import urllib.error
        import urllib.request
        from http import HTTPStatus

        from fsr.cache.bundle import MOST_BYTES

        class Stays(urllib.request.HTTPRedirectHandler):
            """The token goes to its own host only."""

            def redirect_request(self, *_: object) -> None:
                return None

        headers = {"User-Agent": "fsr", "Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        request = urllib.request.Request(f"{self.address}/api/winners/{source}", headers=headers)
        try:
            with urllib.request.build_opener(Stays).open(request, timeout=TIMEOUT_S) as answer:
                data: bytes = answer.read(MOST_BYTES + 1)
                return data
        except urllib.error.HTTPError as fault:
            fault.close()
            if fault.code == HTTPStatus.NOT_FOUND and fault.headers.get_content_type() == "application/json":
                return None
            if fault.code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                raise PermissionError(f"it refuses the token ({fault.code}): FSR_REMOTE_TOKEN") from None
            raise OSError(f"{fault.code} {fault.reason}") from None
        except urllib.error.URLError as fault:
            raise OSError(str(fault.reason)) from None

    def _keep(self, source: str, data: bytes | None) -> None:
        """Replace the copies of a source. Raises TrustError, and StorageError where they cannot be kept."""
        from pathlib import Path

        if data is None and not Path(self.database).exists():
            return
        from fsr.cache.store import Store

        with Store(Path(self.database)) as store:
            entries: tuple[Entry, ...] = ()
            if data is not None:
                from fsr.cache.bundle import unpacked
                from fsr.cache.quarantine import note_serial
                from fsr.cache.signing import Keys

                bundle = unpacked(data, Keys(self.home))
                if any(entry.key.source != source for entry in bundle.entries):
                    raise TrustError("it answered with winners of another source")
                note_serial(store, bundle)
                entries = bundle.entries
            fresh = {entry.key.digest() for entry in entries}
            store.remove([row["key"] for row, entry in store.entries()
                          if row["source"] == source and (entry is None or row["key"] not in fresh)])  # fmt: skip
            for entry in entries:
                store.publish(entry)
