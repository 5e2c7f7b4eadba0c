/* Boosting of symmetric trees by Newton steps.
 *
 * A level has one comparison for all its nodes: the one with the largest sum of G^2 / (H + l2) over both sides of every
 * node and over the outputs, where G and H are sums of first and second derivatives of the loss. They are summed for
 * each node and bin of a column in one pass over the rows. Columns of few bins are packed: a cell is a combination of
 * their bins, one pass sums the cells, and those are summed for each column. */
#include "symmetric.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exp.h"

#define BINS 256
/* Gains that differ by no more than this share of the largest are equal, and the first is taken. */
#define TIE 1e-9
#define COPIES 4
/* Numbers of all copies at most. */
#define ROOM (QM_LEAVES * BINS)
/* Cells of a pack of several columns at most. */
#define PACKED 64
/* Rows whose likelihoods are multiplied before a logarithm is taken. */
#define PRODUCT 32

/* Derivatives (n, k) of first and second order beside each other; with the sum of the losses if asked. */
QM_INLINE double logistic(const double *outputs, const ptrdiff_t *codes, ptrdiff_t n, double *QM_RESTRICT derivatives)
{
    double loss = 0.0;
    for (ptrdiff_t first = 0; first < n; first += PRODUCT) {
        const ptrdiff_t last = n - first < PRODUCT ? n : first + PRODUCT;
        double product = 1.0;
        for (ptrdiff_t i = first; i < last; i++) {
            const double output = outputs[i], rest = qm_exp2(-QM_LOG2_E * fabs(output)), share = 1.0 / (1.0 + rest);
            if (derivatives) {
                derivatives[2 * i] = (output > 0.0 ? share : rest * share) - (double)codes[i];
                derivatives[2 * i + 1] = rest * share * share;
            } else {
                const double behind = codes[i] ? -output : output;
                product *= 1.0 + rest;
                loss += behind > 0.0 ? behind : 0.0;
            }
        }
        if (!derivatives) loss += log(product);
    }
    return loss;
}

QM_INLINE double softmax(const double *outputs, const ptrdiff_t *codes, ptrdiff_t n, ptrdiff_t k,
                         double *QM_RESTRICT derivatives)
{
    double loss = 0.0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double *row = outputs + i * k;
        double *own = derivatives ? derivatives + 2 * i * k : NULL;
        double highest = row[0], sum = 0.0;
        for (ptrdiff_t j = 1; j < k; j++) highest = row[j] > highest ? row[j] : highest;
        for (ptrdiff_t j = 0; j < k; j++) {
            const double share = qm_exp2(QM_LOG2_E * (row[j] - highest));
            sum += share;
            if (own) own[2 * j] = share;
        }
        if (!own) {
            loss += log(sum) + highest - row[codes[i]];
            continue;
        }
        for (ptrdiff_t j = 0; j < k; j++) {
            const double share = own[2 * j] / sum;
            own[2 * j] = share - (j == codes[i] ? 1.0 : 0.0);
            own[2 * j + 1] = share * (1.0 - share);
        }
    }
    return loss;
}

QM_CLONES
static double losses_of(const double *outputs, const ptrdiff_t *codes, ptrdiff_t n, ptrdiff_t k, double *derivatives)
{
    return k == 1 ? logistic(outputs, codes, n, derivatives) : softmax(outputs, codes, n, k, derivatives);
}

/* Add the derivatives of every row to the sums (nodes, cells, k, 2) of its node and cell. A row waits for the sum of
 * the row before it where both are one, so that rows of few nodes and cells take turns between four copies. */
QM_INLINE void summed(const uint8_t *cells, const uint8_t *nodes, ptrdiff_t n, ptrdiff_t k, const double *derivatives,
                      int32_t n_cells, ptrdiff_t turn, double *QM_RESTRICT sums)
{
    ptrdiff_t i = 0;
    for (; i + COPIES <= n; i += COPIES) {
        double *to[COPIES];
        for (int copy = 0; copy < COPIES; copy++)
            to[copy] = sums + copy * turn + (nodes[i + copy] * n_cells + cells[i + copy]) * 2 * k;
        for (int copy = 0; copy < COPIES; copy++)
            for (ptrdiff_t j = 0; j < 2 * k; j++) to[copy][j] += derivatives[2 * (i + copy) * k + j];
    }
    for (; i < n; i++)
        for (ptrdiff_t j = 0; j < 2 * k; j++)
            sums[(nodes[i] * n_cells + cells[i]) * 2 * k + j] += derivatives[2 * i * k + j];
}

QM_CLONES
static void sums_of(const uint8_t *cells, const uint8_t *nodes, ptrdiff_t n, ptrdiff_t k, const double *derivatives,
                    ptrdiff_t n_nodes, int32_t n_cells, double *sums)
{
    const ptrdiff_t size = n_nodes * n_cells * 2 * k, turn = COPIES * size <= ROOM ? size : 0;
    memset(sums, 0, (turn ? COPIES : 1) * size * sizeof *sums);
    if (k == 1) {
        summed(cells, nodes, n, 1, derivatives, n_cells, turn, sums);
    } else {
        summed(cells, nodes, n, k, derivatives, n_cells, turn, sums);
    }
    for (ptrdiff_t copy = 1; turn && copy < COPIES; copy++)
        for (ptrdiff_t place = 0; place < size; place++) sums[place] += sums[copy * turn + place];
}

/* Sums (nodes, bins, k, 2) of one column from those of the cells of its pack. */
static void column_sums(const double *sums, ptrdiff_t n_nodes, ptrdiff_t n_cells, ptrdiff_t step, ptrdiff_t n_bins,
                        ptrdiff_t k, double *QM_RESTRICT found)
{
    memset(found, 0, n_nodes * n_bins * 2 * k * sizeof *found);
    for (ptrdiff_t node = 0; node < n_nodes; node++)
        for (ptrdiff_t first = 0; first < n_cells; first += n_bins * step)
            for (ptrdiff_t bin = 0; bin < n_bins; bin++) {
                double *to = found + (node * n_bins + bin) * 2 * k;
                const double *from = sums + (node * n_cells + first + bin * step) * 2 * k;
                for (ptrdiff_t cell = 0; cell < step; cell++)
                    for (ptrdiff_t j = 0; j < 2 * k; j++) to[j] += from[cell * 2 * k + j];
            }
}

/* Add to `gains` of each cut what the nodes gain; `sums` become running sums. */
QM_INLINE void gained(double *sums, ptrdiff_t n_nodes, ptrdiff_t n_bins, ptrdiff_t k, double l2, double *gains)
{
    for (ptrdiff_t node = 0; node < n_nodes; node++) {
        double *own = sums + node * n_bins * 2 * k;
        for (ptrdiff_t place = 2 * k; place < n_bins * 2 * k; place++) own[place] += own[place - 2 * k];
        const double *whole = own + (n_bins - 1) * 2 * k;
        for (ptrdiff_t cut = 0; cut < n_bins - 1; cut++) {
            const double *left = own + cut * 2 * k;
            double gain = 0.0;
            for (ptrdiff_t j = 0; j < k; j++) {
                const double g = left[2 * j], other = whole[2 * j] - g;
                const double h = left[2 * j + 1], rest = whole[2 * j + 1] - h;
                gain += g * g / (h + l2) + other * other / (rest + l2);
            }
            gains[cut] += gain;
        }
    }
}

QM_CLONES
static void gains_of(double *sums, ptrdiff_t n_nodes, ptrdiff_t n_bins, ptrdiff_t k, double l2, double *gains)
{
    memset(gains, 0, BINS * sizeof *gains);
    if (k == 1) {
        gained(sums, n_nodes, n_bins, 1, l2, gains);
    } else {
        gained(sums, n_nodes, n_bins, k, l2, gains);
    }
}

/* Columns in packs: column j is in pack `pack[j]` of `n_cells` cells, of which its bin is cell / step[j] % n_bins[j].
 * `cells` (packs, n) are those of the rows. */
typedef struct {
    int32_t *pack, *step, *n_cells;
    ptrdiff_t n;
    uint8_t *cells;
} packs;

static void free_packs(packs *in)
{
    free(in->pack);
    free(in->cells);
}

/* Returns whether there was memory. */
static int make_packs(const qm_binned *rows, const int32_t *n_bins, ptrdiff_t n_columns, packs *in)
{
    in->pack = malloc(3 * n_columns * sizeof *in->pack);
    in->cells = malloc(n_columns * rows->n);
    if (!in->pack || !in->cells) return 0;
    in->step = in->pack + n_columns, in->n_cells = in->step + n_columns, in->n = 0;
    ptrdiff_t open = -1;
    for (ptrdiff_t j = 0; j < n_columns; j++) {
        const uint8_t *bins = rows->bins + j * rows->n;
        const int is_open = open >= 0 && in->n_cells[open] * n_bins[j] <= PACKED;
        const ptrdiff_t own = is_open ? open : in->n++;
        uint8_t *cells = in->cells + own * rows->n;
        in->pack[j] = (int32_t)own;
        in->step[j] = is_open ? in->n_cells[own] : 1;
        in->n_cells[own] = in->step[j] * n_bins[j];
        if (is_open) {
            for (ptrdiff_t i = 0; i < rows->n; i++) cells[i] = (uint8_t)(cells[i] + in->step[j] * bins[i]);
        } else {
            memcpy(cells, bins, rows->n);
        }
        if (2 * n_bins[j] <= PACKED) open = own;
    }
    return 1;
}

/* The candidate and cut of the first gain that is the largest up to rounding; -1 where there is none. */
static ptrdiff_t first_largest(const double *gains, const int32_t *candidates, const qm_growth *how)
{
    double largest = -1.0;
    for (ptrdiff_t c = 0; c < how->n_candidates; c++)
        for (ptrdiff_t cut = 0; cut < how->n_bins[candidates[c]] - 1; cut++)
            largest = gains[c * BINS + cut] > largest ? gains[c * BINS + cut] : largest;
    for (ptrdiff_t c = 0; c < how->n_candidates; c++)
        for (ptrdiff_t cut = 0; cut < how->n_bins[candidates[c]] - 1; cut++)
            if (gains[c * BINS + cut] >= largest - TIE * largest) return c * BINS + cut;
    return -1;
}

static void descend(const qm_binned *rows, ptrdiff_t column, int32_t cut, uint8_t *nodes)
{
    const uint8_t *bins = rows->bins + column * rows->n;
    for (ptrdiff_t i = 0; i < rows->n; i++) nodes[i] = (uint8_t)(2 * nodes[i] + (bins[i] > cut));
}

static void add_leaves(const double *leaves, const uint8_t *nodes, ptrdiff_t n, ptrdiff_t k, double *outputs)
{
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < k; j++) outputs[i * k + j] += leaves[nodes[i] * k + j];
}

/* Newton steps of the leaves; a leaf without rows adds 0. */
static void leaves_of(const double *derivatives, const uint8_t *nodes, ptrdiff_t n, const qm_growth *how, double *sums,
                      double *leaves)
{
    const ptrdiff_t k = how->k;
    memset(sums, 0, QM_LEAVES * 2 * k * sizeof *sums);
    for (ptrdiff_t i = 0; i < n; i++)
        for (ptrdiff_t j = 0; j < 2 * k; j++) sums[nodes[i] * 2 * k + j] += derivatives[2 * i * k + j];
    for (ptrdiff_t place = 0; place < QM_LEAVES * k; place++)
        leaves[place] = -how->rate * sums[2 * place] / (sums[2 * place + 1] + how->l2);
}

/* Whether the last iterations up to t took no more than the least gain from the loss. */
static int is_over(const double *losses, ptrdiff_t t, const qm_growth *how)
{
    if (t < how->patience) return 0;
    for (ptrdiff_t i = t - how->patience + 1; i <= t; i++)
        if (losses[i] < losses[t - how->patience] - how->least_gain) return 0;
    return 1;
}

/* Gains (candidates, 256) of all cuts of the candidates of a level; `sums` has room for those of two columns. */
static void level_gains(const packs *in, ptrdiff_t n, const uint8_t *nodes, const double *derivatives,
                        ptrdiff_t n_nodes, const int32_t *candidates, const qm_growth *how, double *sums, double *gains)
{
    const ptrdiff_t k = how->k;
    double *of_column = sums + ROOM * k;
    for (ptrdiff_t pack = 0; pack < in->n; pack++) {
        int is_summed = 0;
        for (ptrdiff_t c = 0; c < how->n_candidates; c++) {
            const ptrdiff_t column = candidates[c], n_cells = in->n_cells[pack], n_bins = how->n_bins[column];
            if (in->pack[column] != pack) continue;
            if (!is_summed)
                sums_of(in->cells + pack * n, nodes, n, k, derivatives, n_nodes, in->n_cells[pack], sums), is_summed = 1;
            if (n_cells == n_bins) {
                gains_of(sums, n_nodes, n_bins, k, how->l2, gains + c * BINS);
                break; /* the pack has no other column that asks anything */
            }
            column_sums(sums, n_nodes, n_cells, in->step[column], n_bins, k, of_column);
            gains_of(of_column, n_nodes, n_bins, k, how->l2, gains + c * BINS);
        }
    }
}

ptrdiff_t qm_symmetric(const qm_binned *rows, const qm_binned *held, const qm_growth *how, const double *start,
                       int32_t *columns, int32_t *cuts, double *leaves, double *losses)
{
    const ptrdiff_t n = rows->n, m = held->n, k = how->k;
    ptrdiff_t t = 0;
    double *outputs = malloc((n + m) * k * sizeof *outputs), *derivatives = malloc(2 * n * k * sizeof *derivatives);
    double *sums = malloc(2 * ROOM * k * sizeof *sums);
    double *gains = malloc(how->n_candidates * BINS * sizeof *gains);
    uint8_t *nodes = malloc(n + m);
    packs in = {NULL};
    if (!make_packs(rows, how->n_bins, how->n_columns, &in) || !outputs || !derivatives || !sums || !gains || !nodes) {
        t = -1;
        goto done;
    }
    for (ptrdiff_t i = 0; i < (n + m) * k; i++) outputs[i] = start[i % k];
    if (m) losses[0] = losses_of(outputs + n * k, held->codes, m, k, NULL) / (double)m;
    while (t < how->n_iterations) {
        losses_of(outputs, rows->codes, n, k, derivatives);
        memset(nodes, 0, n + m);
        for (int level = 0; level < QM_LEVELS; level++) {
            const int32_t *candidates = how->candidates + (t * QM_LEVELS + level) * how->n_candidates;
            level_gains(&in, n, nodes, derivatives, (ptrdiff_t)1 << level, candidates, how, sums, gains);
            const ptrdiff_t best = first_largest(gains, candidates, how);
            const int32_t column = best < 0 ? -1 : candidates[best / BINS], cut = (int32_t)(best % BINS);
            columns[t * QM_LEVELS + level] = column;
            cuts[t * QM_LEVELS + level] = best < 0 ? BINS : cut;
            descend(rows, column < 0 ? 0 : column, cuts[t * QM_LEVELS + level], nodes);
            if (m) descend(held, column < 0 ? 0 : column, cuts[t * QM_LEVELS + level], nodes + n);
        }
        leaves_of(derivatives, nodes, n, how, sums, leaves + t * QM_LEAVES * k);
        add_leaves(leaves + t * QM_LEAVES * k, nodes, n + m, k, outputs);
        t++;
        if (!m) continue;
        losses[t] = losses_of(outputs + n * k, held->codes, m, k, NULL) / (double)m;
        if (is_over(losses, t, how)) break;
    }
done:
    free(outputs);
    free(derivatives);
    free(sums);
    free(gains);
    free(nodes);
    free_packs(&in);
    return t;
}
