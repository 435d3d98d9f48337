// Feature rows of a scheduled program: what a cost model sees of a candidate. Reading order: sites.h (the numbers),
// collect.h (how a program gives them), schema.h and groups/ (what is made of them).
#pragma once

#include "costmodel/feature_block.h"
#include "costmodel/features/schema.h"
#include "ir/program.h"
#include "schedule/target.h"

namespace tilewright {

/// One row for each stored buffer, in program order of its first store; the last store of a buffer is the one
/// described, and stores of constants give no row. `function` is scheduled and post-processed (form S). A value that is
/// not finite is an InternalError.
FeatureRows extract_features(const Function& function, const Target& target);
FeatureRows extract_features(const Function& function, const Target& target, const FeatureSchema& schema);

/// The same from numbers (the closed form comes in here).
FeatureRows rows_of_sites(const SiteTable&, const FeatureSchema&);

}  // namespace tilewright
