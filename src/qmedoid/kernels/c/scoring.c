/* Fused scoring: raw columns -> scaled columns -> anchor features -> distances and angles -> scores -> labels.
 *
 * Rows are handled in tiles of QM_TILE. A tile holds one line of QM_TILE numbers for each quantity, and every loop
 * over a line runs over all of it: the compiler turns it into vector instructions without a remainder, and a row is
 * computed the same way wherever it stands. The last tile is filled up with zeros.
 *
 * What limits the speed is one square root per anchor and row. */
#if defined(__GNUC__) && !defined(__clang__)
/* Lines are short: to zero one by a block operation (rep stos) takes longer than by a few stores. */
#pragma GCC optimize("no-tree-loop-distribute-patterns")
#endif

#include "scoring.h"

#include "angle.h"

#define T QM_TILE
#define EPSILON 1e-12 /* guard of the denominators of the normalized channels */

/* Squared norms outside these bounds may have lost digits or overflowed. */
#define SMALLEST 0x1p-960
#define LARGEST 0x1p960

/* Below this angle (and above pi minus it) the last digits of a cosine are worth more than 1e-13 of its angle. */
#define NEARLY_PARALLEL 2e-3

/* Subsets with fewer columns than this have a loop of their own. */
#define MANY 6

/* More than rounding can change of a score. */
#define SLACK 1e-9

/* Rows of a tile, none of which depends on another. */
#ifdef QM_GNU
#define EACH_ROW_OF(count) _Pragma("omp simd") for (ptrdiff_t r = 0; r < (count); r++)
#define PREFETCH(address) __builtin_prefetch(address, 0, 2)
#else
#define EACH_ROW_OF(count) for (ptrdiff_t r = 0; r < (count); r++)
#define PREFETCH(address) ((void)(address))
#endif
#define EACH_ROW EACH_ROW_OF(T)

/* Scratch space of one tile; each pointer leads to one or more lines. */
typedef struct {
    double *square, *length;   /* 1 line each: |v|^2 and |v| */
    double *sums, *label;      /* 1 line each: |v - mu|^2 or <v, mu> of one medoid; the class that is decided for */
    double *first, *second;    /* 1 line each, for what is under way */
    double *third;             /* 1 line, likewise */
    double *distance, *angle;  /* C lines each: channels of the nearest medoid of a class */
    double *squared, *dot;     /* C lines each: |v - mu|^2 and <v, mu> of that medoid */
    double *norm, *nearest;    /* C lines each: its |mu| and its index */
    double *score;             /* C lines: the fusion score of the class */
    double *copies, *features; /* U lines of columns that cannot be read in place, A lines of v */
} tile;

#define SINGLE_LINES 7
#define CLASS_LINES 7

ptrdiff_t qm_scratch_size(const qm_plan *plan)
{
    return T * (SINGLE_LINES + CLASS_LINES * plan->n_classes + plan->n_columns + plan->n_anchors);
}

static tile divide_scratch(const qm_plan *plan, double *scratch)
{
    double *C = scratch + SINGLE_LINES * T;
    ptrdiff_t step = T * plan->n_classes;
    tile t = {scratch, scratch + T, scratch + 2 * T, scratch + 3 * T, scratch + 4 * T, scratch + 5 * T,
              scratch + 6 * T, C, C + step, C + 2 * step, C + 3 * step, C + 4 * step, C + 5 * step, C + 6 * step,
              C + 7 * step, C + 7 * step + T * plan->n_columns};
    return t;
}

/* The line of a column: the column itself where it can be read as a line, else a copy filled up with zeros. */
QM_INLINE const double *column_line(const qm_column *column, ptrdiff_t start, ptrdiff_t rows, double *QM_RESTRICT copy)
{
    ptrdiff_t stride = column->stride;
    const char *data = column->data + start * stride;
    if (!column->narrow && stride == sizeof(double) && rows == T) return (const double *)data;
    if (rows < T) {
        for (ptrdiff_t r = 0; r < rows; r++, data += stride)
            copy[r] = column->narrow ? *(const float *)data : *(const double *)data;
        for (ptrdiff_t r = rows; r < T; r++) copy[r] = 0.0;
    } else if (!column->narrow) {
        EACH_ROW copy[r] = *(const double *)(data + r * stride);
    } else if (stride == sizeof(float)) {
        EACH_ROW copy[r] = ((const float *)data)[r];
    } else {
        EACH_ROW copy[r] = *(const float *)(data + r * stride);
    }
    return copy;
}

/* Ask for share a of A of the rows from `start` on, the next tile. A few cache lines of each of many columns are not
 * what a processor foresees, and too many requests at once would hold it up: so each anchor asks for its share. */
QM_INLINE void prefetch_share(const qm_plan *plan, const qm_column *columns, ptrdiff_t start, ptrdiff_t a)
{
    ptrdiff_t A = plan->n_anchors, U = plan->n_columns;
    if (columns->stride == sizeof(double) || columns->stride == sizeof(float)) {
        for (ptrdiff_t j = a * U / A; j < (a + 1) * U / A; j++)
            for (ptrdiff_t r = 0; r < T; r += 8) PREFETCH(columns[j].data + (start + r) * columns[j].stride);
    } else {
        /* Of columns that lie side by side, row by row, one in eight reaches all lines. */
        for (ptrdiff_t r = a * T / A; r < (a + 1) * T / A; r++)
            for (ptrdiff_t j = 0; j < U; j += 8) PREFETCH(columns[j].data + (start + r) * columns[j].stride);
    }
}

/* v = (u - center) / scale with u = +-sqrt(sum (w (x - c))^2), given the sums; adds v^2 to |v|^2. */
QM_INLINE double standardize(double squares, double sum, int is_signed, double center, double inverse_scale,
                             double *square)
{
    double norm = sqrt(squares);
    double v = ((is_signed && sum < 0.0 ? -norm : norm) - center) * inverse_scale;
    *square += v * v;
    return v;
}

/* The feature of an anchor with k members, a constant of the caller: the sums over them stay in registers. */
QM_INLINE void feature_of_few(const qm_plan *plan, const double *const *lines, ptrdiff_t a, ptrdiff_t k, int is_signed,
                              double *QM_RESTRICT v, double *QM_RESTRICT square)
{
    double center = plan->feature_center[a], inverse_scale = plan->feature_inverse_scale[a], c[MANY], w[MANY];
    const double *x[MANY];
    for (ptrdiff_t j = 0; j < k; j++) {
        ptrdiff_t member = plan->members[plan->offsets[a] + j];
        x[j] = lines[member], c[j] = plan->center[member], w[j] = plan->weights[plan->offsets[a] + j];
    }
    EACH_ROW {
        double squares = 0.0, sum = 0.0;
        for (ptrdiff_t j = 0; j < k; j++) {
            double term = (x[j][r] - c[j]) * w[j];
            squares += term * term;
            sum += term;
        }
        v[r] = standardize(squares, sum, is_signed, center, inverse_scale, &square[r]);
    }
}

/* The feature of an anchor with any number of members. */
QM_INLINE void feature_of_many(const qm_plan *plan, const double *const *lines, ptrdiff_t a, int is_signed,
                               double *QM_RESTRICT v, double *QM_RESTRICT square, double *QM_RESTRICT squares,
                               double *QM_RESTRICT sum)
{
    double center = plan->feature_center[a], inverse_scale = plan->feature_inverse_scale[a];
    EACH_ROW squares[r] = sum[r] = 0.0;
    for (ptrdiff_t j = plan->offsets[a]; j < plan->offsets[a + 1]; j++) {
        const double *x = lines[plan->members[j]];
        double c = plan->center[plan->members[j]], w = plan->weights[j];
        EACH_ROW {
            double term = (x[r] - c) * w;
            squares[r] += term * term;
            sum[r] += term;
        }
    }
    EACH_ROW v[r] = standardize(squares[r], sum[r], is_signed, center, inverse_scale, &square[r]);
}

QM_INLINE void anchor_feature(const qm_plan *plan, const double *const *lines, const tile *t, ptrdiff_t a,
                              int is_signed)
{
    double *v = t->features + a * T;
    switch (plan->offsets[a + 1] - plan->offsets[a]) {
    case 1: feature_of_few(plan, lines, a, 1, is_signed, v, t->square); break;
    case 2: feature_of_few(plan, lines, a, 2, is_signed, v, t->square); break;
    case 3: feature_of_few(plan, lines, a, 3, is_signed, v, t->square); break;
    case 4: feature_of_few(plan, lines, a, 4, is_signed, v, t->square); break;
    case 5: feature_of_few(plan, lines, a, 5, is_signed, v, t->square); break;
    default: feature_of_many(plan, lines, a, is_signed, v, t->square, t->first, t->second);
    }
}

/* Features of a tile; meanwhile, the tile that starts at row `next` is asked for. */
QM_INLINE void all_features(const qm_plan *plan, const qm_column *columns, const double *const *lines, ptrdiff_t next,
                            const tile *t, int is_signed)
{
    double *QM_RESTRICT square = t->square, *QM_RESTRICT length = t->length;
    EACH_ROW square[r] = 0.0;
    for (ptrdiff_t a = 0; a < plan->n_anchors; a++) {
        prefetch_share(plan, columns, next, a);
        anchor_feature(plan, lines, t, a, is_signed);
    }
    EACH_ROW length[r] = sqrt(square[r]);
}

/* |v - mu|^2 of one medoid, or <v, mu>. Sums of as many rows as registers can hold are under way together. */
QM_INLINE void medoid_sums(const double *QM_RESTRICT features, ptrdiff_t n_anchors, const double *QM_RESTRICT mu,
                           int is_dot, double *QM_RESTRICT sums)
{
    enum { LANES = 32 };
    for (ptrdiff_t start = 0; start < T; start += LANES) {
        double total[LANES];
        EACH_ROW_OF(LANES) total[r] = 0.0;
        for (ptrdiff_t a = 0; a < n_anchors; a++) {
            const double *QM_RESTRICT v = features + a * T + start;
            double m = mu[a];
            EACH_ROW_OF(LANES) {
                double difference = v[r] - m;
                total[r] += is_dot ? v[r] * m : difference * difference;
            }
        }
        EACH_ROW_OF(LANES) sums[start + r] = total[r];
    }
}

/* Replace what is known of a class's nearest medoid where another is nearer; of equals the first stays. */
QM_INLINE void keep_nearer(const double *QM_RESTRICT squared, double norm, double index, double *QM_RESTRICT best,
                           double *QM_RESTRICT best_norm, double *QM_RESTRICT nearest)
{
    EACH_ROW {
        double new_square = squared[r], old_square = best[r], old_norm = best_norm[r], old_index = nearest[r];
        int nearer = new_square < old_square;
        best[r] = nearer ? new_square : old_square;
        best_norm[r] = nearer ? norm : old_norm;
        nearest[r] = nearer ? index : old_index;
    }
}

/* The nearest medoid of a class: |v - mu|^2, distance, |mu| and index. */
QM_INLINE void nearest_medoid(const qm_plan *plan, const tile *t, ptrdiff_t c)
{
    ptrdiff_t A = plan->n_anchors, p = plan->class_offsets[c];
    double *QM_RESTRICT norm = t->norm + c * T, *QM_RESTRICT nearest = t->nearest + c * T;
    double *QM_RESTRICT squared = t->squared + c * T, *QM_RESTRICT distance = t->distance + c * T;
    double first_norm = plan->medoid_norms[p], first_index = (double)plan->medoid_indices[p];
    medoid_sums(t->features, A, plan->medoids + p * A, 0, squared);
    EACH_ROW norm[r] = first_norm, nearest[r] = first_index;
    while (++p < plan->class_offsets[c + 1]) {
        medoid_sums(t->features, A, plan->medoids + p * A, 0, t->sums);
        keep_nearer(t->sums, plan->medoid_norms[p], (double)plan->medoid_indices[p], squared, norm, nearest);
    }
    EACH_ROW distance[r] = sqrt(squared[r]);
}

QM_INLINE void keep_own(const double *QM_RESTRICT sums, const double *QM_RESTRICT nearest, double index,
                        double *QM_RESTRICT dot)
{
    EACH_ROW {
        double new_dot = sums[r], old_dot = dot[r];
        dot[r] = nearest[r] == index ? new_dot : old_dot;
    }
}

/* <v, mu> of the nearest medoid of a class. */
QM_INLINE void nearest_dot(const qm_plan *plan, const tile *t, ptrdiff_t c)
{
    ptrdiff_t A = plan->n_anchors, p = plan->class_offsets[c];
    medoid_sums(t->features, A, plan->medoids + p * A, 1, t->dot + c * T);
    while (++p < plan->class_offsets[c + 1]) {
        medoid_sums(t->features, A, plan->medoids + p * A, 1, t->sums);
        keep_own(t->sums, t->nearest + c * T, (double)plan->medoid_indices[p], t->dot + c * T);
    }
}

/* Theta = arccos sqrt(s) with s = |v - mu|^2 / (2 (|v|^2 + |mu|^2)); 0 for a zero medoid, which is no state. */
QM_INLINE void printed_angles(const double *QM_RESTRICT squared, const double *QM_RESTRICT square,
                              const double *QM_RESTRICT norm, double *QM_RESTRICT angle)
{
    EACH_ROW {
        double s = squared[r] / (2.0 * (square[r] + norm[r] * norm[r]));
        double theta = qm_acos_sqrt(s < 1.0 ? s : 1.0);
        angle[r] = norm[r] > 0.0 ? theta : 0.0;
    }
}

QM_INLINE int is_nearly_parallel(double theta) { return QM_HALF_PI - fabs(theta - QM_HALF_PI) < NEARLY_PARALLEL; }

/* Theta = arccos(<v, mu> / (|v| |mu|)), pi/2 for a zero medoid. Returns how many rows are nearly parallel to mu. */
QM_INLINE ptrdiff_t true_angles(const double *QM_RESTRICT dot, const double *QM_RESTRICT length,
                                const double *QM_RESTRICT norm, double *QM_RESTRICT angle)
{
    ptrdiff_t parallel = 0;
    for (ptrdiff_t r = 0; r < T; r++) {
        double cosine = dot[r] / (length[r] * (norm[r] > 0.0 ? norm[r] : 1.0));
        cosine = cosine > 1.0 ? 1.0 : cosine;
        cosine = cosine < -1.0 ? -1.0 : cosine;
        double theta = qm_acos(cosine);
        angle[r] = theta;
        parallel += is_nearly_parallel(theta);
    }
    return parallel;
}

/* The angle of one row to a medoid by Kahan's formula 2 atan2(|u - m|, |u + m|) on unit vectors: exact near 0 and
 * pi, where a cosine is not, but slow. Few rows need it. */
static double parallel_angle(const double *v, double length, const double *mu, double norm, ptrdiff_t n_anchors)
{
    double apart = 0.0, together = 0.0;
    for (ptrdiff_t a = 0; a < n_anchors; a++) {
        double u = v[a * T] / length, m = mu[a] / norm;
        apart += (u - m) * (u - m);
        together += (u + m) * (u + m);
    }
    return 2.0 * atan2(sqrt(apart), sqrt(together));
}

static void correct_parallel(const qm_plan *plan, const tile *t, ptrdiff_t c)
{
    for (ptrdiff_t r = 0; r < T; r++) {
        ptrdiff_t i = c * T + r, p = plan->class_offsets[c];
        if (!is_nearly_parallel(t->angle[i])) continue;
        while ((double)plan->medoid_indices[p] != t->nearest[i]) p++;
        t->angle[i] = t->distance[i] == 0.0 ? 0.0
                                            : parallel_angle(t->features + r, t->length[r],
                                                             plan->medoids + p * plan->n_anchors, t->norm[i],
                                                             plan->n_anchors);
    }
}

/* The angles to the nearest medoid of a class. */
QM_INLINE void class_angles(const qm_plan *plan, const tile *t, ptrdiff_t c)
{
    if (plan->angle == QM_ANGLE_PRINTED) {
        printed_angles(t->squared + c * T, t->square, t->norm + c * T, t->angle + c * T);
        return;
    }
    nearest_dot(plan, t, c);
    if (true_angles(t->dot + c * T, t->length, t->norm + c * T, t->angle + c * T)) correct_parallel(plan, t, c);
}

QM_INLINE void add_line(const double *QM_RESTRICT line, double *QM_RESTRICT sum) { EACH_ROW sum[r] += line[r]; }

/* 1 / (sum over the classes + epsilon), what a channel is normalized with. */
QM_INLINE void channel_factor(const double *channel, ptrdiff_t n_classes, double *QM_RESTRICT factor)
{
    EACH_ROW factor[r] = 0.0;
    for (ptrdiff_t c = 0; c < n_classes; c++) add_line(channel + c * T, factor);
    EACH_ROW factor[r] = 1.0 / (factor[r] + EPSILON);
}

QM_INLINE void fuse(const double *QM_RESTRICT distance, const double *QM_RESTRICT distance_factor,
                    const double *QM_RESTRICT angle, const double *QM_RESTRICT angle_factor, double alpha,
                    double multiplier, double *QM_RESTRICT score)
{
    EACH_ROW score[r] = multiplier * (alpha * (distance[r] * distance_factor[r])
                                      + (1.0 - alpha) * (angle[r] * angle_factor[r]));
}

/* The score of a class when the angle has no share. */
QM_INLINE void weigh(const double *QM_RESTRICT distance, const double *QM_RESTRICT factor, double multiplier,
                     double *QM_RESTRICT score)
{
    EACH_ROW score[r] = multiplier * (distance[r] * factor[r]);
}

/* score = multiplier * (alpha * share of the distances + (1 - alpha) * share of the angles); t->first holds the factor
 * of the distances. */
QM_INLINE void all_scores(const qm_plan *plan, const tile *t, int with_angle)
{
    ptrdiff_t C = plan->n_classes;
    if (with_angle) channel_factor(t->angle, C, t->second);
    for (ptrdiff_t c = 0; c < C; c++) {
        const double *distance = t->distance + c * T;
        double multiplier = plan->multipliers[c], *score = t->score + c * T;
        if (with_angle)
            fuse(distance, t->first, t->angle + c * T, t->second, plan->alpha, multiplier, score);
        else
            weigh(distance, t->first, multiplier, score);
    }
}

QM_INLINE void keep_two_smallest(const double *QM_RESTRICT share, double multiplier, double *QM_RESTRICT least,
                                 double *QM_RESTRICT weight, double *QM_RESTRICT next)
{
    EACH_ROW {
        double new_share = share[r], old_least = least[r], old_weight = weight[r], old_next = next[r];
        int smaller = new_share < old_least;
        double larger = smaller ? old_least : new_share;
        least[r] = smaller ? new_share : old_least;
        weight[r] = smaller ? multiplier : old_weight;
        next[r] = larger < old_next ? larger : old_next;
    }
}

/* Whether the distances alone decide all rows, whatever the angles: an angle has a share between 0 and 1, so the class
 * with the smallest distance term wins if that term plus a whole share of the angle stays below all others. The terms
 * are left in t->score, where the smallest is the winner's. */
QM_INLINE int distances_decide(const qm_plan *plan, const tile *t, ptrdiff_t rows)
{
    double alpha = plan->alpha, multiplier = plan->multipliers[0];
    double *QM_RESTRICT least = t->second, *QM_RESTRICT weight = t->third, *QM_RESTRICT next = t->sums;
    const double *first = t->score;
    all_scores(plan, t, 0);
    EACH_ROW least[r] = first[r], weight[r] = multiplier, next[r] = INFINITY;
    for (ptrdiff_t c = 1; c < plan->n_classes; c++)
        keep_two_smallest(t->score + c * T, plan->multipliers[c], least, weight, next);
    ptrdiff_t decided = 0;
    for (ptrdiff_t r = 0; r < rows; r++)
        decided += alpha * least[r] + (1.0 - alpha) * weight[r] < (1.0 - SLACK) * (alpha * next[r]);
    return decided == rows;
}

QM_INLINE void keep_smaller(const double *QM_RESTRICT score, double c, double *QM_RESTRICT least,
                            double *QM_RESTRICT label)
{
    EACH_ROW {
        double new_score = score[r], old_score = least[r], old_label = label[r];
        int smaller = new_score < old_score;
        least[r] = smaller ? new_score : old_score;
        label[r] = smaller ? c : old_label;
    }
}

/* Class of the smallest score, of equal ones the first. */
QM_INLINE void decide(ptrdiff_t n_classes, const double *score, double *QM_RESTRICT least, double *QM_RESTRICT label)
{
    EACH_ROW least[r] = score[r], label[r] = 0.0;
    for (ptrdiff_t c = 1; c < n_classes; c++) keep_smaller(score + c * T, (double)c, least, label);
}

QM_INLINE int is_measurable(double square) { return square >= SMALLEST && square <= LARGEST; }

/* Overwrite what was computed for rows whose |v|^2 cannot be trusted, NaN included. Returns how many there are. */
QM_INLINE ptrdiff_t mark_undecided(const qm_plan *plan, const tile *t, ptrdiff_t rows, double *label)
{
    ptrdiff_t measurable = 0;
    for (ptrdiff_t r = 0; r < rows; r++) measurable += is_measurable(t->square[r]);
    if (measurable == rows) return 0;
    for (ptrdiff_t r = 0; r < rows; r++) {
        if (is_measurable(t->square[r])) continue;
        label[r] = -1.0;
        for (ptrdiff_t i = r; i < T * plan->n_classes; i += T) {
            t->distance[i] = t->angle[i] = t->score[i] = NAN;
            t->nearest[i] = -1.0;
        }
    }
    return rows - measurable;
}

/* From the lines of a tile to rows of C numbers. */
QM_INLINE void write_numbers(const double *QM_RESTRICT lines, ptrdiff_t n_classes, ptrdiff_t rows,
                             double *QM_RESTRICT out)
{
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t c = 0; c < n_classes; c++) out[r * n_classes + c] = lines[c * T + r];
}

QM_INLINE void write_codes(const double *QM_RESTRICT lines, ptrdiff_t n_classes, ptrdiff_t rows,
                           ptrdiff_t *QM_RESTRICT out)
{
    for (ptrdiff_t r = 0; r < rows; r++)
        for (ptrdiff_t c = 0; c < n_classes; c++) out[r * n_classes + c] = (ptrdiff_t)lines[c * T + r];
}

/* From channels to scores and labels. */
QM_INLINE void decide_tile(const qm_plan *plan, const tile *t, ptrdiff_t rows, int only_labels)
{
    ptrdiff_t C = plan->n_classes;
    int with_angle = plan->angle != QM_ANGLE_NONE;
    for (ptrdiff_t c = 0; c < C; c++) nearest_medoid(plan, t, c);
    channel_factor(t->distance, C, t->first);
    if (!(only_labels && with_angle && distances_decide(plan, t, rows))) {
        if (with_angle)
            for (ptrdiff_t c = 0; c < C; c++) class_angles(plan, t, c);
        all_scores(plan, t, with_angle);
    }
    decide(C, t->score, t->sums, t->label);
}

QM_CLONES
ptrdiff_t qm_score(const qm_plan *plan, const qm_column *columns, const double **lines, ptrdiff_t n, double *scratch,
                   const qm_results *out)
{
    tile t = divide_scratch(plan, scratch);
    ptrdiff_t C = plan->n_classes, undecided = 0;
    int only_labels = !out->distance && !out->angle && !out->nearest && !out->scores;
    for (ptrdiff_t start = 0; start < n; start += T) {
        ptrdiff_t rows = n - start < T ? n - start : T;
        for (ptrdiff_t j = 0; j < plan->n_columns; j++)
            lines[j] = column_line(columns + j, start, rows, t.copies + j * T);
        if (plan->is_signed)
            all_features(plan, columns, lines, start + T, &t, 1);
        else
            all_features(plan, columns, lines, start + T, &t, 0);
        decide_tile(plan, &t, rows, only_labels);
        undecided += mark_undecided(plan, &t, rows, t.label);
        if (out->distance) write_numbers(t.distance, C, rows, out->distance + start * C);
        if (out->angle) write_numbers(t.angle, C, rows, out->angle + start * C);
        if (out->nearest) write_codes(t.nearest, C, rows, out->nearest + start * C);
        if (out->scores) write_numbers(t.score, C, rows, out->scores + start * C);
        if (out->labels) write_codes(t.label, 1, rows, out->labels + start);
    }
    return undecided;
}
