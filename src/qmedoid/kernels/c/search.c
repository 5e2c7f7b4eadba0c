/* One visit of the coordinate descent (algorithm 7): an anchor's feature is replaced by each of many candidates.
 *
 * Whatever the other features contribute is computed once per visit. Candidates then pass three stages: moments over
 * the training rows, the medoid of every class, and the validation rows; rows outside, candidates inside, so that a
 * block of rows is fetched once for all of them. Scratch is one allocation per call, of a few blocks, some columns
 * over the medoid rows and the pairs of a class: nothing grows with the number of training rows. */
#include "search.h"

#include <stdlib.h>
#include <string.h>

#include "search_columns.h"
#include "search_medoid.h"
#include "search_validation.h"

/* Candidates are taken so many at a time. */
#define CHUNK 64

typedef struct {
    const qm_fold *fold;
    const qm_candidates *group;
    ptrdiff_t anchor;
    double condition; /* the worst of the features that stay */
    double *terms, *squares, *signs, *block;
    moments *sums;           /* (CHUNK) */
    standard *standards;     /* (CHUNK) */
    double *features;        /* (CHUNK, n_sample): of the medoid rows, then standardized */
    medoid_search search;
    ptrdiff_t *medoids;      /* (CHUNK, C) */
    ptrdiff_t *slots;        /* (CHUNK * C): distinct medoids of a chunk */
    ptrdiff_t *slot_of;      /* (n_sample): their numbers, or -1 */
    double *slot_norms;      /* (CHUNK * C) */
    val_block *val;
    val_medoid *seen;        /* (C) */
    careful_rows careful;
    base_pair *pairs;        /* one for each slot, allocated when their number is known */
} visit;

static void *take(char **place, size_t bytes)
{
    void *taken = *place;
    *place += (bytes + 63) & ~(size_t)63;
    return taken;
}

/* Pairs of the largest class. */
static size_t most_pairs(const qm_fold *fold)
{
    size_t most = 0;
    for (ptrdiff_t c = 0; c < fold->n_classes; c++) {
        const size_t n = (size_t)(fold->bounds[c + 1] - fold->bounds[c]), pairs = n * (n - 1) / 2;
        most = pairs > most ? pairs : most;
    }
    return most;
}

/* Point the scratch arrays into memory from `start` on; return how much they need. */
static size_t lay_out(visit *v, char *start)
{
    const size_t real = sizeof(double), whole = sizeof(ptrdiff_t), n = (size_t)v->fold->n_sample;
    const size_t classes = (size_t)v->fold->n_classes, anchors = (size_t)v->fold->n_anchors;
    const size_t members = (size_t)v->group->n_members;
    char *place = start;
    v->terms = take(&place, members * BLOCK * real);
    v->squares = take(&place, members * BLOCK * real);
    v->signs = take(&place, BLOCK * real);
    v->block = take(&place, BLOCK * real);
    v->sums = take(&place, CHUNK * sizeof(moments));
    v->standards = take(&place, CHUNK * sizeof(standard));
    v->features = take(&place, CHUNK * n * real);
    v->search.base_bound = take(&place, n * real);
    v->search.bound = take(&place, n * real);
    v->search.base_rows = take(&place, KEPT_ROWS * n * real);
    v->search.kept = take(&place, classes * KEPT_ROWS * whole);
    v->search.next_kept = take(&place, classes * whole);
    v->search.tried = take(&place, (n + 1) * whole); /* should totals overflow, the first row comes twice */
    v->search.totals = take(&place, (n + 1) * real);
    v->search.bins = take(&place, n * sizeof(int32_t));
    v->search.base_pairs = take(&place, most_pairs(v->fold) * sizeof(float)); /* untouched unless needed */
    v->search.sums = take(&place, n * sizeof(float));
    v->medoids = take(&place, CHUNK * classes * whole);
    v->slots = take(&place, CHUNK * classes * whole);
    v->slot_of = take(&place, n * whole);
    v->slot_norms = take(&place, CHUNK * classes * real);
    v->val = take(&place, sizeof(val_block));
    double *distance = take(&place, classes * VAL_BLOCK * real), *angle = take(&place, classes * VAL_BLOCK * real);
    if (start) {
        v->val->distance = distance;
        v->val->angle = angle;
    }
    v->seen = take(&place, classes * sizeof(val_medoid));
    v->careful.record = take(&place, anchors * real);
    v->careful.medoids = take(&place, classes * anchors * real);
    v->careful.scores = take(&place, 2 * classes * real);
    return (size_t)(place - start);
}

/* Scratch for a visit, to be freed by the caller; NULL when memory runs out. */
static char *open_visit(visit *v, const qm_fold *fold, ptrdiff_t anchor, const qm_candidates *group)
{
    memset(v, 0, sizeof(*v));
    v->fold = fold;
    v->group = group;
    v->anchor = anchor;
    const size_t bytes = lay_out(v, NULL) + 64;
    char *memory = malloc(bytes);
    if (memory)
        lay_out(v, memory + (64 - (uintptr_t)memory % 64));
    return memory;
}

/* Stage 1: features of the medoid rows, and moments over all training rows, of `count` candidates from `first` on. */
static void measure(visit *v, ptrdiff_t first, ptrdiff_t count)
{
    const qm_fold *fold = v->fold;
    for (ptrdiff_t start = 0, n; start < fold->n_train; start += n) {
        const int sampled = start < fold->n_sample;
        const ptrdiff_t stop = sampled ? fold->n_sample : fold->n_train;
        n = stop - start < BLOCK ? stop - start : BLOCK;
        weigh_members(fold->train, fold->n_train, v->group, start, n, v->terms, v->squares);
        for (ptrdiff_t k = 0; k < count; k++) {
            double *u = sampled ? v->features + k * fold->n_sample + start : v->block;
            feature(v->group, first + k, fold->is_signed, n, v->terms, v->squares, v->signs, u);
            if (start == 0)
                v->sums[k] = (moments){first_shift(u, n), 0.0, 0.0};
            add_moments(v->sums + k, u, n);
        }
    }
    for (ptrdiff_t k = 0; k < count; k++) {
        double *u = v->features + k * fold->n_sample;
        v->standards[k] = finish(v->sums + k, fold->n_train, v->group->factors[first + k]);
        standardize(u, fold->n_sample, v->standards + k, u);
    }
}

/* Lower bounds of the base sums of every class, and an empty store of base rows. */
static void prepare_medoids(visit *v)
{
    const qm_fold *fold = v->fold;
    for (ptrdiff_t c = 0; c < fold->n_classes; c++) {
        const ptrdiff_t low = fold->bounds[c], n = fold->bounds[c + 1] - low;
        base_bounds(class_pairs(fold, c), fold->sample_z + v->anchor * fold->n_sample + low, n, fold->slack[c],
                    v->search.base_bound + low);
        leave_out_repeated(fold, c, v->search.base_bound + low);
        v->search.next_kept[c] = 0;
        for (ptrdiff_t slot = 0; slot < KEPT_ROWS; slot++)
            v->search.kept[c * KEPT_ROWS + slot] = -1;
    }
    for (ptrdiff_t i = 0; i < fold->n_sample; i++)
        v->slot_of[i] = -1;
}

/* Stage 2: the medoids of `count` candidates, and the distinct ones among them; returns the number of these. */
static ptrdiff_t find_medoids(visit *v, ptrdiff_t count, double tie_tolerance, const unsigned char *unsure)
{
    const qm_fold *fold = v->fold;
    ptrdiff_t n_slots = 0;
    for (ptrdiff_t c = 0; c < fold->n_classes; c++) {
        v->search.has_base_pairs = 0;
        for (ptrdiff_t k = 0; k < count; k++) {
            const double *z = v->features + k * fold->n_sample;
            if (unsure[k])
                continue;
            const ptrdiff_t row = find_medoid(fold, v->anchor, c, z, tie_tolerance, &v->search);
            v->medoids[k * fold->n_classes + c] = row;
            if (v->slot_of[row] < 0) {
                v->slot_norms[n_slots] = medoid_norm(fold, v->anchor, row);
                v->slots[n_slots] = row;
                v->slot_of[row] = n_slots++;
            }
        }
    }
    return n_slots;
}

/* Score again, row by row, what rounding might decide; 0 when it does. */
static int settle_close(visit *v, const double *sample_z, ptrdiff_t first, ptrdiff_t n, double condition)
{
    const qm_fold *fold = v->fold;
    const ptrdiff_t anchors = fold->n_anchors;
    for (ptrdiff_t c = 0; c < fold->n_classes; c++)
        for (ptrdiff_t a = 0; a < anchors; a++) {
            const double *column = a == v->anchor ? sample_z : fold->sample_z + a * fold->n_sample;
            v->careful.medoids[c * anchors + a] = column[v->seen[c].row];
        }
    for (ptrdiff_t i = 0; i < n; i++) {
        if (v->val->second[i] == 0.0)
            continue;
        for (ptrdiff_t a = 0; a < anchors; a++)
            v->careful.record[a] = a == v->anchor ? v->val->z[i] : fold->val_z[a * fold->n_val + first + i];
        const ptrdiff_t code = careful_code(fold, &v->careful, condition);
        if (code < 0)
            return 0;
        v->val->code[i] = (double)code;
    }
    return 1;
}

QM_CLONES
static void count_codes(const double *codes, ptrdiff_t n, ptrdiff_t n_classes, int64_t *counts)
{
    for (ptrdiff_t c = 0; c < n_classes; c++) {
        int64_t count = 0;
        for (ptrdiff_t i = 0; i < n; i++)
            count += codes[i] == (double)c;
        counts[c] += count;
    }
}

/* One candidate on one block of validation rows whose true class is `truth`. */
static void judge(visit *v, ptrdiff_t k, ptrdiff_t candidate, ptrdiff_t truth, ptrdiff_t first, ptrdiff_t n,
                  int64_t *confusion, unsigned char *unsure)
{
    const qm_fold *fold = v->fold;
    const ptrdiff_t n_classes = fold->n_classes;
    const double *sample_z = v->features + k * fold->n_sample;
    const double own = v->standards[k].condition, condition = own > v->condition ? own : v->condition;
    feature(v->group, candidate, fold->is_signed, n, v->terms, v->squares, v->signs, v->block);
    standardize(v->block, n, v->standards + k, v->val->z);
    for (ptrdiff_t c = 0; c < n_classes; c++) {
        const ptrdiff_t row = v->medoids[k * n_classes + c], slot = v->slot_of[row];
        const double z = sample_z[row];
        v->seen[c] = (val_medoid){row, v->pairs + slot, z, v->slot_norms[slot] + z * z};
    }
    score_block(fold, v->seen, n, v->val);
    if (mark_close(fold, v->seen, n, condition, v->val) && !settle_close(v, sample_z, first, n, condition))
        unsure[k] = 1;
    else
        count_codes(v->val->code, n, n_classes, confusion + (k * n_classes + truth) * n_classes);
}

/* Stage 3: the validation rows, class by class and block by block. */
static void validate(visit *v, ptrdiff_t first, ptrdiff_t count, ptrdiff_t n_slots, int64_t *confusion,
                     unsigned char *unsure)
{
    const qm_fold *fold = v->fold;
    for (ptrdiff_t c = 0; c < fold->n_classes; c++) {
        for (ptrdiff_t start = fold->val_bounds[c]; start < fold->val_bounds[c + 1]; start += VAL_BLOCK) {
            const ptrdiff_t left = fold->val_bounds[c + 1] - start, n = left < VAL_BLOCK ? left : VAL_BLOCK;
            weigh_members(fold->val, fold->n_val, v->group, start, n, v->terms, v->squares);
            if (fold->angle)
                fill_norms(fold, v->anchor, start, n, v->val->base_norm);
            for (ptrdiff_t s = 0; s < n_slots; s++)
                fill_pair(fold, v->anchor, start, n, v->slots[s], v->pairs + s);
            for (ptrdiff_t k = 0; k < count; k++)
                if (!unsure[k])
                    judge(v, k, first + k, c, start, n, confusion, unsure);
        }
    }
}

int qm_evaluate(const qm_fold *fold, ptrdiff_t anchor, const qm_candidates *group, double tie_tolerance,
                int64_t *confusion, unsigned char *unsure)
{
    const ptrdiff_t cells = fold->n_classes * fold->n_classes;
    visit v;
    char *memory = open_visit(&v, fold, anchor, group);
    if (!memory)
        return -1;
    for (ptrdiff_t a = 0; a < fold->n_anchors; a++)
        if (a != anchor && fold->condition[a] > v.condition)
            v.condition = fold->condition[a];
    prepare_medoids(&v);
    for (ptrdiff_t first = 0; first < group->count; first += CHUNK) {
        const ptrdiff_t count = group->count - first < CHUNK ? group->count - first : CHUNK;
        measure(&v, first, count);
        for (ptrdiff_t k = 0; k < count; k++)
            unsure[first + k] = !(v.standards[k].condition < INFINITY && v.condition < INFINITY);
        const ptrdiff_t n_slots = find_medoids(&v, count, tie_tolerance, unsure + first);
        v.pairs = malloc((size_t)(n_slots ? n_slots : 1) * sizeof(base_pair));
        if (!v.pairs) {
            free(memory);
            return -1;
        }
        validate(&v, first, count, n_slots, confusion + first * cells, unsure + first);
        for (ptrdiff_t s = 0; s < n_slots; s++)
            v.slot_of[v.slots[s]] = -1;
        free(v.pairs);
    }
    free(memory);
    return 0;
}

int qm_fill_column(const qm_fold *fold, ptrdiff_t anchor, const qm_candidates *column)
{
    visit v;
    char *memory = open_visit(&v, fold, anchor, column);
    if (!memory)
        return -1;
    measure(&v, 0, 1);
    memcpy(fold->sample_z + anchor * fold->n_sample, v.features, (size_t)fold->n_sample * sizeof(double));
    for (ptrdiff_t start = 0; start < fold->n_val; start += BLOCK) {
        const ptrdiff_t n = fold->n_val - start < BLOCK ? fold->n_val - start : BLOCK;
        weigh_members(fold->val, fold->n_val, column, start, n, v.terms, v.squares);
        feature(column, 0, fold->is_signed, n, v.terms, v.squares, v.signs, v.block);
        standardize(v.block, n, v.standards, fold->val_z + anchor * fold->n_val + start);
    }
    fold->condition[anchor] = v.standards[0].condition;
    free(memory);
    return 0;
}

/* One row of pairs, i against all j > i, over all columns. */
QM_CLONES
static double fill_pairs(const qm_fold *fold, ptrdiff_t low, ptrdiff_t i, ptrdiff_t n, double *QM_RESTRICT row)
{
    double peak = 0.0;
    for (ptrdiff_t j = 0; j < n - i - 1; j++)
        row[j] = 0.0;
    for (ptrdiff_t a = 0; a < fold->n_anchors; a++) {
        const double *z = fold->sample_z + a * fold->n_sample + low + i;
        for (ptrdiff_t j = 0; j < n - i - 1; j++)
            row[j] += (z[j + 1] - z[0]) * (z[j + 1] - z[0]);
    }
    for (ptrdiff_t j = 0; j < n - i - 1; j++)
        peak = row[j] > peak ? row[j] : peak;
    return peak;
}

int qm_build_squared(const qm_fold *fold)
{
    for (ptrdiff_t c = 0; c < fold->n_classes; c++) {
        const ptrdiff_t low = fold->bounds[c], n = fold->bounds[c + 1] - low;
        double *row = class_pairs(fold, c), peak = 0.0;
        for (ptrdiff_t i = 0; i < n; i++) {
            const double largest = fill_pairs(fold, low, i, n, row);
            peak = largest > peak ? largest : peak;
            row += n - i - 1;
        }
        fold->slack[c] = (double)(fold->n_anchors + 2) * 1e-15 * peak;
    }
    return 0;
}

/* One row of pairs after a column changed; returns the largest number that took part. */
QM_CLONES
static double update_pairs(const double *old, const double *new_, ptrdiff_t n, double *QM_RESTRICT row)
{
    double peak = 0.0;
    for (ptrdiff_t j = 0; j < n; j++) {
        const double gained = (new_[j + 1] - new_[0]) * (new_[j + 1] - new_[0]);
        const double lost = (old[j + 1] - old[0]) * (old[j + 1] - old[0]);
        const double most = row[j] + gained;
        row[j] = most - lost;
        peak = most > peak ? most : peak;
    }
    return peak;
}

void qm_update_squared(const qm_fold *fold, const double *old, const double *new_)
{
    for (ptrdiff_t c = 0; c < fold->n_classes; c++) {
        const ptrdiff_t low = fold->bounds[c], n = fold->bounds[c + 1] - low;
        double *row = class_pairs(fold, c), peak = 0.0;
        for (ptrdiff_t i = 0; i < n; i++) {
            const double largest = update_pairs(old + low + i, new_ + low + i, n - i - 1, row);
            peak = largest > peak ? largest : peak;
            row += n - i - 1;
        }
        fold->slack[c] += 4e-15 * peak;
    }
}
