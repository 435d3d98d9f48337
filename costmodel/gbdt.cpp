// The only file that sees XGBoost (C API, 1.7), built as libtilewright-gbdt.so. See gbdt.h for the contract.
#include "costmodel/gbdt.h"

#include <xgboost/c_api.h>

#include <cmath>
#include <limits>
#include <utility>

#include "support/check.h"

namespace tilewright {
namespace {

// Arguments are checked before they get here, so a failing call is a bug of ours.
void check(int rc, const char* call) { TW_CHECK(rc == 0, "{}: {}", call, XGBGetLastError()); }
#define TW_XGB(call_, ...) check(call_(__VA_ARGS__), #call_)

class Matrix {
 public:
  explicit Matrix(RowMatrix rows) {
    TW_CHECK(rows.rows() > 0, "a training matrix needs at least one row");
    for (float x : rows.values) TW_CHECK(std::isfinite(x), "a feature is not finite");
    TW_XGB(XGDMatrixCreateFromMat, rows.values.data(), rows.rows(), static_cast<bst_ulong>(rows.width),
           std::numeric_limits<float>::quiet_NaN(), &handle_);
  }
  ~Matrix() {
    if (handle_) XGDMatrixFree(handle_);
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;
  DMatrixHandle get() const { return handle_; }

 private:
  DMatrixHandle handle_ = nullptr;
};

class XgboostTrainer final : public TreeTrainer {
 public:
  XgboostTrainer(const TreeParameters& p, RowMatrix train, RowMatrix held_out) : train_(train), rows_(train.rows()) {
    if (held_out.rows() > 0) held_out_ = std::make_unique<Matrix>(held_out);
    // Matrices named here keep cached margins, so that a round adds one tree to them instead of predicting anew.
    const DMatrixHandle cached[] = {train_.get(), held_out_ ? held_out_->get() : nullptr};
    TW_XGB(XGBoosterCreate, cached, held_out_ ? 2u : 1u, &booster_);
    set("booster", "gbtree");
    // `auto` would choose the exact method at our sizes: 5-15 times slower for the same quality (search.md §10).
    set("tree_method", "hist");
    set("objective", "reg:squarederror");  // gradients are always ours; this one makes the margin the prediction
    set("disable_default_eval_metric", "1");
    set("nthread", "1");
    set("verbosity", "0");
    // A tree then depends on (seed, round) alone and not on other boosters trained in the same thread meanwhile.
    set("seed_per_iteration", "1");
    set("seed", fmt::format("{}", p.seed));
    set("max_depth", fmt::format("{}", p.max_depth));
    set("max_bin", fmt::format("{}", p.max_bin));
    set("min_child_weight", fmt::format("{}", p.min_child_weight));
    set("gamma", fmt::format("{}", p.gamma));
    set("eta", fmt::format("{}", p.eta));
    set("lambda", fmt::format("{}", p.lambda));
    set("subsample", fmt::format("{}", p.subsample));
    set("base_score", fmt::format("{}", p.base_score));
  }
  ~XgboostTrainer() override {
    if (booster_) XGBoosterFree(booster_);
  }

  std::span<const float> margins() override { return margins_of(train_, true); }
  std::span<const float> held_out_margins() override {
    if (!held_out_) return {};
    return margins_of(*held_out_, true);
  }
  void boost(std::span<float> gradient, std::span<float> hessian) override {
    TW_CHECK(gradient.size() == rows_ && hessian.size() == rows_, "expected {} gradients, found {} and {}", rows_,
             gradient.size(), hessian.size());
    TW_XGB(XGBoosterBoostOneIter, booster_, train_.get(), gradient.data(), hessian.data(), gradient.size());
  }
  std::vector<float> predict(RowMatrix rows) override {
    if (rows.rows() == 0) return {};
    Matrix fresh(rows);
    std::span<const float> margins = margins_of(fresh, false);
    return {margins.begin(), margins.end()};
  }
  std::string save_json() override {
    bst_ulong size = 0;
    const char* data = nullptr;
    TW_XGB(XGBoosterSaveModelToBuffer, booster_, R"({"format": "json"})", &size, &data);
    return {data, size};
  }

 private:
  void set(const char* name, const std::string& value) { TW_XGB(XGBoosterSetParam, booster_, name, value.c_str()); }
  std::span<const float> margins_of(const Matrix& matrix, bool training) {
    constexpr int output_margin = 1;
    bst_ulong size = 0;
    const float* data = nullptr;
    TW_XGB(XGBoosterPredict, booster_, matrix.get(), output_margin, 0, training ? 1 : 0, &size, &data);
    return {data, size};
  }

  Matrix train_;
  size_t rows_;
  std::unique_ptr<Matrix> held_out_;
  BoosterHandle booster_ = nullptr;
};

Register<TreeTrainerFactory> xgboost{
    "xgboost",
    "gradient boosted trees, histogram method, one thread",
    {[](const TreeParameters& p, RowMatrix train, RowMatrix held_out) -> std::unique_ptr<TreeTrainer> {
      return std::make_unique<XgboostTrainer>(p, train, held_out);
    }}};

}  // namespace
}  // namespace tilewright
