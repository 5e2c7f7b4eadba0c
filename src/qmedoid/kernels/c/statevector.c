/* Statevectors of many rows at once.
 *
 * Rows are handled in tiles of one line of 64 bytes: 8 rows in double precision, 16 in single. The state of a tile is
 * 2^n lines of real parts and 2^n lines of imaginary parts, so that a gate is a loop over lines, and every loop over
 * a line runs over all of it: a row is computed the same way wherever it stands. The last tile is filled up with rows
 * of zero angles.
 *
 * What keeps the number of operations down:
 * - the first layer leaves a product state, which is written down directly, and which stays real up to the first R_z;
 * - both chains of entangling gates are one permutation with signs, which costs nothing: the next gates read from, or
 *   the gates before write to, the place it leads to;
 * - all R_z of a layer are one phase for each amplitude, applied as the next gates read it;
 * - R_y acts on real and imaginary parts alike, and on two qubits for each time that a line is read and written;
 * - the last R_z changes no expectation value, and is left out of them. */
#if defined(__GNUC__) && !defined(__clang__)
/* Lines are short: to zero or copy one by a block operation takes longer than by a few moves. */
#pragma GCC optimize("no-tree-loop-distribute-patterns")
#endif

#include "statevector.h"

#include "sincos.h"

#ifdef QM_GNU
#define EACH_LANE _Pragma("omp simd") for (ptrdiff_t l = 0; l < W; l++)
#else
#define EACH_LANE for (ptrdiff_t l = 0; l < W; l++)
#endif

/* How the first gate of a layer reads an amplitude. */
enum reading {
    AS_IT_IS,
    WITH_SIGN,       /* times a sign */
    WITH_PHASE,      /* times a complex number */
    REAL_WITH_PHASE, /* likewise, and its imaginary part is zero and not stored */
};

/* The amplitude that CX(q, q+1), applied for q = 0, 1, ..., brings to index t of 2^n. */
QM_INLINE ptrdiff_t source_of(ptrdiff_t t, ptrdiff_t size) { return t ^ ((t << 1) & (size - 1)); }

/* The sign that CZ(q, q+1) of all q give to index t: one change for every two bits that stand side by side. */
static double sign_of(ptrdiff_t t)
{
    int odd = 0;
    for (ptrdiff_t both = t & (t >> 1); both; both >>= 1) odd ^= (int)(both & 1);
    return odd ? -1.0 : 1.0;
}

#define REAL double
#define W QM_WIDE_LANES
#define NAME(name) name##_wide
#include "statevector_gates.h"
#include "statevector_forward.h"
#include "statevector_backward.h"
#undef REAL
#undef W
#undef NAME

#define REAL float
#define W QM_NARROW_LANES
#define NAME(name) name##_narrow
#include "statevector_gates.h"
#include "statevector_forward.h"
#include "statevector_backward.h"
