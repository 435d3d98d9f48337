// Wire messages ↔ the plain types of measure/. Decoding never trusts: an unknown enum value becomes "unspecified", a
// wrong length an empty id; what must not be empty is refused by the one who reads it.
#pragma once

#include "measure/check/plan.h"
#include "measure/measurer.h"
#include "proto/tune.pb.h"

namespace tilewright::measure {

namespace wire = tilewright::tune::v1;
namespace record_wire = tilewright::record::v1;

std::string encode_id(const MeasurementId& id);
MeasurementId decode_id(const std::string& bytes);

void encode(const Outcome& from, record_wire::Outcome& to);
Outcome decode(const record_wire::Outcome& from);
void encode(const BuildReport& from, record_wire::BuildReport& to);
BuildReport decode(const record_wire::BuildReport& from);

void encode(const BuildOptions& from, wire::BuildSpec& to);
BuildOptions decode(const wire::BuildSpec& from);
void encode(const RunSpec& from, wire::RunSpec& to);
RunSpec decode(const wire::RunSpec& from);
/// Program and target travel as blobs: the message names their digests.
void encode(const Job& from, const std::string& program, const std::string& target, wire::Job& to);
/// Without program and target.
Job decode(const wire::Job& from);

void encode(const CheckPlan& from, wire::CheckPlan& to);
/// Refused if a dtype is unknown or a shape is not positive.
Result<CheckPlan> decode(const wire::CheckPlan& from);
void encode(const EntryInfo& from, wire::Entry& to);
EntryInfo decode(const wire::Entry& from);

void encode(const DeviceInfo& from, wire::DeviceInfo& to);
DeviceInfo decode(const wire::DeviceInfo& from);
void encode(const Calibration& from, wire::Calibrated& to);
Calibration decode(const wire::Calibrated& from);

TW_REFUSAL_CODE(message_invalid, "message-invalid", "a message of another process is not what the protocol says");

}  // namespace tilewright::measure
