"""``fsr lookup`` as a command: one kernel, many, or a manifest. Loads no more than what was asked for needs."""

from __future__ import annotations

from fsr.cache.layers import Found, Layers
from fsr.cache.lookup import TIERS, write_files
from fsr.errors import EXIT_DONE, EXIT_MISS, FsrError, UsageError
from fsr.given import as_key, checked_define, checked_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

USAGE = """usage: fsr lookup KERNEL [--entry NAME] [-I FOLDER] [-D NAME[=VALUE]] [--device cuda:N]
                  [--tier exact|driver|arch] [-o OUT] [--json] [--queue]
       fsr lookup --batch [KERNEL...] [--queue]
       fsr lookup --manifest FILE [--compile FLAGS] KERNEL|FOLDER...
       fsr lookup --explain KERNEL [--json]
       fsr lookup --unused KERNEL|FOLDER... [--json]

Prints the path of the winner for this hardware and exits 0; exits 3 when the cache holds none. -I and -D, long
--include-dir and --define, as `fsr refine` was given them: a winner under other folders or macros is none. --queue
leaves a job for `fsr daemon` where there is none.
--batch answers for many kernels, named or one a line on standard input, with a JSON object a line; exits 3 when
one has no winner. --manifest writes which winners a build with the compiler flags FLAGS may use, as a flat file;
the file is left alone when nothing changed. --explain, or `fsr lookup explain`, says which part of the key missed.
--unused names kernels with a verified winner for any hardware that KERNEL.fsr.cu does not hold; exits 1 when there
are any."""
_VALUES = {
    "--entry": "entry", "--device": "device", "--tier": "tier", "-o": "o", "--out": "o", "--manifest": "manifest",
    "--compile": "compile",
}  # fmt: skip
_FOLDERS, _MACROS = ("include_dirs", checked_folder), ("defines", checked_define)
_LISTED = {"-I": _FOLDERS, "--include-dir": _FOLDERS, "-D": _MACROS, "--define": _MACROS}
_SWITCHES = {"--json": "json", "--batch": "batch", "--explain": "explain", "--unused": "unused",
             "--queue": "queue"}  # fmt: skip


def main(arguments: list[str], layers: Layers, home: str = "") -> int:
    """The command; returns its exit code. Prints to standard output only what was asked for. ``home``: that of the
    queue of jobs."""
    import sys

    try:
        options = _parse(arguments)
        if options is None:
            print(USAGE)
            return EXIT_DONE
        options["home"] = home
        if options["batch"] or options["manifest"] or options["explain"] or options["unused"]:
            from fsr.builds.many import answer

            return answer(options, _index(options["device"]), layers)
        kernel = str(options["kernels"][0])
        found = layers.find(
            kernel, entry=options["entry"], device=_index(options["device"]), tier=options["tier"] or "exact",
            given=as_key(kernel, options["include_dirs"], options["defines"]),
        )  # fmt: skip
        if found is None:
            if options["queue"]:
                from fsr.builds.many import queue

                queue(kernel, options)
            print(f"fsr lookup: no measured winner for {kernel} on this hardware; `fsr refine {kernel}` looks for one, "
                  f"`fsr lookup --explain {kernel}` says what is stored", file=sys.stderr)  # fmt: skip
            return EXIT_MISS
        paths = write_files(found.hit, options["o"] or found.place)
        print(_json(found, paths) if options["json"] else paths[0])
    except FsrError as fault:
        print(f"fsr: {fault}", file=sys.stderr)
        return fault.exit_code
    return EXIT_DONE


def _json(found: Found, paths: list[str]) -> str:
    import json

    body = json.loads(found.hit.body)
    told = {
        "status": "hit", "tier": found.hit.tier, "basis": body["basis"], "entry": body["key"]["entry"],
        "files": paths, "device": body["device"], "evidence": body["evidence"],
    }  # fmt: skip
    return json.dumps(told)


def _index(text: str | None) -> int:
    name, _, number = (text or "cuda:0").partition(":")
    if name not in ("cuda", "auto") or not ((number or "0").isdecimal() and number.isascii() and len(number) <= 3):
        raise UsageError(f"unknown device {text!r}", expected="cuda:N", fix="for example --device cuda:0")
    return int(number or "0")


def _parse(arguments: list[str]) -> dict[str, Any] | None:
    options: dict[str, Any] = dict.fromkeys((*_VALUES.values(), *_SWITCHES.values()))
    kernels: list[str] = []
    options |= {"kernels": kernels, "include_dirs": [], "defines": []}
    rest = list(arguments)
    if rest[:1] == ["explain"]:
        rest[0] = "--explain"
    while rest:
        word = rest.pop(0)
        if word in ("-h", "--help"):
            return None
        if word[:2] in _LISTED and word not in _LISTED:  # -DNAME=3
            rest.insert(0, word[2:])
            word = word[:2]
        if word in _SWITCHES:
            options[_SWITCHES[word]] = True
        elif word in _VALUES:
            options[_VALUES[word]] = _value(word, rest)
        elif word in _LISTED:
            name, checked = _LISTED[word]
            options[name].append(checked(_value(word, rest)))
        elif word.startswith("-"):
            raise UsageError(f"unexpected {word!r}", where="fsr lookup", fix="see `fsr lookup --help`")
        else:
            kernels.append(word)
    _check(options)
    return options


def _value(word: str, rest: list[str]) -> str:
    if not rest:
        raise UsageError(f"{word} needs a value", where="fsr lookup", fix="see `fsr lookup --help`")
    return rest.pop(0)


def _check(options: dict[str, Any]) -> None:
    kernels = options["kernels"]
    if len(kernels) > 1 and not (options["batch"] or options["manifest"] or options["unused"]):
        raise UsageError(f"unexpected {kernels[1]!r}", where="fsr lookup", fix="name several with --batch")
    if not kernels and not options["batch"]:
        raise UsageError("no kernel named", expected="fsr lookup KERNEL", fix="see `fsr lookup --help`")
    if options["tier"] not in (None, *TIERS):
        raise UsageError(
            f"unknown tier {options['tier']!r}", expected="exact, driver or arch", fix="see `fsr lookup --help`"
        )
    asked = [name for name in ("batch", "manifest", "explain", "unused") if options[name]]
    given = ["include-dir" if options["include_dirs"] else "", "define" if options["defines"] else ""]
    only = [name for name in ("compile",) if options[name] and not options["manifest"]]
    only += [name for name in given if name and (options["manifest"] or options["unused"])]
    only += ["queue"] if options["queue"] and asked not in ([], ["batch"]) else []
    if len(asked) > 1 or only:
        raise UsageError(
            " and ".join(f"--{name}" for name in [*asked, *only]) + " do not go together", where="fsr lookup",
            fix="write folders and macros into --compile FLAGS" if options["manifest"] else "see `fsr lookup --help`",
        )  # fmt: skip
