// Code generation, seen from outside: lowered functions to relocatable objects, shared libraries and loaded code. LLVM
// is in libtilewright-codegen.so, which is opened on first use; this header and codegen.cpp know nothing of it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "codegen/host.h"
#include "lowering/pipeline.h"

namespace tilewright::codegen {

TW_REFUSAL_CODE(code_generator_missing, "code-generator-missing",
                "no code generator is registered for this kind of target");
TW_REFUSAL_CODE(dtype_not_generated, "dtype-not-generated",
                "the code generator of the target does not compute with this element type");
TW_REFUSAL_CODE(codegen_unsupported, "codegen-unsupported",
                "the lowered program holds a construct that has no machine form here");
TW_REFUSAL_CODE(codegen_failed, "codegen-failed", "LLVM rejected the generated module");
TW_REFUSAL_CODE(undefined_symbol, "undefined-symbol", "generated code refers to a function that artifacts may not use");
TW_REFUSAL_CODE(linker_missing, "linker-missing", "no linker was found to make a shared object");
TW_REFUSAL_CODE(link_failed, "link-failed", "the linker failed");
TW_REFUSAL_CODE(load_failed, "load-failed", "generated code could not be loaded into this process");

struct CodegenOptions {
  bool keep_llvm_ir = false;      ///< CompiledObject::llvm_ir, after optimisation
  bool keep_llvm_ir_raw = false;  ///< CompiledObject::llvm_ir_raw, as emitted
  bool keep_assembly = false;     ///< CompiledObject::assembly
};

struct CodegenReport {
  double emit_ms = 0, optimise_ms = 0, machine_ms = 0;
  int64_t code_bytes = 0;            ///< of .text
  std::vector<std::string> symbols;  ///< undefined ones ("memcpy", "powf", …)
  std::vector<std::string> notes;
};

struct CompiledObject {
  std::string entry;   ///< symbol of the function (codegen/host.h)
  std::string object;  ///< relocatable ELF, position independent
  std::string llvm_ir, llvm_ir_raw, assembly;
  int64_t workspace_bytes = 0, workspace_slice_bytes = 0;
  CodegenReport report;

  int64_t workspace_size(int workers) const { return workspace_bytes + workers * workspace_slice_bytes; }
};

/// Code that runs in this process until the object goes.
class LoadedCode {
 public:
  virtual ~LoadedCode() = default;
  /// Null if there is no such symbol.
  virtual void* symbol(const std::string& name) const = 0;
  tw_entry entry(const std::string& name) const { return reinterpret_cast<tw_entry>(symbol(name)); }
};

Result<CompiledObject> compile(const lowering::LoweredFunction&, const Target&, const CodegenOptions& = {});

/// Name and versions of what builds for a target, as results depend on them: "tilewright 0.1.0, LLVM 22.1.8".
Result<std::string> toolchain(const Target&);

/// Whether code can be generated for what `function` computes with, before anything is lowered or built. Refused with
/// what can be: no generator for this kind of target, or an element type that its generator only moves.
Status check_generated(const Function& function, const Target&);

/// Objects → bytes of one shared object. Linker: $TILEWRIGHT_LINKER, else ld.lld, mold, ld from PATH (posix_spawn).
Result<std::string> link_shared(std::span<const std::string> objects);
/// dlopen of a shared object's bytes through a memory file.
Result<std::unique_ptr<LoadedCode>> load_shared(const std::string& bytes);
/// The same object bytes loaded by LLVM's JITLink: where no linker is installed, in tests, for use in process.
Result<std::unique_ptr<LoadedCode>> load_objects(std::span<const std::string> objects);

/// What the component registers, by kind of target ("cpu", "cuda").
struct CodeGenerator {
  static constexpr const char* registry_name = "code generator";
  std::vector<DType> dtypes;  ///< that it computes with; others can only be copied
  std::string version;        ///< of what it is made of: "LLVM 22.1.8"
  std::function<Result<CompiledObject>(const lowering::LoweredFunction&, const Target&, const CodegenOptions&)> compile;
  std::function<Result<std::unique_ptr<LoadedCode>>(std::span<const std::string>)> load_objects;  ///< CPU only
};

}  // namespace tilewright::codegen
