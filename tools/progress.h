// What a person sees while a run goes on: one line per event that matters. Times as people read them.
#pragma once

#include <map>
#include <set>
#include <string>

#include "support/events.h"
#include "tools/tool.h"

namespace tilewright::tools {

/// "31.2 us", three digits.
std::string nice_time(double ns);
/// "06:11"
std::string clock_text(double seconds);

class PlainProgress : public Observer {
 public:
  PlainProgress(Tool& tool, std::string run, std::string directory)
      : tool_(tool), run_(std::move(run)), directory_(std::move(directory)) {}
  void on_event(const Event&) override;

 private:
  void line(double t, const std::string& text);
  Tool& tool_;
  std::string run_, directory_;
  std::map<int64_t, std::string> tasks_;
  std::map<std::string, int64_t> failures_;
  int64_t trials_ = 0, ok_ = 0;
  double last_status_ = 0;
};

}  // namespace tilewright::tools
