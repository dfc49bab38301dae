#include "capi/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace quartet::capi {
namespace {

TEST(Json, ReadsBackAsWritten) {
  JsonWriter json;
  json.begin_object();
  json.member("text", "quote \" backslash \\ newline \n tab \t umlaut \xc3\xa4 clef \xf0\x9d\x84\x9e");
  json.member("number", uint64_t{18446744073709551615U});
  json.member("negative", int64_t{-7});
  json.member("flag", true);
  json.key("list");
  json.begin_list();
  json.value("a");
  json.begin_object();
  json.end_object();
  json.value(2);
  json.end_list();
  json.end_object();
  const auto read = nlohmann::json::parse(json.take());
  EXPECT_EQ(read["text"], "quote \" backslash \\ newline \n tab \t umlaut \xc3\xa4 clef \xf0\x9d\x84\x9e");
  EXPECT_EQ(read["number"], 18446744073709551615U);
  EXPECT_EQ(read["negative"], -7);
  EXPECT_EQ(read["flag"], true);
  EXPECT_EQ(read["list"].size(), 3U);
}

TEST(Json, BytesThatAreNoUtf8AreReplaced) {
  for (const char* text : {"\xff", "a\xc3", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe0\x80\x80", "\x80"}) {
    JsonWriter json;
    json.value(text);
    const std::string written = json.take();
    EXPECT_NE(written.find("\\ufffd"), std::string::npos);
    EXPECT_NO_THROW(static_cast<void>(nlohmann::json::parse(written))) << written;
  }
}

}  // namespace
}  // namespace quartet::capi
