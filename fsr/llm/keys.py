"""Keys of hosted models: from the environment or the keyring, and to nobody but the host that they are for."""

from __future__ import annotations

from collections.abc import Mapping

from fsr.errors import UsageError
from fsr.llm.named import ModelSpec

# Variables that belong to one host; any other host's must be named in the configuration, so that no key goes astray.
OF_HOSTS: Mapping[str, str] = {"api.openai.com": "OPENAI_API_KEY", "openrouter.ai": "OPENROUTER_API_KEY"}
ANY_HOST = "FSR_LLM_KEY"
KEYRING_SERVICE = "fsr"
REDACTED = "[key]"


def find_key(spec: ModelSpec, environment: Mapping[str, str]) -> str:
    """The key for a hosted model; '' for one on this machine that needs none. Raises UsageError where there is none."""
    name = spec.key or OF_HOSTS.get(spec.host, ANY_HOST)
    key = environment.get(name, "") or _from_keyring(spec.host)
    if not key and spec.leaves:
        raise UsageError(
            f"no key for {spec.host}", expected=f"the environment variable {name}, or the keyring",
            where="--llm", fix=f"export {name}=..., or: keyring set {KEYRING_SERVICE} {spec.host}",
        )  # fmt: skip
    return key.strip()


def _from_keyring(host: str) -> str:
    try:
        import keyring
    except ImportError:
        return ""
    try:
        return keyring.get_password(KEYRING_SERVICE, host) or ""
    except Exception:  # a locked or missing keyring is as good as none
        return ""


def redacted(text: str, key: str) -> str:
    """The text without the key: servers like to repeat what they refuse."""
    return text.replace(key, REDACTED) if key else text
