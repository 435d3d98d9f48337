// Names, argument lists and attribute values of program text.
#include <fmt/format.h>

#include <algorithm>

#include "ir/parse_reader.h"

namespace tilewright::text {

// --- errors and names

Diagnostic& Reader::error(const RefusalCode& code, TextRange where, std::string message) {
  return errors_.add(code, place_.value_or(where), std::move(message));
}

std::string Reader::source_of(const py::Expr* e) const {
  return place_ ? "…" : std::string(tree_.source->slice(e->range));
}

const Binding* Reader::find(std::string_view name) {
  auto it = names_.find(name);
  return it == names_.end() ? nullptr : &it->second;
}

const Binding* Reader::resolve(const py::Name& name) {
  if (const Binding* b = find(name.id)) return b;
  Diagnostic& d = error(text_code::undefined_name, name.range, fmt::format("`{}` is not defined here", name.id));
  std::vector<std::string> known;  // one letter is near every other letter
  for (const auto& [id, binding] : names_)
    if (name.id.size() > 1) known.emplace_back(id);
  std::ranges::sort(known);
  if (std::string best = did_you_mean(name.id, known); !best.empty()) d.help = fmt::format("did you mean `{}`?", best);
  return nullptr;
}

void Reader::define(std::string_view name, Meaning meaning, TextRange where) {
  if (name == "_") return;
  auto it = names_.find(name);
  undo_.emplace_back(name, it == names_.end() ? std::nullopt : std::optional(std::move(it->second)));
  names_.insert_or_assign(name, Binding{std::move(meaning), where, level_});
}

void Reader::define_new(std::string_view name, Meaning meaning, TextRange where) {
  const Binding* old = find(name);
  if (old && old->level == level_ && !std::holds_alternative<Poison>(old->meaning)) {
    error(text_code::duplicate_name, where, fmt::format("`{}` is already defined in this scope", name))
        .notes.push_back(note("first defined here", old->where));
  }
  define(name, std::move(meaning), where);
}

void Reader::poison(const py::Expr* target) {
  if (const py::Name* n = py::as<py::Name>(target)) {
    if (!find(n->id)) define(n->id, Poison{}, n->range);
  } else if (const py::Tuple* t = py::as<py::Tuple>(target)) {
    for (const py::Expr* e : t->items) poison(e);
  }
}

void Reader::leave(size_t undo) {
  --level_;
  while (undo_.size() > undo) {
    auto& [name, old] = undo_.back();
    if (old)
      names_.insert_or_assign(name, std::move(*old));
    else
      names_.erase(name);
    undo_.pop_back();
  }
}

bool Reader::is_module_alias(std::string_view name, bool ir) const {
  return (ir ? module_aliases_ : language_aliases_).contains(name) && !names_.contains(name);
}

std::string_view Reader::t_name(const py::Expr* e) {
  const py::Attribute* a = py::as<py::Attribute>(e);
  if (!a) return {};
  if (const py::Name* root = py::as<py::Name>(a->value))
    return is_module_alias(root->id, false) ? a->name : std::string_view{};
  const py::Expr* head = a->value;
  while (const py::Attribute* inner = py::as<py::Attribute>(head)) head = inner->value;
  const py::Name* root = py::as<py::Name>(head);
  if (!root) return {};
  bool alias = is_module_alias(root->id, false);
  if (!alias && root->id != "tvm") return {};
  path_ = py::dotted_name(e);
  std::string_view path = path_;
  if (alias) return path.substr(root->id.size() + 1);
  for (std::string_view prefix : {"tvm.script.tir.", "tvm.script.tirx.", "tvm.tir.", "tvm.tirx."})
    if (path.starts_with(prefix)) return path.substr(prefix.size());
  return {};
}

const py::Expr* Reader::constant(const py::Expr* e) {
  for (int hops = 0; hops < 100; ++hops) {
    const py::Name* n = py::as<py::Name>(e);
    const Binding* b = n ? find(n->id) : nullptr;
    const py::Expr* const* syntax = b ? std::get_if<const py::Expr*>(&b->meaning) : nullptr;
    if (!syntax) return e;
    e = *syntax;
  }
  return e;
}

// --- arguments

std::optional<Args> Reader::arguments(const py::Call& call, std::string_view function, std::string_view signature) {
  struct Slot {
    std::string_view name;
    bool optional;
  };
  std::vector<Slot> slots;
  bool variadic = false;
  for (size_t i = 0; i < signature.size();) {
    size_t end = std::min(signature.find(' ', i), signature.size());
    std::string_view word = signature.substr(i, end - i);
    bool optional = word.ends_with('?');
    if (optional) word.remove_suffix(1);
    if (word == "*")
      variadic = true;
    else
      slots.push_back({word, optional});
    i = end + 1;
  }
  Args out;
  for (size_t i = 0; i < call.args.size(); ++i) {
    if (call.args[i]->kind == py::ExprKind::kStarred) {
      error(text_code::construct_not_supported, call.args[i]->range, "starred arguments are not read");
      return std::nullopt;
    }
    if (i < slots.size()) {
      out.slot[i] = call.args[i];
    } else if (variadic) {
      out.rest.push_back(call.args[i]);
    } else {
      error(text_code::wrong_argument_count, call.args[i]->range,
            fmt::format("expected at most {} argument{} of `{}`, found {}", slots.size(), slots.size() == 1 ? "" : "s",
                        function, call.args.size()));
      return std::nullopt;
    }
  }
  for (const py::Keyword& k : call.keywords) {
    auto it = std::ranges::find(slots, k.name, &Slot::name);
    if (it == slots.end()) {
      Diagnostic& d = error(text_code::wrong_argument_count, k.name_range,
                            fmt::format("`{}` has no argument `{}`", function, k.name));
      std::vector<std::string> known;
      for (const Slot& s : slots) known.emplace_back(s.name);
      if (std::string best = did_you_mean(k.name, known); !best.empty())
        d.help = fmt::format("did you mean `{}=`?", best);
      return std::nullopt;
    }
    size_t i = static_cast<size_t>(it - slots.begin());
    if (out.slot[i]) {
      error(text_code::wrong_argument_count, k.name_range,
            fmt::format("argument `{}` of `{}` is given twice", k.name, function));
      return std::nullopt;
    }
    out.slot[i] = k.value;
  }
  for (size_t i = 0; i < slots.size(); ++i)
    if (!out.slot[i] && !slots[i].optional) {
      error(text_code::wrong_argument_count, call.range,
            fmt::format("expected an argument `{}` of `{}`, found none", slots[i].name, function));
      return std::nullopt;
    }
  return out;
}

std::optional<std::string> Reader::text_value(const py::Expr* e, const char* what) {
  e = constant(e);
  if (const py::String* s = py::as<py::String>(e)) return std::string(s->value);
  error(text_code::wrong_argument_type, e->range,
        fmt::format("expected a string for {}, found {}", what, py::describe(e)));
  return std::nullopt;
}

std::optional<int64_t> Reader::int_value(const py::Expr* e, const char* what) {
  Operand v = operand(e);
  if (!v) return std::nullopt;
  if (const IntImm* imm = as<IntImm>(v.e)) return imm->value;
  error(text_code::wrong_argument_type, e->range,
        fmt::format("expected a constant integer for {}, found {}", what, py::describe(e)));
  return std::nullopt;
}

std::optional<bool> Reader::bool_value(const py::Expr* e, const char* what) {
  e = constant(e);
  const py::Constant* c = py::as<py::Constant>(e);
  if (c && c->value == py::ConstantKind::true_) return true;
  if (c && c->value == py::ConstantKind::false_) return false;
  error(text_code::wrong_argument_type, e->range,
        fmt::format("expected True or False for {}, found {}", what, py::describe(e)));
  return std::nullopt;
}

std::optional<DType> Reader::dtype_named(std::string_view name, TextRange where) {
  if (std::optional<DType> d = DType::parse(name)) return d;
  // Kinds that TVM knows and nothing here computes with.
  static constexpr std::array<std::string_view, 8> kOther{
      "float8_e3m4",   "float8_e4m3b11fnuz", "float8_e4m3fnuz",    "float8_e5m2fnuz",
      "float6_e2m3fn", "float6_e3m2fn",      "float8_e4m3b11fnuz", "custom"};
  std::string_view element = name.substr(0, name.rfind('x'));
  if (std::ranges::find(kOther, name) != kOther.end() || std::ranges::find(kOther, element) != kOther.end()) {
    error(text_code::dtype_not_computable, where,
          fmt::format("`{}` is an element type that nothing computes with", name));
    return std::nullopt;
  }
  static const std::vector<std::string> known{
      "bool",   "int8",    "int16",   "int32",   "int64",    "uint8",         "uint16",      "uint32",
      "uint64", "float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2", "handle"};
  Diagnostic& d =
      error(text_code::wrong_argument_type, where, fmt::format("expected an element type, found \"{}\"", name));
  if (std::string best = did_you_mean(name, known); !best.empty()) d.help = fmt::format("did you mean \"{}\"?", best);
  return std::nullopt;
}

std::optional<DType> Reader::dtype_value(const py::Expr* e) {
  e = constant(e);
  if (const py::String* s = py::as<py::String>(e)) return dtype_named(s->value, e->range);
  if (std::string_view name = t_name(e); !name.empty()) return dtype_named(std::string(name), e->range);
  if (const py::Attribute* a = py::as<py::Attribute>(e); a && a->name == "dtype") {
    if (Buffer b = buffer(a->value, false)) return b->dtype;
    if (Expr v = value(a->value)) return v->dtype;
    return std::nullopt;
  }
  error(text_code::wrong_argument_type, e->range,
        fmt::format("expected an element type in quotes, found {}", py::describe(e)));
  return std::nullopt;
}

bool Reader::items_of(const py::Expr* e, std::vector<const py::Expr*>& out) {
  e = constant(e);
  if (const py::Tuple* t = py::as<py::Tuple>(e)) {
    out.assign(t->items.begin(), t->items.end());
  } else if (const py::List* l = py::as<py::List>(e)) {
    out.assign(l->items.begin(), l->items.end());
  } else {
    out.assign(1, e);
    return false;
  }
  return true;
}

// --- attribute values

std::optional<Attr> Reader::attr_value(const py::Expr* e) {
  e = constant(e);
  switch (e->kind) {
    case py::ExprKind::kString:
      return Attr(std::string(py::as<py::String>(e)->value));
    case py::ExprKind::kConstant:
      if (py::as<py::Constant>(e)->value == py::ConstantKind::none) return Attr();
      if (py::as<py::Constant>(e)->value != py::ConstantKind::ellipsis)
        return Attr(py::as<py::Constant>(e)->value == py::ConstantKind::true_);
      error(text_code::wrong_argument_type, e->range, "expected a value, found `...`");
      return std::nullopt;
    case py::ExprKind::kTuple:
    case py::ExprKind::kList: {
      std::vector<const py::Expr*> items;
      items_of(e, items);
      AttrList list;
      for (const py::Expr* item : items) {
        std::optional<Attr> v = attr_value(item);
        if (!v) return std::nullopt;
        list.push_back(std::move(*v));
      }
      return Attr(std::move(list));
    }
    case py::ExprKind::kDict: {
      std::optional<AttrDict> d = attr_dict(e);
      if (!d) return std::nullopt;
      return Attr(std::move(*d));
    }
    default:
      break;
  }
  if (callee(e) == "target") {  // kept as a one-entry dict, printed back as a call
    std::optional<Args> args = arguments(*py::as<py::Call>(e), "T.target", "config host?");
    std::optional<Attr> config = args ? attr_value((*args)[0]) : std::nullopt;
    if (!config) return std::nullopt;
    return Attr(AttrDict{{"T.target", std::move(*config)}});
  }
  Operand v = operand(e);
  if (!v) return std::nullopt;
  if (v.literal) {
    if (const IntImm* i = as<IntImm>(v.e)) return Attr(i->value);
    if (const FloatImm* f = as<FloatImm>(v.e)) return Attr(f->value);
  }
  if (v.e->dtype.is_bool())
    if (const IntImm* i = as<IntImm>(v.e)) return Attr(i->value != 0);
  return Attr(v.e);
}

std::optional<AttrDict> Reader::attr_dict(const py::Expr* e) {
  e = constant(e);
  const py::Dict* dict = py::as<py::Dict>(e);
  if (!dict) {
    error(text_code::wrong_argument_type, e->range, fmt::format("expected a dict, found {}", py::describe(e)));
    return std::nullopt;
  }
  AttrDict out;
  for (size_t i = 0; i < dict->keys.size(); ++i) {
    std::optional<std::string> key = text_value(dict->keys[i], "a key");
    std::optional<Attr> v = attr_value(dict->values[i]);
    if (!key || !v) return std::nullopt;
    if (!out.emplace(*key, std::move(*v)).second) {
      error(text_code::duplicate_name, dict->keys[i]->range, fmt::format("key \"{}\" is given twice", *key));
      return std::nullopt;
    }
  }
  return out;
}

}  // namespace tilewright::text
