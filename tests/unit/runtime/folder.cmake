set_tests_properties(unit.runtime PROPERTIES LABELS threads)
