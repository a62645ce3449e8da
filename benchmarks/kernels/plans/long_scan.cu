// Exclusive prefix sums of a long line by one thread a result, as a first attempt has it.
// /// fsr
// [sizes]
// n = {min = 1, max = 16777216, timed = 1048576}
// [args]
// x = {role = "in", shape = ["n"]}
// y = {role = "out", shape = ["n"]}
// [launch]
// grid = "1"
// block = 1
// [tolerance]
// sum_length = "n"
// ///
__global__ void scan(const float *x, float *y, int n)
{
    float sum = 0.0f;
    for (int i = 0; i < n; i++) {
        y[i] = sum;
        sum += x[i];
    }
}
