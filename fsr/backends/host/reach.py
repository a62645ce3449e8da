"""What device code may reach on the CPU: mathematics and memory, no other function of the C library.

Read off the object file, where every name has become what it is: no spelling, macro or assembler label gets past it.
"""

from __future__ import annotations

import re

from fsr.emulator.elf import undefined_symbols

_MATH = (
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs fdim floor"
    " fma fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround"
    " modf nan nearbyint nextafter pow remainder remquo rint round roundeven scalbln scalbn sin sincos sinh sqrt tan"
    " tanh tgamma trunc y0 y1 yn"
)
_MAY = re.compile(
    rf"({'|'.join(_MATH.split())})[fl]?"
    r"|mem(cpy|move|set|cmp)|bcmp|malloc|free|__tls_get_addr|_GLOBAL_OFFSET_TABLE_"
    r"|fsr_\w+|_ZNK?3fsr\w*|_Z\w*fsr\w*|__(tsan|sanitizer_cov|ubsan)_\w+"
    r"|__[a-z]+(hf|bf|sf|df|xf|tf|si|di|ti|sc|dc)[a-z0-9]*"  # the compiler's own arithmetic: libgcc, compiler-rt
)


def strangers(object_file: bytes) -> list[str]:
    """What an object file of a candidate wants of the C library and has no use for as device code; sorted."""
    return sorted(name for name in undefined_symbols(object_file) if not _MAY.fullmatch(name))
