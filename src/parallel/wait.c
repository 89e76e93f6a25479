/* SPDX-License-Identifier: ISC */
#include "wait.h"

#include <time.h>

/* Some tests at once, in which most messages come; then a nap between tests, short against a
 * micro-batch and long against the test. */
enum { EAGER_TESTS = 200, NAP_NANOSECONDS = 20000 };

void wait_politely(int n, MPI_Request *requests)
{
    const struct timespec nap = {.tv_nsec = NAP_NANOSECONDS};
    int done = 0;
    for (int tests = 0; !done; tests++) {
        if (tests > EAGER_TESTS)
            nanosleep(&nap, NULL);
        MPI_Testall(n, requests, &done, MPI_STATUSES_IGNORE);
    }
}

void allreduce_politely(void *values, int n, MPI_Datatype type, MPI_Op op)
{
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, values, n, type, op, MPI_COMM_WORLD, &request);
    wait_politely(1, &request);
}
