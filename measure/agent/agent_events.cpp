#include "measure/agent/agent_events.h"

#include "support/events.h"

namespace tilewright::measure {

namespace {
std::string line(EventBody body) { return to_line(Event{1, 0, std::move(body)}); }
}  // namespace

std::string device_facts_line(const DeviceInfo& device) {
  DeviceFacts facts;
  facts.device = device.uuid, facts.host = "local", facts.model = device.name, facts.device_class = device.kind;
  facts.facts = device.facts;
  return line(facts);
}

std::string reference_built_line(uint16_t task, const std::string& digest, const std::string& inputs, int64_t elements,
                                 double seconds) {
  ReferenceBuilt built;
  built.task = task, built.digest = digest, built.inputs = inputs, built.elements = elements, built.elapsed_s = seconds;
  return line(built);
}

std::string warning_line(const std::string& code, const std::string& message) {
  Warning warning;
  warning.code = code, warning.message = message;
  return line(warning);
}

}  // namespace tilewright::measure
