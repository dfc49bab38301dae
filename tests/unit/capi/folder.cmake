if(TARGET quartet_llvm)
  add_dependencies(unit_capi quartet_llvm)
  target_compile_definitions(unit_capi PRIVATE QUARTET_TEST_COMPILER="$<TARGET_FILE:quartet_llvm>")
else()
  target_compile_definitions(unit_capi PRIVATE QUARTET_TEST_COMPILER="")
endif()
target_compile_definitions(unit_capi PRIVATE QUARTET_TEST_HEADER="${CMAKE_SOURCE_DIR}/include/quartet_c.h"
                           QUARTET_TEST_MODELS="${CMAKE_SOURCE_DIR}/tests/models")
