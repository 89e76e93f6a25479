/* SPDX-License-Identifier: ISC */
#include "trainer_pairs.h"

#include <stdlib.h>
#include <string.h>

/* ---- map ------------------------------------------------------------------------------------ */

static uint64_t find(const mhf_pair_map *map, uint64_t key)
{
    uint64_t mask = (uint64_t)map->n_slots - 1;
    uint64_t i = (key * 0x9E3779B97F4A7C15u) >> 20 & mask;
    while (map->slots[i].key && map->slots[i].key != key)
        i = (i + 1) & mask;
    return i;
}

static mhf_status enlarge(mhf_pair_map *map)
{
    mhf_pair_map larger = {.n = map->n, .n_slots = map->n_slots ? map->n_slots * 2 : 1 << 10};
    MHF_TRY(mhf_new(&larger.slots, larger.n_slots, sizeof *larger.slots, "pairs of tokens"));
    for (int64_t i = 0; i < map->n_slots; i++)
        if (map->slots[i].key)
            larger.slots[find(&larger, map->slots[i].key)] = map->slots[i];
    free(map->slots);
    *map = larger;
    return MHF_OK;
}

mhf_status mhf_pair_map_at(mhf_pair_map *map, mhf_pair pair, int64_t **value)
{
    if (map->n * 2 >= map->n_slots)
        MHF_TRY(enlarge(map));
    struct mhf_pair_slot *slot = &map->slots[find(map, pair + 1)];
    if (!slot->key) {
        *slot = (struct mhf_pair_slot){.key = pair + 1};
        map->n++;
    }
    *value = &slot->value;
    return MHF_OK;
}

int64_t mhf_pair_map_get(const mhf_pair_map *map, mhf_pair pair)
{
    return map->n_slots ? map->slots[find(map, pair + 1)].value : 0;
}

void mhf_pair_map_clear(mhf_pair_map *map)
{
    /* One large step must not make the clearing of all small ones that follow slow. */
    if (map->n * 32 < map->n_slots)
        mhf_pair_map_free(map);
    else if (map->n > 0)
        memset(map->slots, 0, (size_t)map->n_slots * sizeof *map->slots);
    map->n = 0;
}

void mhf_pair_map_free(mhf_pair_map *map)
{
    free(map->slots);
    *map = (mhf_pair_map){0};
}

/* ---- queue ---------------------------------------------------------------------------------- */

static bool comes_before(const mhf_candidate *a, const mhf_candidate *b)
{
    if (a->count != b->count)
        return a->count > b->count;
    return a->pair != b->pair ? a->pair < b->pair : a->made < b->made;
}

mhf_status mhf_queue_push(mhf_queue *queue, const mhf_candidate *candidate)
{
    MHF_TRY(mhf_grow(&queue->items, &queue->capacity, queue->n + 1, sizeof *queue->items,
                     "pairs of tokens"));
    int64_t i = queue->n++;
    for (; i > 0 && comes_before(candidate, &queue->items[(i - 1) / 2]); i = (i - 1) / 2)
        queue->items[i] = queue->items[(i - 1) / 2];
    queue->items[i] = *candidate;
    return MHF_OK;
}

mhf_candidate mhf_queue_pop(mhf_queue *queue)
{
    mhf_candidate first = queue->items[0];
    mhf_candidate last = queue->items[--queue->n];
    int64_t i = 0;
    for (int64_t child; (child = 2 * i + 1) < queue->n; i = child) {
        if (child + 1 < queue->n && comes_before(&queue->items[child + 1], &queue->items[child]))
            child++;
        if (!comes_before(&queue->items[child], &last))
            break;
        queue->items[i] = queue->items[child];
    }
    if (queue->n > 0)
        queue->items[i] = last;
    return first;
}

void mhf_queue_free(mhf_queue *queue)
{
    for (int64_t i = 0; i < queue->n; i++)
        free(queue->items[i].words);
    free(queue->items);
    *queue = (mhf_queue){0};
}
