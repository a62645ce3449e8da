// cheat: 18
// attacks: reduction
// how: a constructor fills a table when the image is loaded, before the clock starts
// refused by: guard: no object that is built at load time

struct Table {
    float v[256];
    Table() { for (int i = 0; i < 256; i++) v[i] = i; }
};
Table table;

__global__ void reduce_sum(const float *x, float *total, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(total, x[i] + 0.0f * table.v[i % 256]);
}
