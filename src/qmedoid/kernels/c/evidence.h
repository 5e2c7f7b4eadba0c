/* Raw columns to outputs of an evidence model and nearest medoids in one pass over the rows; see evidence.c. */
#ifndef QMEDOID_EVIDENCE_H
#define QMEDOID_EVIDENCE_H

#include "scoring.h"

/* Folds of a line are handled this many at a time: their number is a multiple, filled up with folds of weight 0. */
#define QM_FOLDS 4

/* What an evidence model needs to decide. U columns, L lines (scaled columns), G groups of lines, N pairs of a group
 * and a medoid, K outputs, C classes. Group 0 tells the nearest medoids; its pairs are in order of class. */
typedef struct {
    ptrdiff_t n_columns, n_lines, n_groups, n_outputs, n_classes;
    double largest, clip;                /* what a raw value, and a standardized one, may be at most */
    const double *center, *scale;        /* (U,): how columns are standardized */
    const ptrdiff_t *knot_offsets;       /* (U + 1,): where each column's knots start */
    const double *knots, *marks, *rises; /* where they lie, what they are mapped to, and the slope from there on */
    const ptrdiff_t *line_offsets;       /* (U + 1,): where each column's lines start */
    const ptrdiff_t *line_by_rank;       /* (L,): mapped by knots, else standardized */
    const double *line_root;             /* (L,): what the scaled column is multiplied by */
    const double *intercepts;            /* (K,) */
    const double *quadratic, *linear;    /* (L, K): factors of v^2 and v */
    const ptrdiff_t *fold_offsets;       /* (L + 1,): where the folds of each line start */
    const double *folds, *fold_weights;  /* terms w |v - m|: m, and w of shape (folds, K) */
    const ptrdiff_t *member_offsets;     /* (G + 1,): where each group's lines start */
    const ptrdiff_t *members;
    const ptrdiff_t *pair_offsets;       /* (G + 1,): where each group's pairs start */
    const ptrdiff_t *value_offsets;      /* (G + 1,): where the medoids' values of each group's pairs start */
    const double *values;
    const ptrdiff_t *has_distance;       /* (N,): whether a pair's distance is a term itself */
    const double *distance_weights;      /* (N, K) */
    const ptrdiff_t *near_offsets;       /* (N + 1,): where each pair's terms of nearness start */
    const double *near_rates;            /* -log2(e) / length */
    const double *near_weights;          /* w, K for each */
    const ptrdiff_t *medoid_indices;     /* (P,): by which the medoids of group 0 are reported */
    const ptrdiff_t *class_offsets;      /* (C + 1,): where each class's medoids start in group 0 */
} qm_evidence_plan;

/* Where results go, row by row; a null pointer leaves that result out. */
typedef struct {
    double *outputs;          /* (n, K) */
    double *distance, *angle; /* (n, C): to the nearest medoid of each class */
    ptrdiff_t *nearest;       /* (n, C): which one that is */
} qm_evidence_results;

/* Doubles of scratch space that qm_evidence needs; it must start at a multiple of 64 bytes. */
ptrdiff_t qm_evidence_scratch_size(const qm_evidence_plan *plan);

/* Judge n rows. Rows that hold a value that is not finite or too large are left undecided (nearest -1, numbers NaN);
 * they are counted and returned. */
ptrdiff_t qm_evidence(const qm_evidence_plan *plan, const qm_column *columns, ptrdiff_t n, double *scratch,
                      const qm_evidence_results *out);

#endif
