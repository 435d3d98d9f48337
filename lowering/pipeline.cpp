#include "lowering/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "lowering/cleanup.h"

namespace tilewright::lowering {

const char* form_name(Form form) {
  static constexpr const char* names[] = {"scheduled", "opened", "loops", "flat", "kernels"};
  return names[static_cast<int>(form)];
}

namespace {

bool runs_for(const Pass& pass, TargetKind kind) {
  return pass.runs_for == Pass::For::any || (pass.runs_for == Pass::For::cpu) == (kind == TargetKind::cpu);
}

// Passes that stay inside a form come before the one that leaves it; among those `after`, then the name, decide.
std::vector<std::string> compute_order(TargetKind kind) {
  using Key = std::pair<int, bool>;
  std::map<Key, std::map<std::string, const Pass*>> waiting;
  for (const auto& [name, entry] : Registry<Pass>::instance().entries())
    if (runs_for(entry.value, kind))
      waiting[{static_cast<int>(entry.value.in), entry.value.in != entry.value.out}][name] = &entry.value;
  std::vector<std::string> order;
  for (auto& [key, group] : waiting) {
    while (!group.empty()) {
      auto ready = std::find_if(group.begin(), group.end(), [&, &g = group](const auto& item) {
        return std::none_of(item.second->after.begin(), item.second->after.end(),
                            [&](const std::string& a) { return g.contains(a); });
      });
      TW_CHECK(ready != group.end(), "the `after` constraints of passes around \"{}\" form a cycle",
               group.begin()->first);
      order.push_back(ready->first);
      group.erase(ready);
    }
  }
  return order;
}

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

Result<FunctionRef> run_one(const std::string& name, const FunctionRef& function, const PassContext& context) {
  const Pass* pass = Registry<Pass>::instance().find(name);
  if (!pass) {
    Refusal unknown(pass_unknown, fmt::format("no lowering pass is named \"{}\"", name));
    std::string near = Registry<Pass>::instance().suggestion(name);
    return refuse(near.empty() ? unknown : unknown.with_help(fmt::format("did you mean \"{}\"?", near)));
  }
  TW_TRY(FunctionRef result, pass->run(function, context));
  if (pass->cleanup_after) result = cleanup(result);
  return result;
}

int64_t integer_attr(const Function& f, const char* key) {
  auto it = f.attrs.find(key);
  const int64_t* value = it == f.attrs.end() ? nullptr : it->second.get<int64_t>();
  return value ? *value : 0;
}

}  // namespace

std::vector<std::string> pass_order(TargetKind kind) { return compute_order(kind); }

Result<FunctionRef> run_passes(const Function& function, std::span<const std::string> names,
                               const PassContext& context) {
  FunctionRef current(&function);
  Form form = Form::scheduled;
  for (const std::string& name : names) {
    const Pass* pass = Registry<Pass>::instance().find(name);
    if (pass && pass->in < form)
      return refuse(passes_out_of_order, fmt::format("pass \"{}\" takes form {}, but the program is in form {} there",
                                                     name, form_name(pass->in), form_name(form)));
    TW_TRY(current, run_one(name, current, context));
    form = pass->out;
  }
  return current;
}

Result<LoweredFunction> lower(const Function& function, const Target& target, const LowerOptions& options,
                              const StageObserver& observe) {
  if (options.check_bounds)
    return refuse(option_not_on_target,
                  "check_bounds is not available for compiled code; the interpreter checks every access");
  if (target.is_cpu() && options.math == "fast")
    return refuse(option_not_on_target, "math=fast is not available on a CPU; expected auto or accurate");
  LoweredFunction out;
  out.options = options;
  PassContext context{target, options, &out.notes};
  FunctionRef current(&function);
  if (observe) observe("", current);
  static const std::map<TargetKind, std::vector<std::string>> orders{
      {TargetKind::cpu, compute_order(TargetKind::cpu)}, {TargetKind::cuda, compute_order(TargetKind::cuda)}};
  for (const std::string& name : orders.at(target.kind)) {
    auto start = std::chrono::steady_clock::now();
    TW_TRY(current, run_one(name, current, context));
    out.times.push_back({name, ms_since(start)});
    if (observe) observe(name, current);
  }
  out.function = current;
  out.workspace_bytes = integer_attr(*current, "tilewright.workspace_bytes");
  out.workspace_slice_bytes = integer_attr(*current, "tilewright.workspace_slice_bytes");
  return out;
}

}  // namespace tilewright::lowering
