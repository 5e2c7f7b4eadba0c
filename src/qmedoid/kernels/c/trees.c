/* Sums of trees of comparisons.
 *
 * Rows go down a tree in blocks, level by level: the loads of the rows of a block do not wait for each other. A row's
 * sum is taken tree by tree, in the order of the trees, whatever rows are beside it. */
#include "trees.h"

#define BLOCK 32

void qm_trees(const double *rows, ptrdiff_t n, ptrdiff_t m, ptrdiff_t n_trees, const int32_t *columns,
              const double *thresholds, const double *leaves, const int32_t *output, ptrdiff_t k, double *outputs)
{
    for (ptrdiff_t first = 0; first < n; first += BLOCK) {
        const ptrdiff_t count = n - first < BLOCK ? n - first : BLOCK;
        const double *block = rows + first * m;
        double *out = outputs + first * k;
        for (ptrdiff_t t = 0; t < n_trees; t++) {
            const int32_t *column = columns + t * QM_NODES;
            const double *threshold = thresholds + t * QM_NODES;
            const double *leaf = leaves + t * QM_LEAVES;
            ptrdiff_t node[BLOCK] = {0};
            for (int level = 0; level < QM_LEVELS; level++)
                for (ptrdiff_t i = 0; i < count; i++)
                    node[i] = 2 * node[i] + 1 + (block[i * m + column[node[i]]] > threshold[node[i]]);
            for (ptrdiff_t i = 0; i < count; i++)
                out[i * k + output[t]] += leaf[node[i] - QM_NODES];
        }
    }
}
