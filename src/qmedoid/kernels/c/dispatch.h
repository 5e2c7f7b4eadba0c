/* How every kernel is compiled: once for any machine and, where the tool chain can choose at load time, once
 * more for x86-64-v3 (AVX2 and fused multiply-add). Put QM_CLONES before the definition of a hot function;
 * static inline helpers it calls are compiled along with it. */
#ifndef QMEDOID_DISPATCH_H
#define QMEDOID_DISPATCH_H

/* Extensions of GCC and Clang. Without them every file is plain C11 without variable-length arrays, as other compilers
 * (MSVC) need it; QM_PORTABLE asks for that, so that the plain branches can be tested by any compiler. */
#if defined(__GNUC__) && !defined(QM_PORTABLE)
#define QM_GNU
#endif

#if defined(QM_GNU) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__) && __GNUC__ >= 12
#define QM_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define QM_CLONES
#endif

#ifdef QM_GNU
#define QM_INLINE static inline __attribute__((always_inline))
#define QM_RESTRICT __restrict__
#else
#define QM_INLINE static inline
#define QM_RESTRICT __restrict
#endif

#endif
