"""Keys and signatures of what caches exchange: Ed25519 (RFC 8032) by the package ``cryptography``.

In the home folder lie ``keys/private.pem``, this user's own key, and ``keys/trusted/NAME.pub``, one line of hexadecimal
digits for every other whose winners are taken in.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from fsr.errors import MissingToolError, TrustError, UsageError

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        PublicFormat,
        load_pem_private_key,
    )
except ImportError:
    raise MissingToolError(
        "sharing winners needs the package cryptography", expected="it to sign and to check signatures",
        fix="pip install 'fsr[share]'",
    ) from None  # fmt: skip

_CONTEXT = b"fsr-bundle 1\n"  # a signature of something else is none of a bundle


class Keys:
    """The keys of a home folder."""

    def __init__(self, home: str | os.PathLike[str]) -> None:
        self._private = Path(home) / "keys" / "private.pem"
        self._trusted = Path(home) / "keys" / "trusted"

    def own(self) -> str:
        """The public key of this user, in hex; the pair is made where there is none."""
        return _hex(self._load().public_key())

    def sign(self, data: bytes) -> str:
        """The signature of ``data`` with this user's key, in hex."""
        return self._load().sign(_CONTEXT + data).hex()

    def trust(self, name: str, key: str) -> None:
        """Take in what this key signs, from now on. Raises UsageError for what is no name or no key."""
        if not re.fullmatch(r"[\w.-]{1,64}", name) or name.startswith("."):
            raise UsageError(f"{name!r} is no name for a key", expected="letters, digits, '.', '_' and '-'")
        if not re.fullmatch(r"[0-9a-f]{64}", key):
            raise UsageError(f"{key!r} is no public key", expected="64 hexadecimal digits, as `fsr cache key` prints")
        self._trusted.mkdir(parents=True, exist_ok=True)
        (self._trusted / f"{name}.pub").write_text(key + "\n")

    def trusted(self) -> dict[str, str]:
        """Public key to name, this user's own ('own') among them."""
        found = {path.read_text().strip(): path.stem for path in sorted(self._trusted.glob("*.pub"))}
        if self._private.is_file():
            found[self.own()] = "own"
        return found

    def require(self, signer: str, data: bytes, signature: str) -> str:
        """The name of the trusted signer of ``data``. Raises TrustError when the signer is not trusted or the
        signature is not his."""
        name = self.trusted().get(signer)
        if name is None:
            raise TrustError(
                f"signed by {signer[:16]}..., whom this machine does not trust",
                fix="if you know the key: `fsr cache trust NAME KEY`",
            )
        try:
            Ed25519PublicKey.from_public_bytes(bytes.fromhex(signer)).verify(bytes.fromhex(signature), _CONTEXT + data)
        except (InvalidSignature, ValueError):
            raise TrustError(
                f"the signature is not that of {name}: the content was changed", fix="have it sent again"
            ) from None
        return name

    def _load(self) -> Ed25519PrivateKey:
        if not self._private.exists():
            made = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            self._private.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft = self._private.with_name(f".private.{os.getpid()}")
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(made)
            try:
                os.link(draft, self._private)  # the first of two processes wins
            except FileExistsError:
                pass
            finally:
                draft.unlink()
        try:
            key = load_pem_private_key(self._private.read_bytes(), None)
        except (ValueError, TypeError) as fault:
            raise TrustError(f"the key cannot be used: {fault}", where=str(self._private)) from None
        if not isinstance(key, Ed25519PrivateKey):
            raise TrustError("the key is of another kind", expected="Ed25519", where=str(self._private))
        return key


def _hex(key: Ed25519PublicKey) -> str:
    return key.public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
