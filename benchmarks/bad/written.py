"""Wrong inputs that somebody thought of, one by one."""

from __future__ import annotations

import json
import os
import resource
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from benchmarks.bad.inputs import (
    BODY,
    FAILED,
    KERNEL,
    MAY_PASS,
    PLAN,
    REFUSED,
    TOML,
    TOOL,
    USAGE,
    Bad,
    Prepare,
    check,
    evidence,
    files,
    refine,
    then,
)

LONG = "n" * 5000


def written() -> Iterator[Bad]:
    """All of them."""
    for part in (special_files, texts, contracts, references, plans, options, outputs, settings, runs, caches):
        yield from part()


# ---------------------------------------------------------------- files that are none


def _made(how: str, name: str) -> Prepare:
    def prepare(work: Path, home: Path) -> None:
        path = work / name
        path.unlink(missing_ok=True)
        match how:
            case "fifo":
                os.mkfifo(path)
            case "folder":
                path.mkdir()
            case "loop":
                path.symlink_to(name)
            case "dangling":
                path.symlink_to("nowhere")
            case "zero":
                path.symlink_to("/dev/zero")
            case "null":
                path.symlink_to("/dev/null")
            case "unreadable":
                path.write_text(KERNEL)
                path.chmod(0)
            case "socket":
                with socket.socket(socket.AF_UNIX) as s, suppress(OSError):
                    here = Path.cwd()
                    os.chdir(work)
                    s.bind(name)
                    os.chdir(here)
            case "sparse":
                with path.open("wb") as file:
                    file.truncate(8 << 30)

    return prepare


HOWS = ("fifo", "folder", "loop", "dangling", "zero", "null", "unreadable", "socket", "sparse")


def special_files() -> Iterator[Bad]:
    ways = {"contract": ("contract", "kernel.cu"), "refine": refine(), "features": ("features", "kernel.cu"),
            "explain": ("cache", "explain", "kernel.cu"), "against": check("kernel.cu")}  # fmt: skip
    for how in HOWS:
        prepare = then(files(), _made(how, "kernel.cu"))
        for command, arguments in ways.items():
            yield Bad(f"kernel-{how}-{command}", "special files", arguments, USAGE, prepare, as_nobody=how == "unreadable")
        yield Bad(f"candidate-{how}", "special files", check(), USAGE, then(files(), _made(how, "candidate.cu")),
                  as_nobody=how == "unreadable")  # fmt: skip
        sidecar = then(files(kernel_cu=BODY), _made(how, "kernel.fsr.toml"))
        yield Bad(f"sidecar-{how}", "special files", ("contract", "kernel.cu"), USAGE, sidecar,
                  as_nobody=how == "unreadable")  # fmt: skip
        plan = then(files(candidate_cu=KERNEL), _made(how, "candidate.json"))
        yield Bad(f"plan-{how}", "special files", check(), USAGE, plan, as_nobody=how == "unreadable")
        header = then(files(kernel_cu='#include "part.h"\n' + BODY, kernel_fsr_toml=TOML), _made(how, "part.h"))
        yield Bad(f"header-{how}", "special files", ("contract", "kernel.cu"), MAY_PASS, header,
                  as_nobody=how == "unreadable")  # fmt: skip
    lookup = ("lookup", "kernel.cu")
    for how in HOWS:
        codes = USAGE | {3}
        yield Bad(f"lookup-{how}", "special files", lookup, codes, then(files(), _made(how, "kernel.cu")),
                  as_nobody=how == "unreadable")  # fmt: skip
    for name in ("/dev/zero", "/dev/stdin", "/dev/null", "/proc/self/mem", "/proc/kcore", "", LONG, "a\nb.cu", "-"):
        yield Bad(f"named-{name[:12]!r}", "special files", ("contract", name), USAGE, files())
    for name in ("/dev/zero", "/dev/stdin", LONG, "a\nb.cu", ""):
        yield Bad(f"looked-up-{name[:12]!r}", "special files", ("lookup", name), USAGE | {3}, files())


# ---------------------------------------------------------------- texts that are no kernels


def texts() -> Iterator[Bad]:
    big = "__global__ void k(float *y) { y[0] = " + "1.0f + " * 7_000_000 + "0; }\n"
    bombs = {
        "line-50MB": big, "one-word-50MB": "a" * 50_000_000, "zeros-50MB": "0 " * 25_000_000,
        "parentheses": "__global__ void k(float *y) { y[0] = " + "(" * 100_000 + "1" + ")" * 100_000 + "; }",
        "braces": "__global__ void k(float *y) { " + "{" * 50_000 + "}" * 50_000 + " }",
        "angles": "__global__ void k(" + "a<" * 20_000 + "int" + ">" * 20_000 + " *y) {}",
        "namespaces": "namespace a { " * 20_000 + "__global__ void k(float *y) {}" + "}" * 20_000,
        "ifs": "#if 1\n" * 50_000 + "__global__ void k(float *y) {}\n" + "#endif\n" * 50_000,
        "ternaries": "__global__ void k(float *y) { y[0] = " + "1 ? 1 : " * 20_000 + "1; }",
        "stars": "__global__ void k(float " + "*" * 100_000 + "y) {}",
        "unary": "__global__ void k(float *y) { y[0] = " + "-" * 100_000 + "1; }",
        "macro-doubling": "#define A0 1\n" + "".join(f"#define A{i + 1} A{i} + A{i}\n" for i in range(40))
        + "__global__ void k(float *y) { y[0] = A40; }",
        "define-tower": "".join(f"#define N{i + 1} (N{i} << N{i})\n" for i in range(60)) + "#define N0 9\n" + BODY,
        "many-kernels": "".join(f"__global__ void k{i}(float *y) {{}}\n" for i in range(20_000)),
        "many-params": "__global__ void k(" + ", ".join(f"float *p{i}" for i in range(20_000)) + ") {}",
        "long-name": "__global__ void " + LONG * 20 + "(float *y) {}",
        "spliced": "__global__ void k(float *y) {}\\\n" * 20_000 + "\\",
        "raw-string": 'const char *s = R"(' + "x" * 1000 + "\n__global__ void k(float *y) {}",
        "open-comment": BODY + "/* never closed", "open-quote": BODY + '"never closed', "open-brace": BODY + "{",
        "elif-alone": "#elif 1\n" + BODY, "endif-alone": BODY + "#endif\n", "if-open": "#if 1\n" + BODY,
        "includes-itself": '#include "kernel.cu"\n' + BODY, "bom-only": "\ufeff", "blank": " \n\t\n", "cr-only": "\r\r\r",
        "surrogate": "__global__ void k(float *y) {} // \ud800",
    }  # fmt: skip
    for name, text in bombs.items():
        yield Bad(name, "texts", ("contract", "kernel.cu"), MAY_PASS, files(kernel_cu=text))
        if name not in ("zeros-50MB", "one-word-50MB"):
            stated = files(kernel_cu=text, kernel_fsr_toml=TOML)
            yield Bad(f"stated-{name}", "texts", ("contract", "kernel.cu"), MAY_PASS, stated)
    binary = {"elf": b"\x7fELF\x02\x01\x01" + bytes(400), "utf-16": KERNEL.encode("utf-16"), "nul": b"\0",
              "latin": BODY.encode() + "// é".encode("latin-1"), "noise": bytes(range(1, 256)) * 40,
              "nul-in-code": KERNEL.replace("sum +=", "sum\0 +=").encode(),
              "bad-name": BODY.replace("row_sum", "r\udcff").encode("utf-8", "surrogateescape")}  # fmt: skip
    for name, data in binary.items():
        for command in (("contract", "kernel.cu"), ("features", "kernel.cu"), check("kernel.cu")):
            if name == "latin" and command[0] != "contract":
                continue
            yield Bad(f"{name}-{command[0]}", "texts", command, MAY_PASS, files(kernel_cu=data))
        yield Bad(f"{name}-candidate", "texts", check(), REFUSED, files(candidate_cu=data))


# ---------------------------------------------------------------- contracts


def _stated(toml: str | bytes) -> Prepare:
    return files(kernel_cu=BODY, kernel_fsr_toml=toml)


def contracts() -> Iterator[Bad]:
    def changed(old: str, new: str) -> str:
        assert old in TOML
        return TOML.replace(old, new)

    grid = '"ceil_div(rows, 64)"'
    expressions = {
        "tower": "9**9**9**9", "tower-of-sizes": "rows**rows**rows", "shifts": "1<<64<<64<<64", "nested": "(" * 200 + "1",
        "negative-power": "rows ** (0 - 2)", "zero-power": "0 ** (0 - 1)", "imaginary": "3j", "infinity": "1e999",
        "nan": "1e999 - 1e999", "float-grid": "1.5", "string": "'rows'", "lambda": "(lambda: 1)()", "attribute": "rows.x",
        "underscores": "1_0", "hex": "0x40", "octal": "010", "other-digits": "٦٤", "other-letters": "ｒｏｗｓ",
        "no-arguments": "min()", "one-argument": "ceil_div(rows)", "star": "min(*rows)", "walrus": "(a := 4)",
        "newline": "rows\\n+ 1", "nul": "rows\\u0000", "comparison-chain": "1 < rows < 3", "isqrt": "isqrt(0 - 1)",
        "next-pow2": "next_pow2(1.5)", "huge-literal": "9" * 400, "pow2-huge": "next_pow2(2**63)",
    }  # fmt: skip
    for name, text in expressions.items():
        yield Bad(f"grid-{name}", "contracts", ("contract", "kernel.cu"), MAY_PASS, _stated(changed(grid, f'"{text}"')))
        shape = changed('shape = ["rows", "cols"]', f'shape = ["{text}", "cols"]')
        yield Bad(f"shape-{name}", "contracts", refine(), USAGE, _stated(shape)) if name not in (
            "hex", "underscores", "other-letters") else Bad(
                f"shape-{name}", "contracts", ("contract", "kernel.cu"), MAY_PASS, _stated(shape))  # fmt: skip
    rows = "rows = {min = 0, max = 256, timed = 128}"
    for name, row in {
        "timed-above": "{min = 0, max = 256, timed = 300}", "timed-below": "{min = 8, max = 256, timed = 3}",
        "timed-negative": "{min = 0, max = 256, timed = -3}", "timed-huge": "{min = 0, max = 256, timed = 99999999999999}",
        "max-huge": f"{{min = 0, max = {10**30}, timed = 128}}", "max-64": f"{{max = {2**63 - 1}}}",
        "timed-empty": "{min = 0, max = 256, timed = []}", "timed-text": '{max = 256, timed = "128"}',
        "timed-float": "{max = 256, timed = 12.5}", "timed-many": "{max = 256, timed = [" + "1," * 5000 + "]}",
        "min-above": "{min = 300, max = 256}", "inf": "{max = inf}", "nan": "{max = nan}", "date": "1979-05-27",
        "true": "true", "nothing": "{}", "list": "[1, 2]", "nested": "{max = {max = 3}}",
    }.items():  # fmt: skip
        codes = MAY_PASS if name in ("timed-empty", "timed-many") else USAGE
        stated = _stated(changed(rows, f"rows = {row}"))
        yield Bad(f"size-{name}", "contracts", ("contract", "kernel.cu"), codes, stated)
    whole = {
        "no-toml": "][", "nul": "entry = \"row\0_sum\"", "deep": "a = " + "[" * 5000 + "]" * 5000, "bom": "\ufeff" + TOML,
        "crlf": TOML.replace("\n", "\r\n"), "cr": TOML.replace("\n", "\r"), "empty": "", "twice": TOML + TOML,
        "dotted": "a." * 3000 + "b = 1", "unclosed": TOML + '\nx = "', "latin": TOML.encode() + b"# \xe9",
        "huge": TOML + "# " + "x" * 20_000_000, "long-entry": changed('"row_sum"', f'"{LONG}"'),
        "template-entry": changed('"row_sum"', '"row_sum<' + "(" * 300 + '>"'), "flags-text": 'flags = "-O3"\n' + TOML,
        "flags-strange": 'flags = ["-o", "/etc/passwd", "@/etc/passwd"]\n' + TOML, "flags-nul": 'flags = ["a\\u0000"]\n' + TOML,
        "aliasing": 'aliasing = [["x", "nobody"]]\n' + TOML, "aliasing-numbers": "aliasing = [[1, 2]]\n" + TOML,
        "shared": changed("block = 64", "block = 64\nshared_bytes = 99999999999"), "block-0": changed("block = 64", "block = 0"),
        "block-big": changed("block = 64", "block = [1024, 2]"), "grid-4": changed(grid, "[1, 1, 1, 1]"),
        "tolerance-nan": changed('sum_length = "cols"', "rtol = nan"), "tolerance-inf": changed('sum_length = "cols"', "rtol = inf"),
        "tolerance-neg": changed('sum_length = "cols"', "atol = -1"), "alignment": changed('role = "in"', 'role = "in", alignment = 3'),
        "launches-none": changed("[launch]", "[[launch]]").replace("block = 64", 'block = 64\nargs = []'),
        "low-above": changed('role = "in"', 'role = "in", low = 5, high = 1'),
        "low-huge": changed('role = "in"', 'role = "in", low = "9**60"'),
        "size-keyword": changed("rows =", "int ="), "size-lambda": changed('{value = "rows"}', '{value = "lambda"}'),
    }  # fmt: skip
    for name, toml in whole.items():
        yield Bad(f"toml-{name}", "contracts", ("contract", "kernel.cu"), MAY_PASS, _stated(toml))
        if name in ("no-toml", "deep", "shared", "block-0", "flags-text", "low-above", "flags-strange", "flags-nul"):
            yield Bad(f"toml-{name}-refine", "contracts", refine(), REFUSED, _stated(toml))
    for name, head in {
        "open": "// /// fsr\n// entry = \"row_sum\"\n", "two": KERNEL[: KERNEL.index("__global__")] * 2,
        "in-the-middle": "int a;\n// /// fsr\n// x\n// ///\n", "no-comment": "// /// fsr\nentry = 1\n// ///\n",
    }.items():  # fmt: skip
        yield Bad(f"block-{name}", "contracts", ("contract", "kernel.cu"), MAY_PASS, files(kernel_cu=head + BODY))
    both = files(kernel_fsr_toml=TOML)
    yield Bad("both", "contracts", ("contract", "kernel.cu"), USAGE, both)
    wide = BODY.replace("int rows, int cols", "long long rows, size_t cols")
    plan = TOML.replace("[launch]", "[[launch]]")
    narrow = plan.replace("block = 64", 'block = 64\nargs = ["x", "y", {dtype = "int32", value = "rows"}, "cols"]')
    yield Bad("narrow-scalar", "contracts", refine(), MAY_PASS, files(kernel_cu=wide, kernel_fsr_toml=narrow))


# ---------------------------------------------------------------- references


REFERENCES = {
    "raises": "def f(x):\n    raise RuntimeError('no')", "raises-badly": "class E(BaseException): pass\ndef f(x): raise E()",
    "hangs": "def f(x):\n    while True: pass", "sleeps": "import time\ndef f(x): time.sleep(10**6)",
    "exits": "import sys\ndef f(x): sys.exit(0)", "exits-hard": "import os\ndef f(x): os._exit(0)",
    "prints": "def f(x):\n    print('x' * 100); return x.sum(axis=1, dtype='float64')[:0]",
    "wrong-shape": "def f(x): return x", "none": "def f(x): return None", "text": "def f(x): return 'abc'",
    "objects": "def f(x): return [object()] * len(x)", "nan": "def f(x): return x.sum(axis=1) * float('nan')",
    "complex": "def f(x): return x.sum(axis=1) * 1j", "two": "def f(x): return x, x", "dict": "def f(x): return {'z': x}",
    "ragged": "def f(x): return [[1], [1, 2]]", "import": "import nowhere_to_be_found\ndef f(x): return x",
    "import-raises": "raise SystemExit(3)\ndef f(x): return x", "import-hangs": "while True: pass\ndef f(x): return x",
    "arguments": "def f(x, nobody): return x.sum(axis=1)", "no-arguments": "def f(): return 1", "syntax": "def f(x) return",
    "empty": "", "no-function": "g = 1", "generator": "def f(x):\n    yield x", "async": "async def f(x): return x",
    "recursion": "def f(x): return f(x)", "memory": "def f(x): return bytearray(1 << 45)", "nul": "def f(x): return 1\0",
    "class": "class f:\n    pass", "integers": "def f(x): return x.sum(axis=1).astype('int8')", "wrong": "def f(x): return x.max(axis=1) + 9",
    "kills": "import os\ndef f(x): os.kill(os.getpid(), 9)", "overwrites": "def f(x):\n    x[...] = 0; return x.sum(axis=1)",
}  # fmt: skip


def references() -> Iterator[Bad]:
    toml = 'reference = "ref.py:f"\n' + TOML
    for name, text in REFERENCES.items():
        prepare = files(kernel_cu=BODY, kernel_fsr_toml=toml, ref_py=text)
        yield Bad(name, "references", refine(), REFUSED, prepare)
    for spec in ("ref.py", "ref.py:", ":f", "../../etc/passwd:f", "ref.py:f:g", "ref.py:1", "ref.txt:f", "ｆ.py:f"):
        prepare = files(kernel_cu=BODY, kernel_fsr_toml=f'reference = "{spec}"\n' + TOML, ref_py="def f(x): return x")
        yield Bad(f"spec-{spec}", "references", ("contract", "kernel.cu"), USAGE, prepare)


# ---------------------------------------------------------------- plans beside a candidate


def plans() -> Iterator[Bad]:
    whole = evidence(PLAN)
    damaged = {
        "truncated": whole[:-20], "empty": "", "noise": b"\x00\xff\xfe", "not-json": "best: plan", "list": "[]", "null": "null",
        "no-best": "{}", "best-null": '{"best": null}', "no-plan": '{"best": {}}', "plan-text": evidence("x"),
        "deep": "[" * 100_000, "huge-number": whole.replace('"64"', "1" + "0" * 5000), "duplicate": whole[:-1] + ', "best": 1}',
        "nan": whole.replace('"64"', "NaN"), "bom": "\ufeff" + whole, "utf-16": whole.encode("utf-16"),
    }  # fmt: skip
    for name, text in damaged.items():
        codes = MAY_PASS if name == "bom" else USAGE
        yield Bad(f"damaged-{name}", "plans", check(), codes, files(candidate_cu=KERNEL, candidate_json=text))
    launch = PLAN["launches"][0]
    absurd = {
        "no-launches": {"launches": []}, "launches-number": {"launches": 7}, "launch-text": {"launches": ["row_sum"]},
        "many-launches": {"launches": [launch] * 100_000},
        "block-4096": {"launches": [launch | {"block": ["4096", "1", "1"]}]},
        "block-number": {"launches": [launch | {"block": [64, 1, 1]}]}, "block-0": {"launches": [launch | {"block": ["0", "1", "1"]}]},
        "block-short": {"launches": [launch | {"block": ["64"]}]}, "block-text": {"launches": [launch | {"block": "64"}]},
        "grid-huge": {"launches": [launch | {"grid": ["9" * 30, "1", "1"]}]}, "grid-null": {"launches": [launch | {"grid": None}]},
        "grid-tower": {"launches": [launch | {"grid": ["9**9**9**9", "1", "1"]}]},
        "grid-name": {"launches": [launch | {"grid": ["nobody", "1", "1"]}]}, "grid-neg": {"launches": [launch | {"grid": ["0-4", "1", "1"]}]},
        "shared-huge": {"launches": [launch | {"shared_bytes": "99999999999"}]}, "shared-null": {"launches": [launch | {"shared_bytes": None}]},
        "args-few": {"launches": [launch | {"args": ["x"]}]}, "args-many": {"launches": [launch | {"args": ["x"] * 9}]},
        "args-unknown": {"launches": [launch | {"args": ["x", "nobody", "rows", "cols"]}]},
        "args-swapped": {"launches": [launch | {"args": ["rows", "cols", "x", "y"]}]},
        "args-odd": {"launches": [launch | {"args": ["x", "y", {"dtype": "int3", "value": "1"}, "cols"]}]},
        "args-number": {"launches": [launch | {"args": ["x", "y", 3, "cols"]}]},
        "entry-unknown": {"launches": [launch | {"entry": "nobody"}]}, "entry-null": {"launches": [launch | {"entry": None}]},
        "entry-code": {"launches": [launch | {"entry": 'row_sum<system("ls")>'}]},
        "scratch-huge": {"scratch": [{"name": "s", "dtype": "float32", "count": "2**62", "zeroed": False}]},
        "scratch-odd": {"scratch": [{"name": "s", "dtype": "int3", "count": "4", "zeroed": False}]},
        "scratch-text": {"scratch": ["s"]}, "scratch-key": {"scratch": [{"name": "s", "nope": 1}]},
        "scratch-named-x": {"scratch": [{"name": "x", "dtype": "float32", "count": "4", "zeroed": False}]},
        "flags-text": {"flags": "-O3"}, "flags-number": {"flags": [1]}, "flags-write": {"flags": ["-o", "/tmp/written"]},
        "flags-response": {"flags": ["@/etc/passwd"]}, "flags-nul": {"flags": ["-DA=\0"]},
    }  # fmt: skip
    for name, change in absurd.items():
        prepare = files(candidate_cu=KERNEL, candidate_json=evidence(PLAN | change))
        yield Bad(f"absurd-{name}", "plans", check(), REFUSED, prepare)
    yield Bad("no-kernel", "plans", check(), USAGE, files(candidate_cu="int a;\n"))
    yield Bad("other-kernel", "plans", check(), USAGE, files(candidate_cu=BODY.replace("row_sum", "other")))
    yield Bad("other-parameters", "plans", check(), REFUSED,
              files(candidate_cu=BODY.replace("int rows, int cols", "int rows")))  # fmt: skip
    yield Bad("no-candidate", "plans", check(), USAGE, files())


# ---------------------------------------------------------------- options


def options() -> Iterator[Bad]:
    budgets = ("99999999999h", "١٢s", "1e9", "-1", "0", "", " ", "5 minutes", "nan", "inf", "1" * 500, "0x10", "1h30m", "\n5m", "1e-9s")
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
    for text in ("cuda", "cuda:", "cuda:-1", "cuda:x", "cuda:²", "gpu", "", "host:1", "CUDA:0", "cuda:0:0", "cuda:" + "9" * 400, "\n"):
        yield Bad(f"device-{text[:10]!r}", "options", ("refine", "kernel.cu", "--device", text), USAGE | TOOL, files())
        if text:
            yield Bad(f"lookup-device-{text[:10]!r}", "options", ("lookup", "kernel.cu", "--device", text), USAGE | {3}, files())
    for text in ("sm_9000", "sm_", "90", "", "sm_90; rm -rf /", "compute_90", "host", "SM_90", "sm_٩٠"):
        yield Bad(f"target-{text[:10]!r}", "options", ("features", "kernel.cu", "--target", text), USAGE, files())
        yield Bad(f"check-target-{text[:10]!r}", "options", check("kernel.cu", "--target", text), USAGE, files())
    for text in ("nobody", "", "row_sum<", "row_sum<int", LONG, "a\nb", "::", "row_sum; x", "r*w", "(" * 500):
        yield Bad(f"entry-{text[:10]!r}", "options", ("contract", "kernel.cu", "--entry", text), MAY_PASS, files())
        yield Bad(f"features-entry-{text[:10]!r}", "options", ("features", "kernel.cu", "--entry", text), REFUSED, files())
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
    for name in ("kernel.cu", ".", "/dev/null", "/dev/zero", "", "/proc/x.cu", LONG, "a\0b"[:1] + "\n.cu", "kernel.cu/x.cu", "./../work/kernel.cu"):
        codes = REFUSED if name != "a\n.cu" else MAY_PASS
        yield Bad(f"out-{name[:14]!r}", "outputs", refine("-o", name), codes, files())
    for how in ("fifo", "folder", "loop", "zero"):
        yield Bad(f"out-{how}", "outputs", refine("-o", "out.cu"), REFUSED, then(files(), _made(how, "out.cu")))

    def linked(work: Path, home: Path) -> None:
        (work / "out.cu").symlink_to("kernel.cu")

    yield Bad("out-link-to-kernel", "outputs", refine("-o", "out.cu"), USAGE, then(files(), linked))
    for size in (0, 1000, 100_000):
        limit = {resource.RLIMIT_FSIZE: size}
        yield Bad(f"file-size-{size}", "outputs", refine(), MAY_PASS, files(), limits=limit)
        yield Bad(f"file-size-{size}-check", "outputs", check("kernel.cu"), REFUSED | {0}, files(), limits=limit)
        yield Bad(f"file-size-{size}-write", "outputs", ("contract", "kernel.cu", "--write"), MAY_PASS, files(), limits=limit)
    for count in (4, 12, 24, 48):
        few = {resource.RLIMIT_NOFILE: count}
        yield Bad(f"open-files-{count}", "outputs", refine(), MAY_PASS, files(), limits=few)
        yield Bad(f"open-files-{count}-contract", "outputs", ("contract", "kernel.cu"), MAY_PASS, files(), limits=few)

    def locked(work: Path, home: Path) -> None:
        (work / "kernel.cu").chmod(0o444)
        work.chmod(0o555)

    yield Bad("read-only-folder", "outputs", refine(), FAILED, then(files(), locked), as_nobody=True)
    yield Bad("read-only-write", "outputs", ("contract", "kernel.cu", "--write"), FAILED, then(files(), locked), as_nobody=True)


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
        def made(work: Path, home: Path, how: str = how) -> None:
            _made(how, "config.toml")(home, home)

        yield Bad(f"config-{how}", "settings", listing, MAY_PASS, then(files(), made), as_nobody=how == "unreadable")
    for key, value in (("FSR_WORKERS", "0"), ("FSR_WORKERS", "١"), ("FSR_WORKERS", "1e3"), ("FSR_WORKERS", "9" * 5000), ("FSR_WORKERS", "99999"), ("FSR_HOME", "/dev/null"),
                       ("FSR_HOME", "/proc"), ("FSR_HOME", LONG), ("FSR_HOME", "{work}/kernel.cu"), ("FSR_HOME", "~nobody-at-all/x"),
                       ("FSR_CACHE", "/dev/null"), ("FSR_CACHE", "/dev/zero"), ("FSR_CACHE", "{work}"), ("FSR_CACHE", LONG), ("FSR_CACHE", "{work}/kernel.cu"),
                       ("FSR_CACHE", "/proc/x.db"), ("FSR_CACHE", "a\nb?c#d%.db"), ("TMPDIR", "/nowhere"), ("TMPDIR", "/proc"), ("TMPDIR", LONG), ("PATH", ""), ("HOME", "")):  # fmt: skip
        for arguments in (listing, ("cache", "list"), ("lookup", "kernel.cu"), ("cache", "explain", "kernel.cu")):
            yield Bad(f"{key}={value[:10]!r}-{arguments[-1]}", "settings", arguments, MAY_PASS | {3}, files(), env={key: value})
        if key != "HOME":
            yield Bad(f"{key}={value[:10]!r}-refine", "settings", refine("--no-cache" if key == "PATH" else "--json"), MAY_PASS | TOOL, files(), env={key: value})


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
        def made(work: Path, home: Path, how: str = how) -> None:
            (home / "runs" / "odd").mkdir(parents=True)
            _made(how, "events.jsonl")(home / "runs" / "odd", home)

        for command in (("runs", "list"), ("runs", "show", "odd"), ("refine", "--resume", "odd"), ("runs", "pause", "odd")):
            yield Bad(f"log-{how}-{command[1]}", "runs", command, MAY_PASS, then(files(), made), as_nobody=how == "unreadable")
    for name in ("nobody", "", ".", "..", "../..", "/", "/etc", "a/b", LONG, "a\nb", "\udcff", "-", "*", "~", "a" * 255):
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

    winners = ("CREATE TABLE winners (key, source, base, context, basis, hardware, arch, sm_count, driver, body, body_digest, created)",)
    made = {
        "noise": database(tail=b"no database" * 500), "empty": database(tail=b""), "header": database(tail=b"SQLite format 3\0" + bytes(84)),
        "cut": database("CREATE TABLE a (b)", "INSERT INTO a VALUES (zeroblob(90000))", tail=b"", cut=50_000),
        "other-table": database("CREATE TABLE winners (a)"), "other": database("CREATE TABLE a (b)"), "newer": database("PRAGMA user_version = 999"),
        "negative": database("PRAGMA user_version = -5"), "view": database("CREATE VIEW winners AS SELECT 1 AS key"),
        "blobs": database(*winners, "INSERT INTO winners VALUES (x'ff', x'00', 1, 2, 3, 4, 5, 6, 7, x'ff00', 'y', 'soon')"),
        "nulls": database(*winners, "INSERT INTO winners DEFAULT VALUES"), "version-1-bare": database("PRAGMA user_version = 1"),
    }  # fmt: skip
    for how in ("fifo", "folder", "loop", "zero", "null", "unreadable", "dangling"):
        def put(work: Path, home: Path, how: str = how) -> None:
            _made(how, "cache.db")(home, home)

        made[how] = put
    for name, prepare in made.items():
        for command in (("cache", "list"), ("cache", "list", "--json"), ("cache", "verify"), ("cache", "show", "k"), ("cache", "prune", "--damaged", "--failures"),
                        ("cache", "explain", "kernel.cu"), ("lookup", "kernel.cu")):  # fmt: skip
            yield Bad(f"{name}-{' '.join(command)[:18]}", "caches", command, MAY_PASS | {3}, then(files(), prepare), as_nobody=name == "unreadable")
    yield Bad("noise-refine", "caches", refine(), FAILED, then(files(), made["noise"]))

    def read_only(work: Path, home: Path) -> None:
        made["other"](work, home)
        (home / "cache.db").chmod(0o444)
        home.chmod(0o555)

    for command in (("cache", "list"), ("cache", "prune", "--failures"), ("lookup", "kernel.cu"), refine()):
        yield Bad(f"read-only-{command[0]}-{command[1]}", "caches", command, MAY_PASS | {3}, then(files(), read_only), as_nobody=True)
