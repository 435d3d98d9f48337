// The LLVM-free half of code generation: finds the generator in the component.
#include "codegen/codegen.h"

#include <fmt/format.h>

#include <algorithm>

#include "ir/operation.h"
#include "ir/visit.h"
#include "support/component.h"

namespace tilewright::codegen {

namespace {

const char* kind_of(const Target& target) { return target.is_cpu() ? "cpu" : "cuda"; }

Result<const CodeGenerator*> generator(const char* kind) {
  TW_TRY_VOID(open_component("codegen"));
  const auto& generators = Registry<CodeGenerator>::instance();
  if (const CodeGenerator* found = generators.find(kind)) return found;
  return refuse(
      Refusal(code_generator_missing, fmt::format("expected a target of kind {}, found one of kind {}: no code "
                                                  "generator for it is in this build",
                                                  fmt::join(generators.names(), " or "), kind))
          .with_help("--target native, or a CPU of `tilewright show targets`"));
}

/// Whether the bits of its operands or of its value are computed, not only moved.
bool computes(const Expr& e) {
  const Call* call = as<Call>(e);
  return e->kind == ExprKind::kBinary || e->kind == ExprKind::kCast || e->kind == ExprKind::kFloatImm ||
         (call && call->op->group == OpGroup::math);
}

/// The first element type that the statement computes with and `known` lacks.
std::optional<DType> unknown_dtype(const Stmt& body, const std::vector<DType>& known) {
  std::optional<DType> unknown;
  auto look = [&](DType t) {
    if (std::find(known.begin(), known.end(), t.element()) == known.end()) unknown = t.element();
  };
  walk(
      body,
      [&](const Expr& e) {
        if (!computes(e)) return true;
        look(e->dtype);
        for_each_child(*e, [&](const Expr& operand) { look(operand->dtype); });
        return !unknown;
      },
      [&](const Stmt&) { return !unknown; });
  return unknown;
}

}  // namespace

Result<CompiledObject> compile(const lowering::LoweredFunction& function, const Target& target,
                               const CodegenOptions& options) {
  TW_TRY(const CodeGenerator* found, generator(kind_of(target)));
  return found->compile(function, target, options);
}

Result<std::string> toolchain(const Target& target) {
  TW_TRY(const CodeGenerator* found, generator(kind_of(target)));
  return fmt::format("tilewright {}, {}", TILEWRIGHT_VERSION, found->version);
}

Status check_generated(const Function& function, const Target& target) {
  TW_TRY(const CodeGenerator* found, generator(kind_of(target)));
  std::optional<DType> unknown = unknown_dtype(function.body, found->dtypes);
  if (!unknown) return {};
  std::string known;
  for (DType t : found->dtypes) known += (known.empty() ? "" : ", ") + t.str();
  return refuse(Refusal(dtype_not_generated,
                        fmt::format("code for {} computes with {}, found {}", target.text(), known, unknown->str()))
                    .with_help("bfloat16 and float16 are the smallest floating types that every target computes with"));
}

Result<std::unique_ptr<LoadedCode>> load_objects(std::span<const std::string> objects) {
  TW_TRY(const CodeGenerator* found, generator("cpu"));
  return found->load_objects(objects);
}

}  // namespace tilewright::codegen
