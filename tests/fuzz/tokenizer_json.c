/* SPDX-License-Identifier: ISC */
/* A tokenizer.json of any bytes is refused with a sentence, or gives a tokenizer that encodes and
 * decodes any text: its own file's bytes among them. */
#include "fuzz.h"
#include "mhf/text.h"

static void try_text(const mhf_tokenizer *tokenizer, const char *text, size_t n)
{
    int flags = MHF_ENCODE_TEMPLATE | MHF_ENCODE_RANGES;
    mhf_encoding encoding = {0};
    mhf_buf decoded = {0};
    mhf_status status = mhf_tokenizer_encode(tokenizer, text, n, flags, &encoding);
    require(status == MHF_OK || status == MHF_E_DATA, "encoding");
    for (int64_t i = 0; status == MHF_OK && i < encoding.n; i++) {
        int64_t begin = encoding.begin[i], end = encoding.end[i];
        require(encoding.ids[i] >= 0 && encoding.ids[i] < mhf_tokenizer_size(tokenizer), "an id");
        require((begin == -1 && end == -1) || (0 <= begin && begin <= end && end <= (int64_t)n),
                "a range of bytes");
    }
    if (status == MHF_OK)
        require(mhf_tokenizer_decode(tokenizer, encoding.ids, encoding.n, false, &decoded) ==
                    MHF_OK,
                "decoding");
    mhf_encoding_free(&encoding);
    mhf_buf_free(&decoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char text[] = "a  the\xFF \xE2\x96\x81"
                               "Day <s>ab\xCC\x81 12\t\n's\xE2\x80\xA8 X";
    const char *json = (const char *)data;
    mhf_tokenizer *tokenizer;
    mhf_status status = mhf_tokenizer_parse(json, n, NULL, 0, "t.json", NULL, &tokenizer);
    require(status == MHF_OK || status == MHF_E_DATA, "parsing");
    if (status != MHF_OK)
        return 0;
    try_text(tokenizer, text, sizeof text - 1);
    try_text(tokenizer, json, n < 300 ? n : 300);
    mhf_tokenizer_free(tokenizer);
    return 0;
}
