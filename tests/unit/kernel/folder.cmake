target_link_libraries(unit_kernel PRIVATE quartet_interpreters quartet_simplify)
target_compile_definitions(unit_kernel PRIVATE QUARTET_KERNEL_FILETESTS="${CMAKE_SOURCE_DIR}/tests/filetests/kernel")
# Vectors of eight floats as values need AVX; nothing else of this file may be shared with the other sources.
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/sweep_fused.cpp PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-O2")
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/sweep_unfused.cpp PROPERTIES COMPILE_OPTIONS "-O2")
# Every f32 argument: `ctest -L long`.
add_test(NAME unit.kernel.long COMMAND unit_kernel --gtest_filter=ExpandAccuracy.F32Arguments)
set_tests_properties(unit.kernel.long PROPERTIES LABELS long TIMEOUT 14400 ENVIRONMENT QUARTET_SWEEP_STEP=1)
