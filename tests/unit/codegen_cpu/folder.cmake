target_link_libraries(unit_codegen_cpu PRIVATE quartet_interpreters)
    set_tests_properties(unit.codegen_cpu PROPERTIES LABELS threads)
