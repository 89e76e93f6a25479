/* SPDX-License-Identifier: ISC */
/* A thread that ends the job when a step makes no progress for too long, and says where this rank
 * was. */
#ifndef MHF_TRAIN_WATCHDOG_H
#define MHF_TRAIN_WATCHDOG_H

#include <stdint.h>

#include "mhf/base.h"

typedef struct watchdog watchdog;

/* seconds 0: no watchdog, *out NULL, and the calls below do nothing. */
mhf_status watchdog_start(double seconds, int rank, watchdog **out);
/* The rank is at `phase` (a string constant) of `step`. */
void watchdog_mark(watchdog *dog, const char *phase, int64_t step);
void watchdog_stop(watchdog *dog);

#endif
