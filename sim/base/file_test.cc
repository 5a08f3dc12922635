#include "sim/base/file.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "sim/base/error.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "lambcast-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string name(const char* file) const { return (path_ / file).string(); }
  std::string file(const char* file, const std::string& text) const {
    std::ofstream(path_ / file, std::ios::binary) << text;
    return name(file);
  }

 private:
  std::filesystem::path path_;
};

TEST_CASE("file: a byte order mark is not part of the text") {
  const Folder folder;
  CHECK(read_file(folder.file("bom.csv", "\xEF\xBB\xBFsize_bytes\n")) == "size_bytes\n");
  CHECK(read_file(folder.file("plain.csv", "size_bytes\n")) == "size_bytes\n");
  CHECK(read_file(folder.file("short", "\xEF")) == "\xEF");
  CHECK(read_file(folder.file("empty", "")).empty());
}

TEST_CASE("file: an error names UTF-16, with and without its mark") {
  const Folder folder;
  for (const std::string& text : {std::string("\xFF\xFE{\0", 4), std::string("\xFE\xFF\0{", 4),
                                  std::string("{\0}\0", 4), std::string("\0{\0}", 4)})
    CHECK_THROWS_WITH(read_file(folder.file("log.json", text)),
                      Contains("log.json: is UTF-16 text: make it UTF-8"));
}

TEST_CASE("file: a path that is not text file is refused with the reason") {
  const Folder folder;
  CHECK_THROWS_WITH(read_file(folder.name("absent")),
                    Contains("absent: cannot be read: No such file or directory"));
  CHECK_THROWS_WITH(read_file(folder.name("")), Contains("cannot be read: Is a directory"));
  CHECK_THROWS_WITH(read_file("/dev/zero", 1), "/dev/zero: larger than 1 MiB");
  CHECK(read_file("/dev/null").empty());
}

TEST_CASE("file: a pipe is read to its end, and one without a writer does not block for ever") {
  const Folder folder;
  const std::string pipe = folder.name("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  std::thread writer([&] {
    std::ofstream out(pipe, std::ios::binary);
    for (int i = 0; i < 3; ++i) {
      out << "some\n" << std::flush;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  });
  CHECK(read_file(pipe) == "some\nsome\nsome\n");
  writer.join();
  CHECK_THROWS_WITH(read_file(pipe), Contains("pipe: cannot be read: nobody writes to this pipe"));
}

}  // namespace
}  // namespace lambcast
