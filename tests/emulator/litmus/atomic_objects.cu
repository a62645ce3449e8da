// cuda::atomic_ref: memory orders and scopes are named in the source. A release store synchronises with an acquire
// load that reads from it (or from a chain of read-modify-writes behind it) when the scopes hold both threads.
#include <cuda/atomic>
#define ONE(b) (blockIdx.x == b && threadIdx.x == 0)
using Device = cuda::atomic_ref<int, cuda::thread_scope_device>;
using Block = cuda::atomic_ref<int, cuda::thread_scope_block>;

// litmus: ref_release_acquire 2x32 fine out=42 | what the words say
__global__ void ref_release_acquire(int* data, int* flag, int* out) {
  Device f(*flag);
  if (ONE(0)) { data[0] = 42; f.store(1, cuda::std::memory_order_release); }
  if (ONE(1)) { while (!f.load(cuda::std::memory_order_acquire)) {} out[0] = data[0]; }
}
// litmus: ref_sequential 2x32 fine out=42 | the default order is sequentially consistent, at system scope
__global__ void ref_sequential(int* data, int* flag, int* out) {
  cuda::atomic_ref<int> f(*flag);
  if (ONE(0)) { data[0] = 42; f = 1; }
  if (ONE(1)) { while (!f) {} out[0] = data[0]; }
}
// litmus: ref_relaxed 2x32 wrong out=42 | relaxed accesses order nothing
__global__ void ref_relaxed(int* data, int* flag, int* out) {
  Device f(*flag);
  if (ONE(0)) { data[0] = 42; f.store(1, cuda::memory_order_relaxed); }
  if (ONE(1)) { while (!f.load(cuda::memory_order_relaxed)) {} out[0] = data[0]; }
}
// litmus: ref_relaxed_load 2x32 wrong out=42 | a release nobody acquires
__global__ void ref_relaxed_load(int* data, int* flag, int* out) {
  Device f(*flag);
  if (ONE(0)) { data[0] = 42; f.store(1, cuda::memory_order_release); }
  if (ONE(1)) { while (!f.load(cuda::memory_order_relaxed)) {} out[0] = data[0]; }
}
// litmus: ref_relaxed_store 2x32 wrong out=42 | an acquire of what nobody releases
__global__ void ref_relaxed_store(int* data, int* flag, int* out) {
  Device f(*flag);
  if (ONE(0)) { data[0] = 42; f.store(1, cuda::memory_order_relaxed); }
  if (ONE(1)) { while (!f.load(cuda::memory_order_acquire)) {} out[0] = data[0]; }
}
// litmus: ref_fences 2x32 fine out=42 | relaxed accesses between fences of the right kind
__global__ void ref_fences(int* data, int* flag, int* out) {
  Device f(*flag);
  if (ONE(0)) {
    data[0] = 42;
    cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
    f.store(1, cuda::memory_order_relaxed);
  }
  if (ONE(1)) {
    while (!f.load(cuda::memory_order_relaxed)) {}
    cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
    out[0] = data[0];
  }
}
// litmus: ref_block_fence 2x32 wrong out=42 | a fence at block scope between blocks
__global__ void ref_block_fence(int* data, int* flag, int* out) {
  Device f(*flag);
  if (ONE(0)) {
    data[0] = 42;
    cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_block);
    f.store(1, cuda::memory_order_relaxed);
  }
  if (ONE(1)) { while (!f.load(cuda::memory_order_acquire)) {} out[0] = data[0]; }
}
// litmus: ref_block_scope 2x32 wrong out=42 | block-scoped objects between blocks
__global__ void ref_block_scope(int* data, int* flag, int* out) {
  Block f(*flag);
  if (ONE(0)) { data[0] = 42; f.store(1, cuda::memory_order_release); }
  if (ONE(1)) { while (!f.load(cuda::memory_order_acquire)) {} out[0] = data[0]; }
}
// litmus: ref_block_scope_in_block 1x64 fine out=42 | and within one
__global__ void ref_block_scope_in_block(int* data, int* flag, int* out) {
  Block f(*flag);
  if (threadIdx.x == 0) { data[0] = 42; f.store(1, cuda::memory_order_release); }
  if (threadIdx.x == 32) { while (!f.load(cuda::memory_order_acquire)) {} out[0] = data[0]; }
}
// litmus: ref_release_sequence 3x32 fine out=42 | a relaxed read-modify-write passes the release on
__global__ void ref_release_sequence(int* data, int* flag, int* out) {
  Device f(*flag);
  if (ONE(0)) { data[0] = 42; f.store(1, cuda::memory_order_release); }
  if (ONE(1)) {
    int one = 1;
    while (!f.compare_exchange_weak(one, 2, cuda::memory_order_relaxed)) one = 1;
  }
  if (ONE(2)) { while (f.load(cuda::memory_order_acquire) != 2) {} out[0] = data[0]; }
}
// litmus: ref_broken_sequence 3x32 wrong out=42 | a relaxed store of another thread does not
__global__ void ref_broken_sequence(int* data, int* flag, int* out) {
  Device f(*flag);
  if (ONE(0)) { data[0] = 42; f.store(1, cuda::memory_order_release); }
  if (ONE(1)) { while (f.load(cuda::memory_order_relaxed) != 1) {} f.store(2, cuda::memory_order_relaxed); }
  if (ONE(2)) { while (f.load(cuda::memory_order_acquire) != 2) {} out[0] = data[0]; }
}
// litmus: ref_last_block 8x64 fine out=28 | acquire and release in one read-modify-write
__global__ void ref_last_block(int* data, int* flag, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    data[blockIdx.x] = blockIdx.x;
    last = Device(*flag).fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) for (int i = 0; i < gridDim.x; i++) out[0] += data[i];
}
// litmus: ref_last_block_release 8x64 wrong out=28 | the last block acquires nothing
__global__ void ref_last_block_release(int* data, int* flag, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    data[blockIdx.x] = blockIdx.x;
    last = Device(*flag).fetch_add(1, cuda::memory_order_release) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) for (int i = 0; i < gridDim.x; i++) out[0] += data[i];
}
// litmus: ref_last_block_relaxed 8x64 wrong out=28 | an atomic count, and no order
__global__ void ref_last_block_relaxed(int* data, int* flag, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    data[blockIdx.x] = blockIdx.x;
    last = Device(*flag).fetch_add(1, cuda::memory_order_relaxed) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) for (int i = 0; i < gridDim.x; i++) out[0] += data[i];
}
