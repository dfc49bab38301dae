# quartet_folder(NAME DEPS...): the static library quartet_NAME from every .cpp in or below src/NAME (or NAME/ for the cache),
# with the house's warnings, seeing only src/ and include/. A folder without sources yet becomes an interface library. NAME may
# name a folder in a folder: codegen/cpu gives quartet_codegen_cpu, and codegen is then what lies directly in src/codegen. What
# else a folder needs stands in its folder.cmake.

set(QUARTET_WARNINGS -Wall -Wextra -Wconversion -Wshadow -Werror $<$<CXX_COMPILER_ID:GNU>:-Wno-error=maybe-uninitialized>)
set(QUARTET_SANITIZE_FLAGS "")
if(QUARTET_SANITIZE)
  # Without vptr, whose runtime is C++: C programs link our sanitized libraries too.
  set(QUARTET_SANITIZE_FLAGS -fsanitize=${QUARTET_SANITIZE} -fno-sanitize=vptr -fno-omit-frame-pointer -fno-sanitize-recover=all
      -D_GLIBCXX_ASSERTIONS)
  add_link_options(${QUARTET_SANITIZE_FLAGS})
endif()

# Compile options of every target of ours. No multiply and add are fused behind the source's back: what is computed here (folding,
# the interpreters) has the bits that the compiled code has.
add_library(quartet_options INTERFACE)
target_compile_options(quartet_options INTERFACE ${QUARTET_WARNINGS} -ffp-contract=off -ffunction-sections -fdata-sections
                       ${QUARTET_SANITIZE_FLAGS})
target_include_directories(quartet_options INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)

set_property(GLOBAL PROPERTY QUARTET_FOLDERS "")

function(quartet_folder name)
  if(name STREQUAL cache)
    set(dir ${CMAKE_SOURCE_DIR}/cache)
  else()
    set(dir ${CMAKE_SOURCE_DIR}/src/${name})
  endif()
  string(REPLACE / _ target quartet_${name})
  string(REPLACE / _ dependencies "${ARGN}")
  list(TRANSFORM dependencies PREPEND quartet_)
  if(name STREQUAL codegen)
    file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cpp)
  else()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.cpp)
  endif()
  if(sources)
    add_library(${target} STATIC ${sources})
    target_link_libraries(${target} PUBLIC quartet_options ${dependencies})
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE quartet_options ${dependencies})
  endif()
  if(EXISTS ${dir}/folder.cmake)
    include(${dir}/folder.cmake)
  endif()
  set_property(GLOBAL APPEND PROPERTY QUARTET_FOLDERS ${name})
endfunction()

# quartet_has_sources(OUT NAME): whether the folder has anything to compile.
function(quartet_has_sources out name)
  string(REPLACE / _ target quartet_${name})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL STATIC_LIBRARY)
    set(${out} TRUE PARENT_SCOPE)
  else()
    set(${out} FALSE PARENT_SCOPE)
  endif()
endfunction()
