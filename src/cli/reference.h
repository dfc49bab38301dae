// libquartet_reference.so as `check --reference` uses it: the interpreter that says what every op should give.
#pragma once

#include <quartet.hpp>

#include <string>
#include <vector>

namespace cli {

class Reference {
 public:
  // Opens the library, which stands beside libquartet_c.so. Throws with the reason.
  Reference();

  struct Exposed {
    quartet::Graph graph;             // the same graph with every value an output, in order of the ops
    std::vector<std::string> values;  // what each output is: "op 3 'fc1' (matmul)"
  };
  Exposed expose(const quartet::Context& context, const quartet::Graph& graph) const;
  // The outputs of a graph by interpretation.
  std::vector<quartet::Tensor> run(const quartet::Graph& graph, const std::vector<quartet::Tensor>& inputs) const;

 private:
  // Both give 0 on success; on failure a message through `text`. What they hand out is freed with free().
  using ExposeFunction = int32_t (*)(const uint8_t* graph, uint64_t size, uint8_t** out, uint64_t* out_size,
                                     char** text);
  using SinkFunction = void (*)(void* user, uint32_t index, const quartet_tensor* value);
  using RunFunction = int32_t (*)(const uint8_t* graph, uint64_t size, const quartet_tensor* inputs, uint32_t count,
                                  SinkFunction sink, void* user, char** text);
  ExposeFunction expose_ = nullptr;
  RunFunction run_ = nullptr;
};

}  // namespace cli
