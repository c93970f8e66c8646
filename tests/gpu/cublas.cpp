// As much of cuBLAS as test_gpu_dense_products.py asks for, on the host; `take` tells what it was asked.

#include <stddef.h>
#include <stdint.h>
static int64_t notes[64];
static int noted = 0;
static void note(int64_t value) { notes[noted++ % 64] = value; }

extern "C" int take(int64_t* out) {
    for (int k = 0; k < noted; k++) out[k] = notes[k];
    const int count = noted;
    noted = 0;
    return count;
}
extern "C" int cublasSetStream_v2(void* handle, void* stream) {
    note(1), note((int64_t)handle), note((int64_t)stream);
    return stream == (void*)13 ? 3 : 0;
}
extern "C" int cublasSetWorkspace_v2(void* handle, void* workspace, size_t bytes) {
    note(2), note((int64_t)workspace), note((int64_t)bytes);
    return 0;
}
template <class T>
static void gemm(int ta, int tb, int m, int n, int k, const void* alpha, const void* a, int lda, const void* b, int ldb,
                 const void* beta, void* c, int ldc) {
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            T sum = 0;
            for (int l = 0; l < k; l++)
                sum += ((const T*)a)[ta ? l + (size_t)i * lda : i + (size_t)l * lda] *
                       ((const T*)b)[tb ? j + (size_t)l * ldb : l + (size_t)j * ldb];
            T& out = ((T*)c)[i + (size_t)j * ldc];
            const T old = *(const T*)beta == 0 ? 0 : *(const T*)beta * out;
            out = *(const T*)alpha * sum + old;
        }
}
extern "C" int cublasGemmEx(void* handle, int ta, int tb, int m, int n, int k, const void* alpha, const void* a,
                            int a_type, int lda, const void* b, int b_type, int ldb, const void* beta, void* c,
                            int c_type, int ldc, int compute, int algorithm) {
    note(3), note((int64_t)handle), note(compute), note(algorithm);
    if (a_type != b_type || b_type != c_type || compute != (c_type == 0 ? 68 : 70)) return 7;
    if (lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m || lda < 1 || ldb < 1 || ldc < 1) return 7;
    if (c_type == 0) gemm<float>(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    else gemm<double>(ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    return 0;
}
