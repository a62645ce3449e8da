// What CUB's collectives combine and by what: key-value pairs and operators.
#pragma once
#include "cuda.h"

namespace cub {

struct NullType {};

template <class Key_, class Value_>
struct KeyValuePair {
  using Key = Key_;
  using Value = Value_;
  Key key;
  Value value;
  KeyValuePair() {}
  KeyValuePair(const Key& k, const Value& v) : key(k), value(v) {}
  bool operator!=(const KeyValuePair& b) const { return value != b.value || key != b.key; }
};

#define FSR_CUB_OPERATOR(name, expression)                                      \
  struct name {                                                                 \
    template <class T, class U>                                                 \
    auto operator()(const T& a, const U& b) const { return expression; }        \
  };
FSR_CUB_OPERATOR(Equality, a == b)
FSR_CUB_OPERATOR(Inequality, a != b)
FSR_CUB_OPERATOR(Sum, a + b)
FSR_CUB_OPERATOR(Difference, a - b)
FSR_CUB_OPERATOR(Division, a / b)
FSR_CUB_OPERATOR(Max, a < b ? b : a)
FSR_CUB_OPERATOR(Min, b < a ? b : a)
#undef FSR_CUB_OPERATOR

// The first of the largest, or smallest, values: of equal ones that with the smaller key.
#define FSR_CUB_FIRST(name, comparison)                                                                     \
  struct name {                                                                                             \
    template <class T, class Key>                                                                           \
    KeyValuePair<Key, T> operator()(const KeyValuePair<Key, T>& a, const KeyValuePair<Key, T>& b) const {    \
      return b.value comparison a.value || (a.value == b.value && b.key < a.key) ? b : a;                   \
    }                                                                                                       \
  };
FSR_CUB_FIRST(ArgMax, >)
FSR_CUB_FIRST(ArgMin, <)
#undef FSR_CUB_FIRST

}  // namespace cub
