// quartet: the command. A guest of the library like any other: built on the public header alone.
//
// Exit code 0 only on success. Errors are one clear line on standard error; results go to standard output.

#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "common.h"

namespace {

// A word in a verb's place that is none; empty when there is none.
std::string unknown_verb(const CLI::App& app) {
  for (const std::string& word : app.remaining(true))
    if (!word.empty() && word[0] != '-') return word;
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Quartet compiles tensor graphs while a program runs, and remembers what it compiled."};
  app.name("quartet");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("quartet ") + quartet_version_string(nullptr));
  int exit_code = 0;
  cli::add_run(app, exit_code);
  cli::add_check(app, exit_code);
  cli::add_bench(app, exit_code);
  cli::add_compile(app, exit_code);
  cli::add_dump(app, exit_code);
  cli::add_cache(app, exit_code);
  cli::add_devices(app, exit_code);
  cli::add_version(app, exit_code);
  try {
    app.parse(argc, argv);
    if (std::fflush(stdout) != 0) {
      std::fprintf(stderr, "quartet: standard output cannot be written\n");
      return 1;
    }
    return exit_code;
  } catch (const CLI::RequiredError& error) {
    if (const std::string word = unknown_verb(app); !word.empty()) std::fprintf(stderr, "no verb '%s'\n", word.c_str());
    app.exit(error);
    return 2;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "quartet: not enough memory\n");
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quartet: %s\n", error.what());
    return 1;
  }
}
