/* Exact sums of distances and the moments that bound them from below; see medoid.c. */
#ifndef QMEDOID_MEDOID_H
#define QMEDOID_MEDOID_H

#include <stddef.h>

int qm_spread(const double *x, ptrdiff_t n, ptrdiff_t d, double *spread);
void qm_totals(const double *x, const double *w, ptrdiff_t n, ptrdiff_t d, const ptrdiff_t *rows, ptrdiff_t m,
               double *tile, double *out);
void qm_all_totals(const double *x, const double *w, ptrdiff_t n, ptrdiff_t d, double *tile, double *out);
ptrdiff_t qm_first_minimum(const double *totals, ptrdiff_t n, double tolerance);

/* Candidates are handled this many at a time; `tile` holds d times as many numbers. */
#define QM_LANES 8

#endif
