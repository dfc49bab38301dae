# Run by `cmake -P` at build time: writes OUTPUT, a header with QUARTET_COMPILER_ID, the hash of every file in LIST (paths
# relative to SOURCE_DIR, one a line; the first line is the text that describes flags and versions). The header is touched only
# when the id changes, so that nothing is compiled again without need.

file(STRINGS ${LIST} lines ENCODING UTF-8)
list(POP_FRONT lines description)
set(text "${description}\n")
foreach(path IN LISTS lines)
  file(SHA256 ${SOURCE_DIR}/${path} digest)
  string(APPEND text "${path} ${digest}\n")
endforeach()
string(SHA256 id "${text}")
string(SUBSTRING ${id} 0 32 id)
set(header "#define QUARTET_COMPILER_ID \"${id}\"\n")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL header)
  file(WRITE ${OUTPUT} "${header}")
endif()
