/* Sine and cosine without branches, so that loops over rows vectorise; each within a unit or two in the last place. */
#ifndef QMEDOID_SINCOS_H
#define QMEDOID_SINCOS_H

#include "dispatch.h"
#include <math.h>

/* Up to here the two parts of pi/2 below leave an error of less than 1e-20. */
#define QM_SINCOS_LIMIT 1e5

/* The nearest integer of a number of less than 51 bits: adding this leaves no room for a fraction. */
#define QM_ROUND(x) (((x) + 0x1.8p52) - 0x1.8p52)

/* sin(r) and cos(r) for |r| <= pi/4 by the polynomials of fdlibm; x = k pi/2 + r, and k mod 4 tells which is which.
 * Wrong beyond QM_SINCOS_LIMIT. */
QM_INLINE void qm_sincos(double x, double *sine, double *cosine)
{
    double k = QM_ROUND(x * 0.6366197723675814);
    double r = (x - k * 1.57079632673412561417) - k * 6.07710050650619224932e-11;
    double z = r * r;
    double s = 1.58969099521155010221e-10, c = -1.13596475577881948265e-11;
    s = s * z - 2.50507602534068634195e-08;
    s = s * z + 2.75573137070700676789e-06;
    s = s * z - 1.98412698298579493134e-04;
    s = s * z + 8.33333333332248946124e-03;
    s = s * z - 1.66666666666666324348e-01;
    s = r + r * (z * s);
    c = c * z + 2.08757232129817482790e-09;
    c = c * z - 2.75573143513906633035e-07;
    c = c * z + 2.48015872894767294178e-05;
    c = c * z - 1.38888888888741095749e-03;
    c = c * z + 4.16666666666666019037e-02;
    c = 1.0 - (0.5 * z - z * z * c);
    double turn = k - 4.0 * QM_ROUND(0.25 * k); /* -2 to 2 */
    int odd = fabs(turn) == 1.0;
    double sine_size = odd ? c : s, cosine_size = odd ? s : c;
    *sine = turn < 0.0 || turn == 2.0 ? -sine_size : sine_size;
    *cosine = turn == 1.0 || fabs(turn) == 2.0 ? -cosine_size : cosine_size;
}

#endif
