/* token_dispatcher: how tokens go to experts on other GPUs and back. The names are Megatron Core's
 * (moe_token_dispatcher_type, and for its "flex" moe_flex_dispatcher_backend):
 * alltoall: each GPU sends a copy of a token for each of its experts, by NCCL;
 * allgather: each GPU gathers the tokens of the whole group, and the results are reduce-scattered, by NCCL;
 * deepep, hybridep: a token crosses the network once for each node and NVLink once for each GPU that has any of its
 * experts, by kernels of their own (DeepEP of DeepSeek-AI, HybridEP of NVIDIA). */
#ifndef DTSIM_TOKEN_DISPATCHER_H
#define DTSIM_TOKEN_DISPATCHER_H

#include "base/base.h"

#define TOKEN_DISPATCHERS(X) \
    X(DISPATCHER_ALLTOALL, "alltoall") X(DISPATCHER_ALLGATHER, "allgather") \
    X(DISPATCHER_DEEPEP, "deepep") X(DISPATCHER_HYBRIDEP, "hybridep")
enum token_dispatcher { TOKEN_DISPATCHERS(ENUM_VALUE) };

/* Whether a token goes to a GPU once, however many of its experts are there. */
bool dispatcher_sends_once(enum token_dispatcher dispatcher);
/* s that the dispatcher's kernels take at least to deliver that number of B to a GPU, with the rows that it keeps (as
 * DeepEP counts its bandwidths), however fast the links are; 0 for dispatchers that NCCL runs. `spans`: the group is on
 * several nodes. */
double dispatcher_floor(enum token_dispatcher dispatcher, double bytes, bool spans);
/* Multiprocessors that its kernels take while they run; 0: as many as NCCL's channels. */
int dispatcher_multiprocessors(enum token_dispatcher dispatcher, bool spans);

#endif
