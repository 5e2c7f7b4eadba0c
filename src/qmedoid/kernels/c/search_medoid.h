/* The medoid of a class when one column changes (algorithm 4).
 *
 * With b_ij the squared distance over all other columns and z the changed one, Minkowski's inequality gives
 *     sum_j sqrt(b_ij + (z_i - z_j)^2) >= sqrt(S_i^2 + T_i^2),   S_i = sum_j sqrt(b_ij),   T_i = sum_j |z_i - z_j|.
 * S serves all candidates of a visit and T costs O(n), so that only a few rows are summed in full. Columns of few
 * values defeat it: all corners of a cube are about as far from the rest. Where many rows pass, their totals are
 * bounded by square roots of all pairs in single precision, which leaves next to none. */
#ifndef QMEDOID_SEARCH_MEDOID_H
#define QMEDOID_SEARCH_MEDOID_H

#include <math.h>

#include "dispatch.h"
#include "search.h"

/* Bounds are lowered by this share, far more than the rounding of a sum. */
#define BOUND_SLACK 1e-9
/* The same in single precision, for each number added up. */
#define SINGLE_SLACK 6e-8
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
    ptrdiff_t *tried;     /* (n_sample + 1): rows summed in full, and */
    double *totals;       /* (n_sample + 1): their totals; for one candidate: */
    ptrdiff_t n_tried;    /* how many these are, and */
    double best;          /* the least total so far */
    int32_t *bins;        /* (n_sample) */
    float *base_pairs;    /* of the class whose medoids are sought; for any of them, */
    int has_base_pairs;   /* once they were needed */
    float *sums;          /* (n_sample) */
} medoid_search;

/* Where the pairs of class c begin. */
static double *class_pairs(const qm_fold *fold, ptrdiff_t c)
{
    double *pairs = fold->squared;
    for (ptrdiff_t e = 0; e < c; e++) {
        const ptrdiff_t n = fold->bounds[e + 1] - fold->bounds[e];
        pairs += n * (n - 1) / 2;
    }
    return pairs;
}

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

/* Lower bounds of b_ij in single precision, in the order of `pairs`; z is the column that goes. */
QM_CLONES
static void fill_base_pairs(const double *pairs, const double *z, ptrdiff_t n, double slack, float *QM_RESTRICT out)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        const ptrdiff_t left = n - i - 1;
        for (ptrdiff_t j = 0; j < left; j++) {
            const double d = z[i + 1 + j] - z[i], b = pairs[j] - d * d - slack;
            out[j] = (float)(b > 0.0 ? b : 0.0);
        }
        pairs += left;
        out += left;
    }
}

/* Squares of lower bounds of the totals, from the base pairs. Differences are taken in double precision, so that
 * everything in single precision is a sum of positive numbers, wrong by a small share of itself. */
QM_CLONES
static void close_bounds(const float *base, const double *z, ptrdiff_t n, float *QM_RESTRICT sums,
                         double *QM_RESTRICT out)
{
    const double share = 1.0 - SINGLE_SLACK * (double)(n + 8);
    for (ptrdiff_t i = 0; i < n; i++)
        sums[i] = 0.0f;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double zi = z[i];
        const float *row = base - i - 1;
        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (ptrdiff_t j = i + 1; j < n; j++) {
            const float d = (float)(z[j] - zi), root = sqrtf(row[j] + d * d);
            sums[j] += root;
            sum += root;
        }
        sums[i] += sum;
        base += n - i - 1;
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        const double bound = share > 0.0 ? sums[i] * share : 0.0;
        out[i] = bound * bound;
    }
}

/* A repeated row has the total of the first of its kind, which wins the tie: no need to try it. */
static void leave_out_repeated(const qm_fold *fold, ptrdiff_t c, double *bound)
{
    for (ptrdiff_t i = fold->bounds[c]; i < fold->bounds[c + 1]; i++)
        if (fold->repeated[i])
            bound[i - fold->bounds[c]] = INFINITY;
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
    for (ptrdiff_t i = 0; i < n; i++) { /* two tables, so that neighbors in one bin need not wait for each other */
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

/* Whether so many rows pass that bounds from all pairs are cheaper than the rows, a few of which are kept. */
QM_CLONES
static int is_crowded(const double *bound, ptrdiff_t n, double limit, ptrdiff_t n_anchors)
{
    ptrdiff_t passed = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        passed += bound[i] <= limit;
    return passed > KEPT_ROWS && 2 * passed * n_anchors > n;
}

/* Replace the bounds of a candidate by closer ones. */
static void tighten(const qm_fold *fold, ptrdiff_t anchor, ptrdiff_t c, const double *z, medoid_search *s)
{
    const ptrdiff_t low = fold->bounds[c], n = fold->bounds[c + 1] - low;
    if (!s->has_base_pairs)
        fill_base_pairs(class_pairs(fold, c), fold->sample_z + anchor * fold->n_sample + low, n, fold->slack[c],
                        s->base_pairs);
    s->has_base_pairs = 1;
    close_bounds(s->base_pairs, z, n, s->sums, s->bound);
    leave_out_repeated(fold, c, s->bound);
}

/* Sum row i of class c in full; its bound has served. */
static void try_row(const qm_fold *fold, ptrdiff_t anchor, ptrdiff_t c, const double *z, ptrdiff_t i, medoid_search *s)
{
    const double sum = total(base_row(fold, anchor, c, i, s), z, fold->bounds[c + 1] - fold->bounds[c], i);
    s->bound[i] = INFINITY;
    s->tried[s->n_tried] = i;
    s->totals[s->n_tried++] = sum;
    s->best = sum < s->best ? sum : s->best;
}

static ptrdiff_t least_bound(const double *bound, ptrdiff_t n)
{
    ptrdiff_t least = 0;
    for (ptrdiff_t i = 1; i < n; i++)
        if (bound[i] < bound[least])
            least = i;
    return least;
}

/* The medoid of class c with column z on the medoid rows: the lowest row within the tie tolerance of the best. */
static ptrdiff_t find_medoid(const qm_fold *fold, ptrdiff_t anchor, ptrdiff_t c, const double *z, double tie_tolerance,
                             medoid_search *s)
{
    const ptrdiff_t low = fold->bounds[c], n = fold->bounds[c + 1] - low;
    ptrdiff_t first = 0;
    z += low;
    s->n_tried = 0;
    s->best = INFINITY;
    const double least = total_bounds(s->base_bound + low, z, n, s->bins, s->bound);
    while (first < n - 1 && s->bound[first] > least)
        first++;
    try_row(fold, anchor, c, z, first, s);
    if (is_crowded(s->bound, n, bound_limit(s->best), fold->n_anchors)) {
        tighten(fold, anchor, c, z, s);
        s->n_tried = 0; /* the first row is tried again if it still matters */
        try_row(fold, anchor, c, z, least_bound(s->bound, n), s);
    }
    for (ptrdiff_t i = 0; i < n; i++)
        if (!(s->bound[i] > bound_limit(s->best)))
            try_row(fold, anchor, c, z, i, s);
    ptrdiff_t medoid = n - 1;
    for (ptrdiff_t t = 0; t < s->n_tried; t++)
        if (s->totals[t] <= s->best + tie_tolerance * s->best && s->tried[t] < medoid)
            medoid = s->tried[t];
    return low + medoid;
}

#endif
