/* Cross-entropy of class scores, row by row.
 *
 * With b the highest score of a row, and R the sum of exp(s_k - b) over the other classes, the logarithm of the sum of
 * all exponentials is b + log(1 + R): nothing overflows, and two classes take one exponential. */
#include "cross_entropy.h"

#include <math.h>

/* Two classes need only the difference of their scores. */
static int two_classes(const double *scores, const ptrdiff_t *codes, const double *weights, ptrdiff_t n, double *loss,
                       double *gradient)
{
    double total = 0.0;
    for (ptrdiff_t i = 0; i < n; i++) {
        const ptrdiff_t own = codes[i];
        if (own < 0 || own > 1) return 1;
        const double behind = scores[2 * i + 1 - own] - scores[2 * i + own], rest = exp(-fabs(behind));
        total += weights[i] * (log1p(rest) + (behind > 0.0 ? behind : 0.0));
        if (gradient) {
            const double wrong = weights[i] * (behind > 0.0 ? 1.0 : rest) / (1.0 + rest);
            gradient[2 * i + own] = -wrong;
            gradient[2 * i + 1 - own] = wrong;
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
