#include "base/compiler_id.h"

#include "compiler_id_value.h"

namespace quartet {

const char* compiler_id() { return QUARTET_COMPILER_ID; }

}  // namespace quartet
