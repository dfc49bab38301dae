target_compile_definitions(quartet_capi PRIVATE QUARTET_BUILDING QUARTET_VERSION="${PROJECT_VERSION}"
                           QUARTET_HAS_LLVM=$<BOOL:${QUARTET_LLVM}>)
