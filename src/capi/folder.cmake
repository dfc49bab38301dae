target_compile_definitions(quartet_capi PRIVATE QUARTET_BUILDING QUARTET_VERSION="${PROJECT_VERSION}"
                           QUARTET_HAS_LLVM=$<BOOL:${QUARTET_LLVM}>)
if(TARGET nlohmann_json::nlohmann_json)
  target_link_libraries(quartet_capi PRIVATE nlohmann_json::nlohmann_json)
endif()
