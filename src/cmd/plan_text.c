/* SPDX-License-Identifier: ISC */
#include "plan_text.h"

static double mib(int64_t bytes)
{
    return (double)bytes / 1048576.0;
}

/* "encoder, layers 1-7", "layer 8", "layers 9-12, head", "head" */
static void describe_units(mhf_units units, int32_t layers, char out[64])
{
    const bool encoder = units.first == 0, head = units.last == layers + 1;
    const int32_t first = encoder ? 1 : units.first, last = head ? layers : units.last;
    const char *left = encoder && last >= first ? "encoder, " : encoder ? "encoder" : "";
    const char *right = head && last >= first ? ", head" : head ? "head" : "";
    if (last > first)
        snprintf(out, 64, "%slayers %d-%d%s", left, first, last, right);
    else if (last == first)
        snprintf(out, 64, "%slayer %d%s", left, first, right);
    else
        snprintf(out, 64, "%s%s%s", left, *left && *right ? ", " : "", right);
}

mhf_status plan_text(const mhf_run_config *config, const mhf_plan *plan, const char *prefix,
                     mhf_buf *out)
{
    MHF_TRY(mhf_buf_printf(out, "%s%lld parameters: %lld of embedding, %lld others\n", prefix,
                           (long long)plan->total, (long long)plan->embedding,
                           (long long)(plan->total - plan->embedding)));
    MHF_TRY(mhf_buf_printf(
        out,
        "%s%d stages x %d replicas; %lld tokens a step, %d micro-batches a replica; "
        "%.4g GFLOP a token, bubble %.0f %%\n",
        prefix, plan->stages, plan->replicas, (long long)(config->batch * config->block),
        plan->micro_batches, plan->flops_per_token * 1e-9, 100 * plan->bubble));
    MHF_TRY(mhf_buf_printf(out, "%s%5s %-24s %6s %9s %9s %9s %9s %9s %9s\n", prefix, "stage",
                           "units", "work", "weights", "gradients", "moments", "activ.", "messages",
                           "MiB a rank"));
    for (int s = 0; s < plan->stages; s++) {
        const mhf_rank_plan *r = &plan->ranks[s];
        char units[64];
        describe_units(r->units, config->model.num_hidden_layers, units);
        MHF_TRY(mhf_buf_printf(out, "%s%5d %-24s %5.1f%% %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f\n",
                               prefix, s, units, 100 * r->flops_share, mib(r->weights),
                               mib(r->gradients), mib(r->moments), mib(r->activations),
                               mib(r->messages), mib(r->memory_bytes)));
    }
    return MHF_OK;
}
