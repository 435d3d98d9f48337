#include "workloads/operator.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "ir/build.h"
#include "ir/visit.h"

namespace tilewright {

using Kind = OperatorParameter::Kind;

OperatorParameter size_parameter(std::string name, std::string doc) {
  return {std::move(name), Kind::size, std::move(doc), "", {}, 1};
}

OperatorParameter integer_parameter(std::string name, int64_t fallback, std::string doc, int64_t min) {
  return {std::move(name), Kind::integer, std::move(doc), std::to_string(fallback), {}, min};
}

OperatorParameter choice_parameter(std::string name, std::vector<std::string> choices, std::string doc) {
  std::string fallback = choices.front();
  return {std::move(name), Kind::choice, std::move(doc), std::move(fallback), std::move(choices), 0};
}

std::vector<OperatorParameter> Operator::all_parameters() const {
  std::vector<OperatorParameter> out = parameters;
  out.push_back({"dtype", Kind::dtype, "element type of the inputs", dtypes.front(), dtypes, 0});
  if (second_dtype)
    out.push_back({"dtype_b", Kind::dtype, "element type of the second operand; default: dtype", "", dtypes, 0});
  const std::vector<std::string> results = {"float64", "float32", "float16", "bfloat16", "int32", "int64"};
  out.push_back({"acc", Kind::dtype, "type of sums and intermediates; default: at least 32 bits", "", results, 0});
  std::vector<std::string> stored = dtypes;
  for (const std::string& t : results)
    if (std::find(stored.begin(), stored.end(), t) == stored.end()) stored.push_back(t);
  out.push_back({"out", Kind::dtype,
                 "element type of the result; default: dtype, acc for integers, bfloat16 for float8", "", stored, 0});
  return out;
}

int64_t OperatorArguments::operator[](std::string_view name) const {
  auto it = integers_.find(name);
  TW_CHECK(it != integers_.end(), "operator {} has no integer parameter {}", op_, name);
  return it->second;
}

const std::string& OperatorArguments::text(std::string_view name) const {
  auto it = texts_.find(name);
  TW_CHECK(it != texts_.end(), "operator {} has no parameter {}", op_, name);
  return it->second;
}

tl::unexpected<Refusal> OperatorArguments::invalid(const std::string& message) const {
  return refuse(parameter_invalid, fmt::format("operator {}: {}", op_, message));
}

/// Reads and checks the values of one call.
struct ArgumentReader {
  const Operator& op;
  std::vector<OperatorParameter> parameters;
  OperatorArguments args;

  ArgumentReader(const std::string& name, const Operator& o) : op(o), parameters(o.all_parameters()), args(name) {}

  std::string names() const {
    std::string out;
    for (const OperatorParameter& p : parameters) out += (out.empty() ? "" : ", ") + p.name;
    return out;
  }

  Status read(const ParameterList& given) {
    std::map<std::string, std::string> values;
    for (const auto& [key, value] : given) {
      const bool known = std::any_of(parameters.begin(), parameters.end(),
                                     [k = key](const OperatorParameter& p) { return p.name == k; });
      if (!known) return refuse(no_such_parameter(key));
      if (!values.emplace(key, value).second) return args.invalid(fmt::format("{} is given twice", key));
    }
    for (const OperatorParameter& p : parameters) {
      auto it = values.find(p.name);
      if (it == values.end() && p.kind == Kind::size)
        return refuse(Refusal(parameter_missing, fmt::format("operator {} needs {} ({})", args.op(), p.name, p.doc))
                          .with_help(fmt::format("{} takes {}", args.op(), names())));
      TW_TRY_VOID(value(p, it == values.end() ? p.fallback : it->second));
    }
    return element_types();
  }

  Refusal no_such_parameter(const std::string& key) const {
    std::vector<std::string> known;
    for (const OperatorParameter& p : parameters) known.push_back(p.name);
    const std::string near = did_you_mean(key, known);
    return Refusal(unknown_parameter, fmt::format("operator {} has no parameter \"{}\"", args.op(), key))
        .with_help(fmt::format("{}{} takes {}", near.empty() ? "" : fmt::format("did you mean \"{}\"?  ", near),
                               args.op(), names()));
  }

  Status value(const OperatorParameter& p, const std::string& text) {
    if (p.kind == Kind::size || p.kind == Kind::integer) {
      // Loop variables are int32; the margin leaves room for padding, doubling and strides.
      const int64_t max = p.kind == Kind::size ? int64_t{1} << 29 : int64_t{1} << 20;
      int64_t v = 0;
      auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
      if (error != std::errc{} || end != text.data() + text.size() || v < p.min || v > max)
        return args.invalid(fmt::format("{} must be an integer from {} to {}, found \"{}\"", p.name, p.min, max, text));
      args.integers_[p.name] = v;
      args.texts_[p.name] = text;
      return {};
    }
    std::string normal = text;
    if (p.kind == Kind::dtype && !text.empty())
      if (std::optional<DType> t = DType::parse(text)) normal = t->str();
    const bool derived = p.kind == Kind::dtype && text.empty();
    if (!derived && std::find(p.choices.begin(), p.choices.end(), normal) == p.choices.end()) {
      Refusal refusal(parameter_invalid, fmt::format("operator {}: {} must be one of {}, found \"{}\"", args.op(),
                                                     p.name, fmt::join(p.choices, ", "), text));
      const std::string near = did_you_mean(normal, p.choices);
      return refuse(near.empty() ? refusal : refusal.with_help(fmt::format("{}={}", p.name, near)));
    }
    args.texts_[p.name] = normal;
    return {};
  }

  static DType default_acc(DType t) {
    if (t.is_float()) return t.bits == 64 ? kFloat64 : kFloat32;
    return t.bits > 32 ? kInt64 : kInt32;
  }
  static DType default_out(DType t, DType acc) {
    if (!t.is_float()) return acc;
    return t.bits == 8 ? kBFloat16 : t;
  }

  Status element_types() {
    auto type = [&](const char* name, DType fallback) {
      std::string& text = args.texts_[name];
      if (text.empty()) text = fallback.str();
      return *DType::parse(text);
    };
    ElementTypes& t = args.types_;
    t.a = type("dtype", kFloat32);
    t.b = op.second_dtype ? type("dtype_b", t.a) : t.a;
    t.acc = type("acc", default_acc(t.a));
    t.out = type("out", default_out(t.a, t.acc));
    if (t.a.is_float() != t.b.is_float())
      return args.invalid(fmt::format("dtype {} and dtype_b {} are of different classes", t.a.str(), t.b.str()));
    if (t.acc.is_float() != t.a.is_float() || t.acc.bits < t.a.bits)
      return args.invalid(fmt::format("acc must hold {}, found {}", t.a.str(), t.acc.str()));
    if (t.out.is_float() != t.acc.is_float())
      return args.invalid(fmt::format("out must be of acc's class {}, found {}", t.acc.str(), t.out.str()));
    return {};
  }

  /// gemm_512x512x512_nt_float32: sizes, what differs from the defaults, element types.
  std::string canonical_name() const {
    std::string sizes, rest;
    for (const OperatorParameter& p : parameters) {
      const std::string& v = args.text(p.name);
      if (p.kind == Kind::size)
        sizes += (sizes.empty() ? "" : "x") + v;
      else if (p.kind == Kind::integer && v != p.fallback)
        rest += "_" + p.name + v;
      else if (p.kind == Kind::choice && v != p.fallback)
        rest += "_" + v;
    }
    const ElementTypes& t = args.types();
    rest += "_" + t.a.str();
    if (t.b != t.a) rest += "_" + t.b.str();
    if (t.acc != default_acc(t.a)) rest += "_acc_" + t.acc.str();
    if (t.out != default_out(t.a, t.acc)) rest += "_out_" + t.out.str();
    return fmt::format("{}_{}{}", args.op(), sizes, rest);
  }
};

namespace {

// More than any machine or device holds; linear indices stay far below 2^63.
constexpr __int128 kMostBytes = __int128{1} << 40;
constexpr int64_t kMostExtent = std::numeric_limits<int32_t>::max();  // loop variables are int32

struct Size {
  __int128 parameters = 0, all = 0;  ///< bytes; `all`: with intermediate tensors
  int64_t extent = 0;                ///< the largest
};

Size size_of(const Function& f) {
  Size size;
  auto bytes = [&](const BufferNode& buffer) {
    __int128 n = buffer.dtype.element_bytes();
    for (const Expr& e : buffer.shape) {
      const int64_t extent = *const_int(e);
      size.extent = std::max(size.extent, extent);
      n = std::min(n * extent, kMostBytes + 1);
    }
    return n;
  };
  for (const Param& p : f.params) size.parameters += bytes(*p.buffer);
  size.all = size.parameters;
  walk_stmts(f.body, [&](const Stmt& s) {
    if (const Block* block = as<Block>(s))
      for (const Buffer& b : block->allocs) size.all += bytes(*b);
    return true;
  });
  return size;
}

}  // namespace

Result<Workload> make_workload(std::string_view name, const ParameterList& given) {
  const Operator* op = Registry<Operator>::instance().find(name);
  if (!op) {
    const std::string near = Registry<Operator>::instance().suggestion(name);
    Refusal refusal(unknown_operator, fmt::format("there is no operator \"{}\"; there are {}", name,
                                                  fmt::join(Registry<Operator>::instance().names(), ", ")));
    return refuse(near.empty() ? refusal : refusal.with_help(fmt::format("did you mean \"{}\"?", near)));
  }
  ArgumentReader reader(std::string(name), *op);
  TW_TRY_VOID(reader.read(given));
  TW_TRY(BuiltOperator built, op->build(reader.args));
  const Size size = size_of(*built.function);
  if (size.extent > kMostExtent)
    return reader.args.invalid(
        fmt::format("expected tensor extents of at most {}, found {}", kMostExtent, size.extent));
  if (size.all > kMostBytes)
    return reader.args.invalid("expected tensors of at most 1 TiB in all, found more: no machine holds them");
  Workload w;
  w.op = std::string(name);
  w.name = reader.canonical_name();
  for (const OperatorParameter& p : reader.parameters) w.parameters.emplace_back(p.name, reader.args.text(p.name));
  w.program = make_program({built.function});
  w.flop = built.flop;
  w.min_bytes = static_cast<int64_t>(size.parameters);
  return w;
}

Result<Workload> make_workload(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  ParameterList given;
  std::string_view rest = colon == text.npos ? std::string_view{} : text.substr(colon + 1);
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const size_t equals = item.find('=');
    if (equals == item.npos || equals == 0 || equals + 1 == item.size())
      return refuse(workload_malformed, fmt::format("expected key=value, found \"{}\" in \"{}\"", item, text));
    given.emplace_back(item.substr(0, equals), item.substr(equals + 1));
    rest = comma == rest.npos ? std::string_view{} : rest.substr(comma + 1);
  }
  return make_workload(name, given);
}

}  // namespace tilewright
