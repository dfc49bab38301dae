target_link_libraries(unit_kernel PRIVATE quartet_interpreters)
target_compile_definitions(unit_kernel PRIVATE QUARTET_KERNEL_FILETESTS="${CMAKE_SOURCE_DIR}/tests/filetests/kernel")
