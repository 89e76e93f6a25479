/* SPDX-License-Identifier: ISC */
/* Open addressing with linear probing; keys lie one after another in one arena. */
#include "mhf/base.h"

#include <stdlib.h>
#include <string.h>

typedef struct slot {
    uint64_t hash; /* 0: free */
    uint64_t key;  /* offset in the arena */
    uint32_t n;
    int64_t value;
} slot;

struct mhf_map {
    slot *slots;
    uint64_t mask;
    int64_t count;
    mhf_buf keys;
};

mhf_status mhf_map_new(int64_t expected, mhf_map **out)
{
    mhf_map *map;
    MHF_TRY(mhf_new(&map, 1, sizeof *map, "a map"));
    uint64_t size = 16;
    while (size < (uint64_t)(expected < 8 ? 8 : expected) * 2)
        size *= 2;
    map->mask = size - 1;
    mhf_status status = mhf_new(&map->slots, (int64_t)size, sizeof *map->slots, "a map");
    if (status != MHF_OK)
        free(map);
    else
        *out = map;
    return status;
}

void mhf_map_free(mhf_map *map)
{
    if (!map)
        return;
    free(map->slots);
    mhf_buf_free(&map->keys);
    free(map);
}

static uint64_t hash_of(const void *key, size_t n)
{
    uint64_t hash = mhf_hash64(key, n);
    return hash ? hash : 1;
}

static uint64_t find(const mhf_map *map, uint64_t hash, const void *key, size_t n)
{
    uint64_t i = hash & map->mask;
    for (; map->slots[i].hash; i = (i + 1) & map->mask) {
        const slot *s = &map->slots[i];
        if (s->hash == hash && s->n == n &&
            (n == 0 || memcmp(map->keys.data + s->key, key, n) == 0))
            break;
    }
    return i;
}

int64_t mhf_map_get(const mhf_map *map, const void *key, size_t n, int64_t missing)
{
    const slot *s = &map->slots[find(map, hash_of(key, n), key, n)];
    return s->hash ? s->value : missing;
}

static mhf_status double_size(mhf_map *map)
{
    slot *old = map->slots, *fresh;
    uint64_t size = map->mask + 1;
    MHF_TRY(mhf_new(&fresh, (int64_t)size * 2, sizeof *fresh, "a map"));
    map->slots = fresh;
    map->mask = size * 2 - 1;
    for (uint64_t i = 0; i < size; i++) {
        if (!old[i].hash)
            continue;
        uint64_t j = old[i].hash & map->mask;
        while (fresh[j].hash)
            j = (j + 1) & map->mask;
        fresh[j] = old[i];
    }
    free(old);
    return MHF_OK;
}

mhf_status mhf_map_put(mhf_map *map, const void *key, size_t n, int64_t value)
{
    uint64_t hash = hash_of(key, n);
    uint64_t i = find(map, hash, key, n);
    if (map->slots[i].hash) {
        map->slots[i].value = value;
        return MHF_OK;
    }
    if (n > UINT32_MAX)
        return mhf_fail(MHF_E_NOMEM, "a map key of %zu bytes is too long", n);
    if ((uint64_t)map->count * 2 > map->mask) {
        MHF_TRY(double_size(map));
        i = find(map, hash, key, n);
    }
    uint64_t offset = map->keys.n;
    MHF_TRY(mhf_buf_add(&map->keys, key, n));
    map->slots[i] = (slot){.hash = hash, .key = offset, .n = (uint32_t)n, .value = value};
    map->count++;
    return MHF_OK;
}

int64_t mhf_map_count(const mhf_map *map)
{
    return map->count;
}
