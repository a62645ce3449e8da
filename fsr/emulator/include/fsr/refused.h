// What the CPU does not execute. Each construct is declared, so that a kernel which uses it stops at compile time
// with a message that names it, at the line that uses it.
#pragma once

namespace fsr {
template <class...>
constexpr bool executed = false;  // depends on a template argument, so that only a use is an error
}

#define FSR_REFUSE(name, words)                                                                       \
  template <class... Args>                                                                            \
  inline int name(Args...) {                                                                          \
    static_assert(fsr::executed<Args...>, "fsr host device: " words " is not executed on the CPU");   \
    return 0;                                                                                         \
  }

FSR_REFUSE(__pipeline_arrive_on, "a barrier in shared memory (mbarrier, __pipeline_arrive_on)")
FSR_REFUSE(cudaLaunchDevice, "dynamic parallelism (cudaLaunchDevice)")
FSR_REFUSE(cudaDeviceSynchronize, "dynamic parallelism (cudaDeviceSynchronize)")
FSR_REFUSE(cudaGetParameterBuffer, "dynamic parallelism (cudaGetParameterBuffer)")
FSR_REFUSE(cudaTriggerProgrammaticLaunchCompletion, "programmatic dependent launch")
FSR_REFUSE(cudaGridDependencySynchronize, "programmatic dependent launch")
FSR_REFUSE(__cluster_barrier_arrive, "a thread block cluster (__cluster_barrier_arrive)")
FSR_REFUSE(__cluster_barrier_wait, "a thread block cluster (__cluster_barrier_wait)")
FSR_REFUSE(__cluster_map_shared_rank, "a thread block cluster (__cluster_map_shared_rank)")

using cudaTextureObject_t = unsigned long long;
using cudaSurfaceObject_t = unsigned long long;
#define FSR_REFUSE_TEXTURE(name)                                                                      \
  template <class T, class... Args>                                                                   \
  inline T name(Args...) {                                                                            \
    static_assert(fsr::executed<Args...>, "fsr host device: texture fetch (" #name ") is not executed on the CPU"); \
    return T();                                                                                       \
  }
FSR_REFUSE_TEXTURE(tex1D)
FSR_REFUSE_TEXTURE(tex2D)
FSR_REFUSE_TEXTURE(tex3D)
FSR_REFUSE_TEXTURE(tex1Dfetch)
FSR_REFUSE_TEXTURE(tex2DLod)
FSR_REFUSE_TEXTURE(tex2DLayered)
FSR_REFUSE_TEXTURE(surf1Dread)
FSR_REFUSE_TEXTURE(surf2Dread)
#undef FSR_REFUSE_TEXTURE
FSR_REFUSE(surf1Dwrite, "surface store (surf1Dwrite)")
FSR_REFUSE(surf2Dwrite, "surface store (surf2Dwrite)")
#undef FSR_REFUSE

#define __cluster_dims__(...) \
  __attribute__((error("fsr host device: a thread block cluster (__cluster_dims__) is not executed on the CPU")))

// Last, since the headers above use asm themselves. The statement after the assertion keeps the syntax right.
#define asm static_assert(false, "fsr host device: inline PTX (asm) is not executed on the CPU"); __asm__
#define __asm__ static_assert(false, "fsr host device: inline PTX (asm) is not executed on the CPU"); __asm__
#define __asm static_assert(false, "fsr host device: inline PTX (asm) is not executed on the CPU"); __asm
