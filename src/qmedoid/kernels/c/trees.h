/* Sums of trees of comparisons; see trees.c. */
#ifndef QMEDOID_TREES_H
#define QMEDOID_TREES_H

#include <stddef.h>
#include <stdint.h>

/* Levels of a tree: every path asks this many comparisons. */
#define QM_LEVELS 4
#define QM_NODES 15
#define QM_LEAVES 16

/* Add to (n, k) outputs the leaves that (n, m) rows reach in each of the trees.
 * Tree t has its nodes and leaves in breadth-first order; it belongs to output `output[t]`. */
void qm_trees(const double *rows, ptrdiff_t n, ptrdiff_t m, ptrdiff_t n_trees, const int32_t *columns,
              const double *thresholds, const double *leaves, const int32_t *output, ptrdiff_t k, double *outputs);

#endif
