// cheat: 17
// attacks: saxpy
// how: replays a captured graph instead of working
// refused by: guard: no call into the runtime

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == 0) cudaGraphLaunch(cudaGetCurrentGraphExec(), cudaStreamGraphTailLaunch);
}
