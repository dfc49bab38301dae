# The libraries we stand on, each as one target, found where Debian's packages put them. What ends up inside a shared library
# of ours is named as an archive: the product needs nothing but libc at run time.

find_package(Threads REQUIRED)

# quartet_archive(TARGET ARCHIVE HEADER): an imported static library and the folder of its header.
function(quartet_archive target archive header)
  find_library(${target}_archive NAMES ${archive} REQUIRED)
  add_library(${target} STATIC IMPORTED GLOBAL)
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION ${${target}_archive})
  if(header)
    find_path(${target}_headers NAMES ${header} REQUIRED)
    target_include_directories(${target} SYSTEM INTERFACE ${${target}_headers})
  endif()
endfunction()

quartet_archive(quartet_sqlite3 libsqlite3.a sqlite3.h)
target_link_libraries(quartet_sqlite3 INTERFACE Threads::Threads ${CMAKE_DL_LIBS} m)
quartet_archive(quartet_xxhash libxxhash.a xxhash.h)

# quartet_llvm_archives: the components of LLVM that the CPU code generator needs, static, with its headers.
# LLVM's own export names shared zlib, zstd and z3; we name the archives of the first two and never pull what needs the third.
if(QUARTET_LLVM)
  find_package(LLVM 19.1 REQUIRED CONFIG)
  quartet_archive(quartet_zlib libz.a "")
  quartet_archive(quartet_zstd libzstd.a "")
  set_property(TARGET LLVMSupport PROPERTY INTERFACE_LINK_LIBRARIES quartet_zlib quartet_zstd ${CMAKE_DL_LIBS} m LLVMDemangle)
  llvm_map_components_to_libnames(llvm_libraries core support analysis passes transformutils scalaropts instcombine target
                                  codegen orcjit jitlink object x86codegen x86asmparser x86desc x86info)
  separate_arguments(llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
  add_library(quartet_llvm_headers INTERFACE)
  target_include_directories(quartet_llvm_headers SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
  target_compile_options(quartet_llvm_headers INTERFACE ${llvm_definitions})
  add_library(quartet_llvm_archives INTERFACE)
  target_link_libraries(quartet_llvm_archives INTERFACE quartet_llvm_headers ${llvm_libraries})
endif()
