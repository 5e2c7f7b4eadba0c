/* The k nearest prototypes of every row, exactly; see nearest.c. */
#ifndef QMEDOID_NEAREST_H
#define QMEDOID_NEAREST_H

#include <stddef.h>

/* Prototypes that lie side by side in a panel. */
#define QM_PANEL 16

/* Squared distances that differ by no more than this share of themselves, or of the row's squared length, are equal;
 * see ties.py. */
#define QM_TIE 1e-9
#define QM_SAME 1e-24

/* The largest k. */
#define QM_MOST_NEAREST 16

/* P prototypes of d columns. */
typedef struct {
    ptrdiff_t n_prototypes, n_columns;
    const double *prototypes; /* (P, d) */
    const float *panels;      /* (ceil(P / 16), d + 1, 16): |p|^2 / 2, then p column by column; null: do not screen */
    const double *center;     /* (d,): what was subtracted from the p of the panels */
    double scale;             /* what the difference was multiplied by then */
    double unit;              /* rounding of the screen, as a share of the terms it adds up */
} qm_prototypes;

/* Bytes of scratch space that qm_nearest needs; it must start at a multiple of 64 bytes. */
ptrdiff_t qm_nearest_scratch_size(const qm_prototypes *to);

/* Write the k smallest |x - p|^2 of n rows and their p, in ascending order, of equals (up to rounding) the smaller
 * index first.
 * `own` (null: none) is the prototype each row leaves out, -1 for none. What is missing is filled up with infinity and
 * -1; a distance that is not finite counts as missing. */
void qm_nearest(const qm_prototypes *to, const double *rows, ptrdiff_t n, ptrdiff_t k, const ptrdiff_t *own,
                void *scratch, double *squared, ptrdiff_t *indices);

#endif
