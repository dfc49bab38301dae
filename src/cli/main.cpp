// quartet: the command. A guest of the library like any other: built on the public header alone.
//
// Exit code 0 only on success. Errors are one clear line on standard error; results go to standard output.

#include <cstdio>
#include <exception>

#include "common.h"

int main(int argc, char** argv) {
  CLI::App app{"Quartet compiles tensor graphs while a program runs, and remembers what it compiled."};
  app.name("quartet");
  app.require_subcommand(1);
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
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quartet: %s\n", error.what());
    return 1;
  }
}
