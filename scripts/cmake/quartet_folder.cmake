# quartet_folder(NAME DEPS...): the static library quartet_NAME from every .cpp directly in or below src/NAME (or NAME/ for
# the cache), with the house's warnings, seeing only src/ and the folders it may include. A folder without sources yet
# becomes an interface library.

set(QUARTET_WARNINGS -Wall -Wextra -Wconversion -Wshadow -Werror $<$<CXX_COMPILER_ID:GNU>:-Wno-error=maybe-uninitialized>)
set(QUARTET_SANITIZE_FLAGS "")
if(QUARTET_SANITIZE)
  set(QUARTET_SANITIZE_FLAGS -fsanitize=${QUARTET_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(${QUARTET_SANITIZE_FLAGS})
endif()

# Compile options of every target of ours.
add_library(quartet_options INTERFACE)
target_compile_options(quartet_options INTERFACE ${QUARTET_WARNINGS} ${QUARTET_SANITIZE_FLAGS})
target_include_directories(quartet_options INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)

function(quartet_folder name)
  if(name STREQUAL cache)
    set(dir ${CMAKE_SOURCE_DIR}/cache)
  else()
    set(dir ${CMAKE_SOURCE_DIR}/src/${name})
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.cpp)
  list(TRANSFORM ARGN PREPEND quartet_)
  if(sources)
    add_library(quartet_${name} STATIC ${sources})
    target_link_libraries(quartet_${name} PUBLIC quartet_options ${ARGN})
  else()
    add_library(quartet_${name} INTERFACE)
    target_link_libraries(quartet_${name} INTERFACE quartet_options ${ARGN})
  endif()
  if(EXISTS ${dir}/folder.cmake)
    include(${dir}/folder.cmake)
  endif()
endfunction()
