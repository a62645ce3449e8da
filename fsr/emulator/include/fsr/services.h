// What a kernel asks of the device besides arithmetic: clocks, printf, assert, trap, sleep.
#pragma once
#include <stdio.h>
#include <time.h>
#include "runtime.h"

inline long long clock64() { return fsr_clock64(); }
inline unsigned long long __globaltimer() { return (unsigned long long)fsr_clock64(); }
#define clock() ((clock_t)fsr_clock64())
#define printf(...) fsr_printf(__VA_ARGS__)

inline void __nanosleep(unsigned, int line = __builtin_LINE()) { fsr_yield(line); }
inline void __trap(int line = __builtin_LINE()) { fsr_trap("__trap()", line); }
inline void __brkpt(int line = __builtin_LINE()) { fsr_trap("__brkpt()", line); }
inline void __prof_trigger(int) {}

#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) ((condition) ? (void)0 : fsr_trap("assertion failed: " #condition, __LINE__))
#endif
