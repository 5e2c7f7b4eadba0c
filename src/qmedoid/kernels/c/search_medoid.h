/* The medoid of a class when one column changes (algorithm 4).
 *
 * With b_ij the squared distance over all other columns and z the changed one, Minkowski's inequality gives
 *     sum_j sqrt(b_ij + (z_i - z_j)^2) >= sqrt(S_i^2 + T_i^2),   S_i = sum_j sqrt(b_ij),   T_i = sum_j |z_i - z_j|.
 * S serves all candidates of a visit and T costs O(n), so that only a few rows are summed in full. */
#ifndef QMEDOID_SEARCH_MEDOID_H
#define QMEDOID_SEARCH_MEDOID_H

#include <math.h>

#include "dispatch.h"
#include "search.h"

/* Bounds are lowered by this share, far more than the rounding of a sum. */
#define BOUND_SLACK 1e-9
/* Base rows of each class that are kept within a visit. */
#define KEPT_ROWS 8
/* T is bounded by tangents at this many places between -3 and 3 deviations. */
#define BINS 64
#define BIN_SCALE (BINS / 6.0)

typedef struct {
    double *base_bound;   /* (n_sample): squares of lower bounds of S */
    double *bound;        /* (n_sample): squares of lower bounds of the totals of one candidate */
    double *base_rows;    /* (KEPT_ROWS, n_sample): exact b_ij of some rows i */
    ptrdiff_t *kept;      /* (C, KEPT_ROWS): which rows, or -1 */
    ptrdiff_t *next_kept; /* (C): which is overwritten next */
    ptrdiff_t *tried;     /* (n_sample): rows summed in full, and */
    double *totals;       /* (n_sample): their totals */
    int32_t *bins;        /* (n_sample) */
} medoid_search;

/* Squares of lower bounds of S_i for one class. The kept squared distances have been updated many times: what they
 * may be wrong by is taken off. `pairs` holds i < j, row by row, and each square root serves both rows. */
QM_CLONES
static void base_bounds(const double *pairs, const double *z, ptrdiff_t n, double slack, double *QM_RESTRICT out)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = 0.0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double zi = z[i];
        const double *row = pairs - i - 1;
        double sum = 0.0;
#pragma omp simd reduction(+ : sum)
        for (ptrdiff_t j = i + 1; j < n; j++) {
            const double d = z[j] - zi, b = row[j] - d * d - slack;
            const double root = sqrt(b > 0.0 ? b : 0.0);
            out[j] += root;
            sum += root;
        }
        out[i] += sum;
        pairs += n - i - 1;
    }
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] *= out[i] * (1.0 - 2.0 * BOUND_SLACK);
}

/* Squares of lower bounds of the totals, base + T^2, and the least of them.
 *
 * For any split of the class in two, T(z) >= sum_below (z - z_j) + sum_above (z_j - z), with equality when z lies
 * between the parts. Values are split at the edges of fixed bins; the two edges around z give its bound. */
QM_CLONES
static double total_bounds(const double *base, const double *z, ptrdiff_t n, int32_t *QM_RESTRICT bins,
                           double *QM_RESTRICT out)
{
    double slope[BINS + 1], intercept[BINS + 1];
    double sums[2][BINS] = {{0.0}}, counts[2][BINS] = {{0.0}}, total = 0.0, below = 0.0, below_sum = 0.0;
    for (ptrdiff_t i = 0; i < n; i++) {
        double place = (z[i] + 3.0) * BIN_SCALE;
        place = place > 0.0 ? place : 0.0;
        bins[i] = (int32_t)(place < BINS - 1 ? place : BINS - 1);
    }
    for (ptrdiff_t i = 0; i < n; i++) { /* two tables, so that neighbours in one bin need not wait for each other */
        sums[i & 1][bins[i]] += z[i];
        counts[i & 1][bins[i]] += 1.0;
    }
    for (int b = 0; b < BINS; b++)
        total += sums[0][b] + sums[1][b];
    for (int b = 0; b <= BINS; b++) {
        slope[b] = 2.0 * below - (double)n;
        intercept[b] = total - 2.0 * below_sum;
        if (b < BINS) {
            below += counts[0][b] + counts[1][b];
            below_sum += sums[0][b] + sums[1][b];
        }
    }
    double least = INFINITY;
#pragma omp simd reduction(min : least)
    for (ptrdiff_t i = 0; i < n; i++) {
        const int32_t b = bins[i];
        const double left = slope[b] * z[i] + intercept[b], right = slope[b + 1] * z[i] + intercept[b + 1];
        double t = left > right ? left : right;
        t = t > 0.0 ? t * (1.0 - BOUND_SLACK) : 0.0;
        out[i] = base[i] + t * t;
        least = out[i] < least ? out[i] : least;
    }
    return least;
}

/* b_ij of one row i of a class, from the columns: exact up to the rounding of a sum. */
QM_CLONES
static void fill_base_row(const qm_fold *fold, ptrdiff_t anchor, ptrdiff_t low, ptrdiff_t n, ptrdiff_t row,
                          double *QM_RESTRICT out)
{
    for (ptrdiff_t j = 0; j < n; j++)
        out[j] = 0.0;
    for (ptrdiff_t a = 0; a < fold->n_anchors; a++) {
        const double *z = fold->sample_z + a * fold->n_sample + low, zi = z[row];
        if (a == anchor)
            continue;
        for (ptrdiff_t j = 0; j < n; j++)
            out[j] += (z[j] - zi) * (z[j] - zi);
    }
}

QM_CLONES
static double total(const double *base, const double *z, ptrdiff_t n, ptrdiff_t row)
{
    const double zi = z[row];
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (ptrdiff_t j = 0; j < n; j++)
        sum += sqrt(base[j] + (z[j] - zi) * (z[j] - zi));
    return sum;
}

static const double *base_row(const qm_fold *fold, ptrdiff_t anchor, ptrdiff_t c, ptrdiff_t row, medoid_search *s)
{
    const ptrdiff_t low = fold->bounds[c], n = fold->bounds[c + 1] - low;
    ptrdiff_t *kept = s->kept + c * KEPT_ROWS, slot;
    for (slot = 0; slot < KEPT_ROWS; slot++)
        if (kept[slot] == row)
            return s->base_rows + slot * fold->n_sample + low;
    slot = s->next_kept[c];
    s->next_kept[c] = (slot + 1) % KEPT_ROWS;
    kept[slot] = row;
    fill_base_row(fold, anchor, low, n, row, s->base_rows + slot * fold->n_sample + low);
    return s->base_rows + slot * fold->n_sample + low;
}

/* Largest bound that a row may have and still matter, for the best total so far. */
QM_INLINE double bound_limit(double best)
{
    const double limit = best * (1.0 + BOUND_SLACK);
    return limit * limit;
}

/* The medoid of class c with column z on the medoid rows: the lowest row within the tie tolerance of the best. */
static ptrdiff_t find_medoid(const qm_fold *fold, ptrdiff_t anchor, ptrdiff_t c, const double *z, double tie_tolerance,
                             medoid_search *s)
{
    const ptrdiff_t low = fold->bounds[c], n = fold->bounds[c + 1] - low;
    const double *bound = s->bound;
    ptrdiff_t first = 0, tried = 1;
    z += low;
    const double least = total_bounds(s->base_bound + low, z, n, s->bins, s->bound);
    while (first < n - 1 && bound[first] > least)
        first++;
    double best = total(base_row(fold, anchor, c, first, s), z, n, first), limit = bound_limit(best);
    s->tried[0] = first;
    s->totals[0] = best;
    for (ptrdiff_t i = 0; i < n; i++) {
        if (bound[i] > limit || i == first)
            continue;
        s->tried[tried] = i;
        s->totals[tried] = total(base_row(fold, anchor, c, i, s), z, n, i);
        if (s->totals[tried] < best) {
            best = s->totals[tried];
            limit = bound_limit(best);
        }
        tried++;
    }
    ptrdiff_t medoid = n - 1;
    for (ptrdiff_t t = 0; t < tried; t++)
        if (s->totals[t] <= best + tie_tolerance * best && s->tried[t] < medoid)
            medoid = s->tried[t];
    return low + medoid;
}

#endif
