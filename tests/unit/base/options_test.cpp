#include "base/options.h"

#include <gtest/gtest.h>

namespace quartet {
namespace {

TEST(Options, DefaultsComeFromTheTable) {
  const Options options;
  for (const OptionInfo& row : option_table()) {
    const auto value = options.get(row.id);
    ASSERT_TRUE(value.ok());
    EXPECT_EQ(*value, row.default_value) << row.name;
  }
  EXPECT_TRUE(options.fusion());
  EXPECT_EQ(options.isa(), "host");
  EXPECT_EQ(options.threads(), 0);
}

TEST(Options, SetByNumberTextAndName) {
  Options options;
  EXPECT_TRUE(options.set(OptionId::threads, 8).ok());
  EXPECT_EQ(options.threads(), 8);
  EXPECT_TRUE(options.set_text(OptionId::isa, "avx2").ok());
  EXPECT_EQ(options.isa(), "avx2");
  EXPECT_TRUE(options.set_named("fusion", "off").ok());
  EXPECT_FALSE(options.fusion());
}

TEST(Options, RefusesWhatItDoesNotKnow) {
  Options options;
  EXPECT_EQ(options.set(static_cast<OptionId>(9999), 0).code(), Code::unsupported);
  EXPECT_EQ(options.set_named("fusionn", "on").code(), Code::unsupported);
  EXPECT_NE(options.set_named("fusionn", "on").message().find("'fusionn'; there are fusion, threads, "),
            std::string::npos);
  EXPECT_EQ(options.set_named("fusion", "maybe").code(), Code::invalid_argument);
  EXPECT_EQ(options.set_named("threads", "4x").code(), Code::invalid_argument);
  EXPECT_EQ(options.set_named("threads", "").code(), Code::invalid_argument);
  EXPECT_EQ(options.set_named("threads", "99999999999999999999").code(), Code::invalid_argument);
  EXPECT_EQ(options.set(OptionId::threads, -1).code(), Code::invalid_argument);
  EXPECT_EQ(options.set_named("isa", "avx").code(), Code::invalid_argument);
  EXPECT_EQ(options.set(OptionId::isa, 4).code(), Code::invalid_argument);
  EXPECT_EQ(options, Options());
}

TEST(Options, TextOfAValueParsesBack) {
  for (const OptionInfo& row : option_table()) {
    for (const int64_t value : {row.least, row.default_value, row.most}) {
      Options options;
      ASSERT_TRUE(options.set_text(row.id, option_text(row, value)).ok()) << row.name;
      EXPECT_EQ(*options.get(row.id), value) << row.name;
    }
  }
}

TEST(Options, DigestCoversExactlyWhatAffectsCode) {
  const Digest base = Options().code_digest();
  for (const OptionInfo& row : option_table()) {
    Options options;
    ASSERT_TRUE(options.set(row.id, row.default_value == row.most ? row.least : row.most).ok());
    EXPECT_EQ(options.code_digest() != base, row.affects_code) << row.name;
  }
}

}  // namespace
}  // namespace quartet
