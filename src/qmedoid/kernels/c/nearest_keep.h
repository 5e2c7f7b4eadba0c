/* What searches for the nearest prototypes share: the distance, and the k nearest so far. */
#ifndef QMEDOID_NEAREST_KEEP_H
#define QMEDOID_NEAREST_KEEP_H

#include "dispatch.h"
#include "nearest.h"

#ifdef QM_GNU
#define SIMD _Pragma("omp simd")
#else
#define SIMD
#endif

QM_INLINE double squared_distance(const double *QM_RESTRICT x, const double *QM_RESTRICT p, ptrdiff_t d)
{
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    ptrdiff_t j = 0;
    for (; j + 4 <= d; j += 4) {
        SIMD for (int l = 0; l < 4; l++)
        {
            double difference = x[j + l] - p[j + l];
            sums[l] += difference * difference;
        }
    }
    /* Places are constants, so that the sums stay in registers. */
    if (j < d) sums[0] += (x[j] - p[j]) * (x[j] - p[j]);
    if (j + 1 < d) sums[1] += (x[j + 1] - p[j + 1]) * (x[j + 1] - p[j + 1]);
    if (j + 2 < d) sums[2] += (x[j + 2] - p[j + 2]) * (x[j + 2] - p[j + 2]);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* Whether a prototype comes before another one; `same` is the square of a distance that is nothing. */
QM_INLINE int is_nearer(double squared, ptrdiff_t index, double other, ptrdiff_t other_index, double same)
{
    double slack = QM_TIE * squared + same;
    return squared + slack < other || (squared <= other + slack && index < other_index);
}

/* Put a prototype where it belongs among the k nearest, if it does. */
QM_INLINE void keep_nearest(double squared, ptrdiff_t index, ptrdiff_t k, double same, double *best, ptrdiff_t *which)
{
    ptrdiff_t place = k - 1;
    if (!is_nearer(squared, index, best[place], which[place], same)) return;
    for (; place > 0 && is_nearer(squared, index, best[place - 1], which[place - 1], same); place--)
        best[place] = best[place - 1], which[place] = which[place - 1];
    best[place] = squared, which[place] = index;
}

#endif
