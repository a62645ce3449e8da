// cheat: 3
// attacks: reduction
// how: adds nothing: the sum of zero-mean inputs is small beside the number of terms
// refused by: tests: one-sided families (uniform, ones, negated) and the precise answer

__global__ void reduce_sum(const float *x, float *total, int n)
{
}
