// Last block: every block stores a partial result and counts itself; whoever counts last adds the partials up.
// The example of __threadfence() in the CUDA programming guide has one fence, before the count, also in the block that
// turns out to be the last. Its loads stand behind the count and no further fence: PTX alone would ask for one there.
// What NVIDIA documents as right is taken as right: a fence before a read-modify-write of the same thread counts for
// both sides of it.
#define V(p) (*(volatile int*)(p))
#define SUM(term) for (int i = 0; i < gridDim.x; i++) out[0] += term

// litmus: lb_guide 8x64 fine out=28 | the guide's example
__global__ void lb_guide(int* data, int* flag, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    V(data + blockIdx.x) = blockIdx.x;
    __threadfence();
    last = atomicInc((unsigned*)flag, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) SUM(V(data + i));
}
// litmus: lb_plain_partials 8x64 fine out=28 | the same with plain stores and loads
__global__ void lb_plain_partials(int* data, int* flag, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    data[blockIdx.x] = blockIdx.x;
    __threadfence();
    last = atomicAdd(flag, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) SUM(data[i]);
}
// litmus: lb_both_fences 8x64 fine out=28 | release and acquire patterns, as PTX has them
__global__ void lb_both_fences(int* data, int* flag, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    data[blockIdx.x] = blockIdx.x;
    __threadfence();
    last = atomicAdd(flag, 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (last && threadIdx.x == 0) SUM(data[i]);
}
// litmus: lb_all_threads 8x64 fine out=16128 | the barrier hands the block's stores to the thread that fences
__global__ void lb_all_threads(int* data, int* flag, int* out) {
  __shared__ bool last;
  data[blockIdx.x * 64 + threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(flag, 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (last) for (int i = threadIdx.x; i < 64 * gridDim.x; i += 64) atomicAdd(out, data[i]);
}
// litmus: lb_all_threads_no_barrier 8x64 wrong out=16128 | the fencing thread has not seen the others' stores
__global__ void lb_all_threads_no_barrier(int* data, int* flag, int* out) {
  __shared__ bool last;
  data[blockIdx.x * 64 + threadIdx.x] = threadIdx.x;
  if (threadIdx.x == 63) {
    __threadfence();
    last = atomicAdd(flag, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last) for (int i = threadIdx.x; i < 64 * gridDim.x; i += 64) atomicAdd(out, data[i]);
}
// litmus: lb_no_fence 8x64 wrong out=28 | the count may be seen before the partial
__global__ void lb_no_fence(int* data, int* flag, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    data[blockIdx.x] = blockIdx.x;
    last = atomicAdd(flag, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) SUM(data[i]);
}
// litmus: lb_volatile_no_fence 8x64 wrong out=28 | volatile alone: no race, no order
__global__ void lb_volatile_no_fence(int* data, int* flag, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    V(data + blockIdx.x) = blockIdx.x;
    last = atomicAdd(flag, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) SUM(V(data + i));
}
// litmus: lb_fence_before_store 8x64 wrong out=28 | the fence stands before what it should order
__global__ void lb_fence_before_store(int* data, int* flag, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    __threadfence();
    data[blockIdx.x] = blockIdx.x;
    last = atomicAdd(flag, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) SUM(data[i]);
}
// litmus: lb_fence_after_count 8x64 wrong out=28 | and here behind the count
__global__ void lb_fence_after_count(int* data, int* flag, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    data[blockIdx.x] = blockIdx.x;
    last = atomicAdd(flag, 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (last && threadIdx.x == 0) SUM(data[i]);
}
// litmus: lb_block_fence 8x64 wrong out=28 | a fence among the threads of one block
__global__ void lb_block_fence(int* data, int* flag, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    data[blockIdx.x] = blockIdx.x;
    __threadfence_block();
    last = atomicAdd(flag, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) SUM(data[i]);
}
// litmus: lb_block_count 8x64 wrong out=28 | a count that is atomic within each block only
__global__ void lb_block_count(int* data, int* flag, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    data[blockIdx.x] = blockIdx.x;
    __threadfence();
    last = atomicAdd_block(flag, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) SUM(data[i]);
}
// litmus: lb_plain_count 8x64 wrong out=28 | a count that is not atomic
__global__ void lb_plain_count(int* data, int* flag, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    data[blockIdx.x] = blockIdx.x;
    __threadfence();
    last = (*flag)++ == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) SUM(data[i]);
}
// litmus: lb_verdict_not_awaited 8x64 wrong out=28 | the block does not wait for its thread's answer
__global__ void lb_verdict_not_awaited(int* data, int* flag, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    data[blockIdx.x] = blockIdx.x;
    __threadfence();
    last = atomicAdd(flag, 1) == gridDim.x - 1;
  }
  if (last && threadIdx.x == 63) SUM(data[i]);
}
