// Blocks vanish; the annotations that later passes read become attributes of the statement below.
#include <fmt/format.h>

#include "ir/build.h"
#include "ir/rewrite.h"
#include "lowering/pass.h"

namespace tilewright::lowering {

namespace {

TW_REFUSAL_CODE(annotation_not_on_target, "annotation-not-on-target",
                "an annotation asks for something that this kind of target does not have");

// Annotations of a block that act on the code below it.
bool acts_below(const std::string& key) {
  return key.starts_with("pragma_") || key == "nontemporal" || key == "fast_math" || key == "reassociate" ||
         key == "excess_precision";
}
// "tilewright.reassociate" is written "reassociate" from here on.
std::string plain(const std::string& key) {
  constexpr std::string_view prefix = "tilewright.";
  if (!key.starts_with(prefix)) return key;
  std::string rest = key.substr(prefix.size());
  return acts_below(rest) ? rest : key;
}
// Annotations that only a GPU realises.
bool gpu_only(const std::string& key) {
  return key.starts_with("tilewright.") || key.starts_with("software_pipeline") || key == "auto_copy" ||
         key == "double_buffer_scope" || key == "warp_execution";
}

class DropBlocks : public Rewriter {
 public:
  explicit DropBlocks(bool cpu) : cpu_(cpu) {}
  std::optional<Refusal> refusal;
  using Rewriter::operator();
  Stmt operator()(const Stmt& s) override {
    Stmt mapped = Rewriter::operator()(s);
    if (const For* loop = as<For>(mapped)) {
      check(loop->annotations);
      return mapped;
    }
    const Block* block = as<Block>(mapped);
    if (!block) return mapped;
    check(block->annotations);
    Stmt body = block->body;
    for (auto it = block->annotations.rbegin(); it != block->annotations.rend(); ++it) {
      if (!acts_below(plain(it->first))) continue;
      body = make_stmt<AttrStmt>(Expr(), plain(it->first), value_of(it->second), body);
    }
    return body;
  }

 private:
  static Expr value_of(const Attr& a) {
    if (const int64_t* i = a.get<int64_t>()) return int_imm(*i, kInt64);
    if (const bool* b = a.get<bool>()) return int_imm(*b, kInt64);
    if (const std::string* text = a.get<std::string>()) return make<StringImm>(kHandle, *text);
    if (const Expr* e = a.get<Expr>()) return *e;
    return int_imm(1, kInt64);
  }
  void check(const AttrDict& annotations) {
    for (const auto& [key, value] : annotations)
      if (cpu_ && gpu_only(plain(key)))
        refusal = Refusal(annotation_not_on_target, fmt::format("annotation \"{}\" has no meaning on a CPU", key));
  }
  bool cpu_;
};

const Register<Pass> pass{"drop_blocks", "blocks vanish, their annotations become attributes of the statement below",
                          Pass{Form::opened,
                               Form::loops,
                               {},
                               [](const FunctionRef& f, const PassContext& context) -> Result<FunctionRef> {
                                 DropBlocks drop(context.target.is_cpu());
                                 Stmt body = drop(f->body);
                                 if (drop.refusal) return refuse(*drop.refusal);
                                 auto native = std::make_unique<Function>(*f);
                                 native->body = body;
                                 native->schedulable =
                                     false;  // no blocks: from here on the text is that of a native function
                                 return FunctionRef(native.release());
                               },
                               Pass::For::any,
                               true}};

}  // namespace

}  // namespace tilewright::lowering
