/* SPDX-License-Identifier: ISC */
/* Waiting that leaves the core to others: MPI's own waits spin, and where ranks outnumber cores a
 * spinning rank takes the time of the one it waits for. */
#ifndef MHF_PARALLEL_WAIT_H
#define MHF_PARALLEL_WAIT_H

#include <mpi.h>

/* Until all n requests are complete. */
void wait_politely(int n, MPI_Request *requests);
/* MPI_Allreduce in place over the world; every rank waits politely. */
void allreduce_politely(void *values, int n, MPI_Datatype type, MPI_Op op);

#endif
