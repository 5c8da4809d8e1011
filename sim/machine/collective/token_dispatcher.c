#include "collective/token_dispatcher.h"

/* Of kernels in bf16, the mean of dispatch and combine.
 * DeepEP on 20 multiprocessors (Megatron Core, transformer_config.py: moe_deepep_num_sms = 20). In an NVLink domain: B200,
 * 24 multiprocessors, 494 and 420 GB/s, or 19 GB/s each (deepseek-ai/DeepEP at 94a9f8f, docs/README_Hybrid-EP.md, "B200
 * Platform", Torch API). Slower links take longer: 153 and 158 GB/s on an H800 (docs/legacy.md). Between nodes: 20
 * multiprocessors of an H100 deliver 205 GB/s to 16 GPUs, as many as 4 to 24 in proportion, and to more GPUs the network is
 * slower (ai-dynamo/aiconfigurator at 095f58a51c4c: combine of 32,768 tokens of 7,168 columns).
 * HybridEP on 24 multiprocessors in an NVLink domain and 8 between nodes (csrc/hybrid_ep/config.cuh, Configurer): 536 and
 * 531 GB/s on B200; 57.7 and 57.0 GB/s over the network to 16 H100 (README_Hybrid-EP.md, Torch API), where a token reaches
 * 2.0 nodes and 6.5 GPUs, and so 186 GB/s to a GPU. */
static const struct { int multiprocessors[2]; double rate[2]; } libraries[] = {  /* in a node, and on several; B/s */
    [DISPATCHER_DEEPEP] = {{20, 20}, {380e9, 205e9}},
    [DISPATCHER_HYBRIDEP] = {{24, 8}, {534e9, 186e9}},
};

bool dispatcher_sends_once(enum token_dispatcher dispatcher)
{
    return libraries[dispatcher].rate[0] > 0;
}

double dispatcher_floor(enum token_dispatcher dispatcher, double bytes, bool spans)
{
    return dispatcher_sends_once(dispatcher) ? bytes / libraries[dispatcher].rate[spans] : 0;
}

int dispatcher_multiprocessors(enum token_dispatcher dispatcher, bool spans)
{
    return libraries[dispatcher].multiprocessors[spans];
}
