// sizes and alignments of the vector types
// fidelity: in=int32:any out=int32 n=24 ulp=0
// numpy: np.array([2, 4, 3, 6, 8, 8, 12, 4, 16, 12, 8, 16, 24, 16, 16, 16, 32, 12, 4, 4, 4, 32, 8, 8])
__global__ void k(const int* x, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int table[24] = {sizeof(char2), alignof(char4), sizeof(uchar3), sizeof(short3), alignof(short4), alignof(int2),
                         sizeof(int3), alignof(int3), alignof(int4), sizeof(float3), alignof(float2), alignof(float4),
                         sizeof(double3), alignof(double2), sizeof(longlong2), alignof(longlong2), sizeof(ulonglong4),
                         sizeof(dim3), alignof(ushort2), sizeof(uint1), alignof(float1), sizeof(double4),
                         alignof(longlong1), sizeof(ushort4)};
  if (i < 24) out[i] = table[i];
}
