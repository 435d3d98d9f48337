// Index maps as TVM's traces hold them: a JSON graph of its objects, of two generations.
//   newer: {"root_index": 5, "nodes": [{"type": "prim.Add", "data": {"ty": 1, "a": 2, "b": 3}}, …]}
//   older: {"root": 5, "nodes": [{"type_key": "tir.Add", "attrs": {"dtype": "int32", "a": "2", "b": "3"}}, …]}
// Fields that hold objects are indices of nodes; None is a node, too (the older generation's has no name). The first
// part of a class name changed with every generation (tir, tirx, prim, ir, none at all), so it is not looked at.
#include <fmt/format.h>

#include "ir/build.h"
#include "ir/print.h"
#include "schedule/trace.h"
#include "support/json.h"

namespace tilewright {

namespace {

struct OperatorClass {
  const char* name;
  BinaryOp op;
};
/// What the lambdas of traces are built from as well.
constexpr OperatorClass operator_classes[] = {{"Add", BinaryOp::add},
                                              {"Sub", BinaryOp::sub},
                                              {"Mul", BinaryOp::mul},
                                              {"FloorDiv", BinaryOp::floor_div},
                                              {"FloorMod", BinaryOp::floor_mod},
                                              {"Min", BinaryOp::min},
                                              {"Max", BinaryOp::max}};

constexpr int deepest = 200;  // as in program text; a cycle of a damaged graph ends here

class GraphReader {
 public:
  explicit GraphReader(const Json& nodes) : nodes_(nodes) {}

  Result<IndexMapRef> map(int64_t at) {
    TW_TRY(Node node, look(at));
    if (node.name != "IndexMap") return bad(fmt::format("node {} is a {}, expected an IndexMap", at, node.name));
    auto out = std::make_unique<IndexMap>();
    TW_TRY(int64_t inputs, reference(node, "initial_indices"));
    TW_TRY(int64_t outputs, reference(node, "final_indices"));
    TW_TRY(std::vector<Expr> variables, array(inputs));
    for (const Expr& e : variables) {
      if (e->kind != ExprKind::kVarNode) return bad("an initial index is not a variable");
      out->inputs.push_back(Var(static_cast<const VarNode*>(e.get())));
    }
    TW_TRY(out->outputs, array(outputs));
    TW_TRY(int64_t inverse, reference(node, "inverse_index_map"));
    TW_TRY(Node none, look(inverse));
    if (none.name != "None" && !none.name.empty()) {
      if (++depth_ > deepest) return bad("the graph is nested too deep");
      TW_TRY(out->inverse, map(inverse));
      --depth_;
    }
    return IndexMapRef(out.release());
  }

 private:
  struct Node {
    std::string name;  ///< of the class, without what stands before the last dot
    const Json* fields;
  };

  static tl::unexpected<Refusal> bad(std::string message) { return refuse(trace_malformed, "index map: " + message); }

  Result<Node> look(int64_t at) const {
    if (at < 0 || at >= static_cast<int64_t>(nodes_.size())) return bad(fmt::format("there is no node {}", at));
    const Json& node = nodes_[static_cast<size_t>(at)];
    auto type = node.find("type"), fields = node.find("data");
    if (type == node.end()) type = node.find("type_key");
    for (const char* older : {"attrs", "repr_str"})
      if (fields == node.end()) fields = node.find(older);
    if (type == node.end() || !type->is_string()) return bad(fmt::format("node {} has no type", at));
    std::string name = type->get<std::string>();
    return Node{name.substr(name.rfind('.') + 1), fields == node.end() ? nullptr : &*fields};
  }

  static Result<const Json*> field(const Node& node, const char* name) {
    if (node.fields && node.fields->is_object())
      if (auto it = node.fields->find(name); it != node.fields->end()) return &*it;
    return bad(fmt::format("a {} has no field {}", node.name, name));
  }
  /// A number, which the older generation writes as text.
  static Result<int64_t> integer(const Json& json) {
    if (json.is_number_integer()) return json.get<int64_t>();
    if (json.is_string()) {
      const std::string text = json.get<std::string>();
      char* end = nullptr;
      int64_t value = std::strtoll(text.c_str(), &end, 10);
      if (!text.empty() && *end == 0) return value;
    }
    return bad(fmt::format("expected an integer, found {}", json.dump()));
  }
  static Result<int64_t> reference(const Node& node, const char* name) {
    TW_TRY(const Json* json, field(node, name));
    return integer(*json);
  }
  bool older() const { return nodes_.size() > 0 && !nodes_[0].contains("type"); }

  Result<std::vector<Expr>> array(int64_t at) {
    TW_TRY(Node node, look(at));
    const Json* items = node.fields;
    if (node.name != "Array" || !items || !items->is_array()) return bad(fmt::format("node {} is no array", at));
    std::vector<Expr> out;
    for (const Json& item : *items) {
      TW_TRY(int64_t index, integer(item));
      TW_TRY(Expr e, expr(index));
      out.push_back(e);
    }
    return out;
  }

  /// The element type stands in the node, or in the node of its type.
  Result<DType> dtype(const Node& node) {
    Node owner = node;
    if (!node.fields->contains("dtype")) {
      TW_TRY(int64_t type, reference(node, "ty"));
      TW_TRY(owner, look(type));
    }
    TW_TRY(const Json* json, field(owner, "dtype"));
    if (auto type = json->is_string() ? DType::parse(json->get<std::string>()) : std::nullopt) return *type;
    return bad(fmt::format("unknown element type {}", json->dump()));
  }

  Result<std::string> text(const Node& node, const char* name) {
    TW_TRY(int64_t at, reference(node, name));
    TW_TRY(Node string, look(at));
    if (!string.fields || !string.fields->is_string()) return bad(fmt::format("node {} is no text", at));
    return string.fields->get<std::string>();
  }

  Result<Expr> constant(const Node& node) {
    TW_TRY(DType type, dtype(node));
    TW_TRY(const Json* json, field(node, "value"));
    if (node.name == "FloatImm")
      return float_imm(json->is_number() ? json->get<double>() : std::strtod(json->get<std::string>().c_str(), nullptr),
                       type);
    TW_TRY(int64_t value, integer(*json));
    if (older()) return int_imm(value, type);
    TW_TRY(Node number, look(value));
    if (!number.fields) return bad(fmt::format("node {} is no number", value));
    if (number.fields->is_boolean()) return int_imm(number.fields->get<bool>(), type);
    TW_TRY(value, integer(*number.fields));
    return int_imm(value, type);
  }

  Result<Expr> expr(int64_t at) {
    if (auto it = read_.find(at); it != read_.end()) return it->second;
    if (++depth_ > deepest) return bad("the graph is nested too deep");
    TW_TRY(Node node, look(at));
    TW_TRY(Expr out, make(node));
    --depth_;
    read_[at] = out;
    return out;
  }

  Result<Expr> operand(const Node& node, const char* name) {
    TW_TRY(int64_t at, reference(node, name));
    return expr(at);
  }

  Result<Expr> make(const Node& node) {
    if (!node.fields || !node.fields->is_object()) return bad(fmt::format("a {} has no fields", node.name));
    if (node.name == "Var") {
      TW_TRY(DType type, dtype(node));
      TW_TRY(std::string name, text(node, "name"));
      return Expr(make_var(name, type));
    }
    if (node.name == "IntImm" || node.name == "FloatImm") return constant(node);
    if (node.name == "Cast") {
      TW_TRY(DType type, dtype(node));
      TW_TRY(Expr value, operand(node, "value"));
      return cast(type, value);
    }
    for (const OperatorClass& c : operator_classes) {
      if (node.name != c.name) continue;
      TW_TRY(Expr a, operand(node, "a"));
      TW_TRY(Expr b, operand(node, "b"));
      if (a->dtype != b->dtype) return bad(fmt::format("operands of a {} have different types", node.name));
      if ((c.op == BinaryOp::floor_div || c.op == BinaryOp::floor_mod) && is_const(b, 0))
        return bad("it divides by zero");
      return binary(c.op, a, b);
    }
    return bad(fmt::format("it uses a {}, which has no meaning here", node.name));
  }

  const Json& nodes_;
  std::map<int64_t, Expr> read_;
  int depth_ = 0;
};

/// Writes the newer generation. Equal nodes are one node.
class GraphWriter {
 public:
  GraphWriter() { add({{"type", "None"}}); }

  Result<std::string> write(const IndexMap& map) {
    TW_TRY(int64_t root, index_map(map));
    return Json{{"root_index", root}, {"nodes", nodes_}}.dump();
  }

 private:
  int64_t add(Json node) {
    auto [it, fresh] = index_.emplace(node.dump(), nodes_.size());
    if (fresh) nodes_.push_back(std::move(node));
    return it->second;
  }
  int64_t add(const char* type, Json data) { return add(Json{{"type", type}, {"data", std::move(data)}}); }
  int64_t type_of(const Expr& e) { return add("ir.PrimType", {{"span", 0}, {"dtype", e->dtype.str()}}); }

  Result<int64_t> index_map(const IndexMap& map) {
    Json inputs = Json::array(), outputs = Json::array();
    for (const Var& v : map.inputs) {
      int64_t name = add("ffi.String", v->name);
      // By hand: two variables of one name are two nodes.
      nodes_.push_back({{"type", "ir.Var"}, {"data", {{"span", 0}, {"ty", type_of(v)}, {"name", name}}}});
      inputs.push_back(variables_[v.get()] = static_cast<int64_t>(nodes_.size()) - 1);
    }
    std::vector<Expr> results = map.outputs;
    for (const Range& r : map.ranges) results.insert(results.end(), {r.min, r.min + r.extent});
    for (const Expr& e : results) {
      TW_TRY(int64_t at, expr(e));
      outputs.push_back(at);
    }
    int64_t inverse = 0;
    if (map.inverse) {
      TW_TRY(inverse, index_map(*map.inverse));
    }
    return add("tirx.IndexMap", {{"initial_indices", add("ffi.Array", inputs)},
                                 {"final_indices", add("ffi.Array", outputs)},
                                 {"inverse_index_map", inverse}});
  }

  Result<int64_t> expr(const Expr& e) {
    auto missing = [&] {
      return refuse(text_code::not_expressible_in_dialect,
                    fmt::format("TVM's graph of an index map is not written for {}", print(e)));
    };
    if (const VarNode* v = as<VarNode>(e)) {
      auto it = variables_.find(v);
      return it == variables_.end() ? Result<int64_t>(missing()) : it->second;
    }
    Json data = {{"span", 0}, {"ty", type_of(e)}};
    if (const IntImm* x = as<IntImm>(e)) {
      data["value"] = add("int", x->value);
      return add("ir.IntImm", data);
    }
    if (const FloatImm* x = as<FloatImm>(e)) {
      data["value"] = x->value;
      return add("ir.FloatImm", data);
    }
    auto operand = [&](const char* name, const Expr& child) -> Status {
      TW_TRY(int64_t at, expr(child));
      data[name] = at;
      return {};
    };
    if (const Cast* x = as<Cast>(e)) {
      TW_TRY_VOID(operand("value", x->value));
      return add("prim.Cast", data);
    }
    if (const Binary* x = as<Binary>(e))
      for (const OperatorClass& c : operator_classes) {
        if (x->op != c.op) continue;
        TW_TRY_VOID(operand("a", x->a));
        TW_TRY_VOID(operand("b", x->b));
        return add((std::string("prim.") + c.name).c_str(), data);
      }
    return missing();
  }

  Json nodes_ = Json::array();
  std::map<std::string, int64_t> index_;
  std::map<const VarNode*, int64_t> variables_;
};

}  // namespace

Result<IndexMapRef> index_map_from_graph(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded() || !json.is_object()) return refuse(trace_malformed, "an index map is not valid JSON");
  auto root = json.find("root_index"), nodes = json.find("nodes");
  if (root == json.end()) root = json.find("root");
  if (root == json.end() || !root->is_number_integer() || nodes == json.end() || !nodes->is_array())
    return refuse(trace_malformed, "an index map is no graph of nodes with a root");
  return GraphReader(*nodes).map(root->get<int64_t>());
}

Result<std::string> index_map_to_graph(const IndexMap& map) { return GraphWriter().write(map); }

}  // namespace tilewright
