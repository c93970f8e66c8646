// Least squares: (s - t)^2 / 2 and its slope s - t.
#include "../gpu/losses.cuh"

template <class T>
struct Squared {
    __device__ T operator()(T s, T t, double& loss) const {
        const T error = s - t;
        loss = 0.5 * error * (double)error;
        return error;
    }
};

template <class T>
__global__ void __launch_bounds__(THREADS) squared(
    const T* scores, const T* targets, T* gradient, i64 rows, i64 width, const i64* counted, int is_counted,
    double* sums, i64 blocks) {
    each_element(scores, targets, gradient, rows, width, counted, is_counted, sums, blocks, Squared<T>());
}
