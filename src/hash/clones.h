/* SPDX-License-Identifier: ISC */
/* Loops compiled once for each width of vectors and chosen when the program starts, since binaries
 * move between machines. Only loops whose bits don't depend on the width are marked. */
#ifndef MHF_HASH_CLONES_H
#define MHF_HASH_CLONES_H

/* Sanitizers do not support the resolvers; Clang 14 does not know these names. */
#if defined(__x86_64__) && !defined(__clang__) && !defined(MHF_SANITIZE)
#define MHF_CLONES                                                                                 \
    __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"), noinline))
#else
#define MHF_CLONES
#endif

#endif
