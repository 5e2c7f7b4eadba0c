/* Configuration search on one fold: what replacing one feature does to the validation predictions; see search.c. */
#ifndef QMEDOID_SEARCH_H
#define QMEDOID_SEARCH_H

#include <stddef.h>
#include <stdint.h>

enum { QM_ANGLE_NONE, QM_ANGLE_TRUE, QM_ANGLE_PRINTED };

/* A fold as columns and the current features on the rows that need them (FoldState in _search_state.py). */
typedef struct {
    ptrdiff_t n_train, n_sample, n_val, n_classes, n_anchors;
    const double *train, *val;             /* (M, n_train), medoid rows first; (M, n_val); both class by class */
    const ptrdiff_t *bounds, *val_bounds;  /* (C + 1): where each class begins among medoid and validation rows */
    const unsigned char *repeated;         /* (n_sample): whether an earlier row of the class is equal */
    const double *multipliers;             /* (C) */
    double alpha;
    int angle, is_signed;
    double *sample_z, *val_z; /* (A, n_sample), (A, n_val) */
    double *condition;        /* (A) */
    double *squared;          /* for each class the pairs i < j, row by row */
    double *slack;            /* (C) */
} qm_fold;

/* Feature columns over members of one group (Candidates in _search_state.py). */
typedef struct {
    ptrdiff_t n_members, count, size;
    const ptrdiff_t *members; /* (n_members) */
    const double *weights;    /* (n_members) */
    const ptrdiff_t *picks;   /* (count, size) */
    const double *factors;    /* (count) */
} qm_candidates;

/* All but the void one return 0, or -1 when memory runs out. */
int qm_fill_column(const qm_fold *fold, ptrdiff_t anchor, const qm_candidates *column);
int qm_build_squared(const qm_fold *fold);
void qm_update_squared(const qm_fold *fold, const double *old, const double *new_);
int qm_evaluate(const qm_fold *fold, ptrdiff_t anchor, const qm_candidates *candidates, double tie_tolerance,
                int64_t *confusion, unsigned char *unsure);

#endif
