// Intrusive reference counting for immutable nodes. A node is written only while it is being built, through
// the Mutable handle that `Ref<T>::edit` gives; after that every Ref to it is const and may cross threads.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

namespace tilewright {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) {}  // a copied node starts its own count
  RefCounted& operator=(const RefCounted&) { return *this; }
  virtual ~RefCounted() = default;

  void retain() const { refs_.fetch_add(1, std::memory_order_relaxed); }
  void release() const {
    if (refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

 private:
  mutable std::atomic<uint32_t> refs_{0};
};

/// A possibly null, shared, const pointer to an immutable node.
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(const T* node) : node_(node) {
    if (node_) node_->retain();
  }
  Ref(const Ref& o) : Ref(o.node_) {}
  Ref(Ref&& o) noexcept : node_(std::exchange(o.node_, nullptr)) {}
  template <class U>
    requires std::derived_from<U, T>
  Ref(const Ref<U>& o) : Ref(static_cast<const T*>(o.get())) {}
  ~Ref() {
    if (node_) node_->release();
  }
  Ref& operator=(Ref o) noexcept {
    std::swap(node_, o.node_);
    return *this;
  }

  const T* get() const { return node_; }
  const T* operator->() const { return node_; }
  const T& operator*() const { return *node_; }
  explicit operator bool() const { return node_ != nullptr; }
  bool same_as(const Ref& o) const { return node_ == o.node_; }

 private:
  const T* node_ = nullptr;
};

}  // namespace tilewright
