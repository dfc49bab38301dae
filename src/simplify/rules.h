// The rewrites, one a file. README.md says what each does.
#pragma once

#include "simplify/rewriter.h"

namespace quartet::simplify {

Replacement decompose(Rewriter& r, const Candidate& c);            // composites to primitives
Replacement decompose_reduction(Rewriter& r, const Candidate& c);  // of them, the reductions and softmax
Replacement decompose_conv(Rewriter& r, const Candidate& c);       // of them, the convolution
Replacement fold(Rewriter& r, const Candidate& c);                 // constants are computed
Replacement remove_identity(Rewriter& r, const Candidate& c);      // ops that change nothing
Replacement merge_views(Rewriter& r, const Candidate& c);          // views of views
Replacement algebra(Rewriter& r, const Candidate& c);              // exact arithmetic laws
Replacement sink_layout(Rewriter& r, const Candidate& c);          // channels last through what reads convolutions
Replacement power(Rewriter& r, const Candidate& c);                // pow with a constant exponent
Replacement narrow_operands(Rewriter& r, const Candidate& c);      // what elementwise ops broadcast anyway
Replacement gather_slice(Rewriter& r, const Candidate& c);         // one constant index

// Ops, constants and functions that no output needs are left out.
graph::Graph remove_dead(const graph::Graph& graph);

}  // namespace quartet::simplify
