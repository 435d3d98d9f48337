// compute_inline and reverse_compute_inline as functions: compute_at to the "inline" location, and the tests of
// location sampling, use them too.
#pragma once

#include "schedule/context.h"

namespace tilewright {

TW_REFUSAL_CODE(block_reads_several_produced_buffers, "block-reads-several-produced-buffers",
                "the consumer reads more than one buffer that blocks of the scope produce");
TW_REFUSAL_CODE(producer_not_single, "producer-not-single", "the consumer has not exactly one producer");
TW_REFUSAL_CODE(body_not_invertible, "body-not-invertible",
                "the consumer's iters cannot be recovered from the indices of what it reads");
inline const RefusalList inline_refusals{
    labels::inner,    codes::block_has_init, codes::block_writes_several_buffers, labels::pipeline,
    labels::temp,     labels::complete,      codes::body_not_a_plain_store,       codes::buffer_opaque_or_matched,
    labels::removable};
inline const RefusalList reverse_inline_refusals{labels::inner,       codes::block_has_init,
                                                 labels::pipeline,    block_reads_several_produced_buffers,
                                                 labels::complete,    producer_not_single,
                                                 labels::temp,        codes::predicate_not_trivial,
                                                 body_not_invertible, codes::buffer_opaque_or_matched};

Status inline_block(Context&, const Block* block);
Status reverse_inline_block(Context&, const Block* block);

}  // namespace tilewright
