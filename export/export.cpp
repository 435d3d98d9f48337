#include "export/export.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "codegen/codegen.h"
#include "ir/print.h"
#include "lowering/pipeline.h"
#include "schedule/schedule.h"

namespace tilewright {

namespace {

bool is_identifier(const std::string& s) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !s.empty() && letter(s[0]) &&
         std::all_of(s.begin(), s.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

/// What a C compiler or linker would take for something else; empty: the name is free.
std::string taken(const std::string& name) {
  static const std::set<std::string_view> keywords{
      "alignas",       "alignof",   "auto",     "bool",         "break",     "case",    "char",     "const",
      "constexpr",     "continue",  "default",  "do",           "double",    "else",    "enum",     "extern",
      "false",         "float",     "for",      "goto",         "if",        "inline",  "int",      "long",
      "nullptr",       "register",  "restrict", "return",       "short",     "signed",  "sizeof",   "static",
      "static_assert", "struct",    "switch",   "thread_local", "true",      "typedef", "typeof",   "typeof_unqual",
      "union",         "unsigned",  "void",     "volatile",     "while",     "asm",     "class",    "delete",
      "new",           "namespace", "operator", "private",      "protected", "public",  "template", "this",
      "throw",         "try",       "typename", "using",        "virtual",   "catch",   "friend",   "mutable"};
  if (keywords.contains(name)) return "a word of C or C++";
  if (name == "main") return "the entry of every program";
  if (name.starts_with("_")) return "reserved for the compiler and its library";
  if (name.starts_with("tw_")) return "reserved for the runtime of exported kernels";
  for (const char* library : {"libc.so.6", "libm.so.6"})
    if (void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD)) {
      const bool there = dlsym(handle, name.c_str()) != nullptr;
      dlclose(handle);
      if (there) return "a function of the C library";
    }
  return "";
}

Result<Schedule> scheduled(const ExportRequest& r) {
  if (r.trace.empty()) return Schedule(r.program);
  TW_TRY(Trace trace, trace_from_json(r.trace));
  Replayed replayed = replay(trace, r.program, Rng(0));
  if (!replayed.refusals.empty()) {
    const Refusal why = replayed.refusals[0].refusal;
    return refuse(trace_does_not_apply, [why, at = replayed.refusals[0].instruction] {
      Diagnostic d = why.diagnostic();
      d.message = fmt::format("instruction {} of the trace is refused: {} ({})", at, d.message, d.code);
      return d;
    });
  }
  return std::move(replayed.schedule);
}

Result<codegen::CompiledObject> build(const Function& f, const std::string& symbol, const ExportRequest& r) {
  auto named = std::make_unique<Function>(f);
  named->name = symbol;
  named->attrs["global_symbol"] = symbol;
  FunctionRef function(named.release());
  TW_TRY_VOID(codegen::check_generated(*function, r.target));
  TW_TRY(lowering::LowerOptions options, lowering::LowerOptions::parse(r.lower));
  TW_TRY(lowering::LoweredFunction lowered, lowering::lower(*function, r.target, options));
  return codegen::compile(lowered, r.target);
}

/// Beside the core library, as built and as installed.
std::filesystem::path runtime_directory() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&export_files), &info)) return {};
  return std::filesystem::canonical(info.dli_fname).parent_path() / "tilewright";
}

Result<std::string> runtime_file(const std::string& name) {
  std::filesystem::path path = runtime_directory() / name;
  std::ifstream file(path, std::ios::binary);
  if (!file) return refuse(runtime_missing, fmt::format("expected {}, found no such file", path.string()));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

Status add_cpu(const ExportRequest& r, std::vector<ExportFile>& files, std::vector<std::string>& objects) {
  TW_TRY(Schedule s, scheduled(r));
  TW_TRY(codegen::CompiledObject kernel, build(s.function(), r.name + "_kernel", r));
  TW_TRY(codegen::CompiledObject reference, build(Schedule(r.program).function(), r.name + "_reference_kernel", r));
  files.push_back(
      {r.name + ".h", export_header(r, s.function(), kernel.workspace_bytes, kernel.workspace_slice_bytes)});
  files.push_back({r.name + ".o", kernel.object});
  files.push_back({r.name + "_reference.o", reference.object});
  TW_TRY(std::string runtime, runtime_file("tw_runtime.o"));
  objects = {kernel.object, runtime};
  TW_TRY(std::string library, codegen::link_shared(objects));
  files.push_back({"lib" + r.name + ".so", library});
  files.push_back({r.name + ".json", r.trace});
  return {};
}

}  // namespace

Result<std::vector<ExportFile>> export_files(const std::vector<ExportRequest>& requests, const std::string& form) {
  std::vector<ExportFile> files;
  for (const ExportRequest& r : requests) {
    if (!is_identifier(r.name))
      return refuse(Refusal(export_name_invalid, fmt::format("expected a C identifier as name, found \"{}\"", r.name))
                        .with_help("pass --name NAME"));
    if (std::string by = taken(r.name); !by.empty())
      return refuse(Refusal(export_name_invalid,
                            fmt::format("expected a name that is free in C, found \"{}\", which is {}", r.name, by))
                        .with_help(fmt::format("--name {}_kernel", r.name.starts_with("_") ? "my" : r.name)));
    if (form == "trace") {
      TW_TRY(Trace trace, trace_from_json(r.trace.empty() ? "[[],[]]" : r.trace));
      files.push_back({r.name + ".json", r.trace + "\n"});
      files.push_back({r.name + ".py", trace_to_python(trace)});
    } else if (form == "program") {
      TW_TRY(Schedule s, scheduled(r));
      files.push_back({r.name + ".py", print(*s.program())});
    } else if (form == "cpu") {
      std::vector<std::string> objects;
      TW_TRY_VOID(add_cpu(r, files, objects));
    } else {
      std::string hint = did_you_mean(form, {"trace", "program", "cpu"});
      Refusal unknown(export_form_unknown,
                      fmt::format("no export form is called \"{}\"; there are trace, program and cpu", form));
      return refuse(hint.empty() ? unknown : unknown.with_help(fmt::format("did you mean \"{}\"?", hint)));
    }
  }
  if (form != "cpu") return files;
  for (const char* name : {"tw_runtime.h", "tw_runtime.c"}) {
    TW_TRY(std::string text, runtime_file(name));
    files.push_back({name, text});
  }
  files.push_back({"main.c", export_main(requests)});
  files.push_back({"CMakeLists.txt", export_cmake(requests)});
  return files;
}

Status write_files(const std::string& directory, const std::vector<ExportFile>& files) {
  std::error_code ec;
  std::filesystem::create_directories(directory, ec);
  if (ec) return refuse(file_not_writable, fmt::format("cannot make {}: {}", directory, ec.message()));
  for (const ExportFile& f : files) {
    std::filesystem::path path = std::filesystem::path(directory) / f.name, temporary = path;
    temporary += ".tmp";
    {
      std::ofstream out(temporary, std::ios::binary);
      out << f.bytes;
      out.flush();
      if (!out) {
        std::filesystem::remove(temporary, ec);
        return refuse(file_not_writable, fmt::format("cannot write {}", path.string()));
      }
    }
    std::filesystem::rename(temporary, path, ec);
    if (ec) return refuse(file_not_writable, fmt::format("cannot write {}: {}", path.string(), ec.message()));
  }
  return {};
}

}  // namespace tilewright
