/* Nearest prototypes among those of the cells that a row looks at, in double precision.
 *
 * The k-th distance so far rules out a cell by the triangle inequality, |x - p| >= |x - c| - r, and a prototype as soon
 * as some of its columns lie farther away. Both leave room for rounding, so that neither changes the answer. */
#include "cells.h"

#include <math.h>

#include "nearest_keep.h"

#define STRIDE 16 /* columns after which a distance may be given up */

/* Whether columns [0, stride), [0, 2 stride), .. lie farther away than the limit. */
QM_INLINE int is_beyond(const double *QM_RESTRICT x, const double *QM_RESTRICT p, ptrdiff_t d, double limit)
{
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    for (ptrdiff_t start = 0; start + STRIDE <= d; start += STRIDE) {
        for (ptrdiff_t j = start; j < start + STRIDE; j += 4) {
            SIMD for (int l = 0; l < 4; l++)
            {
                double difference = x[j + l] - p[j + l];
                sums[l] += difference * difference;
            }
        }
        if ((sums[0] + sums[1]) + (sums[2] + sums[3]) > limit) return 1;
    }
    return 0;
}

QM_INLINE void nearest_of_row(const qm_cells *to, const double *x, ptrdiff_t k, ptrdiff_t own, const ptrdiff_t *visits,
                              const double *to_centers, double *best, ptrdiff_t *which)
{
    ptrdiff_t d = to->n_columns;
    double same = 0.0;
    for (ptrdiff_t j = 0; j < d; j++) same += x[j] * x[j];
    double rounding = 1e-12 * sqrt(same);
    same *= QM_SAME;
    for (ptrdiff_t i = 0; i < k; i++) best[i] = INFINITY, which[i] = -1;
    for (ptrdiff_t v = 0; v < to->n_visits; v++) {
        ptrdiff_t cell = visits[v];
        if (cell < 0) continue;
        double gap = sqrt(to_centers[v]) - to->radii[cell] * (1.0 + 1e-9) - rounding;
        if (gap > 0.0 && gap * gap > best[k - 1] * (1.0 + 1e-6) + 2.0 * same) continue;
        for (ptrdiff_t p = to->starts[cell]; p < to->starts[cell + 1]; p++) {
            const double *prototype = to->prototypes + p * d;
            if (to->names[p] == own || is_beyond(x, prototype, d, best[k - 1] * (1.0 + 1e-6) + 2.0 * same)) continue;
            keep_nearest(squared_distance(x, prototype, d), to->names[p], k, same, best, which);
        }
    }
}

QM_CLONES
void qm_nearest_in_cells(const qm_cells *to, const double *rows, ptrdiff_t n, ptrdiff_t k, const ptrdiff_t *own,
                         const ptrdiff_t *visits, const double *to_centers, double *squared, ptrdiff_t *indices)
{
    for (ptrdiff_t i = 0; i < n; i++)
        nearest_of_row(to, rows + i * to->n_columns, k, own ? own[i] : -1, visits + i * to->n_visits,
                       to_centers + i * to->n_visits, squared + i * k, indices + i * k);
}
