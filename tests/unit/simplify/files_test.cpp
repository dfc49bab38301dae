// Runs tests/filetests/graph: see the README there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "graph/graph.h"
#include "simplify/simplify.h"

namespace quartet::simplify {
namespace {

namespace fs = std::filesystem;

struct FileTest {
  Options options;
  std::string expected, graph;
  bool has_run_line = false;
};

FileTest read(const fs::path& path) {
  std::ifstream in(path);
  FileTest test;
  std::string line;
  while (std::getline(in, line)) {
    if (line.starts_with("# run: ")) {
      std::istringstream words(line.substr(7));
      std::string word;
      words >> word;
      test.has_run_line = word == "simplify";
      if (words >> word) EXPECT_EQ(word, "without");
      while (words >> word) test.options.disabled.insert(word);
    } else if (line.starts_with("# | ")) {
      test.expected += line.substr(4) + "\n";
    } else if (line != "# expect:") {
      test.graph += line + "\n";
    }
  }
  return test;
}

void update(const fs::path& path, const std::string& actual) {
  std::ifstream in(path);
  std::ostringstream out;
  std::string line;
  while (std::getline(in, line)) {
    if (line.starts_with("# | ") || line == "# expect:") continue;
    out << line << "\n";
    if (!line.starts_with("# run: ")) continue;
    out << "# expect:\n";
    std::istringstream lines(actual);
    while (std::getline(lines, line)) out << "# | " << line << "\n";
  }
  in.close();
  std::ofstream(path) << out.str();
}

std::vector<fs::path> all_files() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(QUARTET_GRAPH_FILETESTS))
    if (entry.path().extension() == ".qt") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

class Files : public testing::TestWithParam<fs::path> {};

TEST_P(Files, Simplify) {
  const FileTest test = read(GetParam());
  ASSERT_TRUE(test.has_run_line) << GetParam();
  const auto graph = graph::parse(test.graph);
  ASSERT_TRUE(graph.ok()) << graph.status().message();
  const auto result = simplify(*graph, test.options);
  ASSERT_TRUE(result.ok()) << result.status().message();
  const std::string actual = graph::print(**result);
  if (std::getenv("QUARTET_UPDATE_FILETESTS")) return update(GetParam(), actual);
  EXPECT_EQ(actual, test.expected);
}

INSTANTIATE_TEST_SUITE_P(Graph, Files, testing::ValuesIn(all_files()), [](const auto& info) {
  std::string name = info.param.stem().string();
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

}  // namespace
}  // namespace quartet::simplify
