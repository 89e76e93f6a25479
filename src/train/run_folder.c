/* SPDX-License-Identifier: ISC */
#include "run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* The lock goes with the process that holds it, however it ends; its text is for people. */
static mhf_status take_lock(run_folder *folder)
{
    mhf_buf path = {0};
    char holder[512] = "";
    MHF_TRY(mhf_path_join(folder->path, "lock", &path));
    mhf_status status = MHF_OK;
    folder->lock = open(path.data, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (folder->lock < 0) {
        status = mhf_fail_io(path.data, "can't create");
    } else if (flock(folder->lock, LOCK_EX | LOCK_NB) != 0) {
        ssize_t n = read(folder->lock, holder, sizeof holder - 1);
        holder[n < 0 ? 0 : n] = 0;
        holder[strcspn(holder, "\n")] = 0;
        status =
            mhf_fail(MHF_E_LOCKED, "%s: another job is running here (%s)", folder->path, holder);
        close(folder->lock);
        folder->lock = -1;
    } else {
        char host[256] = "?";
        const char *job = getenv("SLURM_JOB_ID");
        gethostname(host, sizeof host - 1);
        int n = snprintf(holder, sizeof holder, "host %s, process %d, job %s\n", host,
                         (int)getpid(), job ? job : "none");
        if (ftruncate(folder->lock, 0) != 0 || write(folder->lock, holder, (size_t)n) != n)
            status = mhf_fail_io(path.data, "can't write");
    }
    mhf_buf_free(&path);
    return status;
}

/* Keep the whole lines of steps up to `step`: later ones, and a torn last line, are of work that is
 * done again. */
static mhf_status cut_metrics(const char *path, int64_t step)
{
    mhf_buf text = {0}, kept = {0};
    if (!mhf_file_exists(path))
        return MHF_OK;
    mhf_status status = mhf_file_read(path, SIZE_MAX / 8, &text);
    for (size_t begin = 0; status == MHF_OK && begin < text.n;) {
        const char *end = memchr(text.data + begin, '\n', text.n - begin);
        if (!end)
            break;
        size_t n = (size_t)(end - text.data) - begin + 1;
        json_t *line = NULL;
        int64_t at = INT64_MAX;
        if (mhf_json_parse(text.data + begin, n, path, &line) == MHF_OK)
            at = json_integer_value(json_object_get(line, "step"));
        json_decref(line);
        if (at <= step)
            status = mhf_buf_add(&kept, text.data + begin, n);
        begin += n;
    }
    if (status == MHF_OK && kept.n != text.n)
        status = mhf_file_write(path, kept.data, kept.n);
    mhf_buf_free(&text);
    mhf_buf_free(&kept);
    return status;
}

static mhf_status prepare(run_folder *folder, const mhf_run_config *config, int64_t step)
{
    mhf_buf path = {0}, text = {0};
    mhf_status status = mhf_path_join(folder->path, "checkpoints", &path);
    if (status == MHF_OK)
        status = mhf_dir_make(path.data);
    if (status == MHF_OK)
        status = take_lock(folder);
    if (status == MHF_OK)
        status = mhf_run_config_print(config, true, &text);
    if (status == MHF_OK)
        status = mhf_path_join(folder->path, "config.yaml", &path);
    if (status == MHF_OK)
        status = mhf_file_write(path.data, text.data, text.n);
    if (status == MHF_OK)
        status = mhf_path_join(folder->path, "metrics.jsonl", &path);
    if (status == MHF_OK)
        status = cut_metrics(path.data, step);
    if (status == MHF_OK && !(folder->metrics = fopen(path.data, "ae")))
        status = mhf_fail_io(path.data, "can't open");
    mhf_buf_free(&path);
    mhf_buf_free(&text);
    return status;
}

mhf_status run_folder_open(const char *path, const mhf_run_config *config, int64_t step,
                           run_folder *out)
{
    *out = (run_folder){.path = path, .lock = -1};
    mhf_status status = prepare(out, config, step);
    if (status != MHF_OK)
        run_folder_close(out);
    return status;
}

void run_folder_close(run_folder *folder)
{
    if (folder->metrics)
        fclose(folder->metrics);
    if (folder->lock >= 0)
        close(folder->lock);
    folder->metrics = NULL;
    folder->lock = -1;
}

mhf_status run_folder_metrics(run_folder *folder, const json_t *line)
{
    mhf_buf text = {0};
    mhf_status status = mhf_json_print(line, &text);
    if (status == MHF_OK)
        status = mhf_buf_add_text(&text, "\n");
    if (status == MHF_OK &&
        (fwrite(text.data, 1, text.n, folder->metrics) != text.n || fflush(folder->metrics) != 0))
        status = mhf_fail(MHF_E_IO, "%s/metrics.jsonl: can't append %zu bytes: %s", folder->path,
                          text.n, strerror(errno));
    mhf_buf_free(&text);
    return status;
}

mhf_status run_folder_sync(const run_folder *folder)
{
    if (fsync(fileno(folder->metrics)) == 0)
        return MHF_OK;
    return mhf_fail(MHF_E_IO, "%s/metrics.jsonl: can't sync: %s", folder->path, strerror(errno));
}

mhf_status run_folder_checkpoint(const char *path, int64_t step, mhf_buf *out)
{
    mhf_buf_clear(out);
    return mhf_buf_printf(out, "%s/checkpoints/step-%08lld.h5", path, (long long)step);
}

static mhf_status remove_temporaries(const char *folder)
{
    DIR *directory = opendir(folder);
    if (!directory)
        return mhf_fail_io(folder, "can't open the folder");
    mhf_buf path = {0};
    mhf_status status = MHF_OK;
    for (struct dirent *entry; status == MHF_OK && (entry = readdir(directory));) {
        size_t n = strlen(entry->d_name);
        if (n > 4 && strcmp(entry->d_name + n - 4, ".tmp") == 0) {
            status = mhf_path_join(folder, entry->d_name, &path);
            if (status == MHF_OK)
                unlink(path.data);
        }
    }
    closedir(directory);
    mhf_buf_free(&path);
    return status;
}

mhf_status run_folder_prune(const char *path, int64_t step, int64_t keep)
{
    char **paths = NULL; /* newest first */
    int32_t n = 0;
    int64_t kept = 0;
    mhf_buf folder = {0};
    mhf_status status = mhf_path_join(path, "checkpoints", &folder);
    if (status == MHF_OK)
        status = remove_temporaries(folder.data);
    if (status == MHF_OK)
        status = mhf_checkpoints_list(path, &paths, &n);
    for (int32_t i = 0; i < n; i++) {
        kept += mhf_checkpoint_step(paths[i]) <= step;
        if (kept > keep && status == MHF_OK && unlink(paths[i]) != 0)
            status = mhf_fail_io(paths[i], "can't remove");
        free(paths[i]);
    }
    free(paths);
    mhf_buf_free(&folder);
    return status;
}

bool run_folder_stop_asked(const char *path)
{
    mhf_buf stop = {0};
    bool asked = mhf_path_join(path, "STOP", &stop) == MHF_OK && unlink(stop.data) == 0;
    mhf_buf_free(&stop);
    return asked;
}
