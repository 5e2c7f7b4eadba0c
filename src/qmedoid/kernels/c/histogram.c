/* Boosting by Newton steps of trees that ask one comparison at every node, with at most four on a path.
 *
 * A node asks the comparison with the largest gain G_l^2 / (H_l + l2) + G_r^2 / (H_r + l2) - G^2 / (H + l2), where G and
 * H are sums of first and second derivatives of the loss on each side. They come from histograms: sums over the rows of
 * a node by the bins of each column. Of two children the smaller one is summed, and the other one is what is left.
 *
 * Every number is that of scikit-learn's HistGradientBoostingClassifier to the last bit: derivatives are rounded to
 * single precision, sums take rows in their order, nodes are looked at by falling gain. So nothing here may be fused
 * or summed in another order, and no function is compiled for processors with fused multiply-add. */
#include "histogram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch.h"

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF
#endif

/* Bins of a histogram with that of missing cells, which is empty. */
#define BINS 256
/* Cells of the histograms of columns that are summed in one pass over the rows: they stay in the first cache. */
#define MOST_CELLS 1600
/* Nodes whose curvature is less are not split. */
#define LEAST_CURVATURE 1e-3
#define TINY 1e-15
/* Histograms that are alive at a time: two of a pair, and one for each node that waits. */
#define SLOTS 12

#ifdef QM_GNU
typedef double pair __attribute__((vector_size(16)));
#define ADD(a, b) ((a) += (b))
#define SUBTRACT(a, b) ((a) -= (b))
#define FIRST(a) ((a)[0])
#define SECOND(a) ((a)[1])
#define PAIR(a, b) ((pair){a, b})
#else
typedef struct {
    double first, second;
} pair;
#define ADD(a, b) ((a).first += (b).first, (a).second += (b).second)
#define SUBTRACT(a, b) ((a).first -= (b).first, (a).second -= (b).second)
#define FIRST(a) ((a).first)
#define SECOND(a) ((a).second)
static pair PAIR(double a, double b)
{
    pair both = {a, b};
    return both;
}
#endif

typedef struct {
    float first, second;
} derivatives;

/* Sums of derivatives and counts of rows in every cell: the bins of column 0, then those of column 1, and so on. */
typedef struct {
    pair *sums;
    uint32_t *counts;
} histogram;

/* Columns from `begin` to `end`, whose cells of a row lie together: bins, counted from the first cell of the pack. */
typedef struct {
    ptrdiff_t begin, end, first_cell;
    uint16_t *cells;
} pack;

typedef struct {
    ptrdiff_t place, level, begin, end, slot;
    double gradient, curvature, value;
    /* The best comparison. */
    double gain, left_gradient, left_curvature;
    ptrdiff_t column, cut, n_left;
} node;

struct qm_boosting {
    qm_rows rows;
    ptrdiff_t k, n_cells, n_packs;
    ptrdiff_t *first_cell; /* of each column, m + 1 */
    pack *packs;
    uint16_t *cells;
    double *outputs;           /* output after output */
    derivatives *derivatives;  /* output after output */
    double *shares;            /* k */
    uint32_t *order[QM_LEVELS]; /* rows of the nodes of each level, in their order within each */
    uint32_t *apart;           /* rows that wait while others are ordered */
    histogram slots[SLOTS];
    uint16_t *active;
    double *gains, *left_gradients, *left_curvatures;
    uint32_t *left_counts;
};

static int make_packs(qm_boosting *b)
{
    const ptrdiff_t n = b->rows.n, m = b->rows.m;
    b->first_cell = malloc((m + 1) * sizeof *b->first_cell);
    b->packs = malloc(m * sizeof *b->packs);
    b->cells = malloc(n * m * sizeof *b->cells);
    if (!b->first_cell || !b->packs || !b->cells) return 0;
    b->first_cell[0] = 0;
    for (ptrdiff_t j = 0; j < m; j++) b->first_cell[j + 1] = b->first_cell[j] + b->rows.n_bins[j];
    b->n_cells = b->first_cell[m];
    for (ptrdiff_t j = 0; j < m;) {
        pack *own = b->packs + b->n_packs++;
        own->begin = j, own->first_cell = b->first_cell[j], own->cells = b->cells + n * j;
        while (j < m && (j == own->begin || b->first_cell[j + 1] - own->first_cell <= MOST_CELLS)) j++;
        own->end = j;
        const ptrdiff_t width = own->end - own->begin;
        for (ptrdiff_t c = 0; c < width; c++) {
            const uint8_t *bins = b->rows.bins + (own->begin + c) * n;
            const ptrdiff_t from = b->first_cell[own->begin + c] - own->first_cell;
            for (ptrdiff_t i = 0; i < n; i++) own->cells[i * width + c] = (uint16_t)(from + bins[i]);
        }
    }
    return 1;
}

qm_boosting *qm_boosting_new(const qm_rows *rows, ptrdiff_t k, const double *start)
{
    qm_boosting *b = calloc(1, sizeof *b);
    if (!b) return NULL;
    const ptrdiff_t n = rows->n;
    b->rows = *rows, b->k = k;
    int is_made = make_packs(b);
    b->outputs = malloc(n * k * sizeof *b->outputs);
    b->derivatives = malloc(n * k * sizeof *b->derivatives);
    b->shares = malloc(k * sizeof *b->shares);
    b->apart = malloc(n * sizeof *b->apart);
    b->active = malloc(rows->m * sizeof *b->active);
    b->gains = malloc(3 * BINS * sizeof *b->gains);
    b->left_counts = malloc(BINS * sizeof *b->left_counts);
    is_made &= b->apart && b->outputs && b->derivatives && b->shares && b->active && b->gains && b->left_counts;
    for (int level = 0; level < QM_LEVELS; level++)
        is_made &= (b->order[level] = malloc(n * sizeof **b->order)) != NULL;
    if (!is_made) {
        qm_boosting_free(b);
        return NULL;
    }
    b->left_gradients = b->gains + BINS, b->left_curvatures = b->gains + 2 * BINS;
    for (ptrdiff_t i = 0; i < n; i++) b->order[0][i] = (uint32_t)i;
    for (ptrdiff_t j = 0; j < k; j++)
        for (ptrdiff_t i = 0; i < n; i++) b->outputs[j * n + i] = start[j];
    return b;
}

void qm_boosting_free(qm_boosting *b)
{
    if (!b) return;
    free(b->first_cell), free(b->packs), free(b->cells), free(b->outputs), free(b->derivatives), free(b->shares);
    free(b->apart), free(b->active), free(b->gains), free(b->left_counts);
    for (int level = 0; level < QM_LEVELS; level++) free(b->order[level]);
    for (int slot = 0; slot < SLOTS; slot++) free(b->slots[slot].sums), free(b->slots[slot].counts);
    free(b);
}

/* exp of the outputs of a row less the largest of them, and the sum of these. */
static double exponentials(const double *outputs, ptrdiff_t n, ptrdiff_t k, double *found, double *largest)
{
    double total = 0.0;
    *largest = outputs[0];
    for (ptrdiff_t j = 1; j < k; j++)
        if (*largest < outputs[j * n]) *largest = outputs[j * n];
    for (ptrdiff_t j = 0; j < k; j++) total += found[j] = exp(outputs[j * n] - *largest);
    return total;
}

/* Derivatives of the logistic loss, or of that of a softmax. */
static void differentiate(qm_boosting *b)
{
    const ptrdiff_t n = b->rows.n, k = b->k;
    if (k == 1) {
        for (ptrdiff_t i = 0; i < n; i++) {
            const double output = b->outputs[i], target = (double)b->rows.codes[i];
            double gradient, curvature;
            if (output > -37.0) {
                const double rest = exp(-output), whole = 1.0 + rest;
                gradient = ((1.0 - target) - target * rest) / whole;
                curvature = rest / (whole * whole);
            } else {
                curvature = exp(output);
                gradient = curvature - target;
            }
            b->derivatives[i].first = (float)gradient, b->derivatives[i].second = (float)curvature;
        }
        return;
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        double largest;
        const double total = exponentials(b->outputs + i, n, k, b->shares, &largest);
        for (ptrdiff_t j = 0; j < k; j++) {
            const double share = b->shares[j] / total;
            b->derivatives[j * n + i].first = (float)(share - (b->rows.codes[i] == j));
            b->derivatives[j * n + i].second = (float)(share * (1.0 - share));
        }
    }
}

static double log_one_plus_exp(double x)
{
    if (x <= -37.0) return exp(x);
    if (x <= -2.0) return log1p(exp(x));
    if (x <= 18.0) return log(1.0 + exp(x));
    if (x <= 33.3) return x + exp(-x);
    return x;
}

void qm_boosting_losses(const double *outputs, const ptrdiff_t *codes, ptrdiff_t n, ptrdiff_t k, double *losses)
{
    for (ptrdiff_t i = 0; i < n; i++) {
        if (k == 1) {
            losses[i] = log_one_plus_exp(outputs[i]) - (double)codes[i] * outputs[i];
            continue;
        }
        double total = 0.0, largest = outputs[i];
        for (ptrdiff_t j = 1; j < k; j++)
            if (largest < outputs[j * n + i]) largest = outputs[j * n + i];
        for (ptrdiff_t j = 0; j < k; j++) total += exp(outputs[j * n + i] - largest);
        losses[i] = log(total) + largest;
        losses[i] -= outputs[codes[i] * n + i];
    }
}

/* Add the derivatives of rows to the cells of a pack: of all its columns, or of `n_active` of them. */
static void add_rows(const pack *own, const derivatives *by_row, const uint32_t *order, ptrdiff_t n_rows,
                     const uint16_t *active, ptrdiff_t n_active, const histogram *to)
{
    const ptrdiff_t width = own->end - own->begin;
    pair *QM_RESTRICT sums = to->sums + own->first_cell;
    uint32_t *QM_RESTRICT counts = to->counts + own->first_cell;
    for (ptrdiff_t i = 0; i < n_rows; i++) {
        const ptrdiff_t row = order[i];
        const uint16_t *cells = own->cells + row * width;
        const pair both = PAIR(by_row[row].first, by_row[row].second);
        if (n_active == width)
            for (ptrdiff_t c = 0; c < width; c++) ADD(sums[cells[c]], both), counts[cells[c]]++;
        else
            for (ptrdiff_t c = 0; c < n_active; c++) {
                const uint16_t cell = cells[active[c]];
                ADD(sums[cell], both), counts[cell]++;
            }
    }
}

/* A histogram that no node has; -1 where memory ends. */
static ptrdiff_t free_slot(qm_boosting *b, uint32_t *taken)
{
    for (ptrdiff_t slot = 0; slot < SLOTS; slot++) {
        if (*taken >> slot & 1) continue;
        histogram *own = b->slots + slot;
        if (!own->sums) own->sums = malloc(b->n_cells * sizeof *own->sums);
        if (!own->counts) own->counts = malloc(b->n_cells * sizeof *own->counts);
        if (!own->sums || !own->counts) return -1;
        *taken |= (uint32_t)1 << slot;
        return slot;
    }
    return -1;
}

/* The histogram of a node from its rows, for columns that either mask has; without masks for all. */
static void sum_rows(qm_boosting *b, const node *of, const derivatives *by_row, const uint8_t *mask,
                     const uint8_t *other_mask)
{
    const histogram *to = b->slots + of->slot;
    memset(to->sums, 0, b->n_cells * sizeof *to->sums);
    memset(to->counts, 0, b->n_cells * sizeof *to->counts);
    for (ptrdiff_t p = 0; p < b->n_packs; p++) {
        const pack *own = b->packs + p;
        ptrdiff_t n_active = 0;
        for (ptrdiff_t j = own->begin; j < own->end; j++)
            if (!mask || mask[j] || other_mask[j]) b->active[n_active++] = (uint16_t)(j - own->begin);
        if (n_active)
            add_rows(own, by_row, b->order[of->level] + of->begin, of->end - of->begin, b->active, n_active, to);
    }
}

/* Eight interleaved sums of 128 numbers, as NumPy adds them. */
static double pairwise(const double *numbers)
{
    double r[8];
    memcpy(r, numbers, sizeof r);
    for (int i = 8; i < BINS / 2; i += 8)
        for (int j = 0; j < 8; j++) r[j] += numbers[i + j];
    return ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
}

/* Sums of all derivatives, from the bins of the first column. */
static void sum_root(const qm_boosting *b, node *root)
{
    double first[BINS] = {0.0}, second[BINS] = {0.0};
    for (ptrdiff_t bin = 0; bin < b->rows.n_bins[0]; bin++) {
        first[bin] = FIRST(b->slots[root->slot].sums[bin]);
        second[bin] = SECOND(b->slots[root->slot].sums[bin]);
    }
    root->gradient = pairwise(first) + pairwise(first + BINS / 2);
    root->curvature = pairwise(second) + pairwise(second + BINS / 2);
}

QM_INLINE double newton_step(double gradient, double curvature, double l2)
{
    return -gradient / (curvature + l2 + TINY);
}

/* The best comparison of a node by one column, where it is better than those before. */
static void try_column(const qm_boosting *b, const qm_growing *how, ptrdiff_t column, node *of)
{
    const histogram *in = b->slots + of->slot;
    const pair *sums = in->sums + b->first_cell[column];
    const uint32_t *counts = in->counts + b->first_cell[column];
    const ptrdiff_t n_cuts = b->rows.n_bins[column] - 1, n_rows = of->end - of->begin;
    const double as_it_is = of->gradient * of->value, l2 = how->l2;
    double *QM_RESTRICT G = b->left_gradients, *QM_RESTRICT H = b->left_curvatures, *QM_RESTRICT gains = b->gains;
    double gradient = 0.0, curvature = 0.0;
    uint32_t count = 0;
    for (ptrdiff_t cut = 0; cut < n_cuts; cut++) {
        G[cut] = gradient += FIRST(sums[cut]);
        H[cut] = curvature += SECOND(sums[cut]);
        b->left_counts[cut] = count += counts[cut];
    }
    for (ptrdiff_t cut = 0; cut < n_cuts; cut++) {
        const double right = of->gradient - G[cut];
        const double gain = as_it_is - G[cut] * newton_step(G[cut], H[cut], l2);
        gains[cut] = gain - right * newton_step(right, of->curvature - H[cut], l2);
    }
    double best = 0.0;
    ptrdiff_t found = -1;
    for (ptrdiff_t cut = 0; cut < n_cuts; cut++) {
        if ((ptrdiff_t)b->left_counts[cut] < how->least_rows) continue;
        if (n_rows - (ptrdiff_t)b->left_counts[cut] < how->least_rows) break;
        if (H[cut] < LEAST_CURVATURE) continue;
        if (of->curvature - H[cut] < LEAST_CURVATURE) break;
        if (gains[cut] > best) best = gains[cut], found = cut;
    }
    if (found < 0 || !(best > of->gain)) return;
    of->gain = best, of->column = column, of->cut = found, of->n_left = b->left_counts[found];
    of->left_gradient = G[found], of->left_curvature = H[found];
}

static void find_comparison(const qm_boosting *b, const qm_growing *how, const uint8_t *mask, node *of)
{
    of->gain = -1.0;
    for (ptrdiff_t j = 0; j < b->rows.m; j++)
        if (mask[j]) try_column(b, how, j, of);
}

/* Rows of a node to those of its children, in the same order. */
static void divide(qm_boosting *b, const node *of)
{
    const uint8_t *bins = b->rows.bins + of->column * b->rows.n;
    const uint32_t *order = b->order[of->level];
    uint32_t *left = b->order[of->level + 1] + of->begin, *right = b->apart;
    ptrdiff_t n_left = 0, n_right = 0;
    for (ptrdiff_t i = of->begin; i < of->end; i++) {
        const uint32_t row = order[i];
        const int goes_left = bins[row] <= of->cut;
        left[n_left] = row, right[n_right] = row;
        n_left += goes_left, n_right += !goes_left;
    }
    memcpy(left + n_left, right, n_right * sizeof *right);
}

/* Nodes that wait, the largest gain first; of equal gains, the order is that of Python's heapq. */
typedef struct {
    node nodes[QM_LEVELS * 4];
    int n;
} queue;

static void rise(queue *q, int first, int at)
{
    const node moved = q->nodes[at];
    while (at > first && moved.gain > q->nodes[(at - 1) / 2].gain) {
        q->nodes[at] = q->nodes[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    q->nodes[at] = moved;
}

static void put(queue *q, const node *one)
{
    q->nodes[q->n++] = *one;
    rise(q, 0, q->n - 1);
}

static node take(queue *q)
{
    const node last = q->nodes[--q->n];
    if (!q->n) return last;
    const node first = q->nodes[0];
    int at = 0, child = 1;
    while (child < q->n) {
        if (child + 1 < q->n && !(q->nodes[child].gain > q->nodes[child + 1].gain)) child++;
        q->nodes[at] = q->nodes[child];
        at = child, child = 2 * at + 1;
    }
    q->nodes[at] = last;
    rise(q, 0, at);
    return first;
}

/* A leaf at a place, which is repeated below. */
static void write_leaf(const node *of, double value, qm_tree *tree)
{
    for (ptrdiff_t begin = of->place, end = begin + 1; begin < QM_PLACES; begin = 2 * begin + 1, end = 2 * end + 1)
        for (ptrdiff_t place = begin; place < end; place++) {
            tree->values[place] = value;
            tree->n_rows[place] = (int32_t)(of->end - of->begin);
            if (place < QM_NODES) tree->columns[place] = -1, tree->cuts[place] = BINS;
        }
}

static void add_leaf(const qm_boosting *b, const node *of, const qm_growing *how, qm_tree *tree, double *output)
{
    const double value = of->value * how->rate;
    const uint32_t *order = b->order[of->level];
    for (ptrdiff_t i = of->begin; i < of->end; i++) output[order[i]] += value;
    write_leaf(of, value, tree);
}

/* The two leaves below a node of the last level: their rows need no order of their own. */
static void add_last_leaves(const qm_boosting *b, const node *of, const node *children, const qm_growing *how,
                            qm_tree *tree, double *output)
{
    const uint8_t *bins = b->rows.bins + of->column * b->rows.n;
    const uint32_t *order = b->order[of->level];
    const double values[2] = {children[0].value * how->rate, children[1].value * how->rate};
    for (ptrdiff_t i = of->begin; i < of->end; i++) output[order[i]] += values[bins[order[i]] > of->cut];
    for (int side = 0; side < 2; side++) write_leaf(children + side, values[side], tree);
}

static void make_children(const node *of, const qm_growing *how, node *children)
{
    for (int side = 0; side < 2; side++) {
        node *child = children + side;
        *child = *of;
        child->place = 2 * of->place + 1 + side, child->level = of->level + 1, child->gain = -1.0;
        child->gradient = side ? of->gradient - of->left_gradient : of->left_gradient;
        child->curvature = side ? of->curvature - of->left_curvature : of->left_curvature;
        child->value = newton_step(child->gradient, child->curvature, how->l2);
    }
    children[0].end = children[1].begin = of->begin + of->n_left;
}

/* Look at the children of a node, whose histogram one of them takes over; returns the masks used, -1 without memory. */
static ptrdiff_t look_at(qm_boosting *b, const node *of, node *children, const derivatives *by_row,
                         const qm_growing *how, const uint8_t *masks, uint32_t *taken)
{
    int is_open[2];
    for (int side = 0; side < 2; side++) is_open[side] = children[side].end - children[side].begin >= 2 * how->least_rows;
    if (!is_open[0] && !is_open[1]) {
        *taken &= ~((uint32_t)1 << of->slot);
        return 0;
    }
    node *small = children + !(of->n_left < of->end - of->begin - of->n_left), *large = children + (small == children);
    /* No histogram is taken from those of the last level: they have the columns that are tried. */
    const int is_last = children[0].level == QM_LEVELS - 1;
    const uint8_t *other = is_open[0] && is_open[1] ? masks + b->rows.m : masks;
    if ((small->slot = free_slot(b, taken)) < 0) return -1;
    sum_rows(b, small, by_row, is_last ? masks : NULL, other);
    if (is_open[large - children]) {
        const histogram *from = b->slots + large->slot, *less = b->slots + small->slot;
        for (ptrdiff_t cell = 0; cell < b->n_cells; cell++) SUBTRACT(from->sums[cell], less->sums[cell]);
        for (ptrdiff_t cell = 0; cell < b->n_cells; cell++) from->counts[cell] -= less->counts[cell];
    }
    ptrdiff_t used = 0;
    for (int side = 0; side < 2; side++) {
        node *child = children + side;
        if (is_open[side]) find_comparison(b, how, masks + b->rows.m * used++, child);
        if (!(child->gain > 0.0) || is_last) *taken &= ~((uint32_t)1 << child->slot);
    }
    return used;
}

static ptrdiff_t grow_tree(qm_boosting *b, const derivatives *by_row, const qm_growing *how, const uint8_t *masks,
                           qm_tree *tree, double *output)
{
    ptrdiff_t used = 0;
    uint32_t taken = 0;
    queue waiting;
    waiting.n = 0;
    node root = {.end = b->rows.n, .gain = -1.0};
    if ((root.slot = free_slot(b, &taken)) < 0) return -1;
    sum_rows(b, &root, by_row, NULL, NULL);
    sum_root(b, &root);
    if (root.end >= 2 * how->least_rows && !(root.curvature < LEAST_CURVATURE))
        find_comparison(b, how, masks + b->rows.m * used++, &root);
    if (root.gain > 0.0)
        put(&waiting, &root);
    else
        add_leaf(b, &root, how, tree, output);
    while (waiting.n) {
        const node of = take(&waiting);
        node children[2];
        tree->columns[of.place] = (int32_t)of.column, tree->cuts[of.place] = (int32_t)of.cut;
        tree->n_rows[of.place] = (int32_t)(of.end - of.begin), tree->values[of.place] = 0.0;
        make_children(&of, how, children);
        if (of.level + 1 == QM_LEVELS) {
            add_last_leaves(b, &of, children, how, tree, output);
            continue;
        }
        divide(b, &of);
        const ptrdiff_t more = look_at(b, &of, children, by_row, how, masks + b->rows.m * used, &taken);
        if (more < 0) return -1;
        used += more;
        for (int side = 0; side < 2; side++)
            if (children[side].gain > 0.0)
                put(&waiting, children + side);
            else
                add_leaf(b, children + side, how, tree, output);
    }
    return used;
}

ptrdiff_t qm_boosting_step(qm_boosting *b, const qm_growing *how, const uint8_t *masks, qm_tree *trees)
{
    const ptrdiff_t n = b->rows.n;
    ptrdiff_t used = 0;
    differentiate(b);
    for (ptrdiff_t j = 0; j < b->k; j++) {
        const ptrdiff_t more =
            grow_tree(b, b->derivatives + j * n, how, masks + used * b->rows.m, trees + j, b->outputs + j * n);
        if (more < 0) return -1;
        used += more;
    }
    return used;
}

void qm_tree_add(const qm_tree *tree, const uint8_t *bins, ptrdiff_t n, double *output)
{
    const uint8_t *columns[QM_NODES];
    int32_t cuts[QM_NODES];
    for (int place = 0; place < QM_NODES; place++) {
        columns[place] = bins + (tree->columns[place] < 0 ? 0 : tree->columns[place]) * n;
        cuts[place] = tree->cuts[place];
    }
    for (ptrdiff_t i = 0; i < n; i++) {
        int place = 0;
        for (int level = 0; level < QM_LEVELS; level++) place = 2 * place + 1 + (columns[place][i] > cuts[place]);
        output[i] += tree->values[place];
    }
}
