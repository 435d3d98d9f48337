// The LLVM-free half of code generation: finds the generator in the component.
#include "codegen/codegen.h"

#include "support/component.h"

namespace tilewright::codegen {

namespace {

Result<const CodeGenerator*> generator(const char* kind) {
  TW_TRY_VOID(open_component("codegen"));
  if (const CodeGenerator* found = Registry<CodeGenerator>::instance().find(kind)) return found;
  return refuse(code_generator_missing, std::string("no code generator is registered for ") + kind);
}

}  // namespace

Result<CompiledObject> compile(const lowering::LoweredFunction& function, const Target& target,
                               const CodegenOptions& options) {
  TW_TRY(const CodeGenerator* found, generator(target.is_cpu() ? "cpu" : "cuda"));
  return found->compile(function, target, options);
}

Result<std::unique_ptr<LoadedCode>> load_objects(std::span<const std::string> objects) {
  TW_TRY(const CodeGenerator* found, generator("cpu"));
  return found->load_objects(objects);
}

}  // namespace tilewright::codegen
