"""How models are named, what is refused, and where keys come from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fsr.errors import UsageError
from fsr.llm.keys import find_key, redacted
from fsr.llm.named import ROLES, read_spec

URL = "https://api.example.com/v1#big"


def test_a_hosted_model_by_its_address() -> None:
    spec = read_spec(URL, {})
    assert (spec.name, spec.url, spec.model) == ("big@api.example.com", "https://api.example.com/v1", "big")
    assert spec.leaves
    assert spec.dollars(10, 10) is None
    here = read_spec("http://localhost:11434/v1#qwen", {})
    assert (here.name, here.leaves, here.dollars(10, 10)) == ("qwen@localhost:11434", False, 0.0)


def test_a_small_local_model_chooses_and_a_large_one_has_every_role(tmp_path: Path) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(b"GGUF")
    spec = read_spec(f"local:{path}", {})
    assert (spec.name, spec.local, spec.roles, spec.context) == ("local:tiny", True, ("chooser",), 4096)
    with path.open("r+b") as file:
        file.truncate(2_000_000_000)
    assert read_spec(f"local:{path}", {}).roles == ROLES


def test_a_name_of_the_configuration() -> None:
    table = {"use": URL, "dollars_in": 0.5, "dollars_out": 2, "roles": ["coder"], "key": "EXAMPLE_API_KEY"}
    spec = read_spec("coder", {"coder": table})
    assert (spec.name, spec.roles, spec.dollars(1_000_000, 1_000_000)) == ("coder", ("coder",), 2.5)
    assert find_key(spec, {"EXAMPLE_API_KEY": " k \n", "OPENAI_API_KEY": "other"}) == "k"


@pytest.mark.parametrize(
    ("name", "table", "said"),
    [
        ("gpt", {}, "local:PATH or URL#MODEL"),
        ("local:/nowhere.gguf", {}, "no model file"),
        ("https://user:pass@api.example.com/v1#m", {}, "holds a user"),
        ("ftp://api.example.com#m", {}, "URL#MODEL"),
        ("c", {"roles": ["coder"]}, "without its place"),
        ("c", {"use": URL, "price": 1}, "unknown setting 'price'"),
        ("c", {"use": URL, "roles": ["poet"]}, "unknown role"),
        ("c", {"use": URL, "context": 0}, "context is 0"),
        ("c", {"use": URL, "dollars_in": -1}, "dollars_in is -1"),
        ("c", {"use": URL, "key": "sk-1234567890"}, "no name of an environment variable"),
        ("c", {"use": URL, "key": "HOME"}, "no name of an environment variable"),
    ],
)
def test_what_cannot_be_is_refused_and_no_key_repeated(name: str, table: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as fault:
        read_spec(name, {"c": table} if table else {})
    assert said in str(fault.value)
    assert "sk-1234567890" not in str(fault.value)


def test_no_host_gets_the_key_of_another() -> None:
    keys = {"OPENAI_API_KEY": "theirs"}
    assert find_key(read_spec("https://api.openai.com/v1#m", {}), keys) == "theirs"
    with pytest.raises(UsageError, match=r"no key for api\.example\.com"):
        find_key(read_spec(URL, {}), keys)
    assert find_key(read_spec("http://localhost:1/v1#m", {}), keys) == ""
    assert redacted("the key k1 is bad", "k1") == "the key [key] is bad"
