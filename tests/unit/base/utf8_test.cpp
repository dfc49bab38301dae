#include "base/utf8.h"

#include <gtest/gtest.h>

#include "base/status.h"

namespace quartet {
namespace {

TEST(Utf8, TellsSequences) {
  for (const char* text : {"", "plain", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x8e\xbb", "a\xc3\xa9z"})
    EXPECT_TRUE(is_utf8(text)) << text;
  for (const char* text :
       {"\x80", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff", "a\xe2\x82"})
    EXPECT_FALSE(is_utf8(text)) << text;
}

TEST(Utf8, ReplacesWhatIsNone) {
  EXPECT_EQ(to_utf8("a\xff\xc3\xa9\xe2\x82z"), "a\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd\xef\xbf\xbdz");
  EXPECT_EQ(to_utf8("plain"), "plain");
}

TEST(Utf8, MessagesAreIt) {
  const Status status = make_error(Code::invalid_argument, "no '%s'", "x\x95").with_prefix("in \xfe: ");
  EXPECT_EQ(status.message(), "in \xef\xbf\xbd: no 'x\xef\xbf\xbd'");
}

}  // namespace
}  // namespace quartet
