// cuda::std on the host device: the C++ library of the compiler at hand, under its other name.
#pragma once
namespace std {}
namespace cuda {
namespace std {
using namespace ::std;
}  // namespace std
}  // namespace cuda
