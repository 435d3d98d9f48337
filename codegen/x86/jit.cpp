// Loads object bytes into this process by JITLink: the very bytes that would be linked into a shared object.
#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>

#include "codegen/x86/x86.h"

namespace tilewright::codegen {

namespace {

class JitCode : public LoadedCode {
 public:
  explicit JitCode(std::unique_ptr<llvm::orc::LLJIT> jit) : jit_(std::move(jit)) {}
  void* symbol(const std::string& name) const override {
    auto found = jit_->lookup(name);
    if (!found) {
      llvm::consumeError(found.takeError());
      return nullptr;
    }
    return found->toPtr<void*>();
  }

 private:
  std::unique_ptr<llvm::orc::LLJIT> jit_;
};

}  // namespace

Result<std::unique_ptr<LoadedCode>> load_objects_jit(std::span<const std::string> objects) {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  auto failed = [](llvm::Error error) { return refuse(load_failed, llvm::toString(std::move(error))); };
  auto machine = llvm::orc::JITTargetMachineBuilder(llvm::Triple("x86_64-unknown-linux-gnu"));
  auto jit = llvm::orc::LLJITBuilder()
                 .setJITTargetMachineBuilder(std::move(machine))
                 .setObjectLinkingLayerCreator([](llvm::orc::ExecutionSession& session) {
                   return std::make_unique<llvm::orc::ObjectLinkingLayer>(session);
                 })
                 .create();
  if (!jit) return failed(jit.takeError());
  auto process =
      llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess((*jit)->getDataLayout().getGlobalPrefix());
  if (!process) return failed(process.takeError());
  (*jit)->getMainJITDylib().addGenerator(std::move(*process));
  for (const std::string& object : objects)
    if (auto error = (*jit)->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(object)))
      return failed(std::move(error));
  return std::make_unique<JitCode>(std::move(*jit));
}

}  // namespace tilewright::codegen
