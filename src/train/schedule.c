/* SPDX-License-Identifier: ISC */
#include <math.h>

#include "mhf/train.h"

double mhf_learning_rate(double lr, int64_t t, int64_t warmup, int64_t steps)
{
    static const double pi = 3.14159265358979323846;
    if (t < warmup)
        return lr * (double)t / (double)warmup;
    if (t >= steps)
        return 0;
    return lr * 0.5 * (1 + cos(pi * (double)(t - warmup) / (double)(steps - warmup)));
}
