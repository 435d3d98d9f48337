// Programs and drivers for tests of lowering and code generation: builds, compiles, runs, compares with the
// interpreter.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "ir/build.h"
#include "ir/interpret/interpret.h"

namespace tilewright::test {

inline Var var(const char* name) { return make_var(name); }
inline Stmt store(const Buffer& b, std::vector<Expr> i, Expr v) {
  return make_stmt<Store>(b, std::move(i), std::move(v));
}
inline Stmt loop(const Var& v, Expr extent, Stmt body, ForKind kind = ForKind::serial, AttrDict annotations = {}) {
  return make_stmt<For>(v, int_imm(0), std::move(extent), Expr(), kind, std::string(), std::move(annotations),
                        std::move(body));
}
inline Stmt loop(const Var& v, int64_t extent, Stmt body, ForKind kind = ForKind::serial, AttrDict annotations = {}) {
  return loop(v, int_imm(extent), std::move(body), kind, std::move(annotations));
}
inline std::vector<Expr> shape(std::vector<int64_t> extents) {
  std::vector<Expr> out;
  for (int64_t e : extents) out.push_back(int_imm(e));
  return out;
}
inline Buffer buffer(const char* name, std::vector<int64_t> extents, DType t = kFloat32) {
  return make_buffer(name, t, shape(std::move(extents)));
}

struct BlockIter {
  Var var;
  int64_t extent;
  Expr binding;
  IterType type = IterType::spatial;
};
inline Stmt block(const char* name, std::vector<BlockIter> iters, std::vector<BufferRegion> reads,
                  std::vector<BufferRegion> writes, Stmt body, Stmt init = {}, Expr predicate = {},
                  AttrDict annotations = {}) {
  std::vector<Iter> list;
  for (BlockIter& i : iters) list.push_back({i.var, {int_imm(0), int_imm(i.extent)}, i.type, i.binding});
  return make_stmt<Block>(std::string(name), std::move(list), std::move(predicate), std::move(reads), std::move(writes),
                          std::vector<Buffer>(), std::vector<MatchBuffer>(), std::move(annotations), std::move(init),
                          std::move(body));
}
/// The region of one element.
inline BufferRegion at(const Buffer& b, std::vector<Expr> indices) {
  BufferRegion r{b, {}};
  for (Expr& e : indices) r.region.push_back({e, int_imm(1, e->dtype)});
  return r;
}
inline Stmt root(Stmt body, std::vector<Buffer> allocs = {}) {
  return make_stmt<Block>(std::string("root"), std::vector<Iter>(), Expr(), std::vector<BufferRegion>(),
                          std::vector<BufferRegion>(), std::move(allocs), std::vector<MatchBuffer>(), AttrDict(),
                          Stmt(), std::move(body));
}
inline FunctionRef function(const char* name, std::vector<Buffer> params, Stmt body) {
  auto f = std::make_unique<Function>();
  f->name = name;
  for (const Buffer& b : params) f->params.push_back({b->data, b, false});
  f->schedulable = as<Block>(body) != nullptr;
  f->body = std::move(body);
  return FunctionRef(f.release());
}

template <class T>
T take(Result<T> r) {
  if (r) return std::move(*r);
  throw InternalError(render_text(r.error().diagnostic()));
}

struct Aligned {
  explicit Aligned(size_t bytes)
      : data(static_cast<char*>(std::aligned_alloc(64, (bytes + 127) / 64 * 64)), &std::free) {}
  std::unique_ptr<char, decltype(&std::free)> data;
};

/// Lowered and compiled code with its loader.
struct Compiled {
  lowering::LoweredFunction lowered;
  codegen::CompiledObject object;
  std::unique_ptr<codegen::LoadedCode> code;

  void run(std::vector<Tensor>& args, const tw_host* host = nullptr) const {
    std::vector<Aligned> storage;
    std::vector<void*> pointers;
    std::vector<int64_t> scalars;
    for (size_t i = 0; i < args.size(); ++i) {
      if (!lowered.function->params[i].buffer) {
        scalars.push_back(args[i].get_int(0));
        continue;
      }
      storage.emplace_back(args[i].bytes.size());
      std::memcpy(storage.back().data.get(), args[i].bytes.data(), args[i].bytes.size());
      pointers.push_back(storage.back().data.get());
    }
    Aligned workspace(static_cast<size_t>(object.workspace_size(host ? static_cast<int>(host->workers) : 1)));
    tw_host mine = host ? *host : tw_host{TW_HOST_ABI, 1, nullptr, nullptr, nullptr};
    mine.workspace = workspace.data.get();
    tw_entry entry = code->entry(object.entry);
    ASSERT_NE(entry, nullptr);
    ASSERT_EQ(entry(pointers.data(), scalars.data(), &mine), 0);
    size_t next = 0;
    for (size_t i = 0; i < args.size(); ++i)
      if (lowered.function->params[i].buffer)
        std::memcpy(args[i].bytes.data(), storage[next++].data.get(), args[i].bytes.size());
  }
};

inline Target target(const char* text = "native") { return take(parse_target(text)); }

inline Compiled compile(const Function& f, const lowering::LowerOptions& options = {}, const Target& t = target()) {
  Compiled c;
  c.lowered = take(lowering::lower(f, t, options));
  c.object = take(codegen::compile(c.lowered, t));
  std::string objects[] = {c.object.object};
  c.code = take(codegen::load_objects(objects));
  return c;
}

inline lowering::LowerOptions strict() {
  lowering::LowerOptions o;
  o.fp_contract = false;
  return o;
}

/// Bit-equal to the interpreter in strict mode, close to it with contraction.
inline void expect_same_as_interpreter(const Function& f, InputSet set = InputSet::random, uint64_t seed = 7) {
  std::vector<Tensor> expected = make_arguments(f, set, seed), exact = expected, fused = expected;
  Result<InterpretStats> ran = interpret(f, expected);
  ASSERT_TRUE(ran) << render_text(ran.error().diagnostic());
  compile(f, strict()).run(exact);
  compile(f).run(fused);
  for (size_t i = 0; i < expected.size(); ++i) {
    Status same = expect_equal(expected[i], exact[i]);
    EXPECT_TRUE(same) << "argument " << i << ": " << render_text(same.error().diagnostic());
    if (!expected[i].dtype.is_float()) continue;
    Status near = expect_close(expected[i], fused[i], 1e-4, 1e-3);
    EXPECT_TRUE(near) << "argument " << i << ": " << render_text(near.error().diagnostic());
  }
}

}  // namespace tilewright::test
