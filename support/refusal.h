// Refusal: "that cannot be done here, and nothing was changed". A search probes thousands of illegal moves a second,
// so a refusal carries its code and a closure; the text is rendered only when somebody reads it.
// Codes are declared once, with a line of documentation: TW_REFUSAL_CODE(name, "doc").
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/diagnostic.h"

namespace tilewright {

/// One kebab code, self-registered at start-up. Codes are compared by address or text.
struct RefusalCode {
  RefusalCode(const char* code, const char* line);
  const char* text;
  const char* doc;
};

/// All registered codes, sorted by text.
std::vector<const RefusalCode*> all_refusal_codes();
const RefusalCode* find_refusal_code(std::string_view text);

class Refusal {
 public:
  using Render = std::function<Diagnostic()>;
  Refusal(const RefusalCode& code, std::string message);
  /// `render` fills everything but the code.
  Refusal(const RefusalCode& code, Render render);

  std::string_view code() const { return code_->text; }
  bool is(const RefusalCode& code) const { return code_ == &code; }
  Diagnostic diagnostic() const;
  /// The same refusal with one more note; the note is rendered lazily too.
  Refusal with_note(std::function<Note()> note) const;
  Refusal with_help(std::string help) const;

 private:
  const RefusalCode* code_;
  std::shared_ptr<const Render> render_;
};

}  // namespace tilewright

/// Declares a refusal code: `TW_REFUSAL_CODE(factor_not_positive, "factor-not-positive", "a split factor is < 1");`
#define TW_REFUSAL_CODE(name, text, doc) \
  inline const ::tilewright::RefusalCode name { text, doc }
