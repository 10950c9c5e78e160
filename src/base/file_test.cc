// SPDX-License-Identifier: Apache-2.0
//
// Files in a temporary folder: read back what was written, plain and gzipped, and clear errors.
#include "base/file.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <vector>

#include "base/testing/temp_folder.h"

namespace jogak {
namespace {

namespace fs = std::filesystem;

std::string gzip(const std::string& content) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(content.size() + 1024, '\0');
  std::string in = content;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

class FileTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path(name); }

  std::size_t files_in_folder() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(folder_.path()), fs::directory_iterator()));
  }

 private:
  TempFolder folder_;
};

TEST_F(FileTest, ReadsWhatWasWritten) {
  const std::string content("line\n\0bytes\xff", 12);
  ASSERT_TRUE(write_file(path("a"), content).has_value());
  EXPECT_EQ(read_file(path("a")).value(), content);
  ASSERT_TRUE(write_file(path("a"), "").has_value());
  EXPECT_EQ(read_file(path("a")).value(), "");
  EXPECT_EQ(files_in_folder(), 1U);  // no temporary is left
}

TEST_F(FileTest, LargerThanOneRead) {
  std::string content;
  for (int i = 0; content.size() < 3'000'000; ++i) content += std::to_string(i);
  ASSERT_TRUE(write_file(path("big"), content).has_value());
  EXPECT_TRUE(read_file(path("big")).value() == content);
  ASSERT_TRUE(write_file(path("big.gz"), gzip(content)).has_value());
  EXPECT_TRUE(read_file(path("big.gz")).value() == content);
}

TEST_F(FileTest, GunzipsByContent) {
  ASSERT_TRUE(write_file(path("no-suffix"), gzip("packed")).has_value());
  EXPECT_EQ(read_file(path("no-suffix")).value(), "packed");
  ASSERT_TRUE(write_file(path("two.gz"), gzip("one,") + gzip("two")).has_value());
  EXPECT_EQ(read_file(path("two.gz")).value(), "one,two");
  ASSERT_TRUE(write_file(path("plain.gz"), "not packed").has_value());
  EXPECT_EQ(read_file(path("plain.gz")).value(), "not packed");
  ASSERT_TRUE(write_file(path("empty.gz"), gzip("")).has_value());
  EXPECT_EQ(read_file(path("empty.gz")).value(), "");
}

TEST_F(FileTest, BrokenGzipIsInvalid) {
  const std::string whole = gzip("some content, some content, some content");
  for (std::size_t cut = 2; cut < whole.size(); ++cut) {
    const auto plain = gunzip(whole.substr(0, cut));
    ASSERT_FALSE(plain.has_value()) << cut;
    EXPECT_EQ(plain.error().code, Errc::Invalid);
  }
  std::string flipped = whole;
  flipped[12] = static_cast<char>(flipped[12] ^ 0x55);
  EXPECT_FALSE(gunzip(flipped).has_value());
  EXPECT_FALSE(gunzip("").has_value());
  EXPECT_FALSE(gunzip(whole + "trailing rubbish").has_value());
}

TEST_F(FileTest, LimitsHold) {
  ASSERT_TRUE(write_file(path("a"), std::string(100, 'x')).has_value());
  EXPECT_TRUE(read_file(path("a"), 100).has_value());
  EXPECT_EQ(read_file(path("a"), 99).error().code, Errc::Invalid);
  ASSERT_TRUE(write_file(path("bomb.gz"), gzip(std::string(100'000, 'x'))).has_value());
  EXPECT_EQ(read_file(path("bomb.gz"), 99'999).error().code, Errc::Invalid);
}

TEST_F(FileTest, ErrorsNameThePath) {
  const auto missing = read_file(path("missing"));
  EXPECT_EQ(missing.error().code, Errc::NotFound);
  EXPECT_EQ(missing.error().what, "open " + path("missing") + ": No such file or directory");
  EXPECT_EQ(read_file(path("")).error().code, Errc::Invalid);
  EXPECT_EQ(write_file(path(""), "x").error().code, Errc::Invalid);
  EXPECT_EQ(write_file(path("no/such/folder"), "x").error().code, Errc::NotFound);
}

TEST_F(FileTest, FollowsLinksAndKeepsDevices) {
  ASSERT_TRUE(write_file(path("target"), "old").has_value());
  fs::create_symlink("target", path("link"));
  ASSERT_TRUE(write_file(path("link"), "new").has_value());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read_file(path("target")).value(), "new");
  EXPECT_TRUE(write_file("/dev/null", "gone").has_value());
  EXPECT_EQ(read_file("/dev/null").value(), "");
}

}  // namespace
}  // namespace jogak
