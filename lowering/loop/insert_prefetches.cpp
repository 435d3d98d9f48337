// Annotation `prefetch` on a loop or block, rows [buffer name, distance, locality 0…3]: at the top of each iteration
// the cache lines are requested that the body will touch in that buffer `distance` iterations later. Runs after
// unrolling, so that an iteration's accesses are known; a line is requested once.
#include <fmt/format.h>

#include <set>

#include "ir/build.h"
#include "ir/rewrite.h"
#include "ir/simplify/analyzer.h"
#include "ir/visit.h"
#include "lowering/index.h"
#include "lowering/pass.h"

namespace tilewright::lowering {

namespace {

TW_REFUSAL_CODE(prefetch_malformed, "prefetch-malformed",
                "a prefetch annotation is not rows of buffer name, distance, locality");

constexpr int64_t kLine = 64;
constexpr size_t kMaxLines = 64;  // more requests than this are slower than the misses they hide

const Register<Operation> prefetch_op{"prefetch",
                                      "asks for the cache line of an address: address, 0 read or 1 write, locality 0…3",
                                      Operation{"prefetch", 1, 3, OpEffect::opaque, OpGroup::control}};

class InsertPrefetches : public Rewriter {
 public:
  std::optional<Refusal> refusal;
  using Rewriter::operator();
  Stmt operator()(const Stmt& s) override {
    Stmt mapped = Rewriter::operator()(s);
    const For* loop = as<For>(mapped);
    auto it = loop ? loop->annotations.find("prefetch") : AttrDict::const_iterator();
    if (!loop || it == loop->annotations.end()) return mapped;
    std::vector<Stmt> requests;
    const AttrList* rows = it->second.get<AttrList>();
    if (!rows) return bad(mapped, "expected a list");
    for (const Attr& item : *rows) {
      const AttrList* row = item.get<AttrList>();
      const std::string* name = row && row->size() == 3 ? (*row)[0].get<std::string>() : nullptr;
      const int64_t* distance = name ? (*row)[1].get<int64_t>() : nullptr;
      const int64_t* locality = name ? (*row)[2].get<int64_t>() : nullptr;
      if (!distance || !locality || *locality < 0 || *locality > 3)
        return bad(mapped, "expected [buffer name, distance, locality 0 to 3]");
      add(requests, *loop, *name, *distance, *locality);
    }
    auto copy = edit(*loop);
    copy->annotations.erase("prefetch");
    requests.push_back(loop->body);
    copy->body = make_seq(std::move(requests));
    return finish(std::move(copy));
  }

 private:
  Stmt bad(const Stmt& s, std::string why) {
    refusal = Refusal(prefetch_malformed, fmt::format("prefetch of loop {}: {}", as<For>(s)->var->name, why));
    return s;
  }

  // Accesses whose index uses inner loops are taken at their first iteration.
  void add(std::vector<Stmt>& out, const For& loop, const std::string& name, int64_t distance, int64_t locality) {
    std::vector<std::pair<Expr, bool>> places;  // first element, written
    Buffer buffer;
    VarMap inner;
    auto see = [&](const Buffer& b, const Expr& index, bool write) {
      if (b->name != name) return;
      buffer = b;
      places.emplace_back(substitute(lane_of(index, 0), inner), write);
    };
    walk(
        loop.body,
        [&](const Expr& e) {
          const Load* l = as<Load>(e);
          if (l && !l->indices.empty()) see(l->buffer, l->indices[0], false);
          return true;
        },
        [&](const Stmt& s) {
          if (const For* f = as<For>(s)) inner[f->var.get()] = f->min;
          const Store* st = as<Store>(s);
          if (st && !st->indices.empty()) see(st->buffer, st->indices[0], true);
          return true;
        });
    if (places.empty()) return;
    VarMap ahead{{loop.var.get(), Expr(loop.var) + distance}};
    Analyzer analyzer;
    // Rows of one buffer differ by constants; lines are counted from the first access of each row group.
    std::vector<std::pair<Expr, std::set<int64_t>>> groups;
    for (auto& [place, write] : places) {
      Expr at = substitute(place, ahead);
      bool known = false;
      for (auto& [base, lines] : groups) {
        std::optional<int64_t> d = const_int(analyzer.simplify(at - base));
        if (!d) continue;
        known = true;
        int64_t line = floor_div(*d * buffer->dtype.element_bytes(), kLine);
        if (lines.insert(line).second) request(out, buffer, at, write, locality);
        break;
      }
      if (known) continue;
      groups.push_back({at, {0}});
      request(out, buffer, at, write, locality);
    }
  }
  static void request(std::vector<Stmt>& out, const Buffer& b, const Expr& at, bool write, int64_t locality) {
    if (out.size() >= kMaxLines) return;
    Expr pointer = call(kHandle, operation("address_of"), {load(b, {at})});
    out.push_back(
        make_stmt<Evaluate>(call(kVoid, operation("prefetch"), {pointer, int_imm(write), int_imm(locality)})));
  }
};

const Register<Pass> pass{"insert_prefetches", "annotation prefetch becomes requests of cache lines",
                          Pass{Form::flat,
                               Form::flat,
                               {"unroll_loops"},
                               [](const FunctionRef& f, const PassContext&) -> Result<FunctionRef> {
                                 InsertPrefetches insert;
                                 Stmt body = insert(f->body);
                                 if (insert.refusal) return refuse(*insert.refusal);
                                 return with_body(*f, body);
                               },
                               Pass::For::cpu}};

}  // namespace

}  // namespace tilewright::lowering
