"""What candidates may and may not name: the lists behind the static guard, each with its reason."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files


def _words(*lines: str) -> frozenset[str]:
    return frozenset(word for line in lines for word in line.split())


HEADERS = re.compile(  # part of the device toolkit; none of them opens a door to the host
    r"cuda_(fp16|bf16|fp8|runtime|pipeline|pipeline_primitives)\.h|mma\.h|math_constants\.h|vector_(types|functions)\.h"
    r"|device_launch_parameters\.h|cooperative_groups\.h|cooperative_groups/[a-z_]+\.h|cub/[a-z_/]+\.cuh"
    r"|cuda/(std/)?[a-z_]+|std(int|def|bool)\.h|c(stdint|stddef|math|float|limits)|float\.h|limits\.h|math\.h"
    r"|type_traits|utility|hip/hip_(runtime|fp16|bf16)\.h"
)
PRAGMAS = re.compile(
    r"(no)?unroll\b(?!\s*\(?\s*\d{4,})|once\b|nv_diag_(suppress|default)\b|clang loop unroll"  # unrolls of at most 999
)
FLAGS = re.compile(
    r"-O[0-3]|--?dopt=on|-Xptxas=-v|--?generate-line-info|-lineinfo|-dlcm=c[ag]"
)  # harmless, beside the toolchain's
DEFINES = re.compile(r"-D ?(?!(?:if|for|while|do|else|return|const|static|float|int)\b)[A-Za-z_]\w*(=-?[\w.]{1,24})?")

# Names that no kernel needs, wherever they stand.
NAMES = _words(
    # clocks and waiting: a kernel that knows the time can write it or tune itself to the timer (cheat 23)
    "clock clock64 wall_clock64 __clock __clock64 __globaltimer globaltimer __nanosleep nanosleep clock_gettime",
    # state and memory of the host's
    "malloc calloc realloc free alloca new delete mmap munmap mprotect brk sbrk __managed__ thread_local",
    # output, files, processes, the dynamic linker (cheat 32)
    "printf fprintf sprintf snprintf vprintf puts putchar fopen fread fwrite fclose FILE stdout stderr stdin ifstream",
    "ofstream fstream iostream cout cerr system popen execve execl execvp fork vfork ptrace syscall socket connect",
    "dlopen dlsym dlclose getenv setenv environ signal sigaction raise abort exit _exit atexit on_exit longjmp setjmp",
    "pthread_create getpid gettimeofday",
    # hooks that run before or beside the kernel
    "constructor destructor init_priority ifunc weakref __ctors __dtors init_array fini_array",
    # text that tells where or when it is compiled: a candidate must behave the same everywhere (cheat 29)
    "__DATE__ __TIME__ __TIMESTAMP__ __FILE__ __BASE_FILE__ __COUNTER__ __INCLUDE_LEVEL__ __has_include",
    "__has_include_next __has_embed __x86_64__ __x86_64 __i386__ __aarch64__ __linux__ __linux linux __unix__",
    "_WIN32 __APPLE__ __GNUC__ __clang__ __clang_major__ __NVCC__ __CUDACC_RTC__ __CUDACC__ __PIC__ __OPTIMIZE__",
    "__SANITIZE_THREAD__ _Pragma __declspec __pragma __brkpt __trap __prof_trigger __threadfence_system",
)
# Names that are ordinary as variables, but not as calls.
CALLS = _words("open read write close creat unlink remove rename kill sleep usleep send recv bind time rand srand")
NAME_PATTERNS = (
    re.compile(r"cuda[A-Z]\w*$"),  # the runtime API: device memory, streams, graphs, persisting L2 (cheats 17, 19, 20)
    re.compile(r"cu(Launch|Mem|Ctx|Module|Stream|Event|Init|Device|Graph|Func|Library|Get)\w*$"),
    re.compile(r"hip(Malloc|Free|Memcpy|Launch|Stream|Event|Graph|Device|Get|Set|Module)\w*$"),
    re.compile(r"nvtx\w*$"),
    re.compile(r"__(tsan|ubsan|asan|sanitizer)_"),
)
BUILTINS = _words(
    "__builtin_expect __builtin_assume __builtin_assume_aligned __builtin_unreachable __builtin_popcount",
    "__builtin_popcountll __builtin_clz __builtin_clzll __builtin_ctz __builtin_ctzll __builtin_bit_cast",
    "__builtin_memcpy __builtin_inff __builtin_inf __builtin_nanf __builtin_nan __builtin_huge_valf __builtin_fabsf",
    "__builtin_amdgcn_rcpf __builtin_amdgcn_exp2f __builtin_amdgcn_ds_swizzle",
)
ATTRIBUTES = _words("aligned __aligned__ packed always_inline noinline unused may_alias vector_size ext_vector_type")

# PTX that kernels use: arithmetic, conversions, loads and stores, copies, matrix units, barriers and votes.
ASM_ROOTS = re.compile(
    r"(add|sub|mul|mad|fma|div|rcp|sqrt|rsqrt|ex2|lg2|sin|cos|tanh|min|max|abs|neg|and|or|xor|not|shl|shr|shf|lop3|prmt"
    r"|bfe|bfi|bfind|brev|clz|popc|dp4a|dp2a|sad|set|setp|selp|slct|cvt|cvta|mov|ld|ldu|st|prefetch|prefetchu|createpolicy"
    r"|cp|ldmatrix|stmatrix|mma|wmma|wgmma|mbarrier|fence|membar|bar|barrier|shfl|vote|match|redux|atom|red|elect|activemask"
    r"|discard|applypriority|setmaxnreg|griddepcontrol|tcgen05|tensormap|mapa|szext|bmsk|fns|copysign|testp)\.[\w.:]+,?$"
)
ASM_SPECIAL = re.compile(
    r"%+\s*(clock\w*|globaltimer\w*|smid|nsmid|warpid|nwarpid|gridid|envreg\d*|pm\d\w*|dynamic_smem_size|total_smem_size"
    r"|reserved_smem\w*|is_explicit_cluster)\b"
)


@lru_cache(maxsize=1)
def host_device_names() -> frozenset[str]:
    """The names of the host device itself, read off its own headers and runtime: a candidate that used one could
    reach behind the kernel. (Names of fsr's generated helpers begin with fsr_ as well; those are free.)"""
    folder = files("fsr.emulator")
    sources = [f for part in ("include/fsr", "runtime") for f in folder.joinpath(part).iterdir() if f.is_file()]
    found = {name for f in sources for name in re.findall(r"\b_*(?:fsr|FSR)_\w+", f.read_text(encoding="utf-8"))}
    return frozenset(found | {"fsr"})
