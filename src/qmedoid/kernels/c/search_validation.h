/* Validation rows against the medoids of one candidate: channels, fusion scores, counts (algorithms 6, 8 and 9). */
#ifndef QMEDOID_SEARCH_VALIDATION_H
#define QMEDOID_SEARCH_VALIDATION_H

#include <math.h>

#include "angle.h"
#include "dispatch.h"
#include "search.h"

/* Validation rows of one class are taken in blocks that leave room for the other columns in the cache. */
#define VAL_BLOCK 256
/* Guard of the denominators of the normalized channels, as in geometry.fusion. */
#define EPSILON 1e-12
/* Scores that differ by less than their rounding are computed again, row by row; these are generous sizes of it. */
#define DISTANCE_NOISE 1e-9
#define ANGLE_NOISE 1e-6
#define SHORT_SQUARED 1e-6
/* What is then still within this much of a tie is left to the definition. */
#define TIE_NOISE 1e-11

/* A block of validation rows against one medoid, over the columns that do not change. */
typedef struct {
    double squared[VAL_BLOCK]; /* squared distances */
    double dot[VAL_BLOCK];     /* inner products, for the true angle only */
} base_pair;

/* Scratch of one block: arrays over rows, `distance` and `angle` class by class. */
typedef struct {
    double z[VAL_BLOCK], base_norm[VAL_BLOCK], norm[VAL_BLOCK], root[VAL_BLOCK];
    double share[VAL_BLOCK], angle_share[VAL_BLOCK];
    double best[VAL_BLOCK], second[VAL_BLOCK], code[VAL_BLOCK];
    double *distance, *angle; /* (C, VAL_BLOCK) */
} val_block;

/* The medoid of one class as a candidate sees it. */
typedef struct {
    ptrdiff_t row;          /* position among the medoid rows */
    const base_pair *base;  /* the block against it */
    double z, norm;         /* the changed column, and the squared norm with it */
} val_medoid;

/* Squared norms of a block of rows over all columns but the anchor's. */
QM_CLONES
static void fill_norms(const qm_fold *fold, ptrdiff_t anchor, ptrdiff_t first, ptrdiff_t n, double *QM_RESTRICT out)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out[i] = 0.0;
    for (ptrdiff_t a = 0; a < fold->n_anchors; a++) {
        const double *x = fold->val_z + a * fold->n_val + first;
        if (a != anchor)
            for (ptrdiff_t i = 0; i < n; i++)
                out[i] += x[i] * x[i];
    }
}

/* A block of rows against one medoid row over all columns but the anchor's. */
QM_CLONES
static void fill_pair(const qm_fold *fold, ptrdiff_t anchor, ptrdiff_t first, ptrdiff_t n, ptrdiff_t row,
                      base_pair *QM_RESTRICT out)
{
    for (ptrdiff_t i = 0; i < n; i++)
        out->squared[i] = out->dot[i] = 0.0;
    for (ptrdiff_t a = 0; a < fold->n_anchors; a++) {
        const double *x = fold->val_z + a * fold->n_val + first, y = fold->sample_z[a * fold->n_sample + row];
        if (a == anchor)
            continue;
        for (ptrdiff_t i = 0; i < n; i++)
            out->squared[i] += (x[i] - y) * (x[i] - y);
        if (fold->angle == QM_ANGLE_TRUE)
            for (ptrdiff_t i = 0; i < n; i++)
                out->dot[i] += x[i] * y;
    }
}

static double medoid_norm(const qm_fold *fold, ptrdiff_t anchor, ptrdiff_t row)
{
    double norm = 0.0;
    for (ptrdiff_t a = 0; a < fold->n_anchors; a++) {
        const double z = fold->sample_z[a * fold->n_sample + row];
        norm += a == anchor ? 0.0 : z * z;
    }
    return norm;
}

/* Distance and angle to the medoid of one class. */
QM_INLINE void class_channels(const val_medoid *medoid, const int angle, ptrdiff_t n, const val_block *b,
                              double *QM_RESTRICT distance, double *QM_RESTRICT theta)
{
    const double *squared = medoid->base->squared, *dot = medoid->base->dot;
    const double y = medoid->z, norm = medoid->norm, inverse = 1.0 / sqrt(norm);
    for (ptrdiff_t i = 0; i < n; i++) {
        const double d = b->z[i] - y, d2 = squared[i] + d * d;
        distance[i] = sqrt(d2);
        if (angle == QM_ANGLE_TRUE) {
            double cosine = (dot[i] + b->z[i] * y) * (b->root[i] * inverse);
            cosine = cosine > 1.0 ? 1.0 : cosine;
            cosine = cosine < -1.0 ? -1.0 : cosine;
            theta[i] = qm_acos(cosine);
        } else if (angle == QM_ANGLE_PRINTED) {
            const double s = d2 / (2.0 * (b->norm[i] + norm));
            theta[i] = qm_acos_sqrt(s > 1.0 ? 1.0 : s);
        }
    }
}

/* Scores of a block, the best and second best of them, and the code of the best (the first of equal ones). */
QM_INLINE void block_scores(const qm_fold *fold, const val_medoid *medoids, const int angle, ptrdiff_t n,
                            val_block *QM_RESTRICT b)
{
    const double alpha = angle ? fold->alpha : 1.0, rest = 1.0 - alpha;
    for (ptrdiff_t i = 0; i < n; i++) {
        b->share[i] = b->angle_share[i] = EPSILON;
        b->best[i] = b->second[i] = INFINITY;
        b->code[i] = 0.0;
    }
    if (angle)
        for (ptrdiff_t i = 0; i < n; i++) {
            b->norm[i] = b->base_norm[i] + b->z[i] * b->z[i];
            b->root[i] = angle == QM_ANGLE_TRUE ? 1.0 / sqrt(b->norm[i]) : 0.0;
        }
    for (ptrdiff_t c = 0; c < fold->n_classes; c++) {
        double *distance = b->distance + c * VAL_BLOCK, *theta = b->angle + c * VAL_BLOCK;
        class_channels(medoids + c, angle, n, b, distance, theta);
        for (ptrdiff_t i = 0; i < n; i++) {
            b->share[i] += distance[i];
            b->angle_share[i] += angle ? theta[i] : 0.0;
        }
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        b->share[i] = 1.0 / b->share[i];
        b->angle_share[i] = angle ? 1.0 / b->angle_share[i] : 0.0;
    }
    for (ptrdiff_t c = 0; c < fold->n_classes; c++) {
        const double *distance = b->distance + c * VAL_BLOCK, *theta = b->angle + c * VAL_BLOCK;
        const double multiplier = fold->multipliers[c], code = (double)c;
        for (ptrdiff_t i = 0; i < n; i++) {
            double s = alpha * (distance[i] * b->share[i]);
            s += angle ? rest * (theta[i] * b->angle_share[i]) : 0.0;
            s *= multiplier;
            const double best = b->best[i], larger = s < best ? best : s;
            b->second[i] = larger < b->second[i] ? larger : b->second[i];
            b->code[i] = s < best ? code : b->code[i];
            b->best[i] = s < best ? s : best;
        }
    }
}

QM_CLONES
static void score_block(const qm_fold *fold, const val_medoid *medoids, ptrdiff_t n, val_block *b)
{
    switch (fold->angle) {
    case QM_ANGLE_TRUE: block_scores(fold, medoids, QM_ANGLE_TRUE, n, b); break;
    case QM_ANGLE_PRINTED: block_scores(fold, medoids, QM_ANGLE_PRINTED, n, b); break;
    default: block_scores(fold, medoids, QM_ANGLE_NONE, n, b);
    }
}

static double largest_multiplier(const qm_fold *fold)
{
    double largest = 0.0;
    for (ptrdiff_t c = 0; c < fold->n_classes; c++)
        largest = fold->multipliers[c] > largest ? fold->multipliers[c] : largest;
    return largest;
}

/* Replace `second` by 1 where rounding might decide, else 0; return how many such rows there are. */
QM_CLONES
static ptrdiff_t mark_close(const qm_fold *fold, const val_medoid *medoids, ptrdiff_t n, double condition,
                            val_block *QM_RESTRICT b)
{
    const double top = largest_multiplier(fold), distance_noise = top * DISTANCE_NOISE;
    const double angle_noise = fold->angle ? top * (1.0 - fold->alpha) * (ANGLE_NOISE + 1e-10 * condition) : 0.0;
    double least_norm = fold->angle ? 1.0 : 0.0, marked = 0.0;
    for (ptrdiff_t c = 0; c < fold->n_classes; c++)
        if (fold->angle && medoids[c].norm < SHORT_SQUARED)
            least_norm = INFINITY; /* all rows: an angle to a medoid at the origin */
    least_norm *= SHORT_SQUARED;
    const double *norm = fold->angle ? b->norm : b->share; /* shares are positive: never below 0 */
#pragma omp simd reduction(+ : marked)
    for (ptrdiff_t i = 0; i < n; i++) {
        const double noise = distance_noise * (1.0 + b->share[i]) + angle_noise * b->angle_share[i];
        const double mark = (b->second[i] - b->best[i] > noise) & (norm[i] >= least_norm) ? 0.0 : 1.0;
        b->second[i] = mark;
        marked += mark;
    }
    return (ptrdiff_t)marked;
}

/* The feature vectors of one row that is close to a tie, and of the medoids; (A) and (C, A). */
typedef struct {
    double *record, *medoids, *scores; /* `scores` is (C) */
} careful_rows;

static double length(const double *x, ptrdiff_t n)
{
    double sum = 0.0;
    for (ptrdiff_t a = 0; a < n; a++)
        sum += x[a] * x[a];
    return sqrt(sum);
}

/* Kahan's formula, exact at every angle. */
static double careful_angle(const double *x, const double *y, double x_norm, double y_norm, ptrdiff_t n)
{
    double apart = 0.0, together = 0.0;
    for (ptrdiff_t a = 0; a < n; a++) {
        const double u = x[a] / x_norm, v = y[a] / y_norm;
        apart += (u - v) * (u - v);
        together += (u + v) * (u + v);
    }
    return 2.0 * atan2(sqrt(apart), sqrt(together));
}

static int same_medoid(const qm_fold *fold, const careful_rows *r, ptrdiff_t c, ptrdiff_t e)
{
    const ptrdiff_t n = fold->n_anchors;
    for (ptrdiff_t a = 0; a < n; a++)
        if (r->medoids[c * n + a] != r->medoids[e * n + a])
            return 0;
    return fold->multipliers[c] == fold->multipliers[e];
}

/* Class of a row close to a tie, from all its features, or -1 when it is so close that rounding decides.
 *
 * Classes with one and the same medoid tie exactly, whoever computes it, and the first wins: that is no doubt. */
static ptrdiff_t careful_code(const qm_fold *fold, const careful_rows *r, double condition)
{
    const ptrdiff_t n = fold->n_anchors, n_classes = fold->n_classes;
    const double alpha = fold->angle ? fold->alpha : 1.0, x_norm = length(r->record, n);
    double *distance = r->scores, *theta = r->scores + n_classes;
    double share = EPSILON, angle_share = EPSILON, shortest = INFINITY, longest = 0.0, sine = 1.0;
    for (ptrdiff_t c = 0; c < n_classes; c++) {
        const double *medoid = r->medoids + c * n, y_norm = length(medoid, n);
        double d2 = 0.0;
        for (ptrdiff_t a = 0; a < n; a++)
            d2 += (r->record[a] - medoid[a]) * (r->record[a] - medoid[a]);
        distance[c] = sqrt(d2);
        theta[c] = 0.0;
        if (fold->angle == QM_ANGLE_TRUE) {
            theta[c] = careful_angle(r->record, medoid, x_norm, y_norm, n);
        } else if (fold->angle == QM_ANGLE_PRINTED) {
            const double s = d2 / (2.0 * (x_norm * x_norm + y_norm * y_norm));
            theta[c] = acos(sqrt(s > 1.0 ? 1.0 : s));
            sine = fmin(sine, sin(theta[c])); /* near 0 the arc cosine keeps half of its digits */
        }
        share += distance[c];
        angle_share += theta[c];
        shortest = fmin(shortest, y_norm);
        longest = fmax(longest, y_norm);
    }
    double noise = 1.0 + (x_norm + longest) / share;
    if (fold->angle)
        noise += (1.0 - alpha) / angle_share
                 * (1.0 / fmax(sine, 1e-4) + (1.0 + 0.1 * condition) * (1.0 / x_norm + 1.0 / shortest));
    noise *= TIE_NOISE * largest_multiplier(fold);
    ptrdiff_t code = 0;
    for (ptrdiff_t c = 0; c < n_classes; c++) {
        const double mixed = alpha * (distance[c] / share) + (1.0 - alpha) * (theta[c] / angle_share);
        r->scores[c] = fold->multipliers[c] * mixed;
        code = r->scores[c] < r->scores[code] ? c : code;
    }
    for (ptrdiff_t c = 0; c < n_classes; c++)
        if (!(r->scores[c] - r->scores[code] > noise) && !same_medoid(fold, r, c, code))
            return -1;
    return code;
}

#endif
