/* Powers of two without branches, so that loops over rows vectorise. */
#ifndef QMEDOID_EXP_H
#define QMEDOID_EXP_H

#include "dispatch.h"
#include <stdint.h>
#include <string.h>

/* exp(x) = qm_exp2(QM_LOG2_E * x) */
#define QM_LOG2_E 1.4426950408889634

/* 2^y for y <= 0, within 4e-16 of itself; 0 below y = -1000.
 *
 * y = n + f with |f| <= 1/2, and 2^f by a minimax polynomial (relative error 2.2e-16). Adding 1.5 * 2^52 rounds y to n
 * and leaves n in the lowest bits, from where it is shifted to the exponent. */
QM_INLINE double qm_exp2(double y)
{
    double shifted = y + 0x1.8p52;
    double f = y - (shifted - 0x1.8p52);
    double f2 = f * f, f4 = f2 * f2;
    /* In pairs, as a chain of ten steps would keep the processor waiting. */
    double low = (1.0 + 0.6931471805599497 * f) + (0.24022650695908768 + 0.05550410866445885 * f) * f2;
    double middle = (0.009618129108034647 + 0.0013333558228558876 * f) +
                    (0.00015403529961050233 + 1.5252658118053735e-05 * f) * f2;
    double high = (1.321566288002748e-06 + 1.0208537624759209e-07 * f) + 7.037270609916633e-09 * f2;
    double p = low + (middle + high * f4) * f4;
    uint64_t power, bits;
    memcpy(&power, &shifted, sizeof power);
    memcpy(&bits, &p, sizeof bits);
    bits = y >= -1000.0 ? bits + (power << 52) : 0;
    memcpy(&p, &bits, sizeof p);
    return p;
}

#endif
