/* SPDX-License-Identifier: ISC */
#include "plan_text.h"

static double mib(int64_t bytes)
{
    return (double)bytes / 1048576.0;
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
        const bool encoder = r->units.first == 0;
        const bool head = r->units.last == config->model.num_hidden_layers + 1;
        char units[64];
        snprintf(units, sizeof units, "%slayers %d-%d%s", encoder ? "encoder, " : "",
                 encoder ? 1 : r->units.first, head ? r->units.last - 1 : r->units.last,
                 head ? ", head" : "");
        MHF_TRY(mhf_buf_printf(out, "%s%5d %-24s %5.1f%% %9.1f %9.1f %9.1f %9.1f %9.1f %9.1f\n",
                               prefix, s, units, 100 * r->flops_share, mib(r->weights),
                               mib(r->gradients), mib(r->moments), mib(r->activations),
                               mib(r->messages), mib(r->memory_bytes)));
    }
    return MHF_OK;
}
