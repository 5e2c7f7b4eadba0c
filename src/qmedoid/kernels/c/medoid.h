/* Exact sums of distances and the moments that bound them from below; see medoid.c. */
#ifndef QMEDOID_MEDOID_H
#define QMEDOID_MEDOID_H

#include <stddef.h>

/* Candidates are handled LANES at a time against POINTS rows; the scratch of the sums holds a tile of d * QM_LANES
 * numbers and a copy of d * QM_POINTS. */
#define QM_LANES 8
#define QM_POINTS 4

int qm_spread(const double *x, ptrdiff_t n, ptrdiff_t d, double *spread);
void qm_totals(const double *x, const double *w, ptrdiff_t n, ptrdiff_t d, const ptrdiff_t *rows, ptrdiff_t m,
               double *scratch, double *out);
void qm_all_totals(const double *x, const double *w, ptrdiff_t n, ptrdiff_t d, double *scratch, double *out);
void qm_centre(const double *x, const double *pivot, ptrdiff_t n, ptrdiff_t d, double *z, double *norms);
void qm_moments(const double *z, const double *norms, const double *w, ptrdiff_t n, ptrdiff_t d, double low,
                double high, double r0, double *out);
void qm_bounds(const double *z, const double *norms, ptrdiff_t d, const ptrdiff_t *rows, ptrdiff_t m,
               const double *moments, double r0, double *scratch, double *out);

#endif
