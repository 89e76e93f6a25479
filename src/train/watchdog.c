/* SPDX-License-Identifier: ISC */
#include "watchdog.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct watchdog {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t stopped;
    double seconds, marked;
    int rank;
    int64_t step;
    const char *phase;
    bool stop;
};

static void *watch(void *context)
{
    watchdog *dog = context;
    pthread_mutex_lock(&dog->lock);
    while (!dog->stop) {
        struct timespec next;
        clock_gettime(CLOCK_REALTIME, &next);
        next.tv_sec += 1;
        pthread_cond_timedwait(&dog->stopped, &dog->lock, &next);
        double silent = mhf_seconds() - dog->marked;
        if (dog->stop || silent < dog->seconds)
            continue;
        fprintf(stderr, "error: rank %d: no progress for %.0f s at step %lld, %s\n", dog->rank,
                silent, (long long)dog->step, dog->phase);
        fflush(stderr);
        /* The main thread hangs, perhaps inside MPI: leaving makes the launcher end the other
         * ranks. Ranks that wait for this one get a moment to say where they are. */
        sleep(2);
        _exit(mhf_status_exit_code(MHF_E_INTERNAL));
    }
    pthread_mutex_unlock(&dog->lock);
    return NULL;
}

mhf_status watchdog_start(double seconds, int rank, watchdog **out)
{
    *out = NULL;
    if (seconds <= 0)
        return MHF_OK;
    watchdog *dog;
    MHF_TRY(mhf_new(&dog, 1, sizeof *dog, "the watchdog"));
    dog->seconds = seconds;
    dog->rank = rank;
    dog->phase = "starting";
    dog->marked = mhf_seconds();
    pthread_mutex_init(&dog->lock, NULL);
    pthread_cond_init(&dog->stopped, NULL);
    if (pthread_create(&dog->thread, NULL, watch, dog) != 0) {
        free(dog);
        return mhf_fail(MHF_E_INTERNAL, "can't start the watchdog's thread");
    }
    *out = dog;
    return MHF_OK;
}

void watchdog_mark(watchdog *dog, const char *phase, int64_t step)
{
    if (!dog)
        return;
    pthread_mutex_lock(&dog->lock);
    dog->phase = phase;
    dog->step = step;
    dog->marked = mhf_seconds();
    pthread_mutex_unlock(&dog->lock);
}

void watchdog_stop(watchdog *dog)
{
    if (!dog)
        return;
    pthread_mutex_lock(&dog->lock);
    dog->stop = true;
    pthread_cond_signal(&dog->stopped);
    pthread_mutex_unlock(&dog->lock);
    pthread_join(dog->thread, NULL);
    pthread_mutex_destroy(&dog->lock);
    pthread_cond_destroy(&dog->stopped);
    free(dog);
}
