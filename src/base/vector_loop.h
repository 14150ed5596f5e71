/* vector_loop.h - marks functions that have versions for processors with AVX2 and with AVX-512. */
#ifndef MUC_VECTOR_LOOP_H
#define MUC_VECTOR_LOOP_H

/* Before a function of loops over elements: the version is chosen when the program starts. No sum
 * is reordered and nothing is fused, so all give the same bits. WIDE: of 64 bytes at once. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MUC_SANITIZED /* which does not bear a choice made before it has begun */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define MUC_SANITIZED
#endif
#endif
/* Clang gives what chooses another name, which callers in other files do not know. */
#if defined(__x86_64__) && defined(__gnu_linux__) && defined(__has_attribute) && \
    !defined(MUC_SANITIZED) && !defined(__clang__)
#if __has_attribute(target_clones)
#define MUC_VECTOR_LOOP __attribute__((target_clones("avx2", "default")))
#define MUC_WIDE_LOOP __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#endif
#endif
#ifndef MUC_VECTOR_LOOP
#define MUC_VECTOR_LOOP
#define MUC_WIDE_LOOP
#endif

#endif
