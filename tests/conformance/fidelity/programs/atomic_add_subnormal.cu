// a float sum in global memory has no subnormal values, one in shared memory has
// fidelity: in=int32:small out=int32 outs=6 launch=1x32 n=32 ulp=0
__global__ void k(const int* x, int* out, int n) {
  __shared__ float sums[3];
  float tiny = __int_as_float(0x00600000 + threadIdx.x), small = __int_as_float(0x00800003);
  if (threadIdx.x < 3) sums[threadIdx.x] = 0.0f;
  __syncthreads();
  atomicAdd(&sums[0], tiny);
  if (threadIdx.x == 0) atomicAdd(&sums[1], small), atomicAdd(&sums[1], -__int_as_float(0x00800001));
  if (threadIdx.x == 0) atomicAdd(&sums[2], -0.0f);
  atomicAdd((float*)&out[0], tiny);
  if (threadIdx.x == 0) atomicAdd((float*)&out[1], small), atomicAdd((float*)&out[1], -__int_as_float(0x00800001));
  if (threadIdx.x == 1) atomicAdd((float*)&out[2], -tiny);
  __syncthreads();
  if (threadIdx.x < 3) out[3 + threadIdx.x] = __float_as_int(sums[threadIdx.x]);
}
