// Versions, names, tables, and the agreement of the header's numbers with the library's own.
#include "base/dtype.h"
#include "base/options.h"
#include "base/status.h"
#include "compiler/engine.h"
#include "graph/ops.h"
#include "unit/capi/support.h"

namespace quartet::capi_test {
namespace {

static_assert(static_cast<int>(Code::invalid_argument) == QUARTET_E_INVALID_ARGUMENT);
static_assert(static_cast<int>(Code::out_of_memory) == QUARTET_E_OUT_OF_MEMORY);
static_assert(static_cast<int>(Code::resource_exhausted) == QUARTET_E_RESOURCE_EXHAUSTED);
static_assert(static_cast<int>(Code::unsupported) == QUARTET_E_UNSUPPORTED);
static_assert(static_cast<int>(Code::not_found) == QUARTET_E_NOT_FOUND);
static_assert(static_cast<int>(Code::corrupt) == QUARTET_E_CORRUPT);
static_assert(static_cast<int>(Code::io) == QUARTET_E_IO);
static_assert(static_cast<int>(Code::cancelled) == QUARTET_E_CANCELLED);
static_assert(static_cast<int>(Code::timeout) == QUARTET_E_TIMEOUT);
static_assert(static_cast<int>(Code::failed_precondition) == QUARTET_E_FAILED_PRECONDITION);
static_assert(static_cast<int>(Code::version_mismatch) == QUARTET_E_VERSION_MISMATCH);
static_assert(static_cast<int>(Code::device) == QUARTET_E_DEVICE);
static_assert(static_cast<int>(Code::compiler) == QUARTET_E_COMPILER);
static_assert(static_cast<int>(Code::internal) == QUARTET_E_INTERNAL);
static_assert(static_cast<int>(Code::forked) == QUARTET_E_FORKED);
static_assert(static_cast<int>(DType::f64) == QUARTET_DTYPE_F64 && static_cast<int>(DType::f32) == QUARTET_DTYPE_F32);
static_assert(static_cast<int>(DType::f16) == QUARTET_DTYPE_F16 && static_cast<int>(DType::bf16) == QUARTET_DTYPE_BF16);
static_assert(static_cast<int>(DType::i64) == QUARTET_DTYPE_I64 && static_cast<int>(DType::i32) == QUARTET_DTYPE_I32);
static_assert(static_cast<int>(DType::i16) == QUARTET_DTYPE_I16 && static_cast<int>(DType::i8) == QUARTET_DTYPE_I8);
static_assert(static_cast<int>(DType::u64) == QUARTET_DTYPE_U64 && static_cast<int>(DType::u32) == QUARTET_DTYPE_U32);
static_assert(static_cast<int>(DType::u16) == QUARTET_DTYPE_U16 && static_cast<int>(DType::u8) == QUARTET_DTYPE_U8);
static_assert(static_cast<int>(DType::boolean) == QUARTET_DTYPE_BOOL && kDTypeCount == 14);
static_assert(static_cast<int>(OptionId::fusion) == QUARTET_OPTION_FUSION);
static_assert(static_cast<int>(OptionId::threads) == QUARTET_OPTION_THREADS);
static_assert(static_cast<int>(OptionId::verify_stages) == QUARTET_OPTION_VERIFY_STAGES);
static_assert(static_cast<int>(OptionId::isa) == QUARTET_OPTION_ISA);
static_assert(static_cast<int>(OptionId::flush_denormals) == QUARTET_OPTION_FLUSH_DENORMALS);
static_assert(static_cast<int>(OptionId::cache_mode) == QUARTET_OPTION_CACHE_MODE);
static_assert(static_cast<int>(OptionId::tune) == QUARTET_OPTION_TUNE);
static_assert(static_cast<int>(OptionId::dim_hint) == QUARTET_OPTION_DIM_HINT);
static_assert(static_cast<int>(OptionType::boolean) == QUARTET_OPTION_BOOL);
static_assert(static_cast<int>(OptionType::integer) == QUARTET_OPTION_INTEGER);
static_assert(static_cast<int>(OptionType::choice) == QUARTET_OPTION_CHOICE);
static_assert(static_cast<int>(compiler::Origin::compiled) == QUARTET_ORIGIN_COMPILED);
static_assert(static_cast<int>(compiler::Origin::memory) == QUARTET_ORIGIN_MEMORY);
static_assert(static_cast<int>(compiler::Origin::disk) == QUARTET_ORIGIN_DISK);
static_assert(static_cast<int>(compiler::Origin::bytes) == QUARTET_ORIGIN_BYTES);
static_assert(graph::kMaxRank == QUARTET_MAX_RANK);

TEST(Library, TellsItsVersion) {
  EXPECT_EQ(quartet_abi_version(), (uint32_t{QUARTET_ABI_MAJOR} << 16) | QUARTET_ABI_MINOR);
  size_t size = 0;
  const char* version = quartet_version_string(&size);
  EXPECT_EQ(std::strlen(version), size);
  EXPECT_EQ(quartet_version_string(nullptr), version);
}

TEST(Library, BuildInfoIsJsonThatNamesTheCompiler) {
  Error error;
  quartet_blob* blob = nullptr;
  ASSERT_TRUE(is_ok(quartet_build_info(&blob, error.out()), error));
  const std::string text = text_of(Blob(blob));
  EXPECT_NE(text.find("\"compiler_id\":\""), std::string::npos) << text;
  EXPECT_NE(text.find("\"features\":["), std::string::npos) << text;
}

TEST(Library, FeaturesItDoesNotKnowAreAbsent) {
  EXPECT_EQ(quartet_has_feature(QUARTET_FEATURE_ONNX), 1);
  EXPECT_EQ(quartet_has_feature(0), 0);
  EXPECT_EQ(quartet_has_feature(12345), 0);
}

TEST(Library, NamesStatusesAndTypes) {
  EXPECT_STREQ(quartet_status_name(QUARTET_OK, nullptr), "ok");
  EXPECT_STREQ(quartet_status_name(QUARTET_E_FORKED, nullptr), "forked");
  EXPECT_STREQ(quartet_status_name(-1, nullptr), "unknown");
  for (int32_t type = 1; type < kDTypeCount; ++type) {
    size_t size = 0;
    const char* name = quartet_dtype_name(type, &size);
    EXPECT_EQ(quartet_dtype_find(name, size), type);
    EXPECT_EQ(quartet_dtype_find(name, SIZE_MAX), type);
    EXPECT_GT(quartet_dtype_size(type), 0U);
  }
  EXPECT_STREQ(quartet_dtype_name(99, nullptr), "invalid");
  EXPECT_EQ(quartet_dtype_find("float", SIZE_MAX), QUARTET_DTYPE_INVALID);
  EXPECT_EQ(quartet_dtype_find(nullptr, 4), QUARTET_DTYPE_INVALID);
  EXPECT_EQ(quartet_dtype_size(-4), 0U);
}

TEST(Library, DescribesEveryOption) {
  Error error;
  for (uint32_t i = 0; i < quartet_option_count(); ++i) {
    auto info = make_struct<quartet_option_info>();
    ASSERT_TRUE(is_ok(quartet_option_describe(i, &info, error.out()), error));
    EXPECT_GT(std::strlen(info.name), 0U);
    EXPECT_GT(std::strlen(info.doc), 0U) << info.name;
    EXPECT_LE(info.least, info.default_value) << info.name;
    EXPECT_LE(info.default_value, info.most) << info.name;
    EXPECT_EQ(info.type == QUARTET_OPTION_CHOICE, info.choices[0] != '\0') << info.name;
  }
  auto info = make_struct<quartet_option_info>();
  EXPECT_TRUE(fails(quartet_option_describe(quartet_option_count(), &info, error.out()), error,
                    QUARTET_E_INVALID_ARGUMENT, "index"));
}

TEST(Library, DescribesEveryOp) {
  Error error;
  for (uint32_t i = 0; i < quartet_op_count(); ++i) {
    auto info = make_struct<quartet_op_info>();
    ASSERT_TRUE(is_ok(quartet_op_describe(i, &info, error.out()), error));
    EXPECT_EQ(quartet_op_find(info.name, SIZE_MAX), info.id) << info.name;
    EXPECT_GT(std::strlen(info.doc), 0U) << info.name;
  }
  EXPECT_EQ(quartet_op_find("no such op", SIZE_MAX), -1);
  EXPECT_EQ(quartet_op_find(nullptr, 3), -1);
}

TEST(Options, ValuesGoInAndComeOut) {
  Error error;
  quartet_options* raw = nullptr;
  ASSERT_TRUE(is_ok(quartet_options_create(&raw, error.out()), error));
  const OptionsHandle options(raw);
  uint8_t before[16], after[16];
  ASSERT_TRUE(is_ok(quartet_options_digest(raw, before, error.out()), error));
  EXPECT_TRUE(is_ok(quartet_options_set_i64(raw, QUARTET_OPTION_THREADS, 3, error.out()), error));
  ASSERT_TRUE(is_ok(quartet_options_digest(raw, after, error.out()), error));
  EXPECT_EQ(std::memcmp(before, after, 16), 0) << "threads must not change code";
  EXPECT_TRUE(is_ok(quartet_options_set_named(raw, "fusion", 6, "off", 3, error.out()), error));
  EXPECT_TRUE(is_ok(quartet_options_set_text(raw, QUARTET_OPTION_ISA, "sse2", SIZE_MAX, error.out()), error));
  ASSERT_TRUE(is_ok(quartet_options_digest(raw, after, error.out()), error));
  EXPECT_NE(std::memcmp(before, after, 16), 0);
  int64_t value = -1;
  EXPECT_TRUE(is_ok(quartet_options_get_i64(raw, QUARTET_OPTION_ISA, &value, error.out()), error));
  EXPECT_EQ(value, 1);
  EXPECT_TRUE(fails(quartet_options_set_i64(raw, 777, 1, error.out()), error, QUARTET_E_UNSUPPORTED, "777"));
  EXPECT_TRUE(fails(quartet_options_set_named(raw, "fusion", 6, "perhaps", 7, error.out()), error,
                    QUARTET_E_INVALID_ARGUMENT, "perhaps"));
  EXPECT_TRUE(fails(quartet_options_get_i64(raw, 0, &value, error.out()), error, QUARTET_E_UNSUPPORTED, "0"));
  EXPECT_EQ(value, 0) << "outputs are 0 on failure";
}

}  // namespace
}  // namespace quartet::capi_test
