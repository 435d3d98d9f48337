#include "costmodel/gbdt.h"
#include "support/component.h"

namespace tilewright {

Result<std::unique_ptr<TreeTrainer>> make_tree_trainer(const TreeParameters& parameters, RowMatrix train,
                                                       RowMatrix held_out) {
  TW_TRY_VOID(open_component("gbdt"));
  const TreeTrainerFactory* factory = Registry<TreeTrainerFactory>::instance().find("xgboost");
  TW_CHECK(factory, "component gbdt registers no tree trainer");
  return factory->make(parameters, train, held_out);
}

}  // namespace tilewright
