/* Cross-entropy of class scores; see cross_entropy.c. */
#ifndef QMEDOID_CROSS_ENTROPY_H
#define QMEDOID_CROSS_ENTROPY_H

#include <stddef.h>

/* Loss of (n, c) scores, the sum of -w_i log p_{i,y_i}; its gradient by the scores too where that is not null.
 * Returns 0, or 1 if a code is not one of the c classes. */
int qm_cross_entropy(const double *scores, const ptrdiff_t *codes, const double *weights, ptrdiff_t n, ptrdiff_t c,
                     double *loss, double *gradient);

#endif
