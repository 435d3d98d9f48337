#include "support/events.h"

#include <cmath>

#include "support/reflect_json.h"
#include "support/schema.h"

namespace tilewright {

namespace {

constexpr int format_version = 1;

/// Calls f.template operator()<T>() for each event struct.
template <class F, size_t... i>
void for_each_kind(F&& f, std::index_sequence<i...>) {
  (f.template operator()<std::variant_alternative_t<i, EventBody>>(), ...);
}
template <class F>
void for_each_kind(F&& f) {
  for_each_kind(std::forward<F>(f), std::make_index_sequence<std::variant_size_v<EventBody>>());
}

Json parse_json(std::string_view line) { return Json::parse(line, nullptr, /*allow_exceptions=*/false); }

tl::unexpected<Refusal> not_an_event(std::string message) { return refuse(event_invalid, std::move(message)); }

/// The four fields that every line has; `kind` points into `json`.
struct Head {
  int64_t v = 0, seq = 0;
  double t = 0;
  std::string kind;
  TW_FIELDS(v, seq, t, kind)
};

Register<Schema> schema_entry{"events", "one line of a run's journal, events.jsonl", {events_schema}};

}  // namespace

std::string_view kind(const EventBody& body) {
  return std::visit([](const auto& event) { return event.kind; }, body);
}

std::string to_line(const Event& event) {
  Json line = reflect_json::write(Head{format_version, event.seq, event.t, std::string(kind(event.body))});
  line.update(std::visit([](const auto& body) { return reflect_json::write(body); }, event.body));
  // Text from compilers and users may not be UTF-8; a journal line always is.
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<ParsedEvent> parse_line(std::string_view line) {
  Json json = parse_json(line);
  if (!json.is_object()) return not_an_event("expected a JSON object, found something else or a cut line");
  Head head;
  Status status = reflect_json::read(json, head, "");
  if (!status) return not_an_event(status.error().diagnostic().message);
  if (head.v != format_version)
    return not_an_event(fmt::format("the line has format version {}, this program reads {}", head.v, format_version));
  ParsedEvent parsed{head.seq, std::nullopt};
  for_each_kind([&]<class T>() {
    if (T::kind != head.kind) return;
    T body;
    status = reflect_json::read(json, body, "");
    if (status) parsed.event = Event{head.seq, head.t, std::move(body)};
  });
  if (!status) return not_an_event(fmt::format("{}: {}", head.kind, status.error().diagnostic().message));
  return parsed;
}

std::string events_schema() {
  Json kinds = Json::array();
  for_each_kind([&]<class T>() {
    Json head = reflect_json::schema<Head>(), body = reflect_json::schema<T>();
    head["properties"]["v"] = {{"const", format_version}};
    head["properties"]["kind"] = {{"const", T::kind}};
    head["properties"].update(body["properties"]);
    head["required"] = Json::array({"v", "seq", "t", "kind"});
    for (const Json& field : body["required"]) head["required"].push_back(field);
    kinds.push_back({{"title", T::kind}, {"description", T::doc}});
    kinds.back().update(head);
  });
  return Json({{"$schema", "https://json-schema.org/draft/2020-12/schema"},
               {"$id", "tilewright/events@1"},
               {"title", "one line of events.jsonl; readers skip unknown kinds and fields"},
               {"oneOf", kinds}})
      .dump(2);
}

EventStream::EventStream(std::function<double()> clock, int64_t last_seq) : clock_(std::move(clock)), seq_(last_seq) {}

void EventStream::add(Observer& observer) {
  std::scoped_lock guard(mutex_);
  observers_.push_back(&observer);
}

int64_t EventStream::emit(EventBody body) {
  std::scoped_lock guard(mutex_);
  Event event{++seq_, std::round(clock_() * 1e6) / 1e6, std::move(body)};
  for (Observer* observer : observers_) observer->on_event(event);
  return event.seq;
}

int64_t EventStream::last_seq() const {
  std::scoped_lock guard(mutex_);
  return seq_;
}

}  // namespace tilewright
