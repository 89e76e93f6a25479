/* SPDX-License-Identifier: ISC */
/* The byte-level alphabet: each byte stands as one printable character. */
#ifndef MHF_TEXT_BYTES_H
#define MHF_TEXT_BYTES_H

#include <stdint.h>

/* Bytes that are printable in Latin-1 stand for themselves, the others for U+0100 and on. */
static inline uint32_t mhf_byte_char(unsigned byte)
{
    if (byte <= 32)
        return 256 + byte;
    if (byte >= 127 && byte <= 160)
        return 256 + 33 + byte - 127;
    return byte == 173 ? 256 + 67 : byte;
}

/* The byte that a character stands for, or -1. */
static inline int mhf_char_byte(uint32_t c)
{
    if (c >= 256 && c <= 256 + 32)
        return (int)c - 256;
    if (c >= 256 + 33 && c <= 256 + 66)
        return (int)c - 256 - 33 + 127;
    if (c == 256 + 67)
        return 173;
    return c < 256 && mhf_byte_char(c) == c ? (int)c : -1;
}

#endif
