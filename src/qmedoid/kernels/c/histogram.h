/* Boosting of trees with a comparison of its own at every node; see histogram.c. */
#ifndef QMEDOID_HISTOGRAM_H
#define QMEDOID_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#define QM_LEVELS 4
#define QM_NODES 15
#define QM_PLACES 31

/* n rows over m columns; bins are column after column, each of n, and column j has `n_bins[j]` of them, 255 at most. */
typedef struct {
    const uint8_t *bins;
    const int32_t *n_bins;
    const ptrdiff_t *codes;
    ptrdiff_t n, m;
} qm_rows;

typedef struct {
    double rate, l2;
    ptrdiff_t least_rows;
} qm_growing;

/* A tree, nodes and leaves in breadth-first order. Rows whose bin is above `cuts` go to the right; where a branch ends
 * early, `columns` is -1, all rows go to the left, and the leaf is repeated below. `values` are those of the leaves, and
 * `n_rows` the training rows that reach a node or a leaf. */
typedef struct {
    int32_t *columns, *cuts;
    double *values;
    int32_t *n_rows;
} qm_tree;

typedef struct qm_boosting qm_boosting;

/* What boosting k outputs needs beside the rows, which must outlive it; NULL where memory ends. */
qm_boosting *qm_boosting_new(const qm_rows *rows, ptrdiff_t k, const double *start);
void qm_boosting_free(qm_boosting *boosting);

/* Grow a tree for each output by the derivatives of the loss, and add them to the outputs of the rows. `masks` (:, m)
 * say which columns are tried at each node that is looked at, in this order: 15 rows for each output at most.
 * Returns how many of them were used, or -1 where memory ends. */
ptrdiff_t qm_boosting_step(qm_boosting *boosting, const qm_growing *how, const uint8_t *masks, qm_tree *trees);

/* Add a tree to one output of each of n rows. */
void qm_tree_add(const qm_tree *tree, const uint8_t *bins, ptrdiff_t n, double *output);

/* The loss of each row by its outputs, which are output after output, each of n. */
void qm_boosting_losses(const double *outputs, const ptrdiff_t *codes, ptrdiff_t n, ptrdiff_t k, double *losses);

#endif
