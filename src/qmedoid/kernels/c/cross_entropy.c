/* Cross-entropy of class scores, row by row.
 *
 * With b the highest score of a row, and R the sum of exp(s_k - b) over the other classes, the logarithm of the sum of
 * all exponentials is b + log(1 + R): nothing overflows, and two classes take one exponential. */
#include "cross_entropy.h"

#include "sincos.h"

#include <stdint.h>
#include <string.h>

/* Rows of two classes that are handled together, so that their exponentials and logarithms vectorise. */
#define BLOCK 64

#ifdef QM_GNU
#define EACH_ROW _Pragma("omp simd") for (ptrdiff_t i = 0; i < BLOCK; i++)
#else
#define EACH_ROW for (ptrdiff_t i = 0; i < BLOCK; i++)
#endif

/* exp(-x) for x >= 0, 0 where the result would be subnormal: 2^k times the series of exp(r), |r| <= log(2) / 2. */
QM_INLINE double exp_of_minus(double x)
{
    const double k = QM_ROUND(-1.44269504088896338700 * x);
    const double r = (-x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
    double series = 1.0 + r * (1.0 / 13);
    series = 1.0 + series * (r * (1.0 / 12));
    series = 1.0 + series * (r * (1.0 / 11));
    series = 1.0 + series * (r * (1.0 / 10));
    series = 1.0 + series * (r * (1.0 / 9));
    series = 1.0 + series * (r * (1.0 / 8));
    series = 1.0 + series * (r * (1.0 / 7));
    series = 1.0 + series * (r * (1.0 / 6));
    series = 1.0 + series * (r * (1.0 / 5));
    series = 1.0 + series * (r * (1.0 / 4));
    series = 1.0 + series * (r * (1.0 / 3));
    series = 1.0 + series * (r * (1.0 / 2));
    series = 1.0 + series * r;
    /* The last bits of this sum are the exponent's. */
    const double biased = k + (0x1.8p52 + 1023.0);
    uint64_t bits;
    double power;
    memcpy(&bits, &biased, sizeof bits);
    bits <<= 52;
    memcpy(&power, &bits, sizeof power);
    return x > 708.0 ? 0.0 : series * power;
}

/* log(1 + x) for 0 <= x <= 1: twice the series of the inverse hyperbolic tangent of x / (2 + x), at most 1/3. */
QM_INLINE double log_of_one_plus(double x)
{
    const double t = x / (2.0 + x), square = t * t;
    double series = 1.0 / 33;
    series = series * square + 1.0 / 31;
    series = series * square + 1.0 / 29;
    series = series * square + 1.0 / 27;
    series = series * square + 1.0 / 25;
    series = series * square + 1.0 / 23;
    series = series * square + 1.0 / 21;
    series = series * square + 1.0 / 19;
    series = series * square + 1.0 / 17;
    series = series * square + 1.0 / 15;
    series = series * square + 1.0 / 13;
    series = series * square + 1.0 / 11;
    series = series * square + 1.0 / 9;
    series = series * square + 1.0 / 7;
    series = series * square + 1.0 / 5;
    series = series * square + 1.0 / 3;
    series = series * square + 1.0;
    return 2.0 * t * series;
}

/* Two classes need only the difference of their scores. */
QM_CLONES
static int two_classes(const double *scores, const ptrdiff_t *codes, const double *weights, ptrdiff_t n, double *loss,
                       double *gradient)
{
    double total = 0.0;
    for (ptrdiff_t start = 0; start < n; start += BLOCK) {
        const ptrdiff_t m = n - start < BLOCK ? n - start : BLOCK;
        double behind[BLOCK] = {0.0}, rest[BLOCK], rest_log[BLOCK];
        for (ptrdiff_t i = 0; i < m; i++) {
            const ptrdiff_t own = codes[start + i];
            if (own < 0 || own > 1) return 1;
            behind[i] = scores[2 * (start + i) + 1 - own] - scores[2 * (start + i) + own];
        }
        EACH_ROW {
            rest[i] = exp_of_minus(fabs(behind[i]));
            rest_log[i] = log_of_one_plus(rest[i]);
        }
        for (ptrdiff_t i = 0; i < m; i++) {
            const double w = weights[start + i];
            total += w * (rest_log[i] + (behind[i] > 0.0 ? behind[i] : 0.0));
            if (gradient) {
                const double wrong = w * (behind[i] > 0.0 ? 1.0 : rest[i]) / (1.0 + rest[i]);
                gradient[2 * (start + i) + codes[start + i]] = -wrong;
                gradient[2 * (start + i) + 1 - codes[start + i]] = wrong;
            }
        }
    }
    *loss = total;
    return 0;
}

int qm_cross_entropy(const double *scores, const ptrdiff_t *codes, const double *weights, ptrdiff_t n, ptrdiff_t c,
                     double *loss, double *gradient)
{
    if (c == 2) return two_classes(scores, codes, weights, n, loss, gradient);
    double total = 0.0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const double *row = scores + i * c;
        const ptrdiff_t own = codes[i];
        if (own < 0 || own >= c) return 1;
        ptrdiff_t best = 0;
        for (ptrdiff_t k = 1; k < c; k++) best = row[k] > row[best] ? k : best;
        double *by = gradient ? gradient + i * c : NULL;
        double rest = 0.0;
        for (ptrdiff_t k = 0; k < c; k++) {
            const double share = k == best ? 1.0 : exp(row[k] - row[best]);
            if (k != best) rest += share;
            if (by) by[k] = share;
        }
        total += weights[i] * (log1p(rest) + (row[best] - row[own]));
        if (!by) continue;
        const double scale = weights[i] / (1.0 + rest);
        /* What the other classes have, without a difference of nearly equal numbers where the own class leads. */
        const double others = own == best ? rest : 1.0 + rest - by[own];
        for (ptrdiff_t k = 0; k < c; k++) by[k] *= scale;
        by[own] = -scale * others;
    }
    *loss = total;
    return 0;
}
