/* SPDX-License-Identifier: ISC */
/* The tokenizers library normalizes by Unicode 9.0 and finds punctuation by Unicode 8.0; utf8proc
 * knows later ones. A tokenizer must cut a text the same everywhere, so what came later is plain
 * here, too. */
#include "unicode.h"

typedef struct range {
    uint32_t first, last;
} range;

/* Characters that became marks, and those with a decomposition or a combining class, with what lies
 * between of no earlier version. */
static const range marks[] = {
    {0x7FD, 0x7FD},     {0x898, 0x89F},     {0x8CA, 0x8D3},     {0x9FE, 0x9FE},
    {0xAFA, 0xAFF},     {0xB55, 0xB55},     {0xC04, 0xC04},     {0xC3C, 0xC3C},
    {0xCF3, 0xD00},     {0xD3B, 0xD3C},     {0xD81, 0xD81},     {0xEBA, 0xEBA},
    {0xECE, 0xECE},     {0x1715, 0x1715},   {0x180F, 0x180F},   {0x1ABF, 0x1ACE},
    {0x1CF7, 0x1CF7},   {0x1DF6, 0x1DFA},   {0x32FF, 0x32FF},   {0xA7F2, 0xA7F4},
    {0xA82C, 0xA82C},   {0xA8FF, 0xA8FF},   {0xAB69, 0xAB69},   {0x10781, 0x107BA},
    {0x10D24, 0x10D27}, {0x10EAB, 0x10F85}, {0x11070, 0x11074}, {0x110C2, 0x110C2},
    {0x11145, 0x11146}, {0x111C9, 0x111C9}, {0x111CE, 0x111CF}, {0x11241, 0x11241},
    {0x1133B, 0x1133B}, {0x1145E, 0x1145E}, {0x1182C, 0x1183A}, {0x11930, 0x11A99},
    {0x11D31, 0x11F42}, {0x13440, 0x13455}, {0x16F4F, 0x16F4F}, {0x16F7F, 0x16F87},
    {0x16FE4, 0x16FF1}, {0x1CF00, 0x1CF46}, {0x1E030, 0x1E4EF}, {0x1F16C, 0x1F16C},
    {0x1FBF0, 0x1FBF9}};

static const range punctuation[] = {{0x61D, 0x61D},     {0x9FD, 0x9FD},     {0xA76, 0xA76},
                                    {0xC77, 0xC77},     {0xC84, 0xC84},     {0x1B7D, 0x1B7E},
                                    {0x2E43, 0x2E5D},   {0x10EAD, 0x10F89}, {0x1144B, 0x1145D},
                                    {0x11660, 0x1166C}, {0x116B9, 0x116B9}, {0x1183B, 0x1183B},
                                    {0x11944, 0x11AA2}, {0x11B00, 0x11FFF}, {0x12FF1, 0x12FF2},
                                    {0x16E97, 0x16E9A}, {0x16FE2, 0x16FE2}, {0x1E95E, 0x1E95F}};

static bool is_in(uint32_t c, const range *ranges, size_t n)
{
    size_t low = 0, high = n; /* the first range that ends at c or after it */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges[middle].last < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n && ranges[low].first <= c;
}

bool mhf_char_is_late_mark(uint32_t c)
{
    return c >= marks[0].first && is_in(c, marks, sizeof marks / sizeof *marks);
}

bool mhf_char_is_late_punctuation(uint32_t c)
{
    return c >= punctuation[0].first &&
           is_in(c, punctuation, sizeof punctuation / sizeof *punctuation);
}
