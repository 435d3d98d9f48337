#include "support/json.h"

namespace tilewright {

namespace {
Json place(const Span& s) {
  return {{"file", s.file}, {"line", s.line}, {"column", s.column}, {"end_column", s.end_column}};
}
}  // namespace

Json to_json(const Diagnostic& d) {
  Json out = {{"code", d.code}, {"message", d.message}, {"warning", d.warning}};
  if (d.span.line) out.update(place(d.span));
  out["notes"] = Json::array();
  for (const Note& note : d.notes) {
    Json n = {{"message", note.message}};
    if (note.span.line) n.update(place(note.span));
    out["notes"].push_back(n);
  }
  out["help"] = d.help.empty() ? Json(nullptr) : Json(d.help);
  return out;
}

}  // namespace tilewright
