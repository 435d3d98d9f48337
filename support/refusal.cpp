#include "support/refusal.h"

#include <algorithm>
#include <map>

#include "support/check.h"

namespace tilewright {

namespace {
// The same code may be declared by an inline variable that several shared objects hold: first one wins.
std::map<std::string_view, const RefusalCode*>& codes() {
  static std::map<std::string_view, const RefusalCode*> table;
  return table;
}
}  // namespace

RefusalCode::RefusalCode(const char* code, const char* line) : text(code), doc(line) { codes().emplace(text, this); }

std::vector<const RefusalCode*> all_refusal_codes() {
  std::vector<const RefusalCode*> out;
  for (const auto& [text, code] : codes()) out.push_back(code);
  return out;
}

const RefusalCode* find_refusal_code(std::string_view text) {
  auto it = codes().find(text);
  return it == codes().end() ? nullptr : it->second;
}

Refusal::Refusal(const RefusalCode& code, std::string message)
    : Refusal(code, [message = std::move(message)] {
        Diagnostic d;
        d.message = message;
        return d;
      }) {}

Refusal::Refusal(const RefusalCode& code, Render render)
    : code_(&code), render_(std::make_shared<const Render>(std::move(render))) {}

Diagnostic Refusal::diagnostic() const {
  Diagnostic d = (*render_)();
  d.code = code_->text;
  return d;
}

Refusal Refusal::with_note(std::function<Note()> note) const {
  return Refusal(*code_, [inner = render_, note = std::move(note)] {
    Diagnostic d = (*inner)();
    d.notes.push_back(note());
    return d;
  });
}

Refusal Refusal::with_help(std::string help) const {
  return Refusal(*code_, [inner = render_, help = std::move(help)] {
    Diagnostic d = (*inner)();
    d.help = help;
    return d;
  });
}

}  // namespace tilewright
