// Postproc: a deterministic step after a sketch was replayed (after enter_postproc), or a check. A refusal drops the
// candidate.
#pragma once

#include <functional>

#include "schedule/schedule.h"
#include "schedule/target.h"
#include "support/registry.h"

namespace tilewright {

struct PostprocContext {
  const Target& target;
};

struct Postproc {
  static constexpr const char* registry_name = "postproc";
  std::function<Status(Schedule&, const PostprocContext&)> apply;
};

}  // namespace tilewright
