#include "schedule/sampling.h"

#include <algorithm>

#include "support/check.h"

namespace tilewright {

std::vector<std::pair<int64_t, int>> factorize(int64_t n) {
  TW_CHECK(n >= 1);
  std::vector<std::pair<int64_t, int>> out;
  for (int64_t p = 2; p * p <= n; ++p) {
    int exponent = 0;
    for (; n % p == 0; n /= p) ++exponent;
    if (exponent) out.emplace_back(p, exponent);
  }
  if (n > 1) out.emplace_back(n, 1);
  return out;
}

std::vector<int64_t> divisors(int64_t n) {
  std::vector<int64_t> out{1};
  for (auto [p, a] : factorize(n)) {
    size_t count = out.size();
    int64_t power = 1;
    for (int e = 1; e <= a; ++e) {
      power *= p;
      for (size_t i = 0; i < count; ++i) out.push_back(out[i] * power);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

namespace {

/// Weak compositions of `a` into `parts`: C(a + parts - 1, parts - 1).
double compositions(int a, int parts) {
  if (parts == 0) return a == 0 ? 1 : 0;
  double result = 1;
  for (int i = 1; i < parts; ++i) result = result * (a + i) / i;
  return result;
}

/// A uniform weak composition of `a` into `parts` (stars and bars).
std::vector<int> draw_composition(Rng& rng, int a, int parts) {
  std::vector<int> out(parts, 0);
  for (int part = 0; part + 1 < parts; ++part) {
    // P(this part = e) is proportional to the compositions of what is left.
    std::vector<double> weights;
    for (int e = 0; e <= a; ++e) weights.push_back(compositions(a - e, parts - part - 1));
    out[part] = static_cast<int>(rng.weighted(weights));
    a -= out[part];
  }
  out[parts - 1] = a;
  return out;
}

/// Compositions of the prime exponents of `rest` into n parts.
double count_free(int64_t rest, int n) {
  double count = 1;
  for (auto [p, a] : factorize(rest)) count *= compositions(a, n);
  return count;
}

Tile draw_free(Rng& rng, int64_t extent, int n) {
  Tile tile(n, 1);
  for (auto [p, a] : factorize(extent)) {
    std::vector<int> exponents = draw_composition(rng, a, n);
    for (int i = 0; i < n; ++i)
      for (int e = 0; e < exponents[i]; ++e) tile[i] *= p;
  }
  return tile;
}

}  // namespace

Tile draw_perfect_tile(Rng& rng, int64_t extent, int n, int64_t limit) {
  TW_CHECK(extent >= 1 && n >= 1);
  if (n == 1) return {extent};
  if (limit < 0 || limit >= extent) return draw_free(rng, extent, n);
  // The last factor first, weighted by the number of ways to tile the rest: exact under the limit.
  std::vector<int64_t> last;
  std::vector<double> weights;
  for (int64_t d : divisors(extent)) {
    if (d > limit) break;
    last.push_back(d);
    weights.push_back(count_free(extent / d, n - 1));
  }
  int64_t inner = last[rng.weighted(weights)];
  Tile tile = draw_free(rng, extent / inner, n - 1);
  tile.push_back(inner);
  return tile;
}

double count_perfect_tiles(int64_t extent, int n, int64_t limit) {
  if (n == 1) return 1;
  double count = 0;
  for (int64_t d : divisors(extent))
    if (limit < 0 || d <= limit) count += count_free(extent / d, n - 1);
  return count;
}

bool is_perfect_tile(const Tile& tile, int64_t extent, int n, int64_t limit) {
  if (static_cast<int>(tile.size()) != n) return false;
  int64_t rest = extent;
  for (int64_t f : tile) {
    if (f < 1 || rest % f != 0) return false;
    rest /= f;
  }
  return rest == 1 && (n == 1 || limit < 0 || tile.back() <= limit);
}

namespace {
int64_t largest_divisor_up_to(int64_t n, int64_t bound) {
  int64_t best = 1;
  for (int64_t d : divisors(n))
    if (d <= bound) best = d;
  return best;
}
}  // namespace

Tile repair_perfect_tile(Tile tile, int64_t extent, int64_t limit) {
  int64_t rest = extent;
  for (size_t i = tile.size(); i-- > 1;) {
    bool innermost = i + 1 == tile.size();
    int64_t bound = innermost && limit >= 0 ? std::min(tile[i], limit) : tile[i];
    if (bound < 1 || rest % bound != 0) bound = largest_divisor_up_to(rest, std::max<int64_t>(bound, 1));
    tile[i] = bound;
    rest /= bound;
  }
  tile[0] = rest;
  return tile;
}

Tile repair_perfect_tile_tvm(Tile tile, int64_t extent) {
  int64_t rest = extent;
  for (size_t i = tile.size(); i-- > 1;) {
    if (tile[i] < 1 || rest % tile[i] != 0) {
      tile[i] = rest;
      rest = 1;
    } else {
      rest /= tile[i];
    }
  }
  tile[0] = rest;
  return tile;
}

std::optional<Tile> draw_partitioned_tile(Rng& rng, int64_t extent, int n, int pos, int64_t inner) {
  if (extent % inner != 0) return std::nullopt;
  if (pos == 0 || inner == 1) return draw_free(rng, extent, n);
  // Condition on the inner product: a divisor of the extent that is a multiple of `inner`.
  std::vector<int64_t> products;
  std::vector<double> weights;
  for (int64_t d : divisors(extent)) {
    if (d % inner != 0) continue;
    products.push_back(d);
    weights.push_back(count_free(extent / d, pos) * count_free(d, n - pos));
  }
  int64_t product = products[rng.weighted(weights)];
  Tile tile = draw_free(rng, extent / product, pos);
  Tile rest = draw_free(rng, product, n - pos);
  tile.insert(tile.end(), rest.begin(), rest.end());
  return tile;
}

Tile repair_partitioned_tile(Tile tile, int64_t extent, int pos, int64_t inner) {
  if (extent % inner != 0) {
    std::fill(tile.begin(), tile.end(), 1);
    tile[0] = -1;
    return tile;
  }
  if (pos == 0 || inner == 1) return repair_perfect_tile(std::move(tile), extent, -1);
  int64_t wanted = 1;
  for (size_t i = pos; i < tile.size(); ++i) wanted *= std::max<int64_t>(tile[i], 1);
  int64_t product = inner;  // the nearest legal inner product
  for (int64_t d : divisors(extent))
    if (d % inner == 0 && std::abs(d - wanted) < std::abs(product - wanted)) product = d;
  Tile outer = repair_perfect_tile({tile.begin(), tile.begin() + pos}, extent / product, -1);
  Tile innermost = repair_perfect_tile({tile.begin() + pos, tile.end()}, product, -1);
  outer.insert(outer.end(), innermost.begin(), innermost.end());
  return outer;
}

}  // namespace tilewright
