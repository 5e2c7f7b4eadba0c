/* Fused scoring: raw columns -> scaled columns -> anchor features -> distances and angles -> scores -> labels.
 *
 * Rows are handled in tiles of QM_TILE. A tile is stored column by column (T doubles for each quantity), so every
 * loop below runs over the rows of a tile, always all QM_TILE of them: the compiler turns each into vector
 * instructions without a remainder, and a row is computed the same way wherever it stands. The last tile is filled
 * up with zeros. What limits the speed is one square root per anchor and row. */
#include "scoring.h"

#include "angle.h"

#define T QM_TILE
#define EPSILON 1e-12 /* guard of the denominators of the normalised channels */

/* Squared norms outside these bounds may have lost digits or overflowed. */
#define SMALLEST 0x1p-960
#define LARGEST 0x1p960

/* Below this angle (and above pi minus it) the last digits of a cosine are worth more than 1e-13 of its angle. */
#define NEARLY_PARALLEL 2e-3

/* Scratch space of one tile; each pointer leads to rows of T doubles. */
typedef struct {
    double *scaled;                                                 /* U rows */
    double *feature, *square, *sum;                                 /* 1 row each: v, |v|^2, a sum under way */
    double *squared, *dot;                                          /* P rows: |v - mu|^2 and <v, mu> */
    double *distance, *angle, *score, *best_dot, *best_norm, *near; /* C rows: of the nearest medoid of a class */
} tile;

#define ROWS_BUT_COLUMNS(plan) (3 + 2 * (plan)->n_medoids + 6 * (plan)->n_classes)

ptrdiff_t qm_scratch_size(const qm_plan *plan) { return T * (plan->n_columns + ROWS_BUT_COLUMNS(plan)); }

static tile divide_scratch(const qm_plan *plan, double *scratch)
{
    ptrdiff_t P = T * plan->n_medoids, C = T * plan->n_classes;
    tile t;
    t.feature = scratch, t.square = t.feature + T, t.sum = t.square + T;
    t.squared = t.sum + T, t.dot = t.squared + P;
    t.distance = t.dot + P, t.angle = t.distance + C, t.score = t.angle + C;
    t.best_dot = t.score + C, t.best_norm = t.best_dot + C, t.near = t.best_norm + C;
    t.scaled = t.near + C;
    return t;
}

/* z = (x - center) / scale for `rows` rows of a column, then zeros. The values are read where they lie. */
QM_INLINE void scale_column(const qm_column *column, ptrdiff_t first, ptrdiff_t rows, double center,
                            double inverse_scale, double *QM_RESTRICT z)
{
    const char *start = column->data + first * column->stride;
    ptrdiff_t stride = column->stride;
    if (!column->narrow && stride == sizeof(double) && rows == T) {
        const double *x = (const double *)start;
        for (ptrdiff_t r = 0; r < T; r++) z[r] = (x[r] - center) * inverse_scale;
    } else if (!column->narrow) {
        for (ptrdiff_t r = 0; r < rows; r++) z[r] = (*(const double *)(start + r * stride) - center) * inverse_scale;
    } else if (stride == sizeof(float) && rows == T) {
        const float *x = (const float *)start;
        for (ptrdiff_t r = 0; r < T; r++) z[r] = (x[r] - center) * inverse_scale;
    } else {
        for (ptrdiff_t r = 0; r < rows; r++) z[r] = (*(const float *)(start + r * stride) - center) * inverse_scale;
    }
    for (ptrdiff_t r = rows; r < T; r++) z[r] = 0.0;
}

/* v = (u - feature center) / feature scale with u = +-sqrt(sum (w z)^2), given the sums over the columns. */
QM_INLINE double standardised(double square, double sum, int is_signed, double center, double inverse_scale)
{
    double norm = sqrt(square);
    return ((is_signed && sum < 0.0 ? -norm : norm) - center) * inverse_scale;
}

/* The feature of an anchor with k members, k a constant of the caller: the sums over them stay in registers. */
QM_INLINE void feature_of_few(const double *QM_RESTRICT scaled, const ptrdiff_t *members, const double *weights,
                              ptrdiff_t k, int is_signed, double center, double inverse_scale, double *QM_RESTRICT v)
{
    for (ptrdiff_t r = 0; r < T; r++) {
        double square = 0.0, sum = 0.0;
        for (ptrdiff_t j = 0; j < k; j++) {
            double term = weights[j] * scaled[members[j] * T + r];
            square += term * term;
            sum += term;
        }
        v[r] = standardised(square, sum, is_signed, center, inverse_scale);
    }
}

/* The feature of an anchor with any number of members. */
QM_INLINE void feature_of_many(const double *QM_RESTRICT scaled, const ptrdiff_t *members, const double *weights,
                               ptrdiff_t k, int is_signed, double center, double inverse_scale,
                               double *QM_RESTRICT sum, double *QM_RESTRICT v)
{
    for (ptrdiff_t r = 0; r < T; r++) v[r] = sum[r] = 0.0;
    for (ptrdiff_t j = 0; j < k; j++) {
        const double *z = scaled + members[j] * T;
        double weight = weights[j];
        for (ptrdiff_t r = 0; r < T; r++) {
            double term = weight * z[r];
            v[r] += term * term;
            sum[r] += term;
        }
    }
    for (ptrdiff_t r = 0; r < T; r++) v[r] = standardised(v[r], sum[r], is_signed, center, inverse_scale);
}

QM_INLINE void anchor_feature(const qm_plan *plan, const tile *t, ptrdiff_t a, int is_signed)
{
    const ptrdiff_t *members = plan->members + plan->offsets[a];
    const double *weights = plan->weights + plan->offsets[a];
    ptrdiff_t k = plan->offsets[a + 1] - plan->offsets[a];
    double center = plan->feature_center[a], inverse_scale = plan->feature_inverse_scale[a];
    switch (k) {
#define CASE(K) \
    case K: feature_of_few(t->scaled, members, weights, K, is_signed, center, inverse_scale, t->feature); break
        CASE(1);
        CASE(2);
        CASE(3);
        CASE(4);
        CASE(5);
#undef CASE
    default: feature_of_many(t->scaled, members, weights, k, is_signed, center, inverse_scale, t->sum, t->feature);
    }
}

/* Add one feature's share to |v|^2. */
QM_INLINE void add_square(const double *QM_RESTRICT v, double *QM_RESTRICT square)
{
    for (ptrdiff_t r = 0; r < T; r++) square[r] += v[r] * v[r];
}

/* Add one feature's share to |v - mu|^2 and <v, mu>. */
QM_INLINE void add_medoid(const double *QM_RESTRICT v, double mu, double *QM_RESTRICT squared, double *QM_RESTRICT dot)
{
    for (ptrdiff_t r = 0; r < T; r++) {
        double difference = v[r] - mu;
        squared[r] += difference * difference;
        dot[r] += v[r] * mu;
    }
}

/* Features of a tile, one anchor after the other, and their sums against themselves and every medoid. */
QM_INLINE void measure(const qm_plan *plan, const tile *t, int is_signed)
{
    for (ptrdiff_t i = 0; i < T; i++) t->square[i] = 0.0;
    for (ptrdiff_t i = 0; i < T * plan->n_medoids; i++) t->squared[i] = t->dot[i] = 0.0;
    for (ptrdiff_t a = 0; a < plan->n_anchors; a++) {
        anchor_feature(plan, t, a, is_signed);
        add_square(t->feature, t->square);
        for (ptrdiff_t p = 0; p < plan->n_medoids; p++)
            add_medoid(t->feature, plan->medoids[p * plan->n_anchors + a], t->squared + p * T, t->dot + p * T);
    }
}

/* Keep the nearest medoid of each class: its squared distance, <v, mu>, |mu| and index. Of equals, the first. */
QM_INLINE void keep_nearer(const double *QM_RESTRICT squared, const double *QM_RESTRICT dot, double norm, double index,
                           double *QM_RESTRICT best, double *QM_RESTRICT best_dot, double *QM_RESTRICT best_norm,
                           double *QM_RESTRICT near)
{
    for (ptrdiff_t r = 0; r < T; r++) {
        int nearer = squared[r] < best[r];
        best[r] = nearer ? squared[r] : best[r];
        best_dot[r] = nearer ? dot[r] : best_dot[r];
        best_norm[r] = nearer ? norm : best_norm[r];
        near[r] = nearer ? index : near[r];
    }
}

QM_INLINE void choose_medoids(const qm_plan *plan, const tile *t)
{
    for (ptrdiff_t i = 0; i < T * plan->n_classes; i++) {
        t->distance[i] = INFINITY;
        t->best_dot[i] = t->best_norm[i] = t->near[i] = 0.0;
    }
    for (ptrdiff_t p = 0; p < plan->n_medoids; p++) {
        ptrdiff_t c = plan->medoid_classes[p] * T;
        keep_nearer(t->squared + p * T, t->dot + p * T, plan->medoid_norms[p], (double)p, t->distance + c,
                    t->best_dot + c, t->best_norm + c, t->near + c);
    }
}

/* Theta = arccos sqrt(s) with s = |v - mu|^2 / (2 (|v|^2 + |mu|^2)); 0 for a zero medoid, which is no state. */
QM_INLINE void printed_angles(const double *QM_RESTRICT squared, const double *QM_RESTRICT square,
                              const double *QM_RESTRICT norm, double *QM_RESTRICT angle)
{
    for (ptrdiff_t r = 0; r < T; r++) {
        double s = squared[r] / (2.0 * (square[r] + norm[r] * norm[r]));
        double theta = qm_acos_sqrt(s < 1.0 ? s : 1.0);
        angle[r] = norm[r] > 0.0 ? theta : 0.0;
    }
}

QM_INLINE int is_parallel(double theta) { return QM_HALF_PI - fabs(theta - QM_HALF_PI) < NEARLY_PARALLEL; }

/* Theta = arccos(<v, mu> / (|v| |mu|)), pi/2 for a zero medoid. Returns how many rows are nearly parallel to mu. */
QM_INLINE ptrdiff_t true_angles(const double *QM_RESTRICT dot, const double *QM_RESTRICT square,
                                const double *QM_RESTRICT norm, double *QM_RESTRICT angle)
{
    ptrdiff_t parallel = 0;
    for (ptrdiff_t r = 0; r < T; r++) {
        double cosine = dot[r] / (sqrt(square[r]) * (norm[r] > 0.0 ? norm[r] : 1.0));
        cosine = cosine > 1.0 ? 1.0 : cosine;
        cosine = cosine < -1.0 ? -1.0 : cosine;
        double theta = qm_acos(cosine);
        parallel += is_parallel(theta);
        angle[r] = theta;
    }
    return parallel;
}

/* The angle of one row to a medoid by Kahan's formula 2 atan2(|u - m|, |u + m|) on unit vectors, exact to the last
 * digits also near 0 and pi. It needs the features of the row again; few rows do. */
static double parallel_angle(const qm_plan *plan, const tile *t, ptrdiff_t r, const double *mu, double norm)
{
    double apart = 0.0, together = 0.0, length = sqrt(t->square[r]);
    for (ptrdiff_t a = 0; a < plan->n_anchors; a++) {
        double square = 0.0, sum = 0.0;
        for (ptrdiff_t j = plan->offsets[a]; j < plan->offsets[a + 1]; j++) {
            double term = plan->weights[j] * t->scaled[plan->members[j] * T + r];
            square += term * term;
            sum += term;
        }
        double v = standardised(square, sum, plan->is_signed, plan->feature_center[a], plan->feature_inverse_scale[a]);
        double minus = v / length - mu[a] / norm, plus = v / length + mu[a] / norm;
        apart += minus * minus;
        together += plus * plus;
    }
    return 2.0 * atan2(sqrt(apart), sqrt(together));
}

static void correct_parallel(const qm_plan *plan, const tile *t, ptrdiff_t c)
{
    for (ptrdiff_t r = 0; r < T; r++) {
        ptrdiff_t i = c * T + r;
        if (!is_parallel(t->angle[i])) continue;
        const double *mu = plan->medoids + (ptrdiff_t)t->near[i] * plan->n_anchors;
        t->angle[i] = t->distance[i] == 0.0 ? 0.0 : parallel_angle(plan, t, r, mu, t->best_norm[i]);
    }
}

/* Angles to the medoids chosen; `distance` still holds squares. */
QM_INLINE void measure_angles(const qm_plan *plan, const tile *t)
{
    for (ptrdiff_t c = 0; c < plan->n_classes; c++) {
        ptrdiff_t i = c * T;
        if (plan->angle == QM_ANGLE_PRINTED)
            printed_angles(t->distance + i, t->square, t->best_norm + i, t->angle + i);
        else if (true_angles(t->best_dot + i, t->square, t->best_norm + i, t->angle + i))
            correct_parallel(plan, t, c);
    }
}

QM_INLINE void root_distances(const qm_plan *plan, double *QM_RESTRICT distance)
{
    for (ptrdiff_t i = 0; i < T * plan->n_classes; i++) distance[i] = sqrt(distance[i]);
}

/* 1 / (sum over the classes + epsilon), what a channel is normalised by. */
QM_INLINE void channel_factor(const double *QM_RESTRICT channel, ptrdiff_t n_classes, double *QM_RESTRICT factor)
{
    for (ptrdiff_t r = 0; r < T; r++) factor[r] = 0.0;
    for (ptrdiff_t c = 0; c < n_classes; c++)
        for (ptrdiff_t r = 0; r < T; r++) factor[r] += channel[c * T + r];
    for (ptrdiff_t r = 0; r < T; r++) factor[r] = 1.0 / (factor[r] + EPSILON);
}

/* score = multiplier * (alpha * share of the distances + (1 - alpha) * share of the angles). */
QM_INLINE void fuse(const qm_plan *plan, const tile *t)
{
    double *QM_RESTRICT factor = t->sum, *QM_RESTRICT score = t->score;
    int angular = plan->angle != QM_ANGLE_NONE;
    double alpha = angular ? plan->alpha : 1.0;
    channel_factor(t->distance, plan->n_classes, factor);
    for (ptrdiff_t c = 0; c < plan->n_classes; c++)
        for (ptrdiff_t r = 0; r < T; r++) score[c * T + r] = alpha * (t->distance[c * T + r] * factor[r]);
    if (angular) {
        channel_factor(t->angle, plan->n_classes, factor);
        for (ptrdiff_t c = 0; c < plan->n_classes; c++)
            for (ptrdiff_t r = 0; r < T; r++) score[c * T + r] += (1.0 - alpha) * (t->angle[c * T + r] * factor[r]);
    }
    for (ptrdiff_t c = 0; c < plan->n_classes; c++)
        for (ptrdiff_t r = 0; r < T; r++) score[c * T + r] *= plan->multipliers[c];
}

/* Class of the smallest score, of equal ones the first. */
QM_INLINE void decide(ptrdiff_t n_classes, const double *QM_RESTRICT score, double *QM_RESTRICT least,
                      double *QM_RESTRICT label)
{
    for (ptrdiff_t r = 0; r < T; r++) least[r] = score[r], label[r] = 0.0;
    for (ptrdiff_t c = 1; c < n_classes; c++)
        for (ptrdiff_t r = 0; r < T; r++) {
            int smaller = score[c * T + r] < least[r];
            least[r] = smaller ? score[c * T + r] : least[r];
            label[r] = smaller ? (double)c : label[r];
        }
}

/* Mark the rows whose |v|^2 cannot be trusted, NaN included: their numbers become NaN. Returns how many. */
QM_INLINE ptrdiff_t mark_undecided(const qm_plan *plan, const tile *t, ptrdiff_t rows)
{
    ptrdiff_t undecided = 0;
    for (ptrdiff_t r = 0; r < rows; r++) undecided += !(t->square[r] >= SMALLEST && t->square[r] <= LARGEST);
    if (undecided == 0) return 0;
    for (ptrdiff_t r = 0; r < rows; r++) {
        if (t->square[r] >= SMALLEST && t->square[r] <= LARGEST) continue;
        t->feature[r] = -1.0; /* the label */
        for (ptrdiff_t i = r; i < T * plan->n_classes; i += T) {
            t->distance[i] = t->angle[i] = t->score[i] = NAN;
            t->near[i] = -1.0;
        }
    }
    return undecided;
}

/* From the tile's columns to rows of C numbers. */
QM_INLINE void write_doubles(const double *QM_RESTRICT from, ptrdiff_t n_classes, ptrdiff_t rows,
                             double *QM_RESTRICT to)
{
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t c = 0; c < n_classes; c++) to[r * n_classes + c] = from[c * T + r];
}

QM_INLINE void write_codes(const double *QM_RESTRICT from, ptrdiff_t n_classes, ptrdiff_t rows,
                           ptrdiff_t *QM_RESTRICT to)
{
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t c = 0; c < n_classes; c++) to[r * n_classes + c] = (ptrdiff_t)from[c * T + r];
}

QM_INLINE void write_results(const qm_plan *plan, const tile *t, ptrdiff_t first, ptrdiff_t rows,
                             const qm_results *out)
{
    ptrdiff_t C = plan->n_classes;
    if (out->distance) write_doubles(t->distance, C, rows, out->distance + first * C);
    if (out->angle) write_doubles(t->angle, C, rows, out->angle + first * C);
    if (out->nearest) write_codes(t->near, C, rows, out->nearest + first * C);
    if (out->scores) write_doubles(t->score, C, rows, out->scores + first * C);
    if (out->labels) write_codes(t->feature, 1, rows, out->labels + first);
}

QM_CLONES
ptrdiff_t qm_score(const qm_plan *plan, const qm_column *columns, ptrdiff_t n, double *scratch, const qm_results *out)
{
    tile t = divide_scratch(plan, scratch);
    ptrdiff_t undecided = 0;
    for (ptrdiff_t first = 0; first < n; first += T) {
        ptrdiff_t rows = n - first < T ? n - first : T;
        for (ptrdiff_t j = 0; j < plan->n_columns; j++)
            scale_column(columns + j, first, rows, plan->center[j], plan->inverse_scale[j], t.scaled + j * T);
        if (plan->is_signed)
            measure(plan, &t, 1);
        else
            measure(plan, &t, 0);
        choose_medoids(plan, &t);
        if (plan->angle != QM_ANGLE_NONE) measure_angles(plan, &t);
        root_distances(plan, t.distance);
        fuse(plan, &t);
        decide(plan->n_classes, t.score, t.sum, t.feature);
        undecided += mark_undecided(plan, &t, rows);
        write_results(plan, &t, first, rows, out);
    }
    return undecided;
}
