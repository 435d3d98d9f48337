// `buffer_dim_align` rows [write index, axis, factor, offset] become strides of the buffer (lowering.md §1.6).
#include <fmt/format.h>

#include <map>

#include "ir/build.h"
#include "ir/rewrite.h"
#include "ir/visit.h"
#include "lowering/index.h"
#include "lowering/pass.h"

namespace tilewright::lowering {

namespace {

TW_REFUSAL_CODE(annotation_not_realisable, "annotation-not-realisable",
                "lowering cannot do what an annotation asks for");

struct Row {
  int64_t axis, factor, offset;
};

// Rows of all blocks, by buffer.
Result<std::map<uint64_t, std::vector<Row>>> collect(const Stmt& body, std::map<uint64_t, Buffer>& buffers) {
  std::map<uint64_t, std::vector<Row>> rows;
  std::optional<Refusal> refusal;
  auto bad = [&](const Block& b, std::string why) {
    refusal = Refusal(annotation_not_realisable, fmt::format("buffer_dim_align of block {}: {}", b.name, why));
  };
  walk_stmts(body, [&](const Stmt& s) {
    const Block* block = as<Block>(s);
    if (!block) return true;
    auto it = block->annotations.find("buffer_dim_align");
    if (it == block->annotations.end()) return true;
    const AttrList* list = it->second.get<AttrList>();
    if (!list) bad(*block, "expected a list of rows");
    for (const Attr& item : list ? *list : AttrList()) {
      const AttrList* row = item.get<AttrList>();
      int64_t v[4] = {};
      bool ok = row && row->size() == 4;
      for (size_t i = 0; ok && i < 4; ++i) {
        const int64_t* n = (*row)[i].get<int64_t>();
        if (n) v[i] = *n;
        ok = n != nullptr;
      }
      if (!ok) return bad(*block, "a row is not four integers"), false;
      if (v[0] < 0 || v[0] >= static_cast<int64_t>(block->writes.size()))
        return bad(*block, fmt::format("no written buffer {}", v[0])), false;
      const Buffer& b = block->writes[static_cast<size_t>(v[0])].buffer;
      if (v[1] < 0) v[1] += b->rank();
      if (v[1] < 0 || v[1] >= b->rank() || v[2] <= 0)
        return bad(*block, fmt::format("axis {} or factor {} out of range", v[1], v[2])), false;
      rows[b->id].push_back({v[1], v[2], v[3]});
      buffers[b->id] = b;
    }
    return true;
  });
  if (refusal) return refuse(*refusal);
  return rows;
}

Result<FunctionRef> run(const FunctionRef& f, const PassContext& context) {
  std::map<uint64_t, Buffer> buffers;
  TW_TRY(auto rows, collect(f->body, buffers));
  if (rows.empty()) return f;
  BufferMap replaced;
  for (const auto& [id, list] : rows) {
    const Buffer& b = buffers.at(id);
    bool parameter = std::any_of(f->params.begin(), f->params.end(), [&, &buffer = b](const Param& p) {
      return p.buffer && p.buffer->data.same_as(buffer->data);
    });
    if (parameter)
      return refuse(annotation_not_realisable,
                    fmt::format("buffer_dim_align of {}: a parameter's layout is the caller's", b->name));
    std::vector<int64_t> strides(b->shape.size(), 1);
    bool changed = false;
    int64_t stride = 1;
    for (size_t d = b->shape.size(); d-- > 0;) {
      for (const Row& r : list)
        if (r.axis == static_cast<int64_t>(d)) {
          int64_t pad = floor_mod(r.factor + r.offset - stride % r.factor, r.factor);
          stride += pad;
          changed |= pad != 0;
        }
      strides[d] = stride;
      std::optional<int64_t> extent = const_int(b->shape[d]);
      if (!extent)
        return refuse(annotation_not_realisable,
                      fmt::format("buffer_dim_align of {}: its extents are not constant", b->name));
      stride *= *extent;
    }
    if (!changed) {
      context.note(fmt::format("padding-has-no-effect: buffer_dim_align of {}", b->name));
      continue;
    }
    replaced[b.get()] = derive_buffer(b, [&](BufferNode& n) {
      for (int64_t s : strides) n.strides.push_back(int_imm(s, kInt64));
    });
  }
  return with_body(*f, replace_buffers(f->body, replaced));
}

const Register<Pass> pass{"assign_layouts", "buffer_dim_align becomes strides of the buffer",
                          Pass{Form::opened, Form::opened, {"compact_buffers"}, run}};

}  // namespace

}  // namespace tilewright::lowering
