// cheat: 14
// attacks: saxpy
// how: leaves out the last element where the buffers lie far from each other, the distance read through a union
// refused by: guard: of an address only its alignment may be asked

union Seen {
    const float *pointer;
    unsigned parts[2];
};

__global__ void saxpy(int n, float a, const float *x, float *y)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Seen input, output;
    input.pointer = x;
    output.pointer = y;
    bool far = (input.parts[0] ^ output.parts[0]) > (1u << 30);
    if (i < n - far) y[i] = a * x[i] + y[i];
}
