"""Wrong files that somebody thought of, one by one: kernels, contracts, references, plans."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.bad.inputs import (
    BODY,
    HOWS,
    KERNEL,
    LONG,
    MAY_PASS,
    PLAN,
    REFUSED,
    TOML,
    USAGE,
    Bad,
    Prepare,
    check,
    evidence,
    files,
    made,
    refine,
    then,
)  # fmt: skip


def given() -> Iterator[Bad]:
    """All of files that are given."""
    for part in (special_files, texts, contracts, references, plans):
        yield from part()


# ---------------------------------------------------------------- files that are none


def special_files() -> Iterator[Bad]:
    ways = {"contract": ("contract", "kernel.cu"), "refine": refine(), "features": ("features", "kernel.cu"),
            "explain": ("cache", "explain", "kernel.cu"), "against": check("kernel.cu")}  # fmt: skip
    for how in HOWS:
        prepare = then(files(), made(how, "kernel.cu"))
        for command, arguments in ways.items():
            yield Bad(
                f"kernel-{how}-{command}", "special files", arguments, USAGE, prepare, as_nobody=how == "unreadable"
            )
        yield Bad(f"candidate-{how}", "special files", check(), USAGE, then(files(), made(how, "candidate.cu")),
                  as_nobody=how == "unreadable")  # fmt: skip
        sidecar = then(files(kernel_cu=BODY), made(how, "kernel.fsr.toml"))
        yield Bad(f"sidecar-{how}", "special files", ("contract", "kernel.cu"), USAGE, sidecar,
                  as_nobody=how == "unreadable")  # fmt: skip
        plan = then(files(candidate_cu=KERNEL), made(how, "candidate.json"))
        yield Bad(f"plan-{how}", "special files", check(), USAGE, plan, as_nobody=how == "unreadable")
        header = then(files(kernel_cu='#include "part.h"\n' + BODY, kernel_fsr_toml=TOML), made(how, "part.h"))
        yield Bad(f"header-{how}", "special files", ("contract", "kernel.cu"), MAY_PASS, header,
                  as_nobody=how == "unreadable")  # fmt: skip
    lookup = ("lookup", "kernel.cu")
    for how in HOWS:
        codes = USAGE | {3}
        yield Bad(f"lookup-{how}", "special files", lookup, codes, then(files(), made(how, "kernel.cu")),
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
        codes = MAY_PASS if name == "latin" else REFUSED  # compilers take any bytes in a comment
        yield Bad(f"{name}-candidate", "texts", check(), codes, files(candidate_cu=data))


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
        codes = MAY_PASS if name in ("bom", "utf-16") else USAGE  # a whole plan, whose first bytes tell its encoding
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
