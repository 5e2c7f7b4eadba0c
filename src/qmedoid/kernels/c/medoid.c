/* Sums of Euclidean distances, sum_j w_j |x_j - x_i|, and lower bounds of them, in an order that depends on nothing
 * but the input.
 *
 * For the sums a tile of QM_LANES candidates is transposed, so that one vector instruction serves one column of
 * several candidates, and the other rows stream past it. Differences are taken before squaring, so that a table far
 * from the origin loses no digits. */
#include "medoid.h"

#include <math.h>
#include <string.h>

#include "dispatch.h"

/* Most rows that a sum runs over before it is closed. */
#define BLOCK 1024

/* Largest range of a column; 0 is returned (and the range is void) if a number is NaN or infinite. */
QM_CLONES
int qm_spread(const double *x, ptrdiff_t n, ptrdiff_t d, double *spread)
{
    double widest = 0.0;
    *spread = 0.0;
    for (ptrdiff_t k = 0; k < d; k += QM_LANES) {
        const ptrdiff_t columns = d - k < QM_LANES ? d - k : QM_LANES;
        double low[QM_LANES], high[QM_LANES], bad[QM_LANES] = {0.0};
        for (ptrdiff_t l = 0; l < QM_LANES; l++)
            low[l] = high[l] = x[k + (l < columns ? l : 0)];
        for (ptrdiff_t i = 0; i < n; i++) {
            const double *row = x + i * d + k;
            for (ptrdiff_t l = 0; l < columns; l++) {
                low[l] = row[l] < low[l] ? row[l] : low[l];
                high[l] = row[l] > high[l] ? row[l] : high[l];
                bad[l] += 0.0 * row[l]; /* stays 0 for finite numbers only */
            }
        }
        for (ptrdiff_t l = 0; l < columns; l++) {
            if (!(bad[l] == 0.0))
                return 0;
            widest = high[l] - low[l] > widest ? high[l] - low[l] : widest;
        }
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

/* Squared distances of QM_POINTS consecutive rows to the candidates of a tile. Several rows at once keep as many
 * sums going as it takes to hide the latency of an addition; compilers leave these sums in memory unless the vectors
 * are spelt out. */
#ifdef QM_GNU
typedef double four __attribute__((vector_size(32)));

QM_INLINE void squares(const double *QM_RESTRICT points, const double *QM_RESTRICT tile, ptrdiff_t d,
                       double *QM_RESTRICT out)
{
    four low[QM_POINTS] = {{0.0}}, high[QM_POINTS] = {{0.0}};
    for (ptrdiff_t k = 0; k < d; k++) {
        four left, right;
        memcpy(&left, tile + k * QM_LANES, sizeof left);
        memcpy(&right, tile + k * QM_LANES + 4, sizeof right);
#pragma GCC unroll 4
        for (int r = 0; r < QM_POINTS; r++) {
            const double p = points[r * d + k];
            const four a = p - left, b = p - right;
            low[r] += a * a;
            high[r] += b * b;
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < QM_POINTS; r++) {
        memcpy(out + r * QM_LANES, &low[r], sizeof low[r]);
        memcpy(out + r * QM_LANES + 4, &high[r], sizeof high[r]);
    }
}

/* out[l] = sum over the first k columns of row[c] times column c of candidate l. */
QM_INLINE void times_tile(const double *QM_RESTRICT row, const double *QM_RESTRICT tile, ptrdiff_t k,
                          double *QM_RESTRICT out)
{
    four low = {0.0}, high = {0.0};
    for (ptrdiff_t c = 0; c < k; c++) {
        four left, right;
        memcpy(&left, tile + c * QM_LANES, sizeof left);
        memcpy(&right, tile + c * QM_LANES + 4, sizeof right);
        low += row[c] * left;
        high += row[c] * right;
    }
    memcpy(out, &low, sizeof low);
    memcpy(out + 4, &high, sizeof high);
}
#else
QM_INLINE void squares(const double *QM_RESTRICT points, const double *QM_RESTRICT tile, ptrdiff_t d,
                       double *QM_RESTRICT out)
{
    memset(out, 0, QM_POINTS * QM_LANES * sizeof(double));
    for (ptrdiff_t k = 0; k < d; k++)
        for (int r = 0; r < QM_POINTS; r++)
            for (int l = 0; l < QM_LANES; l++) {
                const double difference = points[r * d + k] - tile[k * QM_LANES + l];
                out[r * QM_LANES + l] += difference * difference;
            }
}

QM_INLINE void times_tile(const double *QM_RESTRICT row, const double *QM_RESTRICT tile, ptrdiff_t k,
                          double *QM_RESTRICT out)
{
    memset(out, 0, QM_LANES * sizeof(double));
    for (ptrdiff_t c = 0; c < k; c++)
        for (int l = 0; l < QM_LANES; l++)
            out[l] += row[c] * tile[c * QM_LANES + l];
}
#endif

/* Distances and weights of the rows j .. j + QM_POINTS - 1; rows beyond n get weight 0 and are read from `spare`. */
QM_INLINE void distances(const double *x, const double *w, ptrdiff_t n, ptrdiff_t d, ptrdiff_t j, const double *tile,
                         double *spare, double *out, double *weight)
{
    const double *points = x + j * d;
    const ptrdiff_t count = n - j < QM_POINTS ? n - j : QM_POINTS;
    double square[QM_POINTS * QM_LANES];
    for (int r = 0; r < QM_POINTS; r++)
        weight[r] = r < count ? w[j + r] : 0.0;
    if (count < QM_POINTS) {
        for (ptrdiff_t r = 0; r < QM_POINTS; r++)
            memcpy(spare + r * d, points + (r < count ? r : 0) * d, (size_t)d * sizeof(double));
        points = spare;
    }
    squares(points, tile, d, square);
#pragma omp simd
    for (int i = 0; i < QM_POINTS * QM_LANES; i++)
        out[i] = sqrt(square[i]);
}

/* Rows that pass all tiles before the next rows do: they stay in cache (256 kB), and a sum is closed at their end, so
 * that rounding grows with BLOCK + n / BLOCK instead of n. A multiple of QM_LANES. */
QM_INLINE ptrdiff_t block_rows(ptrdiff_t d)
{
    const ptrdiff_t rows = 32768 / d;
    return rows > BLOCK ? BLOCK : rows < 64 ? 64 : rows - rows % QM_LANES;
}

/* Totals of the `m` rows named in `rows`. */
QM_CLONES
void qm_totals(const double *x, const double *w, ptrdiff_t n, ptrdiff_t d, const ptrdiff_t *rows, ptrdiff_t m,
               double *scratch, double *out)
{
    const ptrdiff_t size = block_rows(d);
    memset(out, 0, (size_t)m * sizeof(double));
    for (ptrdiff_t start = 0; start < n; start += size) {
        const ptrdiff_t stop = start + size < n ? start + size : n;
        for (ptrdiff_t first = 0; first < m; first += QM_LANES) {
            const ptrdiff_t count = m - first < QM_LANES ? m - first : QM_LANES;
            double part[QM_LANES] = {0.0};
            fill_tile(x, d, rows, first, count, scratch);
            for (ptrdiff_t j = start; j < stop; j += QM_POINTS) {
                double dist[QM_POINTS * QM_LANES], weight[QM_POINTS];
                distances(x, w, n, d, j, scratch, scratch + d * QM_LANES, dist, weight);
                for (int r = 0; r < QM_POINTS; r++)
#pragma omp simd
                    for (int l = 0; l < QM_LANES; l++)
                        part[l] += weight[r] * dist[r * QM_LANES + l];
            }
            for (ptrdiff_t l = 0; l < count; l++)
                out[first + l] += part[l];
        }
    }
}

/* Totals of all rows; every distance between tiles is computed once and added to both of its rows. */
QM_CLONES
void qm_all_totals(const double *x, const double *w, ptrdiff_t n, ptrdiff_t d, double *scratch, double *out)
{
    const ptrdiff_t size = block_rows(d);
    memset(out, 0, (size_t)n * sizeof(double));
    for (ptrdiff_t start = 0; start < n; start += size) {
        const ptrdiff_t stop = start + size < n ? start + size : n;
        for (ptrdiff_t first = 0; first < stop; first += QM_LANES) {
            const ptrdiff_t count = n - first < QM_LANES ? n - first : QM_LANES;
            double mine[QM_LANES] = {0.0}, part[QM_LANES] = {0.0};
            fill_tile(x, d, NULL, first, count, scratch);
            memcpy(mine, w + first, (size_t)count * sizeof(double));
            for (ptrdiff_t j = first > start ? first : start; j < stop; j += QM_POINTS) {
                double dist[QM_POINTS * QM_LANES], weight[QM_POINTS];
                distances(x, w, n, d, j, scratch, scratch + d * QM_LANES, dist, weight);
                for (int r = 0; r < QM_POINTS; r++) {
                    const double *to = dist + r * QM_LANES;
#pragma omp simd
                    for (int l = 0; l < QM_LANES; l++)
                        part[l] += weight[r] * to[l];
                    if (j + r >= first + QM_LANES && j + r < n) {
                        double back[4];
#pragma omp simd
                        for (int l = 0; l < 4; l++)
                            back[l] = mine[l] * to[l] + mine[l + 4] * to[l + 4];
                        out[j + r] += (back[0] + back[1]) + (back[2] + back[3]);
                    }
                }
            }
            for (ptrdiff_t l = 0; l < count; l++)
                out[first + l] += part[l];
        }
    }
}

/* z_j = x_j - pivot and |z_j|. */
QM_CLONES
void qm_centre(const double *x, const double *pivot, ptrdiff_t n, ptrdiff_t d, double *z, double *norms)
{
    for (ptrdiff_t j = 0; j < n; j++) {
        double square = 0.0;
#pragma omp simd reduction(+ : square)
        for (ptrdiff_t k = 0; k < d; k++) {
            const double difference = x[j * d + k] - pivot[k];
            z[j * d + k] = difference;
            square += difference * difference;
        }
        norms[j] = sqrt(square);
    }
}

/* With A_j = |z_j|^2 + r0, s_j = dist(|z_j|, [low, high]) / sqrt(A_j), a_j = w_j / sqrt(A_j) and
 * b_j = w_j / (A_j^(3/2) (1 + s_j)^2), write
 *     sum w sqrt(A), sum a, sum b, sum a z (d numbers), sum b z (d), sum b z z' (d * d, lower triangle, rest zero). */
QM_CLONES
void qm_moments(const double *z, const double *norms, const double *w, ptrdiff_t n, ptrdiff_t d, double low,
                double high, double r0, double *out)
{
    double *linear = out + 3, *third = linear + d, *second = third + d;
    memset(out, 0, (size_t)(3 + 2 * d + d * d) * sizeof(double));
    for (ptrdiff_t start = 0; start < n; start += BLOCK) {
        const ptrdiff_t count = n - start < BLOCK ? n - start : BLOCK;
        const double *rows = z + start * d;
        double a[BLOCK], b[BLOCK], zeroth = 0.0, first = 0.0, last = 0.0;
#pragma omp simd reduction(+ : zeroth, first, last)
        for (ptrdiff_t j = 0; j < count; j++) {
            const double norm = norms[start + j], weight = w[start + j];
            const double square = norm * norm + r0, root = sqrt(square);
            const double below = low - norm, above = norm - high;
            const double outside = below > above ? below : above;
            const double stretch = root + (outside > 0.0 ? outside : 0.0);
            a[j] = weight / root;
            b[j] = a[j] / (stretch * stretch);
            zeroth += weight * root;
            first += a[j];
            last += b[j];
        }
        out[0] += zeroth;
        out[1] += first;
        out[2] += last;
        for (ptrdiff_t j = 0; j < count; j++) {
            const double *row = rows + j * d;
#pragma omp simd
            for (ptrdiff_t k = 0; k < d; k++) {
                linear[k] += a[j] * row[k];
                third[k] += b[j] * row[k];
            }
        }
        ptrdiff_t j = 0;
        for (; j + 4 <= count; j += 4) {
            const double *p = rows + j * d, *q = p + d, *r = q + d, *s = r + d;
            for (ptrdiff_t k = 0; k < d; k++) {
                const double bp = b[j] * p[k], bq = b[j + 1] * q[k], br = b[j + 2] * r[k], bs = b[j + 3] * s[k];
                double *target = second + k * d;
#pragma omp simd
                for (ptrdiff_t l = 0; l <= k; l++)
                    target[l] += (bp * p[l] + bq * q[l]) + (br * r[l] + bs * s[l]);
            }
        }
        for (; j < count; j++)
            for (ptrdiff_t k = 0; k < d; k++)
                for (ptrdiff_t l = 0; l <= k; l++)
                    second[k * d + l] += b[j] * rows[j * d + k] * rows[j * d + l];
    }
}

/* Lower bounds of the totals of the candidates h = z_r, r in `rows`, from the moments of their shell:
 *     sum w sqrt(A) - <sum a z, h> - t/2 sum a - 2 h'(sum b z z')h - 2 t <sum b z, h> - t^2/2 sum b,  t = r0 - |h|^2. */
QM_CLONES
void qm_bounds(const double *z, const double *norms, ptrdiff_t d, const ptrdiff_t *rows, ptrdiff_t m,
               const double *moments, double r0, double *scratch, double *out)
{
    const double *linear = moments + 3, *third = linear + d, *second = third + d;
    for (ptrdiff_t start = 0; start < m; start += QM_LANES) {
        const ptrdiff_t count = m - start < QM_LANES ? m - start : QM_LANES;
        double along[QM_LANES] = {0.0}, skew[QM_LANES] = {0.0}, form[QM_LANES] = {0.0};
        fill_tile(z, d, rows, start, count, scratch);
        for (ptrdiff_t k = 0; k < d; k++) {
            const double *h = scratch + k * QM_LANES;
            double inner[QM_LANES];
            times_tile(second + k * d, scratch, k, inner);
            for (int l = 0; l < QM_LANES; l++) {
                along[l] += linear[k] * h[l];
                skew[l] += third[k] * h[l];
                form[l] += h[l] * (2.0 * inner[l] + second[k * d + k] * h[l]);
            }
        }
        for (ptrdiff_t l = 0; l < count; l++) {
            const double norm = norms[rows[start + l]], t = r0 - norm * norm;
            out[start + l] = moments[0] - along[l] - 0.5 * t * moments[1] - 2.0 * form[l] - 2.0 * t * skew[l] -
                             0.5 * t * t * moments[2];
        }
    }
}
