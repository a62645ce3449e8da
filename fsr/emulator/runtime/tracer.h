// What an expression is made of while a kernel is watched: see tracer.cpp. Layout known to fsr/backends/host/tracing.py.
#pragma once
#include <cstddef>
#include <cstdint>

namespace fsr {

enum Type : int32_t { kBool, kI8, kI16, kI32, kI64, kHalf, kBfloat16, kFloat, kDouble };

// Operations of a node. Those above kNamed are numbered by the instrumentation, which knows their names.
enum Kind : int32_t {
  kConst = 1,   // value: its bits
  kInteger,     // a floating value made from an integer that no data took part in; value: the integer
  kLoad,        // a: region, b: element
  kGathered,    // a: what was read, b: the address, which data took part in
  kChosen,      // a: what was added to memory at the address b, which data took part in
  kGuard,       // a: condition, b: its outcome, c: the value in this case
  kSelect,      // a: condition, b: where it holds, c: where not
  kPair,        // a and b side by side in memory
  kUnknown,     // made by a thread that is not followed
  kNamed = 16,
};

struct Node {
  int32_t kind, type, a, b, c, reserved;
  uint64_t value;  // its bits in this run
};

// Shadows follow what memory the runtime itself moves.
void traced_copy(void* to, const void* from, size_t bytes);

}  // namespace fsr
