#include "ir/print.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/build.h"
#include "ir/equal.h"
#include "ir/print_expr.h"
#include "ir/text_codes.h"
#include "ir/visit.h"

namespace tilewright {

namespace {

class Printer : public text::ExprPrinter {
 public:
  Printer(PrintOptions options, std::vector<std::pair<const void*, TextRange>>* places) : ExprPrinter(options) {
    places_ = places;
  }

  void program(const Program& p) {
    if (options_.header) {
      fmt::format_to(to(),
                     "# from tvm.script import ir as I\n# from tvm.script import {} as T\n\n@I.ir_module\nclass {}:\n",
                     classic() ? "tir" : "tirx", p.name);
      ++depth_;
      if (!p.attrs.empty()) {
        begin();
        out_ += "I.module_attrs(";
        dict(p.attrs);
        end(nullptr, ")");
      }
      if (p.functions.empty() && p.attrs.empty()) line("pass");
    }
    for (size_t i = 0; i < p.functions.size(); ++i) {
      if (i) out_ += '\n';
      function(*p.functions[i]);
      names_ = {};
    }
    depth_ = 0;
  }

  void function(const Function& f) {
    begin();
    out_ += "@T.prim_func";
    std::vector<const char*> marks;
    if (f.is_private) marks.push_back("private=True");
    if (f.schedulable && !classic()) marks.push_back("s_tir=True");
    if (f.attrs.contains("persistent")) marks.push_back("persistent=True");
    if (!marks.empty()) fmt::format_to(to(), "({})", fmt::join(marks, ", "));
    out_ += '\n';
    size_t names = names_.mark();
    signature(f);
    ++depth_;
    AttrDict attrs = f.attrs;
    attrs.erase("persistent");
    if (auto it = attrs.find("tirx.noalias"); classic() && it != attrs.end()) {
      attrs["tir.noalias"] = it->second;
      attrs.erase("tirx.noalias");
    }
    if (!attrs.empty()) {
      begin();
      out_ += "T.func_attr(";
      dict(attrs);
      end(nullptr, ")");
    }
    for (const Var& v : symbolic_) {
      begin();
      fmt::format_to(to(), "{} = T.{}()", name_of(v.get()), v->dtype.str());
      end(v.get());
    }
    for (const Param& p : f.params)
      if (p.buffer && by_handle(p, f)) {
        begin();
        std::string handle = name_of(p.var.get());
        define(p.buffer);
        fmt::format_to(to(), "{} = T.match_buffer({}, ", name_of(p.buffer), handle);
        buffer_arguments(p.buffer, true);
        end(p.buffer.get(), ")");
      }
    const Block* root = f.schedulable ? f.root() : nullptr;
    schedulable_ = f.schedulable;
    if (root)
      root_block(*root, f.body);
    else
      statements(f.body);
    --depth_;
    names_.release(names);
  }

  /// The statements of a sequence at the current depth.
  void statements(const Stmt& s) {
    const Seq* seq = as<Seq>(s);
    size_t names = names_.mark();
    if (!seq)
      statement(s, true);
    else
      for (size_t i = 0; i < seq->stmts.size(); ++i) statement(seq->stmts[i], i + 1 == seq->stmts.size());
    names_.release(names);
  }

 private:
  bool classic() const { return options_.dialect == Dialect::classic; }
  std::back_insert_iterator<std::string> to() { return std::back_inserter(out_); }
  const char* block_word() const { return classic() ? "block" : "sblock"; }

  void begin() {
    out_.append(static_cast<size_t>(depth_) * 4, ' ');
    line_begin_ = out_.size();
  }
  void end(const void* node, std::string_view tail = "") {
    out_ += tail;
    if (node) place(node, line_begin_);
    out_ += '\n';
  }
  void line(std::string_view s) {
    begin();
    end(nullptr, s);
  }
  void nested(const Stmt& s) {
    ++depth_;
    statements(s);
    --depth_;
  }

  // --- functions

  /// Buffers whose shape names symbolic extents are declared inside the function, after those.
  bool by_handle(const Param& p, const Function& f) {
    if (p.by_handle) return true;
    auto foreign = [&](const VarNode* v) {
      return std::ranges::none_of(f.params, [&](const Param& q) { return !q.buffer && q.var.get() == v; });
    };
    auto uses = [&](const Expr& e) { return uses_any(e, foreign); };
    return std::ranges::any_of(p.buffer->shape, uses) || std::ranges::any_of(p.buffer->strides, uses) ||
           uses(p.buffer->elem_offset);
  }

  void signature(const Function& f) {
    symbolic_ = f.symbolic;
    for (const Param& p : f.params)
      if (!p.buffer) names_.define(p.var->id, p.var->name);
    for (const Param& p : f.params) {
      if (!p.buffer) continue;
      auto collect = [&](const Expr& e) {
        if (!e) return;
        for (const Var& v : vars_of(e)) {
          auto same_var = [&](const Var& x) { return x.get() == v.get(); };
          if (std::ranges::any_of(f.params, [&](const Param& q) { return q.var.get() == v.get(); })) continue;
          if (std::ranges::none_of(symbolic_, same_var)) symbolic_.push_back(v);
        }
      };
      std::ranges::for_each(p.buffer->shape, collect);
      std::ranges::for_each(p.buffer->strides, collect);
      collect(p.buffer->elem_offset);
    }
    begin();
    fmt::format_to(to(), "def {}(", f.name);
    for (size_t i = 0; i < f.params.size(); ++i) {
      const Param& p = f.params[i];
      if (i) out_ += ", ";
      if (p.buffer && !by_handle(p, f)) {
        define(p.buffer);
        size_t at = out_.size();
        fmt::format_to(to(), "{}: T.Buffer(", name_of(p.buffer));
        buffer_arguments(p.buffer, true);
        out_ += ')';
        place(p.buffer.get(), at);
      } else {
        if (p.buffer) names_.define(p.var->id, p.var->name);
        fmt::format_to(to(), "{}: T.{}", name_of(p.var.get()), p.var->dtype.str());
      }
    }
    out_ += ')';
    if (!f.return_type.is_void()) fmt::format_to(to(), " -> T.{}", f.return_type.str());
    end(&f, ":");
    for (const Var& v : symbolic_) names_.define(v->id, v->name);
  }

  void root_block(const Block& root, const Stmt& s) {
    const Block* only = as<Block>(root.body);
    bool plain = root.name == "root" && root.iters.empty() && !root.predicate && !root.init && root.reads.empty() &&
                 root.writes.empty() && root.matches.empty() && root.annotations.empty() &&
                 !(only && only->iters.empty());
    if (!plain) return block(root, s);
    begin();
    fmt::format_to(to(), "# with T.{}(\"root\"):", block_word());
    end(&root);
    for (const Buffer& b : root.allocs) block_alloc(b);
    statements(root.body);
  }

  // --- buffers

  /// Extents over variables without a name yet are strings, which declare them.
  void extents(const std::vector<Expr>& items) {
    out_ += '(';
    for (size_t i = 0; i < items.size(); ++i) {
      if (i) out_ += ", ";
      extent(items[i]);
    }
    out_ += items.size() == 1 ? ",)" : ")";
  }
  void extent(const Expr& e) {
    bool unknown = uses_any(e, [&](const VarNode* v) { return !names_.find(v->id); });
    if (unknown) out_ += '"';
    expr(e);
    if (unknown) out_ += '"';
  }

  /// shape, "dtype", then the keywords that differ from the defaults.
  void buffer_arguments(const Buffer& b, bool dtype, std::string_view default_scope = "global") {
    extents(b->shape);
    if (dtype) fmt::format_to(to(), ", \"{}\"", b->dtype.str());
    const std::string* data = b->data ? names_.find(b->data->id) : nullptr;
    if (data && *data != name_of(b) + ".data") fmt::format_to(to(), ", data={}", *data);
    if (!b->strides.empty()) {
      out_ += ", strides=";
      extents(b->strides);
    }
    if (b->elem_offset) {
      out_ += ", elem_offset=";
      extent(b->elem_offset);
    }
    if (b->scope != default_scope) {
      out_ += ", scope=";
      quoted(b->scope);
    }
    if (b->align != 64) fmt::format_to(to(), ", align={}", b->align);
    if (b->offset_factor != 0) fmt::format_to(to(), ", offset_factor={}", b->offset_factor);
  }

  void block_alloc(const Buffer& b) {
    begin();
    define(b);
    fmt::format_to(to(), "{} = T.{}(", name_of(b), classic() ? "alloc_buffer" : "sblock_alloc_buffer");
    buffer_arguments(b, true);
    end(b.get(), ")");
  }

  // --- statements

  /// `last`: nothing follows in the sequence, so that a statement that encloses the rest needs no `with`.
  void statement(const Stmt& s, bool last) {
    switch (s->kind) {
      case StmtKind::kStore: {
        const Store* store = as<Store>(s);
        begin();
        out_ += name_of(store->buffer);
        indices(store->indices);
        out_ += " = ";
        expr(store->value);
        return end(s.get());
      }
      case StmtKind::kSeq:
        return statements(s);
      case StmtKind::kFor:
        return loops(s);
      case StmtKind::kBlock:
        return block(*as<Block>(s), s);
      case StmtKind::kIf:
        return conditional(*as<If>(s), "if ");
      case StmtKind::kWhile:
        begin();
        out_ += "while ";
        expr(as<While>(s)->condition);
        end(s.get(), ":");
        return nested(as<While>(s)->body);
      case StmtKind::kBind:
        return bind(*as<Bind>(s), last);
      case StmtKind::kEvaluate:
        return evaluate(*as<Evaluate>(s));
      case StmtKind::kAssert:
        begin();
        out_ += "assert ";
        expr(as<Assert>(s)->condition);
        out_ += ", ";
        quoted(as<Assert>(s)->message);
        return end(s.get());
      case StmtKind::kAttrStmt:
        return attribute(*as<AttrStmt>(s), last);
      case StmtKind::kAllocate:
        return allocate(s.get(), as<Allocate>(s)->buffer, as<Allocate>(s)->annotations, as<Allocate>(s)->body, false,
                        last);
      case StmtKind::kDeclBuffer:
        return allocate(s.get(), as<DeclBuffer>(s)->buffer, {}, as<DeclBuffer>(s)->body, true, last);
      case StmtKind::kBreak:
        begin();
        return end(s.get(), "break");
      case StmtKind::kContinue:
        begin();
        return end(s.get(), "continue");
      case StmtKind::kReturn:
        begin();
        out_ += "return";
        if (as<Return>(s)->value) {
          out_ += ' ';
          expr(as<Return>(s)->value);
        }
        return end(s.get());
    }
  }

  static bool is_plain(const For& loop) {
    return loop.loop_kind == ForKind::serial && is_const(loop.min, 0) && !loop.step && loop.annotations.empty();
  }

  void loops(const Stmt& first) {
    std::vector<const For*> nest{as<For>(first)};
    auto inner_of_nest = [&](const VarNode* v) {
      return std::ranges::any_of(nest, [&](const For* l) { return l->var.get() == v; });
    };
    if (is_plain(*nest[0]))
      for (const For* next = as<For>(nest[0]->body); next && is_plain(*next) && !uses_any(next->extent, inner_of_nest);
           next = as<For>(next->body))
        nest.push_back(next);
    size_t names = names_.mark();
    begin();
    out_ += "for ";
    for (size_t i = 0; i < nest.size(); ++i) {
      if (i) out_ += ", ";
      size_t at = out_.size();
      out_ += names_.define(nest[i]->var->id, nest[i]->var->name);
      place(nest[i]->var.get(), at);
      ranges_[nest[i]->var.get()] = {nest[i]->min, nest[i]->extent};
    }
    out_ += " in ";
    if (nest.size() > 1) {
      out_ += "T.grid(";
      for (size_t i = 0; i < nest.size(); ++i) {
        if (i) out_ += ", ";
        expr(nest[i]->extent);
      }
      out_ += ')';
    } else {
      loop_header(*nest[0]);
    }
    out_ += ':';
    for (const For* l : nest) place(l, line_begin_);
    out_ += '\n';
    nested(nest.back()->body);
    names_.release(names);
  }

  void loop_header(const For& l) {
    bool plain = l.loop_kind == ForKind::serial && l.annotations.empty();
    const char* word = plain                                ? "range"
                       : l.loop_kind == ForKind::serial     ? "T.serial"
                       : l.loop_kind == ForKind::parallel   ? "T.parallel"
                       : l.loop_kind == ForKind::vectorized ? "T.vectorized"
                       : l.loop_kind == ForKind::unrolled   ? "T.unroll"
                                                            : "T.thread_binding";
    fmt::format_to(to(), "{}(", word);
    Range range{l.min, l.extent};
    if (!is_const(l.min, 0) || (l.step && plain)) {
      expr(l.min);
      out_ += ", ";
    }
    end_of(range);
    if (l.loop_kind == ForKind::thread_binding) fmt::format_to(to(), ", thread=\"{}\"", l.thread);
    if (!l.annotations.empty()) {
      out_ += ", annotations=";
      dict(l.annotations);
    }
    if (l.step) {
      out_ += plain ? ", " : ", step=";
      expr(l.step);
    }
    out_ += ')';
  }

  void conditional(const If& s, const char* word) {
    begin();
    out_ += word;
    expr(s.condition);
    end(&s, ":");
    nested(s.then_body);
    if (!s.else_body) return;
    if (const If* chained = as<If>(s.else_body)) return conditional(*chained, "elif ");
    line("else:");
    nested(s.else_body);
  }

  void bind(const Bind& s, bool last) {
    begin();
    if (last && !(classic() && !schedulable_)) {
      const std::string& name = names_.define(s.var->id, s.var->name);
      std::string type = classic() ? "T." + s.var->dtype.str() : fmt::format("T.let[T.{}]", s.var->dtype.str());
      fmt::format_to(to(), "{}: {} = ", name, type);
      expr(s.value);
      end(&s);
      return statements(s.body);
    }
    size_t names = names_.mark();
    out_ += "with T.LetStmt(";
    expr(s.value);
    fmt::format_to(to(), ") as {}", names_.define(s.var->id, s.var->name));
    end(&s, ":");
    nested(s.body);
    names_.release(names);
  }

  void evaluate(const Evaluate& s) {
    begin();
    bool bare = as<Call>(s.value) && as<Call>(s.value)->op->name != "likely";
    if (!bare) out_ += "T.evaluate(";
    expr(s.value);
    end(&s, bare ? "" : ")");
  }

  void attribute(const AttrStmt& s, bool last) {
    bool with = !last || classic();
    begin();
    out_ += with ? "with T.attr(" : "T.attr(";
    if (s.node)
      expr(s.node);
    else
      out_ += "None";
    out_ += ", ";
    quoted(s.key);
    out_ += ", ";
    expr(s.value);
    end(&s, with ? "):" : ")");
    if (with)
      nested(s.body);
    else
      statements(s.body);
  }

  void allocate(const StmtNode* s, const Buffer& b, const AttrDict& annotations, const Stmt& body, bool view,
                bool last) {
    begin();
    size_t names = names_.mark();
    // A view prints its pointer even where the text has no other name for it.
    if (view && !names_.find(b->data->id)) names_.define(b->data->id, b->data->name);
    define(b);
    const char* word = view || !last || classic() ? "decl_buffer" : "alloc_buffer";
    if (last)
      fmt::format_to(to(), "{} = T.{}(", name_of(b), word);
    else
      fmt::format_to(to(), "with T.{}(", word);
    buffer_arguments(b, true);
    if (!annotations.empty()) {
      out_ += ", annotations=";
      dict(annotations);
    }
    out_ += ')';
    if (!last) fmt::format_to(to(), " as {}:", name_of(b));
    end(s);
    if (last) return statements(body);
    nested(body);
    names_.release(names);
  }

  // --- blocks

  void block(const Block& b, const Stmt& s) {
    size_t names = names_.mark();
    begin();
    fmt::format_to(to(), "with T.{}(", block_word());
    quoted(b.name);
    end(s.get(), "):");
    ++depth_;
    axes(b);
    if (b.predicate && !(is_const(b.predicate, 1))) {
      begin();
      out_ += "T.where(";
      expr(b.predicate);
      end(nullptr, ")");
    }
    signature_line("reads", b.reads);
    signature_line("writes", b.writes);
    if (!b.annotations.empty()) {
      begin();
      fmt::format_to(to(), "T.{}_attr(", block_word());
      dict(b.annotations);
      end(nullptr, ")");
    }
    for (const Buffer& x : b.allocs) block_alloc(x);
    for (const MatchBuffer& m : b.matches) match_buffer(m);
    if (b.init) {
      line("with T.init():");
      nested(b.init);
    }
    statements(b.body);
    --depth_;
    names_.release(names);
  }

  void axes(const Block& b) {
    auto bare = [&](const Iter& i) {
      const VarNode* v = as<VarNode>(i.binding);
      auto it = v ? ranges_.find(v) : ranges_.end();
      return it != ranges_.end() && same(it->second.min, i.dom.min) && same(it->second.extent, i.dom.extent);
    };
    static constexpr std::array kWords{"spatial", "reduce", "scan", "opaque"};
    if (b.iters.size() > 1 && std::ranges::all_of(b.iters, bare)) {
      begin();
      std::string kinds;
      for (size_t i = 0; i < b.iters.size(); ++i) {
        if (i) out_ += ", ";
        out_ += names_.define(b.iters[i].var->id, b.iters[i].var->name);
        kinds += "SRCO"[static_cast<size_t>(b.iters[i].type)];
      }
      fmt::format_to(to(), " = T.axis.remap(\"{}\", [", kinds);
      for (size_t i = 0; i < b.iters.size(); ++i) {
        if (i) out_ += ", ";
        expr(b.iters[i].binding);
      }
      return end(nullptr, "])");
    }
    for (size_t i = 0; i < b.iters.size(); ++i) {
      const Iter& iter = b.iters[i];
      begin();
      fmt::format_to(to(), "{} = T.axis.{}(", names_.define(iter.var->id, iter.var->name),
                     kWords[static_cast<size_t>(iter.type)]);
      if (!is_const(iter.dom.min, 0)) {
        out_ += '(';
        expr(iter.dom.min);
        out_ += ", ";
        end_of(iter.dom);
        out_ += ')';
      } else {
        expr(iter.dom.extent);
      }
      out_ += ", ";
      expr(iter.binding);
      out_ += ')';
      end(iter.var.get());
    }
  }

  void signature_line(const char* word, const std::vector<BufferRegion>& regions) {
    begin();
    fmt::format_to(to(), "T.{}(", word);
    for (size_t i = 0; i < regions.size(); ++i) {
      if (i) out_ += ", ";
      region(regions[i]);
    }
    end(nullptr, ")");
  }

  void match_buffer(const MatchBuffer& m) {
    begin();
    define(m.buffer);
    fmt::format_to(to(), "{} = T.match_buffer(", name_of(m.buffer));
    region(m.source);
    out_ += ", ";
    buffer_arguments(m.buffer, true, m.source.buffer->scope);
    end(m.buffer.get(), ")");
  }

  int depth_ = 0;
  size_t line_begin_ = 0;
  bool schedulable_ = true;
  std::vector<Var> symbolic_;
  std::unordered_map<const VarNode*, Range> ranges_;  // of loops, for T.axis.remap
};

}  // namespace

std::string print(const Program& p, PrintOptions options) {
  Printer printer(options, nullptr);
  printer.program(p);
  return printer.take();
}

std::string print(const Function& f, PrintOptions options) {
  Printer printer(options, nullptr);
  printer.function(f);
  return printer.take();
}

std::string print(const Stmt& s, PrintOptions options) {
  Printer printer(options, nullptr);
  if (s) printer.statements(s);
  return printer.take();
}

std::string print(const Expr& e) {
  text::ExprPrinter printer({});
  if (e) printer.expr(e);
  return printer.take();
}

std::string print(const BufferRegion& r) {
  text::ExprPrinter printer({});
  printer.region(r);
  return printer.take();
}

std::string print(const Attr& a) {
  text::ExprPrinter printer({});
  printer.attr(a);
  return printer.take();
}

PrintedProgram print_with_places(const Program& p, PrintOptions options, const std::string& file) {
  std::vector<std::pair<const void*, TextRange>> places;
  Printer printer(options, &places);
  printer.program(p);
  PrintedProgram out{printer.take(), {}};
  out.spans = SourceMap(std::make_shared<SourceText>(out.text, file));
  for (const auto& [node, range] : places) out.spans.add(node, range);
  return out;
}

Span locate(const Program& p, const void* node) { return print_with_places(p).spans.find(node); }

// --- the older dialect

namespace {

/// What the older text has no form for, or "".
std::string newer_construct(const Stmt& body) {
  std::string found;
  auto note = [&](std::string what) {
    if (found.empty()) found = std::move(what);
  };
  auto buffer = [&](const Buffer& b) {
    if (b->scope.starts_with("mma.") || b->scope.starts_with("wgmma."))
      note(fmt::format("memory scope \"{}\" of buffer `{}`", b->scope, b->name));
    if (b->dtype.code == TypeCode::float8_e8m0fnu || b->dtype.code == TypeCode::float4_e2m1fn)
      note(fmt::format("element type {} of buffer `{}`", b->dtype.str(), b->name));
  };
  walk_stmts(body, [&](const Stmt& s) {
    if (const For* l = as<For>(s)) {
      if (l->step) note(fmt::format("step of loop `{}`", l->var->name));
      if (l->thread.starts_with("cluster"))
        note(fmt::format("thread axis \"{}\" of loop `{}`", l->thread, l->var->name));
    }
    if (s->kind == StmtKind::kBreak) note("`break`");
    if (s->kind == StmtKind::kContinue) note("`continue`");
    if (const Block* b = as<Block>(s)) std::ranges::for_each(b->allocs, buffer);
    if (const Allocate* a = as<Allocate>(s)) buffer(a->buffer);
    return found.empty();
  });
  return found;
}

}  // namespace

Result<std::string> print_as(const Program& p, Dialect dialect) {
  if (dialect == Dialect::classic) {
    for (const FunctionRef& f : p.functions) {
      std::string what = newer_construct(f->body);
      if (const Block* root = f->root(); what.empty() && f->schedulable && root) {
        bool blocks = false;
        walk_stmts(root->body, [&](const Stmt& s) { return !(blocks |= s->kind == StmtKind::kBlock); });
        if (!blocks) what = "a schedulable function without blocks";
      }
      if (!what.empty())
        return refuse(text_code::not_expressible_in_dialect,
                      fmt::format("the classic dialect has no form for {} in function `{}`", what, f->name));
    }
  }
  return print(p, {dialect, true});
}

}  // namespace tilewright
