target_link_libraries(unit_codegen_cpu PRIVATE quartet_interpreters)
set_tests_properties(unit.codegen_cpu PROPERTIES LABELS threads)
# Many random kernels, and the rate of the contraction.
add_test(NAME unit.codegen_cpu.long COMMAND unit_codegen_cpu --gtest_also_run_disabled_tests --gtest_filter=*DISABLED_*)
set_tests_properties(unit.codegen_cpu.long PROPERTIES LABELS long TIMEOUT 1800)
# Compiled kernels carry no type in front of them, which calls under UBSan would look for.
if(QUARTET_SANITIZE)
  set_source_files_properties(${sources} PROPERTIES COMPILE_OPTIONS -fno-sanitize=function)
endif()
