#include "costmodel/model.h"

#include <fmt/ranges.h>

namespace tilewright {

Result<std::unique_ptr<CostModel>> make_cost_model(std::string_view name, const ModelOptions& options) {
  const auto& registry = Registry<CostModelFactory>::instance();
  if (const CostModelFactory* factory = registry.find(name)) return factory->make(options);
  return refuse(unknown_cost_model, [name = std::string(name)] {
    const auto& models = Registry<CostModelFactory>::instance();
    Diagnostic d;
    d.message = fmt::format("expected one of the cost models {}, found \"{}\"", fmt::join(models.names(), ", "), name);
    if (std::string near = models.suggestion(name); !near.empty()) d.help = fmt::format("did you mean \"{}\"?", near);
    return d;
  });
}

}  // namespace tilewright
