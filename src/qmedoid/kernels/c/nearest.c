/* Nearest prototypes: a screen in single precision over all of them, then exact distances of the few that pass.
 *
 * With x and p centred and scaled, v = |p|^2 / 2 - <x, p> = (|x - p|^2 - |x|^2) / 2 orders the prototypes of a row as
 * distance does. The screen computes v for ROWS rows and QM_PANEL prototypes at a time, whose sums all stay in
 * registers, and keeps the smaller one of each pair of prototypes. Its error is below
 *
 *     e(p) = unit (|x| |p| + |p|^2 / 2)
 *
 * and a prototype with v <= t has |p| <= R = |x| + sqrt(|x|^2 + 2 t). So if k values of the screen are at most t, each
 * of the k nearest has one of at most t + 2 e(R), and only those are measured: in double precision, always by the same
 * statement. A result therefore depends on its row and its prototype alone, not on how rows are put together.
 *
 * Squared distances that differ by at most a share QM_TIE of themselves, or a share QM_SAME of the row's squared
 * length, are equal: what they differ by is rounding, and that is another on another processor. */
#include "nearest.h"

#include <float.h>
#include <math.h>
#include <stdint.h>

#include "nearest_keep.h"

#define ROWS 6           /* rows of a block */
#define BLOCKS 2         /* blocks of a tile: a panel is used that often while it is at hand */
#define HALF 8           /* pairs of prototypes in a panel */
#define STREAMS 32       /* values of the screen that are looked at together */
#define TOO_LONG 0x1p100 /* |x|^2 beyond which single precision might overflow */

#ifdef QM_GNU
#define LOWEST_BIT(mask) __builtin_ctz(mask)
#define PREFETCH(address) __builtin_prefetch(address, 0, 3)
/* Sums stay in registers when they are vectors; the compiler would spill arrays. */
typedef float lanes __attribute__((vector_size(4 * HALF), aligned(4)));
#else
static int lowest_bit(uint32_t mask)
{
    int bit = 0;
    while (!(mask >> bit & 1)) bit++;
    return bit;
}
#define LOWEST_BIT(mask) lowest_bit(mask)
#define PREFETCH(address) ((void)(address))
#endif

typedef struct {
    float *values;         /* (BLOCKS * ROWS, width): the screen */
    float *x;              /* (BLOCKS, d, ROWS): centred and scaled rows */
    ptrdiff_t *candidates; /* (P,): prototypes to be measured */
    double *measured;      /* (P,): their distances, squared */
    ptrdiff_t width;       /* values of a row, filled up to a multiple of STREAMS */
} tile;

static ptrdiff_t n_panels(const qm_prototypes *to) { return (to->n_prototypes + QM_PANEL - 1) / QM_PANEL; }

static tile divide_scratch(const qm_prototypes *to, void *scratch)
{
    tile t;
    t.width = (n_panels(to) * HALF + STREAMS - 1) / STREAMS * STREAMS;
    t.values = (float *)scratch;
    t.candidates = (ptrdiff_t *)(t.values + BLOCKS * ROWS * t.width);
    t.measured = (double *)(t.candidates + to->n_prototypes);
    t.x = (float *)(t.measured + to->n_prototypes);
    return t;
}

ptrdiff_t qm_nearest_scratch_size(const qm_prototypes *to)
{
    tile t = divide_scratch(to, 0);
    return (ptrdiff_t)(BLOCKS * ROWS * (t.width + to->n_columns) * sizeof(float) +
                       to->n_prototypes * (sizeof(ptrdiff_t) + sizeof(double)));
}

/* Rows of a block, column by column, and their |x|^2; rows that are missing are zero. */
QM_INLINE void load_block(const qm_prototypes *to, const double *rows, ptrdiff_t count, float *QM_RESTRICT x,
                          double *QM_RESTRICT square)
{
    ptrdiff_t d = to->n_columns;
    for (ptrdiff_t i = 0; i < ROWS; i++) {
        double sum = 0.0;
        for (ptrdiff_t j = 0; j < d; j++) {
            double value = i < count ? (rows[i * d + j] - to->center[j]) * to->scale : 0.0;
            sum += value * value;
            x[j * ROWS + i] = (float)value;
        }
        square[i] = sum;
    }
}

/* The screen of one block and one panel: the smaller v of prototypes l and l + HALF. */
QM_INLINE void screen_panel(const float *QM_RESTRICT x, const float *QM_RESTRICT panel, ptrdiff_t d, ptrdiff_t width,
                            float *QM_RESTRICT values)
{
#ifdef QM_GNU
    const lanes *p = (const lanes *)panel;
    lanes first[ROWS], second[ROWS];
    for (int i = 0; i < ROWS; i++) first[i] = p[0], second[i] = p[1];
    for (ptrdiff_t j = 0; j < d; j++, x += ROWS) {
        p += 2;
        lanes left = p[0], right = p[1];
        for (int i = 0; i < ROWS; i++) first[i] -= x[i] * left, second[i] -= x[i] * right;
    }
#else
    float first[ROWS][HALF], second[ROWS][HALF];
    for (int i = 0; i < ROWS; i++)
        for (int l = 0; l < HALF; l++) first[i][l] = panel[l], second[i][l] = panel[HALF + l];
    for (ptrdiff_t j = 0; j < d; j++, x += ROWS) {
        panel += QM_PANEL;
        for (int i = 0; i < ROWS; i++)
            for (int l = 0; l < HALF; l++) first[i][l] -= x[i] * panel[l], second[i][l] -= x[i] * panel[HALF + l];
    }
#endif
    for (int i = 0; i < ROWS; i++)
        for (int l = 0; l < HALF; l++)
            values[i * width + l] = first[i][l] < second[i][l] ? first[i][l] : second[i][l];
}

/* A value that at least k values of the screen do not exceed: the k-th smallest of the minima of STREAMS streams. */
QM_INLINE float kth_value(const float *QM_RESTRICT values, ptrdiff_t width, ptrdiff_t k)
{
    float least[STREAMS], kth = INFINITY;
    int32_t rank[STREAMS];
    SIMD for (int l = 0; l < STREAMS; l++) least[l] = INFINITY, rank[l] = 0;
    for (ptrdiff_t start = 0; start < width; start += STREAMS) {
        SIMD for (int l = 0; l < STREAMS; l++)
        {
            float value = values[start + l];
            least[l] = value < least[l] ? value : least[l];
        }
    }
    for (int other = 0; other < STREAMS; other++) {
        float limit = least[other];
        SIMD for (int l = 0; l < STREAMS; l++) rank[l] += limit <= least[l];
    }
    for (int l = 0; l < STREAMS; l++) kth = rank[l] >= k && least[l] < kth ? least[l] : kth;
    return kth;
}

/* What the k nearest cannot exceed on the screen, t + 2 e(R), where k values are at most t. */
static float limit_of_screen(double t, double square, double unit, double same)
{
    if (t > DBL_MAX) return INFINITY;
    double length = sqrt(square), beyond = square + 2.0 * t;
    double reach = (length + sqrt(beyond > 0.0 ? beyond : 0.0)) / (1.0 - 2.0 * sqrt(unit));
    double error = unit * (length * reach + 0.5 * reach * reach);
    /* To round the limit costs no more than the unit's share of t; what vanishes in single precision, far less. */
    double tie = QM_TIE * (length + reach) * (length + reach) + same;
    return (float)(t + 2.1 * error + tie + unit * fabs(t) + 0x1p-100);
}

/* Bits of the values that do not exceed the limit. */
QM_INLINE uint32_t passing(const float *QM_RESTRICT values, float limit)
{
    uint32_t mask = 0;
#ifdef QM_GNU
#pragma omp simd reduction(| : mask)
#endif
    for (int l = 0; l < STREAMS; l++) mask |= values[l] <= limit ? (uint32_t)1 << l : 0;
    return mask;
}

/* Note a prototype, which is asked for from memory by the time it is measured. */
QM_INLINE void note(const qm_prototypes *to, ptrdiff_t p, ptrdiff_t *candidates, ptrdiff_t *count)
{
    const double *address = to->prototypes + p * to->n_columns;
    if (p >= to->n_prototypes) return;
    for (ptrdiff_t j = 0; j < to->n_columns; j += 8) PREFETCH(address + j);
    PREFETCH(address + to->n_columns - 1);
    candidates[(*count)++] = p;
}

/* Prototypes that pass the screen; returns how many. */
QM_INLINE ptrdiff_t screened(const qm_prototypes *to, const float *values, ptrdiff_t width, ptrdiff_t wanted,
                             double square, double same, ptrdiff_t *QM_RESTRICT candidates)
{
    ptrdiff_t count = 0;
    float limit = limit_of_screen(kth_value(values, width, wanted), square, to->unit, same * to->scale * to->scale);
    for (ptrdiff_t start = 0; start < width; start += STREAMS) {
        for (uint32_t mask = passing(values + start, limit); mask; mask &= mask - 1) {
            ptrdiff_t value = start + LOWEST_BIT(mask);
            ptrdiff_t p = value / HALF * QM_PANEL + value % HALF;
            note(to, p, candidates, &count);
            note(to, p + HALF, candidates, &count);
        }
    }
    return count;
}

/* The answer of one row; `square` is its |x|^2, negative where there is no screen. */
QM_INLINE void nearest_of_row(const qm_prototypes *to, const tile *t, const double *x, const float *values,
                              double square, ptrdiff_t k, ptrdiff_t own, double *best, ptrdiff_t *which)
{
    ptrdiff_t count = to->n_prototypes;
    double same = 0.0;
    for (ptrdiff_t j = 0; j < to->n_columns; j++) same += x[j] * x[j];
    same *= QM_SAME;
    for (ptrdiff_t i = 0; i < k; i++) best[i] = INFINITY, which[i] = -1;
    if (square >= 0.0 && square < TOO_LONG)
        count = screened(to, values, t->width, own < 0 ? k : k + 1, square, same, t->candidates);
    else
        for (ptrdiff_t p = 0; p < count; p++) t->candidates[p] = p;
    /* All are measured before any is sorted in, so that no guess about the order holds the next one up. */
    for (ptrdiff_t i = 0; i < count; i++)
        t->measured[i] = squared_distance(x, to->prototypes + t->candidates[i] * to->n_columns, to->n_columns);
    for (ptrdiff_t i = 0; i < count; i++)
        if (t->candidates[i] != own) keep_nearest(t->measured[i], t->candidates[i], k, same, best, which);
}

QM_CLONES
void qm_nearest(const qm_prototypes *to, const double *rows, ptrdiff_t n, ptrdiff_t k, const ptrdiff_t *own,
                void *scratch, double *squared, ptrdiff_t *indices)
{
    tile t = divide_scratch(to, scratch);
    ptrdiff_t d = to->n_columns, panels = n_panels(to);
    double square[BLOCKS * ROWS];
    for (ptrdiff_t i = 0; i < BLOCKS * ROWS; i++) {
        square[i] = -1.0;
        for (ptrdiff_t v = panels * HALF; v < t.width; v++) t.values[i * t.width + v] = INFINITY;
    }
    for (ptrdiff_t start = 0; start < n; start += BLOCKS * ROWS) {
        ptrdiff_t count = n - start < BLOCKS * ROWS ? n - start : BLOCKS * ROWS;
        if (to->panels) {
            for (ptrdiff_t b = 0; b < BLOCKS; b++)
                load_block(to, rows + (start + b * ROWS) * d, count - b * ROWS, t.x + b * ROWS * d, square + b * ROWS);
            for (ptrdiff_t g = 0; g < panels; g++)
                for (ptrdiff_t b = 0; b < BLOCKS; b++)
                    screen_panel(t.x + b * ROWS * d, to->panels + g * (d + 1) * QM_PANEL, d, t.width,
                                 t.values + b * ROWS * t.width + g * HALF);
        }
        for (ptrdiff_t i = 0; i < count; i++) {
            ptrdiff_t row = start + i;
            nearest_of_row(to, &t, rows + row * d, t.values + i * t.width, square[i], k, own ? own[row] : -1,
                           squared + row * k, indices + row * k);
        }
    }
}
