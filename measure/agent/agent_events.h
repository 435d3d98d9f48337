// The journal lines an agent writes; support/events.h is a heavy header, so it is included in one file.
#pragma once

#include <cstdint>
#include <string>

#include "measure/measurer.h"

namespace tilewright::measure {

std::string device_facts_line(const DeviceInfo& device);
std::string reference_built_line(uint16_t task, const std::string& digest, const std::string& inputs, int64_t elements,
                                 double seconds);
std::string warning_line(const std::string& code, const std::string& message);

}  // namespace tilewright::measure
