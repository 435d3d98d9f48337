#include "ir/interpret/tensor.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include "ir/build.h"
#include "ir/interpret/small_float.h"
#include "support/rng.h"

namespace tilewright {

namespace {

SmallTable make_table(TypeCode code) {
  SmallTable table{};
  const uint32_t count = code == TypeCode::float4_e2m1fn ? 16 : 256;
  for (uint32_t i = 0; i < count; ++i) table[i] = small_value_slow(code, i);
  return table;
}

template <class T>
T read_at(const std::byte* p, int64_t i) {
  T x;
  std::memcpy(&x, p + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return x;
}
template <class T>
void write_at(std::byte* p, int64_t i, T x) {
  std::memcpy(p + i * static_cast<int64_t>(sizeof(T)), &x, sizeof(T));
}

/// Raw bits of an element, zero-extended.
uint64_t raw_bits(const Tensor& t, int64_t i) {
  switch (t.dtype.is_bool() ? 8 : t.dtype.bits) {
    case 64:
      return read_at<uint64_t>(t.bytes.data(), i);
    case 32:
      return read_at<uint32_t>(t.bytes.data(), i);
    case 16:
      return read_at<uint16_t>(t.bytes.data(), i);
    case 8:
      return read_at<uint8_t>(t.bytes.data(), i);
    default: {
      const int bits = t.dtype.bits;
      const unsigned byte = read_at<uint8_t>(t.bytes.data(), i * bits / 8);
      return (byte >> (i * bits % 8)) & ((1u << bits) - 1);
    }
  }
}

void set_raw_bits(Tensor& t, int64_t i, uint64_t u) {
  switch (t.dtype.is_bool() ? 8 : t.dtype.bits) {
    case 64:
      return write_at(t.bytes.data(), i, u);
    case 32:
      return write_at(t.bytes.data(), i, static_cast<uint32_t>(u));
    case 16:
      return write_at(t.bytes.data(), i, static_cast<uint16_t>(u));
    case 8:
      return write_at(t.bytes.data(), i, static_cast<uint8_t>(u));
    default: {
      const int bits = t.dtype.bits, shift = static_cast<int>(i * bits % 8);
      const unsigned mask = ((1u << bits) - 1) << shift;
      unsigned byte = read_at<uint8_t>(t.bytes.data(), i * bits / 8);
      byte = (byte & ~mask) | ((static_cast<unsigned>(u) << shift) & mask);
      write_at(t.bytes.data(), i * bits / 8, static_cast<uint8_t>(byte));
    }
  }
}

double float_of_bits(DType t, uint64_t u) {
  if (t.code == TypeCode::bfloat) return bfloat16_value(static_cast<uint16_t>(u));
  if (t.code != TypeCode::ieee_float) return small_values(t.code)[u];
  if (t.bits == 64) return std::bit_cast<double>(u);
  return t.bits == 32 ? std::bit_cast<float>(static_cast<uint32_t>(u)) : float16_value(static_cast<uint16_t>(u));
}

uint64_t bits_of_float(DType t, double x) {
  if (t.code == TypeCode::ieee_float && t.bits == 64) return std::bit_cast<uint64_t>(x);
  const float rounded = round_to_type(t.code, t.bits, x);
  if (t.code == TypeCode::bfloat) return bfloat16_bits(rounded);
  if (t.code != TypeCode::ieee_float) return small_bits(t.code, rounded);
  return t.bits == 32 ? std::bit_cast<uint32_t>(rounded) : float16_bits(rounded);
}

std::string position(const Tensor& t, int64_t linear) {
  std::string out;
  for (size_t d = t.shape.size(); d-- > 0;) {
    out = fmt::format("{}{}{}", linear % t.shape[d], out.empty() ? "" : ", ", out);
    linear /= t.shape[d];
  }
  return out;
}

template <class Same>
Status compare(const Tensor& expected, const Tensor& actual, const char* what, Same&& same) {
  if (expected.dtype != actual.dtype || expected.shape != actual.shape)
    return refuse(tensors_differ,
                  fmt::format("expected a {} tensor of shape [{}], found {} of shape [{}]", expected.dtype.str(),
                              fmt::join(expected.shape, ", "), actual.dtype.str(), fmt::join(actual.shape, ", ")));
  int64_t wrong = 0, first = -1;
  const int64_t n = expected.size();
  for (int64_t i = 0; i < n; ++i)
    if (!same(i)) {
      if (first < 0) first = i;
      ++wrong;
    }
  if (!wrong) return {};
  auto show = [&](const Tensor& t) {
    return t.dtype.is_float() ? fmt::format("{:.9g}", t.get(first)) : fmt::format("{}", t.get_int(first));
  };
  return refuse(tensors_differ, fmt::format("{} of {} elements differ ({}); the first at [{}]: expected {}, found {}",
                                            wrong, n, what, position(expected, first), show(expected), show(actual)));
}

}  // namespace

const SmallTable& small_values(TypeCode code) {
  static const SmallTable e4m3 = make_table(TypeCode::float8_e4m3fn), e5m2 = make_table(TypeCode::float8_e5m2),
                          e8m0 = make_table(TypeCode::float8_e8m0fnu), e2m1 = make_table(TypeCode::float4_e2m1fn);
  switch (code) {
    case TypeCode::float8_e4m3fn:
      return e4m3;
    case TypeCode::float8_e5m2:
      return e5m2;
    case TypeCode::float8_e8m0fnu:
      return e8m0;
    default:
      return e2m1;
  }
}

int64_t packed_bytes(DType dtype, int64_t elements) {
  if (dtype.is_bool() || dtype.is_handle()) return elements * dtype.lanes * dtype.element_bytes();
  return (elements * dtype.lanes * dtype.bits + 7) / 8;
}

Tensor::Tensor(DType type, std::vector<int64_t> extents) : dtype(type), shape(std::move(extents)) {
  bytes.resize(static_cast<size_t>(packed_bytes(dtype.element(), size())));
}

Tensor Tensor::scalar(DType dtype, double value) {
  Tensor t(dtype, {});
  t.set(0, value);
  return t;
}

int64_t Tensor::size() const {
  int64_t n = dtype.lanes;
  for (int64_t extent : shape) n *= extent;
  return n;
}

double Tensor::get(int64_t i) const {
  return dtype.is_float() ? float_of_bits(dtype.element(), raw_bits(*this, i)) : static_cast<double>(get_int(i));
}

int64_t Tensor::get_int(int64_t i) const {
  if (dtype.is_float()) return static_cast<int64_t>(get(i));
  uint64_t u = raw_bits(*this, i);
  if (dtype.is_int() && dtype.bits < 64 && (u >> (dtype.bits - 1))) u |= ~uint64_t{0} << dtype.bits;
  return static_cast<int64_t>(u);
}

void Tensor::set(int64_t i, double value) {
  if (dtype.is_float())
    set_raw_bits(*this, i, bits_of_float(dtype.element(), value));
  else
    set_int(i, static_cast<int64_t>(value));
}

void Tensor::set_int(int64_t i, int64_t value) {
  if (dtype.is_float()) return set(i, static_cast<double>(value));
  set_raw_bits(*this, i, dtype.is_bool() ? value != 0 : static_cast<uint64_t>(value));
}

void fill_bytes(Tensor& t, unsigned char value) { std::memset(t.bytes.data(), value, t.bytes.size()); }

void fill(Tensor& t, InputSet set, uint64_t seed, uint64_t tensor_index) {
  const int64_t n = t.size();
  for (int64_t i = 0; i < n; ++i) {
    Rng rng = Rng::keyed(seed, tensor_index, i);
    if (set == InputSet::small) {
      const int64_t m = static_cast<int64_t>(rng.below(9)) - 4;
      t.set_int(i, t.dtype.is_bool() ? m & 1 : t.dtype.is_uint() ? std::abs(m) : m);
    } else if (t.dtype.is_float()) {
      const double x = static_cast<double>(rng.next_u32() >> 8) * 0x1p-24;  // [0, 1)
      t.set(i, set == InputSet::positive ? 0.5 + 1.5 * x : 2 * x - 1);
    } else {
      t.set_int(i, static_cast<int64_t>(t.dtype.is_bool() ? rng.next_u32() & 1 : rng.next_u64()));
    }
  }
}

std::vector<Tensor> make_arguments(const Function& f, InputSet set, uint64_t seed,
                                   const std::vector<std::pair<std::string, int64_t>>& extents) {
  std::vector<Tensor> out;
  auto extent_of = [&](const Expr& e) {
    if (std::optional<int64_t> c = const_int(e)) return *c;
    const VarNode* var = as<VarNode>(e);
    for (const auto& [name, value] : extents)
      if (var && var->name == name) return value;
    TW_UNREACHABLE("extent {} of function {} is neither constant nor given", var ? var->name : "(expression)", f.name);
  };
  for (const Param& p : f.params) {
    std::vector<int64_t> shape;
    if (p.buffer)
      for (const Expr& e : p.buffer->shape) shape.push_back(extent_of(e));
    Tensor t(p.buffer ? p.buffer->dtype : p.var->dtype, shape);
    if (p.buffer)
      fill(t, set, seed, out.size());
    else
      for (const auto& [name, value] : extents)
        if (p.var->name == name) t.set_int(0, value);
    out.push_back(std::move(t));
  }
  return out;
}

Status expect_equal(const Tensor& expected, const Tensor& actual) {
  return compare(expected, actual, "compared bit for bit", [&](int64_t i) {
    if (raw_bits(expected, i) == raw_bits(actual, i)) return true;
    return expected.dtype.is_float() && std::isnan(expected.get(i)) && std::isnan(actual.get(i));
  });
}

Status expect_close(const Tensor& expected, const Tensor& actual, double absolute, double relative) {
  return compare(expected, actual, fmt::format("tolerance {:g} + {:g} relative", absolute, relative).c_str(),
                 [&](int64_t i) {
                   const double e = expected.get(i), a = actual.get(i);
                   if (std::isnan(e) || std::isnan(a)) return std::isnan(e) && std::isnan(a);
                   if (std::isinf(e) || std::isinf(a)) return e == a;
                   return std::abs(e - a) <= absolute + relative * std::abs(e);
                 });
}

}  // namespace tilewright
