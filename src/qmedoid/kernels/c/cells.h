/* The k nearest prototypes of every row among those of some cells; see cells.c. */
#ifndef QMEDOID_CELLS_H
#define QMEDOID_CELLS_H

#include <stddef.h>

/* P prototypes of d columns, cell by cell. */
typedef struct {
    ptrdiff_t n_columns, n_visits;
    const double *prototypes; /* (P, d) */
    const ptrdiff_t *names;   /* (P,): what each is called, which decides among equal distances */
    const ptrdiff_t *starts;  /* (K + 1,): where cells start */
    const double *radii;      /* (K,): no prototype of a cell is farther from its center */
} qm_cells;

/* Write the k smallest |x - p|^2 of n rows and the names of p, in ascending order, of equals (up to rounding) the
 * smaller name first. Row i looks at the cells `visits` (n, L) in that order, -1 for none, whose centers lie at the
 * squared distances `to_centers`. `own` (null: none) is the name each row leaves out, -1 for none. What is missing is
 * filled up with infinity and -1. */
void qm_nearest_in_cells(const qm_cells *to, const double *rows, ptrdiff_t n, ptrdiff_t k, const ptrdiff_t *own,
                         const ptrdiff_t *visits, const double *to_centers, double *squared, ptrdiff_t *indices);

#endif
