/* Feature columns u = g * sign * sqrt(sum_f (w_f x_f)^2) and their standardization (algorithms 2, 2b and 3). */
#ifndef QMEDOID_SEARCH_COLUMNS_H
#define QMEDOID_SEARCH_COLUMNS_H

#include <float.h>
#include <math.h>

#include "dispatch.h"
#include "search.h"

/* Rows are taken in blocks, so that the weighted columns of a whole group stay in the second-level cache. */
#define BLOCK 512

/* Beyond these ratios of mean to deviation a column is left to the definition. A factor rounds every value anew. */
#define WORST_CONDITION 1e8
#define WORST_CONDITION_FACTOR 1e3

/* Squares of smaller numbers lose digits. */
#define SMALLEST_VARIANCE 1e-290

/* Running sums of u - shift and its square; the shift keeps the variance from cancelling. */
typedef struct {
    double shift, sum, squares;
} moments;

typedef struct {
    double mean, inverse, condition; /* z = (u - mean) * inverse */
} standard;

/* Weighted columns of all members on some rows, and their squares, BLOCK numbers apart.
 *
 * Once for all candidates; and as no candidate multiplies any more, it adds up exactly what NumPy adds up. */
QM_CLONES
static void weigh_members(const double *columns, ptrdiff_t stride, const qm_candidates *group, ptrdiff_t first,
                          ptrdiff_t n, double *QM_RESTRICT terms, double *QM_RESTRICT squares)
{
    for (ptrdiff_t f = 0; f < group->n_members; f++) {
        const double *x = columns + group->members[f] * stride + first;
        const double weight = group->weights[f];
        double *t = terms + f * BLOCK, *s = squares + f * BLOCK;
        for (ptrdiff_t i = 0; i < n; i++) {
            const double term = weight * x[i];
            t[i] = term;
            s[i] = term * term;
        }
    }
}

/* out = sum of the first `size` picked columns, from left to right; a constant size unrolls. */
QM_INLINE void add_few(const double *columns, const ptrdiff_t *picks, const int size, ptrdiff_t n,
                       double *QM_RESTRICT out)
{
    const double *c[5];
    for (int k = 0; k < size; k++)
        c[k] = columns + picks[k] * BLOCK;
    for (ptrdiff_t i = 0; i < n; i++) {
        double sum = c[0][i];
        for (int k = 1; k < size; k++)
            sum += c[k][i];
        out[i] = sum;
    }
}

QM_INLINE void add_picked(const double *columns, const ptrdiff_t *picks, ptrdiff_t size, ptrdiff_t n,
                          double *QM_RESTRICT out)
{
    switch (size) {
    case 1: add_few(columns, picks, 1, n, out); break;
    case 2: add_few(columns, picks, 2, n, out); break;
    case 3: add_few(columns, picks, 3, n, out); break;
    case 4: add_few(columns, picks, 4, n, out); break;
    default: add_few(columns, picks, 5, n, out);
    }
    for (ptrdiff_t k = 5; k < size; k++) {
        const double *c = columns + picks[k] * BLOCK;
        for (ptrdiff_t i = 0; i < n; i++)
            out[i] += c[i];
    }
}

/* The feature of one candidate on a block of rows. `signs` is scratch. */
QM_CLONES
static void feature(const qm_candidates *group, ptrdiff_t candidate, int is_signed, ptrdiff_t n, const double *terms,
                    const double *squares, double *QM_RESTRICT signs, double *QM_RESTRICT out)
{
    const ptrdiff_t *picks = group->picks + candidate * group->size;
    const double factor = group->factors[candidate];
    add_picked(squares, picks, group->size, n, out);
    if (!is_signed) {
        for (ptrdiff_t i = 0; i < n; i++)
            out[i] = factor * sqrt(out[i]);
        return;
    }
    add_picked(terms, picks, group->size, n, signs);
    for (ptrdiff_t i = 0; i < n; i++) {
        const double norm = factor * sqrt(out[i]);
        out[i] = signs[i] < 0.0 ? -norm : norm;
    }
}

/* A value near the mean: the first one plus the mean difference to it, exact for a constant column. */
QM_CLONES
static double first_shift(const double *u, ptrdiff_t n)
{
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t i = 0; i < n; i++)
        sum += u[i] - u[0];
    return u[0] + sum / (double)n;
}

QM_CLONES
static void add_moments(moments *m, const double *u, ptrdiff_t n)
{
    const double shift = m->shift;
    double sum = 0.0, squares = 0.0;
#pragma omp simd reduction(+ : sum, squares)
    for (ptrdiff_t i = 0; i < n; i++) {
        const double d = u[i] - shift;
        sum += d;
        squares += d * d;
    }
    m->sum += sum;
    m->squares += squares;
}

/* Mean and deviation by the rule of geometry.scaling.fit_standard. The condition |mean| / deviation is infinite
 * where another order of summation could turn a constant column into a varying one. */
static standard finish(const moments *m, ptrdiff_t n, double factor)
{
    const double offset = m->sum / (double)n;
    const double variance = m->squares / (double)n - offset * offset;
    standard s = {m->shift + offset, 1.0, INFINITY};
    double rounding = (double)n * DBL_EPSILON * s.mean;
    rounding *= rounding;
    if ((m->sum == 0.0 && m->squares == 0.0) || (variance <= 1e-4 * rounding && rounding > SMALLEST_VARIANCE)) {
        s.condition = fabs(s.mean);
    } else if (variance > 1e4 * rounding && variance > SMALLEST_VARIANCE && variance < INFINITY) {
        const double scale = sqrt(variance);
        s.inverse = 1.0 / scale;
        s.condition = fabs(s.mean) / scale;
    }
    if (!(s.condition <= (factor == 1.0 ? WORST_CONDITION : WORST_CONDITION_FACTOR)))
        s.condition = INFINITY;
    return s;
}

QM_CLONES
static void standardize(const double *u, ptrdiff_t n, const standard *s, double *z)
{
    const double mean = s->mean, inverse = s->inverse;
    for (ptrdiff_t i = 0; i < n; i++)
        z[i] = (u[i] - mean) * inverse;
}

#endif
