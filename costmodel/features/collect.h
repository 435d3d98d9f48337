// collect_sites: from a scheduled (post-processed) function to the numbers that features are made of, in one walk and
// without rewriting the program. What the reference obtains by twelve passes follows directly from the walk:
//
//   layout-rewrite block off             its subtree is skipped; its buffer counts as a parameter
//   select without loads, unit loops     dropped while walking
//   cross-thread reduction               two stores in place of one (collect.cpp)
//   init                                 a store in front of the body (constants give no row anyway)
//   allocations placed, compacted        place.cpp, on the recorded accesses
//   bindings unified                     one loop for each thread axis of a kernel, outermost, in order of first
//   occurrence match-buffer                         accesses are mapped to the source buffer simplify index_form.h
//
// Where this deviates: conditions (predicates, if, if_then_else) never narrow a compacted buffer, which is clipped to
// its declared shape instead; auto-copy blocks are taken as they stand; conditions are simplified only if they are
// always true or false; a loop's coefficient is the true one (the reference takes the first constant it meets).
#pragma once

#include "costmodel/features/sites.h"
#include "ir/program.h"

namespace tilewright {

SiteTable collect_sites(const Function& function, bool gpu);

}  // namespace tilewright
