#include "codegen/cpu/body_shape.h"

#include <algorithm>
#include <map>

#include "kernel/ops.h"

namespace quartet::codegen {
namespace {

using kernel::Op;

class Survey {
 public:
  Survey(const kernel::Kernel& kernel, const std::vector<bool>& varying) : kernel_(kernel), varying_(varying) {}

  void region(const kernel::Region& region) {
    for (const kernel::Statement& s : region.body) {
      statement(s);
      for (const kernel::Region& inner : s.regions) this->region(inner);
    }
  }

  // 16-bit floats are computed in 32 bits.
  void computed(DType type) {
    if (type == DType::invalid || type == DType::boolean) return;
    sized(is_float(type) ? std::max<size_t>(size_of(type), 4) : size_of(type));
  }

  // Lanes by the widest type up to 32 bits, since two registers of a wider one are no harm; else by that.
  size_t main_size() const {
    for (const size_t size : {4u, 8u, 2u})
      if (sizes_ & size) return size;
    return sizes_ & 1u ? 1 : 8;
  }
  size_t smallest_run() const { return smallest_run_; }
  size_t statements() const { return statements_; }
  bool nested() const { return nested_; }

 private:
  void sized(size_t size) { sizes_ |= size; }

  void statement(const kernel::Statement& s) {
    ++statements_;
    if (kernel::has_regions(s.op)) nested_ = true;
    if (s.op == Op::load || s.op == Op::store) {
      const size_t size = size_of(kernel_.buffers[static_cast<size_t>(s.buffer)].dtype);
      sized(size);
      if (varying_[static_cast<size_t>(s.operands[0])]) smallest_run_ = std::min(smallest_run_, size);
    } else if (kernel::is_scalar(s.op)) {  // i64 is index arithmetic, mostly kept scalar
      if (s.dtype != DType::i64) computed(s.dtype);
      const DType from = kernel_.value_types[static_cast<size_t>(s.operands.back())];
      if (from != DType::i64) computed(from);
    }
  }

  const kernel::Kernel& kernel_;
  const std::vector<bool>& varying_;
  size_t sizes_ = 0;  // a set: sizes are powers of two
  size_t smallest_run_ = 8;
  size_t statements_ = 0;
  bool nested_ = false;
};

}  // namespace

BodyShape body_shape(const kernel::Kernel& kernel, const kernel::Region& body, const std::vector<bool>& varying,
                     const Target& target, DType also) {
  Survey survey(kernel, varying);
  survey.region(body);
  survey.computed(also);
  BodyShape shape;
  shape.lanes = target.lanes(survey.main_size());
  shape.masks = target.masks_access(survey.smallest_run());
  shape.statements = survey.statements();
  shape.nested = survey.nested();
  return shape;
}

namespace {

constexpr uint64_t kCeiling = uint64_t{1} << 40;

class Count {
 public:
  explicit Count(const Target& target) : target_(target) {}

  uint64_t region(const kernel::Region& region) {
    uint64_t sum = 0;
    for (const kernel::Statement& s : region.body) sum = std::min(kCeiling, sum + statement(s));
    return sum;
  }

 private:
  uint64_t statement(const kernel::Statement& s) {
    if (s.op == Op::constant && s.dtype == DType::i64) constants_[s.results[0]] = s.immediate;
    uint64_t inner = 1;
    for (const kernel::Region& r : s.regions) inner = std::min(kCeiling, inner + region(r));
    return std::min(kCeiling, inner * copies(s));
  }

  uint64_t copies(const kernel::Statement& s) const {
    switch (s.op) {
      case Op::loop:
        if (s.loop == kernel::LoopKind::vector) return 6;  // four runs, a run or an element for the rest
        return s.loop == kernel::LoopKind::unrolled ? trips(s) : 1;
      case Op::reduce: {
        const uint64_t lanes = static_cast<uint64_t>(target_.lanes(std::max<size_t>(size_of(s.dtype), 1)));
        return std::max<uint64_t>(static_cast<uint64_t>(s.interleave) / lanes, 8) + 2;
      }
      case Op::contract: {
        const int lanes = target_.lanes(size_of(s.dtype));
        const uint64_t vectors = static_cast<uint64_t>(s.columns / lanes) + 1;
        return static_cast<uint64_t>(s.rows) * vectors * 2 + 512;  // and the multiply-adds of the unrolled loop over k
      }
      default:
        return 1;
    }
  }

  uint64_t trips(const kernel::Statement& s) const {
    int64_t bounds[3] = {0, 64, 1};
    for (size_t i = 0; i < 3; ++i)
      if (const auto found = constants_.find(s.operands[i]); found != constants_.end()) bounds[i] = found->second;
    if (bounds[1] <= bounds[0] || bounds[2] <= 0) return 1;
    return static_cast<uint64_t>((bounds[1] - bounds[0] - 1) / bounds[2] + 1);
  }

  const Target& target_;
  std::map<kernel::ValueId, int64_t> constants_;
};

}  // namespace

uint64_t emitted_statements(const kernel::Kernel& kernel, const Target& target) {
  return Count(target).region(kernel.body);
}

}  // namespace quartet::codegen
