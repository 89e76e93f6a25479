/* SPDX-License-Identifier: ISC */
/* The checkpoints of a run folder: which there are, and the newest that is whole. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mhf/store.h"

int64_t mhf_checkpoint_step(const char *path)
{
    char *end;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (strncmp(name, "step-", 5) != 0 || name[5] < '0' || name[5] > '9')
        return -1;
    errno = 0;
    long long step = strtoll(name + 5, &end, 10);
    return errno == 0 && strcmp(end, ".h5") == 0 ? step : -1;
}

static int newest_first(const void *a, const void *b)
{
    int64_t p = mhf_checkpoint_step(*(char *const *)a), q = mhf_checkpoint_step(*(char *const *)b);
    return p < q ? 1 : p > q ? -1 : 0;
}

static mhf_status add_path(const char *in, const char *name, char ***paths, int64_t *capacity,
                           int32_t *n)
{
    mhf_buf path = {0};
    MHF_TRY(mhf_grow(paths, capacity, *n + 1, sizeof **paths, "checkpoints"));
    MHF_TRY(mhf_path_join(in, name, &path));
    if (mhf_dir_exists(path.data))
        mhf_buf_free(&path);
    else
        (*paths)[(*n)++] = path.data;
    return MHF_OK;
}

static void free_paths(char **paths, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        free(paths[i]);
    free(paths);
}

mhf_status mhf_checkpoints_list(const char *run, char ***paths, int32_t *n)
{
    mhf_buf in = {0};
    int64_t capacity = 0;
    *paths = NULL;
    *n = 0;
    MHF_TRY(mhf_path_join(run, "checkpoints", &in));
    DIR *dir = opendir(in.data);
    mhf_status status = MHF_OK;
    if (!dir && errno != ENOENT)
        status = mhf_fail_io(in.data, "can't open the folder");
    const struct dirent *entry;
    while (status == MHF_OK && dir && (entry = readdir(dir)) != NULL)
        if (mhf_checkpoint_step(entry->d_name) >= 0)
            status = add_path(in.data, entry->d_name, paths, &capacity, n);
    if (dir)
        closedir(dir);
    mhf_buf_free(&in);
    if (status != MHF_OK) {
        free_paths(*paths, *n);
        *paths = NULL;
        *n = 0;
    } else if (*n > 1) {
        qsort(*paths, (size_t)*n, sizeof **paths, newest_first);
    }
    return status;
}

/* A file whose name tells another step is somebody's copy: going on from it would leave later
 * checkpoints behind older ones. */
static mhf_status open_whole(const char *path, mhf_source **out)
{
    MHF_TRY(mhf_source_open(path, out));
    const int64_t step = mhf_source_info_of(*out)->step;
    mhf_status status = mhf_source_verify(*out);
    if (status == MHF_OK && step != mhf_checkpoint_step(path))
        status = mhf_fail(MHF_E_DATA, "%s: is of step %lld", path, (long long)step);
    if (status == MHF_OK)
        return MHF_OK;
    mhf_source_close(*out);
    *out = NULL;
    return status;
}

mhf_status mhf_run_newest(const char *run, mhf_source **out, int32_t *refused)
{
    char **paths;
    int32_t n;
    *out = NULL;
    *refused = 0;
    MHF_TRY(mhf_checkpoints_list(run, &paths, &n));
    for (int32_t i = 0; i < n && !*out; i++) {
        if (open_whole(paths[i], out) == MHF_OK)
            continue;
        mhf_log(MHF_LOG_WARN, "refused: %s", mhf_error());
        ++*refused;
    }
    free_paths(paths, n);
    return MHF_OK;
}
