"""Which compiler flags a plan may carry. A candidate may be written by a model: flags are a way out of the
sandbox (output paths, includes, plugins) unless they are chosen from a list."""

from __future__ import annotations

import re
from collections.abc import Iterable

_BOOL = "(true|false)"
_ALLOWED = tuple(
    re.compile(pattern)
    for pattern in (
        r"--?use_fast_math",
        r"--?extra-device-vectorization",
        r"--?restrict",
        rf"--?(ftz|prec-div|prec-sqrt|fmad)={_BOOL}",
        r"--?maxrregcount=(1[6-9]|[2-9]\d|1\d\d|2[0-4]\d|25[0-5])",
        r"--?std=c\+\+(14|17|20)",
        r"--?ptxas-options=(-O[1-3]|-?-d(lcm|scm)=(ca|cg|cv|cs|wb|wt)|--allow-expensive-optimizations=" + _BOOL + ")",
        r"-D ?[A-Za-z_]\w*(=[\w.+\-*/()<>:, \[\]|&!?%^~]*)?",
        r"-U ?[A-Za-z_]\w*",
    )
)


def refused_flags(flags: Iterable[str]) -> list[str]:
    """The flags that are not on the allow-list, in order; empty when all may be used."""
    return [flag for flag in flags if not any(pattern.fullmatch(flag) for pattern in _ALLOWED)]


def split_defines(flags: Iterable[str]) -> tuple[list[str], list[str]]:
    """Flags other than -D/-U, and the ``#define``/``#undef`` lines that replace those.

    nvcc passes its arguments on through a shell; a macro's text must not go that way.
    """
    rest, lines = [], []
    for flag in flags:
        if flag.startswith("-D"):
            name, separator, value = flag[2:].strip().partition("=")
            lines.append(f"#define {name} {value if separator else 1}")
        elif flag.startswith("-U"):
            lines.append(f"#undef {flag[2:].strip()}")
        else:
            rest.append(flag)
    return rest, lines
