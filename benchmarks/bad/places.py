"""Wrong options, settings, outputs, runs and caches that somebody thought of, one by one."""

from __future__ import annotations

import json
import resource
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from benchmarks.bad.inputs import (
    FAILED,
    KERNEL,
    LONG,
    MAY_PASS,
    REFUSED,
    TOOL,
    USAGE,
    Bad,
    Prepare,
    check,
    files,
    made,
    refine,
    then,
)  # fmt: skip


def elsewhere() -> Iterator[Bad]:
    """All of them."""
    for part in (options, outputs, settings, runs, caches):
        yield from part()


# ---------------------------------------------------------------- options


def options() -> Iterator[Bad]:
    budgets = (
        "99999999999h",
        "١٢s",
        "1e9",
        "-1",
        "0",
        "",
        " ",
        "5 minutes",
        "nan",
        "inf",
        "1" * 500,
        "0x10",
        "1h30m",
        "\n5m",
        "1e-9s",
    )
    for text in budgets:
        yield Bad(f"budget-{text[:12]!r}", "options", ("refine", "kernel.cu", "--budget", text), USAGE, files())
    numbers = ("0", "-1", "100000", "9" * 40, "1.5", "many", "", "١٢٣٤٥")
    for option in ("--workers", "--evaluations"):
        for text in numbers:
            if option == "--evaluations" and text in ("100000", "9" * 40, "١٢٣٤٥"):
                continue
            arguments = ("refine", "kernel.cu", "--device", "host", "--budget", "60s", option, text)
            yield Bad(f"{option}-{text[:8]!r}", "options", arguments, USAGE, files())
    for text in ("x", "1.5", "", "1e3"):
        yield Bad(f"seed-{text[:8]!r}", "options", refine("--seed", text), USAGE, files())
    for text in (
        "cuda",
        "cuda:",
        "cuda:-1",
        "cuda:x",
        "cuda:²",
        "gpu",
        "",
        "host:1",
        "CUDA:0",
        "cuda:0:0",
        "cuda:" + "9" * 400,
        "\n",
    ):
        yield Bad(f"device-{text[:10]!r}", "options", ("refine", "kernel.cu", "--device", text), USAGE | TOOL, files())
        if text:
            yield Bad(
                f"lookup-device-{text[:10]!r}",
                "options",
                ("lookup", "kernel.cu", "--device", text),
                USAGE | {3},
                files(),
            )
    for text in ("sm_9000", "sm_", "90", "", "sm_90; rm -rf /", "compute_90", "host", "SM-90", "sm_٩٠"):
        yield Bad(f"target-{text[:10]!r}", "options", ("features", "kernel.cu", "--target", text), USAGE, files())
        yield Bad(f"check-target-{text[:10]!r}", "options", check("kernel.cu", "--target", text), USAGE, files())
    for text in ("nobody", "", "row_sum<", "row_sum<int", LONG, "a\nb", "::", "row_sum; x", "r*w", "(" * 500):
        yield Bad(f"entry-{text[:10]!r}", "options", ("contract", "kernel.cu", "--entry", text), MAY_PASS, files())
        yield Bad(
            f"features-entry-{text[:10]!r}", "options", ("features", "kernel.cu", "--entry", text), REFUSED, files()
        )
    for text in ("nowhere:1", "", "ray://[", "\n", "127.0.0.1:1"):
        yield Bad(f"ray-{text[:10]!r}", "options", refine("--ray", text), REFUSED | TOOL, files())
    for words in (["refine"], ["refine", "a", "b"], ["--nope"], ["nonsense"], ["a\nb"], ["check", "k.cu"], ["cache"], ["runs", "x"],
                  ["lookup"], ["lookup", "a", "b"], ["lookup", "--tier"], ["lookup", "k.cu", "--tier", "x"], ["lookup", "--nope"],
                  ["cache", "prune"], ["cache", "prune", "--older-than", "nan"], ["cache", "prune", "--older-than", "-1"],
                  ["cache", "prune", "--older-than", "1e400"], ["cache", "show"], ["cache", "show", ""], ["cache", "show", "k\n"],
                  ["doctor", "x"], ["refine", "--", "--help"], ["contract"], ["features", "--json"], ["-"], ["\udcff"], [LONG * 4]):  # fmt: skip
        codes = MAY_PASS if words in (["cache"], ["cache", "prune", "--older-than", "1e400"]) else USAGE
        yield Bad(f"words-{' '.join(words)[:20]!r}", "options", tuple(words), codes, files())


# ---------------------------------------------------------------- where things go


def outputs() -> Iterator[Bad]:
    wrong = KERNEL.replace("ceil_div(rows, 64)", "ceil_div(rowz, 64)")
    yield Bad("missing-folder", "outputs", refine("-o", "a/b/c/out.cu"), USAGE, files(kernel_cu=wrong))
    for name in (
        "kernel.cu",
        ".",
        "/dev/null",
        "/dev/zero",
        "",
        "/proc/x.cu",
        LONG,
        "a\0b"[:1] + "\n.cu",
        "kernel.cu/x.cu",
        "./../work/kernel.cu",
    ):
        codes = REFUSED if name != "a\n.cu" else MAY_PASS
        yield Bad(f"out-{name[:14]!r}", "outputs", refine("-o", name), codes, files())
    for how in ("fifo", "folder", "loop", "zero"):
        yield Bad(f"out-{how}", "outputs", refine("-o", "out.cu"), REFUSED, then(files(), made(how, "out.cu")))

    def linked(work: Path, home: Path) -> None:
        (work / "out.cu").symlink_to("kernel.cu")

    yield Bad("out-link-to-kernel", "outputs", refine("-o", "out.cu"), USAGE, then(files(), linked))
    for size in (0, 1000, 100_000):
        limit = {resource.RLIMIT_FSIZE: size}
        yield Bad(f"file-size-{size}", "outputs", refine(), MAY_PASS, files(), limits=limit)
        yield Bad(f"file-size-{size}-check", "outputs", check("kernel.cu"), REFUSED | {0}, files(), limits=limit)
        yield Bad(
            f"file-size-{size}-write", "outputs", ("contract", "kernel.cu", "--write"), MAY_PASS, files(), limits=limit
        )
    for count in (4, 12, 24, 48):
        few = {resource.RLIMIT_NOFILE: count}
        yield Bad(f"open-files-{count}", "outputs", refine(), MAY_PASS, files(), limits=few)
        yield Bad(f"open-files-{count}-contract", "outputs", ("contract", "kernel.cu"), MAY_PASS, files(), limits=few)

    def locked(work: Path, home: Path) -> None:
        (work / "kernel.cu").chmod(0o444)
        work.chmod(0o555)

    yield Bad("read-only-folder", "outputs", refine(), FAILED, then(files(), locked), as_nobody=True)
    yield Bad(
        "read-only-write",
        "outputs",
        ("contract", "kernel.cu", "--write"),
        FAILED,
        then(files(), locked),
        as_nobody=True,
    )


# ---------------------------------------------------------------- settings


def settings() -> Iterator[Bad]:
    listing = ("runs", "list")
    for name, text in {
        "no-toml": "][", "unknown": "colour = 1", "workers-0": "workers = 0", "workers-text": 'workers = "many"', "workers-list": "workers = [1]",
        "workers-float": "workers = 1.5", "workers-true": "workers = true", "workers-huge": f"workers = {10**12}", "cache-number": "cache = 7", "cache-list": "cache = []",
        "cache-empty": 'cache = ""', "cache-nul": 'cache = "a\\u0000b"', "cache-folder": 'cache = "/"', "bom": "\ufeffworkers = 1", "latin": b"# \xe9\nworkers = 1",
        "nul": b"\0", "deep": "a = " + "[" * 9000, "utf-16": "workers = 1".encode("utf-16"),
    }.items():  # fmt: skip

        def write(work: Path, home: Path, text: str | bytes = text) -> None:
            (home / "config.toml").write_bytes(text.encode() if isinstance(text, str) else text)

        for arguments in (listing, ("lookup", "kernel.cu"), ("cache", "list")):
            passes = {0, 3} if name in ("cache-folder", "workers-huge", "cache-empty") else set()
            codes = REFUSED | passes
            yield Bad(f"config-{name}-{arguments[0]}", "settings", arguments, codes, then(files(), write))
        if name == "workers-huge":
            yield Bad(f"config-{name}-refine", "settings", refine(), USAGE, then(files(), write))
    for how in ("fifo", "folder", "loop", "zero", "unreadable", "sparse"):

        def placed(work: Path, home: Path, how: str = how) -> None:
            made(how, "config.toml")(home, home)

        yield Bad(f"config-{how}", "settings", listing, MAY_PASS, then(files(), placed), as_nobody=how == "unreadable")
    for key, value in (("FSR_WORKERS", "0"), ("FSR_WORKERS", "١"), ("FSR_WORKERS", "1e3"), ("FSR_WORKERS", "9" * 5000), ("FSR_WORKERS", "99999"), ("FSR_HOME", "/dev/null"),
                       ("FSR_HOME", "/proc"), ("FSR_HOME", LONG), ("FSR_HOME", "{work}/kernel.cu"), ("FSR_HOME", "~nobody-at-all/x"),
                       ("FSR_CACHE", "/dev/null"), ("FSR_CACHE", "/dev/zero"), ("FSR_CACHE", "{work}"), ("FSR_CACHE", LONG), ("FSR_CACHE", "{work}/kernel.cu"),
                       ("FSR_CACHE", "/proc/x.db"), ("FSR_CACHE", "a\nb?c#d%.db"), ("TMPDIR", "/nowhere"), ("TMPDIR", "/proc"), ("TMPDIR", LONG), ("PATH", ""), ("HOME", "")):  # fmt: skip
        for arguments in (listing, ("cache", "list"), ("lookup", "kernel.cu"), ("cache", "explain", "kernel.cu")):
            yield Bad(
                f"{key}={value[:10]!r}-{arguments[-1]}",
                "settings",
                arguments,
                MAY_PASS | {3},
                files(),
                env={key: value},
            )
        if key != "HOME":
            yield Bad(
                f"{key}={value[:10]!r}-refine",
                "settings",
                refine("--no-cache" if key == "PATH" else "--json"),
                MAY_PASS | TOOL,
                files(),
                env={key: value},
            )


# ---------------------------------------------------------------- runs and caches


def runs() -> Iterator[Bad]:
    event = {"kind": "start", "at": 1.0}
    logs: dict[str, str | bytes] = {
        "empty": "", "noise": b"\xff\xfe\n\n", "list": "[]\n", "number": "7\n", "null": "null\n", "text": '"x"\n', "no-kind": "{}\n",
        "kind-number": '{"kind": 3, "at": 1}\n', "end-only": '{"kind": "end", "at": 1}\n', "end-text": '{"kind": "end", "at": 1, "result": "x"}\n',
        "end-empty": '{"kind": "end", "at": 1, "result": {}}\n', "end-best": '{"kind": "end", "at": 1, "result": {"best": 3, "status": "improved", "evaluated": 1}}\n',
        "start-bare": json.dumps(event) + "\n", "start-odd": json.dumps(event | {"options": 3}) + "\n",
        "torn": '{"kind": "start"', "deep": "[" * 100_000 + "\n", "nul": b"\0\n", "at-text": '{"kind": "tell", "at": "noon"}\n' * 3,
        "start-options": json.dumps(event | {"options": {"kernel": 3}, "given": None, "source": 1, "contract": 2, "known": 3, "baseline": {}, "seconds": "x"}) + "\n",
    }  # fmt: skip
    for name, text in logs.items():

        def write(work: Path, home: Path, text: str | bytes = text) -> None:
            (home / "runs" / "broken").mkdir(parents=True)
            (home / "runs" / "broken" / "events.jsonl").write_bytes(text.encode() if isinstance(text, str) else text)

        for command in (("runs", "list"), ("runs", "show", "broken"), ("runs", "show", "broken", "--json"), ("refine", "--resume", "broken"),
                        ("runs", "stop", "broken"), ("runs", "continue", "broken")):  # fmt: skip
            codes = frozenset({0}) if command[1] == "list" else MAY_PASS
            yield Bad(f"log-{name}-{' '.join(command)[:22]}", "runs", command, codes, then(files(), write))
    for how in ("fifo", "folder", "loop", "zero", "unreadable", "dangling"):

        def placed(work: Path, home: Path, how: str = how) -> None:
            (home / "runs" / "odd").mkdir(parents=True)
            made(how, "events.jsonl")(home / "runs" / "odd", home)

        for command in (
            ("runs", "list"),
            ("runs", "show", "odd"),
            ("refine", "--resume", "odd"),
            ("runs", "pause", "odd"),
        ):
            yield Bad(
                f"log-{how}-{command[1]}",
                "runs",
                command,
                MAY_PASS,
                then(files(), placed),
                as_nobody=how == "unreadable",
            )
    for name in (
        "nobody",
        "",
        ".",
        "..",
        "../..",
        "/",
        "/etc",
        "a/b",
        LONG,
        "a\nb",
        "\udcff",
        "-",
        "*",
        "~",
        "a" * 255,
    ):
        for verb in ("show", "stop", "pause", "continue"):
            yield Bad(f"{verb}-{name[:8]!r}", "runs", ("runs", verb, "--", name), USAGE, files())
        yield Bad(f"resume-{name[:8]!r}", "runs", ("refine", f"--resume={name}"), USAGE, files())


def caches() -> Iterator[Bad]:
    def database(*statements: str, tail: bytes | None = None, cut: int = 0) -> Prepare:
        def prepare(work: Path, home: Path) -> None:
            path = home / "cache.db"
            if statements:
                connection = sqlite3.connect(path)
                for statement in statements:
                    connection.execute(statement)
                connection.commit()
                connection.close()
            if tail is not None:
                path.write_bytes((path.read_bytes() if path.exists() else b"")[: -cut or None] + tail)

        return prepare

    winners = (
        "CREATE TABLE winners (key, source, base, context, basis, hardware, arch, sm_count, driver, body, body_digest, created)",
    )
    found = {
        "noise": database(tail=b"no database" * 500), "empty": database(tail=b""), "header": database(tail=b"SQLite format 3\0" + bytes(84)),
        "cut": database("CREATE TABLE a (b)", "INSERT INTO a VALUES (zeroblob(90000))", tail=b"", cut=50_000),
        "other-table": database("CREATE TABLE winners (a)"), "other": database("CREATE TABLE a (b)"), "newer": database("PRAGMA user_version = 999"),
        "negative": database("PRAGMA user_version = -5"), "view": database("CREATE VIEW winners AS SELECT 1 AS key"),
        "blobs": database(*winners, "INSERT INTO winners VALUES (x'ff', x'00', 1, 2, 3, 4, 5, 6, 7, x'ff00', 'y', 'soon')"),
        "nulls": database(*winners, "INSERT INTO winners DEFAULT VALUES"), "version-1-bare": database("PRAGMA user_version = 1"),
    }  # fmt: skip
    for how in ("fifo", "folder", "loop", "zero", "null", "unreadable", "dangling"):

        def put(work: Path, home: Path, how: str = how) -> None:
            made(how, "cache.db")(home, home)

        found[how] = put
    for name, prepare in found.items():
        for command in (("cache", "list"), ("cache", "list", "--json"), ("cache", "verify"), ("cache", "show", "k"), ("cache", "prune", "--damaged", "--failures"),
                        ("cache", "explain", "kernel.cu"), ("lookup", "kernel.cu")):  # fmt: skip
            yield Bad(
                f"{name}-{' '.join(command)[:18]}",
                "caches",
                command,
                MAY_PASS | {3},
                then(files(), prepare),
                as_nobody=name == "unreadable",
            )
    yield Bad("noise-refine", "caches", refine(), FAILED, then(files(), found["noise"]))

    def read_only(work: Path, home: Path) -> None:
        found["other"](work, home)
        (home / "cache.db").chmod(0o444)
        home.chmod(0o555)

    for command in (("cache", "list"), ("cache", "prune", "--failures"), ("lookup", "kernel.cu"), refine()):
        yield Bad(
            f"read-only-{command[0]}-{command[1]}",
            "caches",
            command,
            MAY_PASS | {3},
            then(files(), read_only),
            as_nobody=True,
        )
