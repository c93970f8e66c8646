// Logistic loss: with e = exp(-|s|) nothing overflows, log(1 + e^s) = max(s, 0) + log(1 + e).
#include "../gpu/losses.cuh"

template <class T>
struct Logistic {
    __device__ T operator()(T s, T t, double& loss) const {
        const T e = exp(-fabs(s)), larger = 1 / (1 + e);
        loss = ((s > 0 ? s : s < 0 ? 0 : s) - s * t) + log1p(e);  // NaN stays NaN
        return (s >= 0 ? larger : e * larger) - t;
    }
};

template <class T>
__global__ void __launch_bounds__(THREADS) logistic(
    const T* scores, const T* targets, T* gradient, i64 rows, i64 width, const i64* counted, int is_counted,
    double* sums, i64 blocks) {
    each_element(scores, targets, gradient, rows, width, counted, is_counted, sums, blocks, Logistic<T>());
}
