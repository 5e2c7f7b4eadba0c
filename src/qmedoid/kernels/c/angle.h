/* Arc cosines without branches, so that loops over rows vectorise; each within a few units in the last place. */
#ifndef QMEDOID_ANGLE_H
#define QMEDOID_ANGLE_H

#include "dispatch.h"
#include <math.h>

#define QM_PI 3.141592653589793
#define QM_HALF_PI 1.5707963267948966

/* asin(t) for |t| <= 1/2, given u = t*t: t + t*u*P(u), with P minimax on [0, 1/4] (relative error 1.5e-17). */
QM_INLINE double qm_asin_half(double t, double u)
{
    double p = 0.0319122343519757;
    p = p * u - 0.016224204737136826;
    p = p * u + 0.019528237667523315;
    p = p * u + 0.00652798386979009;
    p = p * u + 0.01216921007296298;
    p = p * u + 0.013885235631282189;
    p = p * u + 0.01735970475430565;
    p = p * u + 0.022371758050524333;
    p = p * u + 0.030381959136985832;
    p = p * u + 0.044642856828327214;
    p = p * u + 0.07500000000337016;
    p = p * u + 0.16666666666665408;
    return t + t * (u * p);
}

/* acos(c), given both halves (1 - c)/2 and (1 + c)/2, which the caller may know better than c itself.
 *
 * Up to |c| = 1/2 it is pi/2 - asin(c). Beyond, acos(|c|) = 2 asin(sqrt((1 - |c|)/2)), whose argument is at most
 * 1/2 again; acos(-c) = pi - acos(c) does the rest. */
QM_INLINE double qm_acos_halves(double c, double minus_half, double plus_half)
{
    double size = fabs(c), smaller = minus_half < plus_half ? minus_half : plus_half;
    int far = size > 0.5;
    double u = far ? smaller : c * c;
    double t = far ? sqrt(smaller) : size;
    double arc = qm_asin_half(t, u);
    double angle = far ? 2.0 * arc : QM_HALF_PI - arc;
    return c < 0.0 ? QM_PI - angle : angle;
}

/* acos(c) for -1 <= c <= 1. */
QM_INLINE double qm_acos(double c) { return qm_acos_halves(c, 0.5 * (1.0 - c), 0.5 * (1.0 + c)); }

/* acos(sqrt(s)) for 0 <= s <= 1: half the angle whose cosine is 2s - 1. */
QM_INLINE double qm_acos_sqrt(double s) { return 0.5 * qm_acos_halves(2.0 * s - 1.0, 1.0 - s, s); }

#endif
