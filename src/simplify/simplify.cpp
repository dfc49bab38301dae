#include "simplify/simplify.h"

#include "simplify/rewriter.h"
#include "simplify/rules.h"

namespace quartet::simplify {
namespace {

constexpr NamedRule kRules[] = {
    {"decompose", decompose},
    {"decompose", decompose_reduction},
    {"decompose", decompose_conv},
    {"fold", fold},
    {"remove_identity", remove_identity},
    {"merge_views", merge_views},
    {"sink_layout", sink_layout},
    {"power", power},
    {"algebra", algebra},
    {"narrow_operands", narrow_operands},
    {"gather_slice", gather_slice},
};

}  // namespace

Result<std::shared_ptr<const graph::Graph>> simplify(const std::shared_ptr<const graph::Graph>& graph,
                                                     const Options& options) {
  std::vector<NamedRule> rules;
  for (const NamedRule& rule : kRules)
    if (std::string_view(rule.name) == "decompose" || !options.disabled.contains(rule.name)) rules.push_back(rule);
  auto rewritten = Rewriter(*graph, options, rules).run();
  if (!rewritten) return rewritten.status().with_stage("simplify");
  if (options.disabled.contains("remove_dead")) return rewritten;
  auto alive = std::make_shared<const graph::Graph>(remove_dead(**rewritten));
  if (const Status bad = graph::verify(*alive); !bad)
    return make_error(Code::internal, "removing dead ops: %s", bad.message().c_str()).with_stage("simplify");
  return std::shared_ptr<const graph::Graph>(std::move(alive));
}

}  // namespace quartet::simplify
