// LLVM passes, object file, report: what `compile` of the CPU does. Pass list: lowering.md §2.3.
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopUnrollPass.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Vectorize/LoopVectorize.h>
#include <llvm/Transforms/Vectorize/SLPVectorizer.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "codegen/x86/emitter.h"
#include "codegen/x86/x86.h"

namespace tilewright::codegen {

namespace {

void initialise_llvm() {
  static const bool once = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    return true;
  }();
  (void)once;
}

std::unique_ptr<llvm::TargetMachine> make_machine(const Target& target, bool contract) {
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, error);
  TW_CHECK(found, "LLVM has no x86-64: {}", error);
  llvm::TargetOptions options;
  // The `contract` flag on each operation decides, in both settings.
  options.AllowFPOpFusion = contract ? llvm::FPOpFusion::Standard : llvm::FPOpFusion::Strict;
  std::string features;
  for (const std::string& word : target.features) features += (features.empty() ? "+" : ",+") + word;
  return std::unique_ptr<llvm::TargetMachine>(found->createTargetMachine(
      triple, target.arch, features, options, llvm::Reloc::PIC_, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

// Straight-line code of thousands of statements costs the SLP vectorizer minutes.
constexpr size_t kSlpBlock = 4096;

size_t largest_block(const llvm::Module& module) {
  size_t most = 0;
  for (const llvm::Function& f : module)
    for (const llvm::BasicBlock& b : f) most = std::max(most, b.size());
  return most;
}

// Free nests get LLVM's vectorizers and unroller; scheduled nests carry metadata that turns them off.
void run_passes(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::FunctionPassManager passes;
  auto licm = [&] {
    llvm::LoopPassManager loop_passes;
    loop_passes.addPass(llvm::LICMPass(llvm::LICMOptions()));
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loop_passes), /*UseMemorySSA=*/true));
  };
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  licm();
  passes.addPass(llvm::GVNPass());
  passes.addPass(llvm::InstCombinePass());
  bool free_nest = std::any_of(module.begin(), module.end(), [](const llvm::Function& f) {
    return std::any_of(f.begin(), f.end(), [](const llvm::BasicBlock& b) {
      const llvm::Instruction* end = b.getTerminator();
      return end && llvm::isa<llvm::BranchInst>(end) && llvm::cast<llvm::BranchInst>(end)->isConditional() &&
             !end->getMetadata(llvm::LLVMContext::MD_loop);
    });
  });
  if (free_nest) {
    passes.addPass(llvm::LoopVectorizePass());
    if (largest_block(module) <= kSlpBlock) passes.addPass(llvm::SLPVectorizerPass());
    passes.addPass(llvm::LoopUnrollPass(llvm::LoopUnrollOptions(2)));
    passes.addPass(llvm::InstCombinePass());
  }
  passes.addPass(llvm::SimplifyCFGPass());
  for (llvm::Function& f : module)
    if (!f.isDeclaration()) passes.run(f, functions);
}

std::string print_module(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, nullptr);
  return text;
}

std::string emit_file(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> buffer;
  llvm::raw_svector_ostream out(buffer);
  llvm::legacy::PassManager passes;
  TW_CHECK(!machine.addPassesToEmitFile(passes, out, nullptr, type), "LLVM cannot emit this kind of file");
  passes.run(module);
  return {buffer.begin(), buffer.end()};
}

// Functions that artifacts may leave to the process that loads them.
const std::set<std::string, std::less<>>& allowed_symbols() {
  static const std::set<std::string, std::less<>> names = [] {
    std::set<std::string, std::less<>> all{"memcpy", "memset", "memmove", "fmaf", "fma"};
    for (const char* f : {"exp",   "exp2",  "exp10", "log",   "log2", "log10", "log1p",     "pow",  "tanh",
                          "erf",   "sin",   "cos",   "tan",   "sinh", "cosh",  "asin",      "acos", "atan",
                          "atan2", "asinh", "acosh", "atanh", "fmod", "hypot", "nextafter", "ldexp"}) {
      all.insert(f);
      all.insert(std::string(f) + "f");
    }
    return all;
  }();
  return names;
}

Status inspect_object(const std::string& object, CodegenReport& report) {
  llvm::MemoryBufferRef buffer(object, "object");
  auto file = llvm::object::ObjectFile::createObjectFile(buffer);
  TW_CHECK(static_cast<bool>(file), "LLVM wrote an object that it cannot read");
  for (const llvm::object::SectionRef& section : (*file)->sections())
    if (section.isText()) report.code_bytes += static_cast<int64_t>(section.getSize());
  for (const llvm::object::SymbolRef& symbol : (*file)->symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    if (!flags || !name || !(*flags & llvm::object::SymbolRef::SF_Undefined) || name->empty()) continue;
    report.symbols.push_back(name->str());
  }
  std::sort(report.symbols.begin(), report.symbols.end());
  for (const std::string& s : report.symbols)
    if (!allowed_symbols().contains(s)) return refuse(undefined_symbol, "generated code refers to \"" + s + "\"");
  return {};
}

double ms_since(std::chrono::steady_clock::time_point& start) {
  auto now = std::chrono::steady_clock::now();
  double ms = std::chrono::duration<double, std::milli>(now - start).count();
  start = now;
  return ms;
}

Result<CompiledObject> compile_x86(const lowering::LoweredFunction& lowered, const Target& target,
                                   const CodegenOptions& options) {
  initialise_llvm();
  auto clock = std::chrono::steady_clock::now();
  std::unique_ptr<llvm::TargetMachine> machine = make_machine(target, lowered.options.fp_contract);
  llvm::LLVMContext context;
  llvm::Module module(lowered.function->name, context);
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());
  CompiledObject out;
  out.entry = lowered.function->name;
  out.workspace_bytes = lowered.workspace_bytes;
  out.workspace_slice_bytes = lowered.workspace_slice_bytes;

  Emitter emitter(module, lowered, target);
  TW_TRY_VOID(emitter.run());
  out.report.notes = std::move(emitter.notes);
  if (options.keep_llvm_ir_raw) out.llvm_ir_raw = print_module(module);
  std::string problem;
  llvm::raw_string_ostream problem_out(problem);
  if (llvm::verifyModule(module, &problem_out)) return refuse(codegen_failed, "LLVM's verifier: " + problem);
  out.report.emit_ms = ms_since(clock);

  run_passes(module, *machine);
  out.report.optimise_ms = ms_since(clock);
  if (options.keep_llvm_ir) out.llvm_ir = print_module(module);
  if (options.keep_assembly) {
    std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
    out.assembly = emit_file(*copy, *machine, llvm::CodeGenFileType::AssemblyFile);
  }
  clock = std::chrono::steady_clock::now();
  out.object = emit_file(module, *machine, llvm::CodeGenFileType::ObjectFile);
  out.report.machine_ms = ms_since(clock);
  TW_TRY_VOID(inspect_object(out.object, out.report));
  return out;
}

/// Float8 and float4 have no conversions here (emit_expr.cpp, to_float32).
std::vector<DType> computed_dtypes() {
  std::vector<DType> types{kBool};
  for (TypeCode code : {TypeCode::integer, TypeCode::unsigned_integer})
    for (uint8_t bits : {8, 16, 32, 64}) types.push_back({code, bits, 1});
  types.insert(types.end(), {kFloat16, kBFloat16, kFloat32, kFloat64});
  return types;
}

const Register<CodeGenerator> cpu{
    "cpu", "x86-64 through LLVM",
    CodeGenerator{computed_dtypes(), "LLVM " LLVM_VERSION_STRING, compile_x86, load_objects_jit}};

}  // namespace

}  // namespace tilewright::codegen
