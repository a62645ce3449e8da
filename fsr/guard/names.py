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

# Names that no kernel needs, wherever they stand, also declared anew: a device compiler knows them.
NAMES = _words(
    # clocks and waiting: a kernel that knows the time can write it or tune itself to the timer (cheat 23)
    "clock clock64 wall_clock64 __clock __clock64 __globaltimer globaltimer __nanosleep nanosleep chrono",
    # state and memory of the host's
    "malloc calloc realloc free alloca new delete __managed__ thread_local printf fprintf vprintf",
    # hooks that run before or beside the kernel
    "constructor destructor init_priority ifunc weakref __ctors __dtors init_array fini_array",
    # text that tells where or when it is compiled: a candidate must behave the same everywhere (cheat 29)
    "__DATE__ __TIME__ __TIMESTAMP__ __FILE__ __BASE_FILE__ __COUNTER__ __INCLUDE_LEVEL__ __has_include __LINE__",
    "__has_include_next __has_embed __has_feature __has_builtin __has_attribute __is_identifier",
    "_Pragma __declspec __pragma __brkpt __trap __prof_trigger __threadfence_system",
)
NAME_PATTERNS = (
    re.compile(r"cuda[A-Z]\w*$"),  # the runtime API: device memory, streams, graphs, persisting L2 (cheats 17, 19, 20)
    re.compile(r"cu(Launch|Mem|Ctx|Module|Stream|Event|Init|Device|Graph|Func|Library|Get)\w*$"),
    re.compile(r"hip(Malloc|Free|Memcpy|Launch|Stream|Event|Graph|Device|Get|Set|Module)\w*$"),
    re.compile(r"nvtx\w*$"),
    re.compile(r"__(tsan|ubsan|asan|sanitizer)_"),
)
STANDARD = _words(  # members of namespace std (and cuda::std) that are no device code
    "exit quick_exit at_quick_exit _Exit abort terminate system getenv rand srand random_device time clock thread",
    "mutex this_thread chrono cout cerr cin ofstream ifstream fstream printf malloc free signal raise source_location",
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
    r"|addc|subc|madc|mul24|mad24|movmatrix"
    r"|cp|ldmatrix|stmatrix|mma|wmma|wgmma|mbarrier|fence|membar|bar|barrier|shfl|vote|match|redux|atom|red|elect|activemask"
    r"|discard|applypriority|setmaxnreg|griddepcontrol|tcgen05|tensormap|mapa|szext|bmsk|fns|copysign|testp)\.[\w.:]+,?$"
)
ASM_SPECIAL = re.compile(
    r"%+\s*(clock\w*|globaltimer\w*|smid|nsmid|warpid|nwarpid|gridid|envreg\d*|pm\d\w*|dynamic_smem_size|total_smem_size"
    r"|reserved_smem\w*|is_explicit_cluster)\b"
)


# What C++ and CUDA's language itself give, and headers that kernels include: beside cuda_names.txt, all that a
# candidate may name without declaring it.
_LANGUAGE = _words(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class",
    "compl concept const consteval constexpr constinit const_cast continue decltype default do double dynamic_cast",
    "else enum explicit extern false final float for friend goto if inline int long mutable namespace noexcept not",
    "not_eq nullptr operator or or_eq override private protected public register reinterpret_cast requires return",
    "short signed sizeof static static_assert static_cast struct switch template this true typedef typename union",
    "unsigned using virtual void volatile wchar_t while xor xor_eq __restrict__ __restrict restrict __inline__",
    "__inline __volatile__ __asm__ __asm __attribute__ __attribute __typeof__ typeof __global__ __device__ __host__",
    "__shared__ __constant__ __forceinline__ __noinline__ __launch_bounds__ __maxnreg__ __grid_constant__ __align__",
    "__builtin_align__ __cluster_dims__ unroll threadIdx blockIdx blockDim gridDim warpSize __func__ _Static_assert",
    "__int128 __float128 _Float16 __extension__ __syncthreads __syncthreads_count __syncthreads_and __syncthreads_or",
    "__syncwarp __threadfence __threadfence_block __ldg __ldcg __ldca __ldcs __ldlu __ldcv __stcg __stcs __stwb",
    "__stwt __nv_isGlobal __pipeline_memcpy_async dim3 uint ushort uchar ulong size_t ptrdiff_t intptr_t uintptr_t",
    "half half2 nv_bfloat16 nv_bfloat162 int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t",
    "int_fast8_t uint_fast8_t int_fast16_t uint_fast16_t int_fast32_t uint_fast32_t int_least32_t uint_least32_t",
    "intmax_t uintmax_t float_t double_t assert memcpy memset memmove memcmp abs labs llabs min max fabs fabsf isnan",
    "isinf isfinite isnormal signbit NULL CHAR_BIT CHAR_MAX CHAR_MIN SCHAR_MAX SCHAR_MIN UCHAR_MAX SHRT_MAX SHRT_MIN",
    "USHRT_MAX INT_MAX INT_MIN UINT_MAX LONG_MAX LONG_MIN ULONG_MAX LLONG_MAX LLONG_MIN ULLONG_MAX SIZE_MAX INT8_MAX",
    "INT8_MIN INT16_MAX INT16_MIN INT32_MAX INT32_MIN INT64_MAX INT64_MIN UINT8_MAX UINT16_MAX UINT32_MAX UINT64_MAX",
    "FLT_MAX FLT_MIN FLT_EPSILON FLT_DIG FLT_MANT_DIG FLT_RADIX FLT_MAX_EXP FLT_MIN_EXP DBL_MAX DBL_MIN DBL_EPSILON",
    "DBL_DIG DBL_MANT_DIG INFINITY NAN HUGE_VAL HUGE_VALF M_E M_LOG2E M_LOG10E M_LN2 M_LN10 M_PI M_PI_2 M_PI_4 M_1_PI",
    "M_2_PI M_2_SQRTPI M_SQRT2 M_SQRT1_2 __FLT_MAX__ __FLT_MIN__ __FLT_EPSILON__ __DBL_MAX__ __DBL_MIN__ __INT_MAX__",
    "likely unlikely maybe_unused nodiscard noreturn fallthrough aligned packed always_inline noinline unused",
    "may_alias vector_size ext_vector_type std cuda cooperative_groups cg cub nvcuda wmma hip",
    "precision mem_row_major mem_col_major num_elements num_storage_elements",
)
INDEX_VARIABLES = _words("threadIdx blockIdx blockDim gridDim")
# What a macro may not replace: names with an effect, and words that headers and fsr's own lines put into attributes.
PROTECTED = re.compile(
    r"__\w*(sync|shfl|atomic|threadfence|ldg|ldc|stc|stw|activemask|ballot|any|all|match|reduce|barrier|pipeline)\w*"
    r"|atomic\w*|threadIdx|blockIdx|blockDim|gridDim|warpSize|__\w+__|std|cuda|cooperative_groups|fsr\w*|FSR\w*"
    r"|used|visibility|alias|constructor|destructor|section|weak|weakref|naked|cleanup|cold|hot|pure|tls_model|target"
    r"|noinline|always_inline|gnu_inline|artificial|flatten|no_sanitize\w*|init_priority|format|nonnull|optimize|const"
)


@lru_cache(maxsize=1)
def cuda_names() -> frozenset[str]:
    """All that a candidate may name without declaring it."""
    lines = files("fsr.guard").joinpath("cuda_names.txt").read_text(encoding="ascii").splitlines()
    return _LANGUAGE | _words(*(line for line in lines if not line.startswith("#"))) - NAMES


@lru_cache(maxsize=1)
def host_device_names() -> frozenset[str]:
    """The names of the host device itself, read off its own headers and runtime: a candidate that used one could
    reach behind the kernel. (Names of fsr's generated helpers begin with fsr_ as well; those are free.)"""
    folder = files("fsr.emulator")
    sources = [f for part in ("include/fsr", "runtime") for f in folder.joinpath(part).iterdir() if f.is_file()]
    found = {name for f in sources for name in re.findall(r"\b_*(?:fsr|FSR)_\w+", f.read_text(encoding="utf-8"))}
    return frozenset(found | {"fsr"})
