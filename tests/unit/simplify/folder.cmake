target_link_libraries(unit_simplify PRIVATE quartet_interpreters)
target_compile_definitions(unit_simplify PRIVATE QUARTET_GRAPH_FILETESTS="${CMAKE_SOURCE_DIR}/tests/filetests/graph")
