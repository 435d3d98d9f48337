// The public face: arguments are bound to registers and memory, the code is run.
#include "ir/interpret/interpret.h"

#include <fmt/format.h>

#include "ir/interpret/code.h"

namespace tilewright {

namespace interpreter {

namespace {

Status mismatch(const InterpreterCode& code, size_t i, const std::string& expected, const std::string& found) {
  return refuse(argument_mismatch, fmt::format("argument {} ({}) of {}: expected {}, found {}", i,
                                               code.parameters[i].name, code.function, expected, found));
}

}  // namespace

Status bind_arguments(const InterpreterCode& code, std::span<Tensor> args, std::span<Reg> registers,
                      std::span<Memory> memory) {
  if (args.size() != code.parameters.size())
    return refuse(argument_mismatch,
                  fmt::format("{} takes {} arguments, found {}", code.function, code.parameters.size(), args.size()));
  for (size_t i = 0; i < args.size(); ++i) {
    const ParameterBinding& p = code.parameters[i];
    Tensor& t = args[i];
    if (!p.is_handle && t.dtype != p.dtype) return mismatch(code, i, p.dtype.str(), t.dtype.str());
    if (p.memory >= 0)
      memory[static_cast<size_t>(p.memory)] = {t.bytes.data(), static_cast<int64_t>(t.bytes.size()), nullptr};
    if (p.value_reg >= 0) {
      if (!t.shape.empty()) return mismatch(code, i, "a scalar", fmt::format("rank {}", t.shape.size()));
      Reg& reg = registers[static_cast<size_t>(p.value_reg)];
      if (!t.dtype.is_float())
        reg.i = t.get_int(0);
      else if (t.dtype.bits == 64)
        reg.d = t.get(0);
      else
        reg.f = static_cast<float>(t.get(0));
    }
    if (!p.is_buffer) continue;
    if (t.shape.size() != p.extents.size())
      return mismatch(code, i, fmt::format("rank {}", p.extents.size()), fmt::format("rank {}", t.shape.size()));
    for (size_t d = 0; d < t.shape.size(); ++d) {
      if (p.extents[d] >= 0 ? p.extents[d] != t.shape[d] : t.shape[d] > (int64_t{1} << 31))
        return mismatch(
            code, i, fmt::format("extent {} in dimension {}", p.extents[d] >= 0 ? p.extents[d] : int64_t{1} << 31, d),
            fmt::format("{}", t.shape[d]));
      if (p.extents[d] < 0) registers[static_cast<size_t>(p.extent_regs[d])].i = t.shape[d];
    }
  }
  return {};
}

}  // namespace interpreter

using interpreter::InterpreterCode;

Interpreter::Interpreter(std::unique_ptr<const InterpreterCode> code) : code_(std::move(code)) {}
Interpreter::Interpreter(Interpreter&&) noexcept = default;
Interpreter& Interpreter::operator=(Interpreter&&) noexcept = default;
Interpreter::~Interpreter() = default;

Result<Interpreter> Interpreter::compile(const Function& f, const InterpretOptions& options) {
  TW_TRY(InterpreterCode code, interpreter::compile_function(f, options));
  return Interpreter(std::make_unique<const InterpreterCode>(std::move(code)));
}

Result<InterpretStats> Interpreter::run(std::span<Tensor> args) const {
  std::vector<interpreter::Reg> registers = code_->registers;
  std::vector<interpreter::Memory> memory(code_->memory.size());
  TW_TRY_VOID(interpreter::bind_arguments(*code_, args, registers, memory));
  InterpretStats stats;
  TW_TRY_VOID(interpreter::run_code(*code_, 0, registers, memory, stats.steps));
  return stats;
}

size_t Interpreter::instructions() const { return code_->code.size(); }

std::string Interpreter::disassemble() const {
  std::string out;
  for (size_t i = 0; i < code_->code.size(); ++i) {
    const interpreter::Instr& in = code_->code[i];
    out += fmt::format("{:5} {:14} d={} a={} b={} c={} x={}", i, interpreter::op_name(in.op), in.d, in.a, in.b, in.c,
                       in.x);
    if (in.op == interpreter::Op::lea) {
      const interpreter::Lea& lea = code_->leas[static_cast<size_t>(in.b)];
      out += fmt::format("   r{} = {}", in.d, lea.constant);
      for (int t = 0; t < lea.terms; ++t) out += fmt::format(" + r{}*{}", lea.reg[t], lea.coefficient[t]);
    }
    out += '\n';
  }
  return out;
}

Result<InterpretStats> interpret(const Function& f, std::span<Tensor> args, const InterpretOptions& options) {
  TW_TRY(Interpreter program, Interpreter::compile(f, options));
  return program.run(args);
}

}  // namespace tilewright
