/* Raw columns to fusion scores and labels in one pass over the rows; see scoring.c. */
#ifndef QMEDOID_SCORING_H
#define QMEDOID_SCORING_H

#include <stddef.h>

/* Rows are handled this many at a time, so that what is known of them stays in the fastest cache. */
#define QM_TILE 64

/* Which angle is computed. */
#define QM_ANGLE_NONE 0
#define QM_ANGLE_TRUE 1
#define QM_ANGLE_PRINTED 2

/* A column of the table where it lies: `stride` is in bytes; narrow columns are float, the others double. */
typedef struct {
    const char *data;
    ptrdiff_t stride;
    int narrow;
} qm_column;

/* What a model needs to decide. U columns, A anchors, P medoids, C classes. */
typedef struct {
    ptrdiff_t n_columns, n_anchors, n_classes;
    const double *center;                                 /* (U,) */
    const ptrdiff_t *offsets;                             /* (A + 1,): where each anchor's members start */
    const ptrdiff_t *members;                             /* columns of each anchor, end to end */
    const double *weights;                                /* weight of each member over the column's scale */
    const double *feature_center, *feature_inverse_scale; /* (A,) */
    const double *medoids;                                /* (P, A), class by class */
    const double *medoid_norms;                           /* (P,) */
    const ptrdiff_t *medoid_indices;                      /* (P,): by which a medoid is reported */
    const ptrdiff_t *class_offsets;                       /* (C + 1,): where each class's medoids start */
    const double *multipliers;                            /* (C,) */
    double alpha;                                         /* share of the distance channel */
    int is_signed;                                        /* features carry the sign of their weighted sum */
    int angle;                                            /* one of QM_ANGLE_* */
} qm_plan;

/* Where results go, row by row; a null pointer leaves that result out. */
typedef struct {
    double *distance, *angle; /* (n, C) */
    ptrdiff_t *nearest;       /* (n, C): medoid of each class the two are measured to */
    double *scores;           /* (n, C) */
    ptrdiff_t *labels;        /* (n,) */
} qm_results;

/* Doubles of scratch space that qm_score needs; it must start at a multiple of 64 bytes. */
ptrdiff_t qm_scratch_size(const qm_plan *plan);

/* Score n rows. `lines` has room for U pointers. Rows that are left undecided (label and nearest -1, numbers NaN) are
 * counted and returned: those whose feature vector is zero, not finite, or so large or small that its square leaves
 * the range of a double. */
ptrdiff_t qm_score(const qm_plan *plan, const qm_column *columns, const double **lines, ptrdiff_t n, double *scratch,
                   const qm_results *out);

#endif
