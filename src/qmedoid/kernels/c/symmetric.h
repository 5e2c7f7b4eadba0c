/* Boosting of symmetric trees; see symmetric.c. */
#ifndef QMEDOID_SYMMETRIC_H
#define QMEDOID_SYMMETRIC_H

#include <stddef.h>
#include <stdint.h>

/* Levels of a tree; all nodes of a level ask one comparison. */
#define QM_LEVELS 4
#define QM_LEAVES 16

/* n rows with their class codes; bins are column after column, each of n. */
typedef struct {
    const uint8_t *bins;
    const ptrdiff_t *codes;
    ptrdiff_t n;
} qm_binned;

/* At level l of iteration t, columns `candidates[t, l, :]` are tried; column j has `n_bins[j]` bins.
 * There are k outputs: 1 with a logistic loss, more with a softmax. */
typedef struct {
    const int32_t *candidates, *n_bins;
    ptrdiff_t n_columns, n_candidates, n_iterations, patience, k;
    double rate, l2, least_gain;
} qm_growth;

/* Grow trees from the outputs `start` (k) on. Rows whose bin is above `cuts` (iterations, 4) in `columns` go to the
 * right; `leaves` (iterations, 16, k) are added. Where there are held-out rows, `losses` (iterations + 1) are theirs,
 * and growth ends where the last `patience` iterations took no more than `least_gain` from the loss.
 * Returns the number of iterations, or -1 where memory ends. */
ptrdiff_t qm_symmetric(const qm_binned *rows, const qm_binned *held, const qm_growth *how, const double *start,
                       int32_t *columns, int32_t *cuts, double *leaves, double *losses);

#endif
