#include "session.h"

#include <chrono>
#include <map>
#include <stdexcept>

namespace cli {

Session open_session(const quartet::Context& context, const Common& common, const std::string& model) {
  using Clock = std::chrono::steady_clock;
  using Milliseconds = std::chrono::duration<double, std::milli>;
  const auto begin = Clock::now();
  const quartet::Options options = make_options(common);
  quartet::Graph graph = load_graph(context, model, options);
  const auto imported = Clock::now();
  quartet::Program program = quartet::Program::compile(context, graph, options, find_device(context, common)).value();
  const auto ready = Clock::now();
  return {graph, program, Milliseconds(imported - begin).count(), Milliseconds(ready - imported).count()};
}

std::vector<quartet::Tensor> gather_inputs(const quartet::Program& program, const std::vector<std::string>& assignments,
                                           Extents extents, uint64_t seed) {
  const std::vector<quartet::TensorType> types = program.inputs();
  std::map<std::string, quartet::Tensor> given;
  for (const std::string& text : assignments) {
    const auto [name, path] = split_assignment(text);
    const quartet::TensorType* type = nullptr;
    std::string names;
    for (const quartet::TensorType& candidate : types) {
      if (candidate.name == name) type = &candidate;
      names += (names.empty() ? "" : ", ") + candidate.name;
    }
    if (!type) throw std::runtime_error("the model has no input '" + name + "'; its inputs are " + names);
    const quartet::Tensor tensor = read_array(path);
    learn_extents(*type, tensor, extents);
    given[name] = tensor;
  }
  for (const auto& [symbol, extent] : extents) {
    std::string symbols;
    bool known = false;
    for (const quartet::TensorType& type : types)
      for (size_t axis = 0; axis < type.dims.size(); ++axis) {
        if (type.dims[axis] != QUARTET_DIM_UNKNOWN) continue;
        known = known || type.dim_texts[axis] == symbol;
        if ((", " + symbols + ", ").find(", " + type.dim_texts[axis] + ", ") == std::string::npos)
          symbols += (symbols.empty() ? "" : ", ") + type.dim_texts[axis];
      }
    if (!known)
      throw std::runtime_error("the model's inputs have no dim '" + symbol + "'; their symbolic dims are " +
                               (symbols.empty() ? "none" : symbols));
  }
  std::vector<quartet::Tensor> inputs;
  for (const quartet::TensorType& type : types) {
    const auto found = given.find(type.name);
    if (found != given.end())
      inputs.push_back(found->second);
    else if (type.optional)
      inputs.emplace_back();
    else
      inputs.push_back(random_tensor(type.dtype, choose_dims(type, extents), seed++));
  }
  return inputs;
}

}  // namespace cli
