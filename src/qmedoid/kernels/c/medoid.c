/* Sums of Euclidean distances, sum_j w_j |x_j - x_i|, in an order that depends on nothing but the input.
 *
 * A tile of QM_LANES candidates is transposed so that one vector instruction serves one column of several
 * candidates; the other rows stream past it. Differences are taken before squaring, so that a table far from the
 * origin loses no digits. */
#include "medoid.h"

#include <math.h>
#include <string.h>

#include "dispatch.h"

/* Sums are closed every BLOCK rows: rounding then grows with BLOCK + n / BLOCK instead of n. */
#define BLOCK 512

/* Largest range of a column; 0 is returned (and the range is void) if a number is NaN or infinite. */
QM_CLONES
int qm_spread(const double *x, ptrdiff_t n, ptrdiff_t d, double *spread)
{
    double zero = 0.0, widest = 0.0;
    for (ptrdiff_t i = 0; i < n * d; i++)
        zero += 0.0 * x[i]; /* stays 0 for finite numbers only */
    if (!(zero == 0.0))
        return 0;
    for (ptrdiff_t k = 0; k < d; k++) {
        double low = x[k], high = x[k];
        for (ptrdiff_t i = 1; i < n; i++) {
            const double v = x[i * d + k];
            low = v < low ? v : low;
            high = v > high ? v : high;
        }
        widest = high - low > widest ? high - low : widest;
    }
    *spread = widest;
    return 1;
}

/* tile[k * QM_LANES + l] = column k of candidate l; lanes beyond `count` repeat the first candidate. */
QM_INLINE void fill_tile(const double *x, ptrdiff_t d, const ptrdiff_t *rows, ptrdiff_t first, ptrdiff_t count,
                         double *tile)
{
    for (ptrdiff_t l = 0; l < QM_LANES; l++) {
        const ptrdiff_t lane = l < count ? l : 0;
        const double *row = x + (rows ? rows[first + lane] : first + lane) * d;
        for (ptrdiff_t k = 0; k < d; k++)
            tile[k * QM_LANES + l] = row[k];
    }
}

QM_INLINE void distances(const double *QM_RESTRICT point, const double *QM_RESTRICT tile, ptrdiff_t d,
                         double *QM_RESTRICT out)
{
    double sum[QM_LANES] = {0.0};
    for (ptrdiff_t k = 0; k < d; k++) {
        const double p = point[k];
#pragma omp simd
        for (int l = 0; l < QM_LANES; l++) {
            const double difference = p - tile[k * QM_LANES + l];
            sum[l] += difference * difference;
        }
    }
#pragma omp simd
    for (int l = 0; l < QM_LANES; l++)
        out[l] = sqrt(sum[l]);
}

/* Totals of the `m` rows named in `rows`. */
QM_CLONES
void qm_totals(const double *x, const double *w, ptrdiff_t n, ptrdiff_t d, const ptrdiff_t *rows, ptrdiff_t m,
               double *tile, double *out)
{
    for (ptrdiff_t first = 0; first < m; first += QM_LANES) {
        const ptrdiff_t count = m - first < QM_LANES ? m - first : QM_LANES;
        double total[QM_LANES] = {0.0};
        fill_tile(x, d, rows, first, count, tile);
        for (ptrdiff_t start = 0; start < n; start += BLOCK) {
            const ptrdiff_t stop = start + BLOCK < n ? start + BLOCK : n;
            double part[QM_LANES] = {0.0};
            for (ptrdiff_t j = start; j < stop; j++) {
                double dist[QM_LANES];
                distances(x + j * d, tile, d, dist);
#pragma omp simd
                for (int l = 0; l < QM_LANES; l++)
                    part[l] += w[j] * dist[l];
            }
            for (int l = 0; l < QM_LANES; l++)
                total[l] += part[l];
        }
        memcpy(out + first, total, (size_t)count * sizeof(double));
    }
}

/* Totals of all rows; every distance is computed once and added to both of its rows. */
QM_CLONES
void qm_all_totals(const double *x, const double *w, ptrdiff_t n, ptrdiff_t d, double *tile, double *out)
{
    memset(out, 0, (size_t)n * sizeof(double));
    for (ptrdiff_t first = 0; first < n; first += QM_LANES) {
        const ptrdiff_t count = n - first < QM_LANES ? n - first : QM_LANES;
        double weight[QM_LANES] = {0.0}, total[QM_LANES] = {0.0};
        fill_tile(x, d, NULL, first, count, tile);
        memcpy(weight, w + first, (size_t)count * sizeof(double));
        for (ptrdiff_t start = first; start < n; start += BLOCK) {
            const ptrdiff_t stop = start + BLOCK < n ? start + BLOCK : n;
            double part[QM_LANES] = {0.0};
            for (ptrdiff_t j = start; j < stop; j++) {
                double dist[QM_LANES], back[QM_LANES];
                distances(x + j * d, tile, d, dist);
#pragma omp simd
                for (int l = 0; l < QM_LANES; l++) {
                    part[l] += w[j] * dist[l];
                    back[l] = weight[l] * dist[l];
                }
                if (j >= first + count)
                    out[j] += ((back[0] + back[4]) + (back[1] + back[5])) + ((back[2] + back[6]) + (back[3] + back[7]));
            }
            for (int l = 0; l < QM_LANES; l++)
                total[l] += part[l];
        }
        for (ptrdiff_t l = 0; l < count; l++)
            out[first + l] += total[l];
    }
}

/* First position whose total is within a relative `tolerance` of the smallest. */
ptrdiff_t qm_first_minimum(const double *totals, ptrdiff_t n, double tolerance)
{
    double least = totals[0];
    for (ptrdiff_t i = 1; i < n; i++)
        least = totals[i] < least ? totals[i] : least;
    const double limit = least + tolerance * least;
    for (ptrdiff_t i = 0; i < n; i++)
        if (totals[i] <= limit)
            return i;
    return 0;
}
