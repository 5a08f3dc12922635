#include "kernels/nccl/nccl_api.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <stdlib.h>

#include <filesystem>

#include "sim/base/error.h"

namespace lambcast::cuda {
namespace {

namespace fs = std::filesystem;

// Returns the message of the last failure of the loader.
std::string loader_error() {
  const char* const text = dlerror();
  return text == nullptr ? "" : text;
}

void* open_library() {
  void* library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  const std::string why = loader_error();
  if (library == nullptr) library = dlopen(LAMBCAST_NCCL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw Error(Exit::missing, fmt::format("NCCL cannot be loaded ({})", why));
  }
  return library;
}

NcclApi table_of(void* library) {
  NcclApi api;
#define LAMBCAST_LOAD(function)                                                             \
  api.function = reinterpret_cast<decltype(api.function)>(dlsym(library, #function));       \
  if (api.function == nullptr) {                                                            \
    throw Error(Exit::missing, "NCCL 2.13 or newer is needed: this one has no " #function); \
  }
  LAMBCAST_NCCL_FUNCTIONS(LAMBCAST_LOAD)
#undef LAMBCAST_LOAD
  return api;
}

void* first_library() {
  static void* const library = open_library();
  return library;
}

// A new folder that is removed with its content at the end of the scope.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_((fs::temp_directory_path() / "lambcast-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) {
      throw Error(Exit::failure, fmt::format("{}: cannot be made", path_));
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  fs::path path() const { return path_; }

 private:
  std::string path_;
};

// Opens a copy of the library. The loader treats a file with another name and inode as another
// library, with its own variables.
void* open_copy(const fs::path& original, const fs::path& copy) {
  std::error_code failed;
  fs::copy_file(original, copy, failed);
  if (failed) {
    throw Error(Exit::failure, fmt::format("{}: {} (TMPDIR names another place)", copy.string(),
                                           failed.message()));
  }
  void* const library = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw Error(Exit::failure, fmt::format("a copy of NCCL cannot be loaded ({})", loader_error()));
  }
  fs::remove(copy, failed);  // the mapping remains
  return library;
}

}  // namespace

const NcclApi& load_nccl() {
  static const NcclApi api = table_of(first_library());
  return api;
}

std::vector<NcclApi> load_nccl_copies(int count) {
  std::vector<NcclApi> copies{load_nccl()};
  const link_map* original = nullptr;
  if (dlinfo(first_library(), RTLD_DI_LINKMAP, &original) != 0) {
    throw Error(Exit::failure, fmt::format("where NCCL lies cannot be told ({})", loader_error()));
  }
  const TemporaryFolder folder;
  for (int i = 1; i < count; ++i) {
    const fs::path copy = folder.path() / fmt::format("libnccl-{}.so", i);
    copies.push_back(table_of(open_copy(original->l_name, copy)));
  }
  return copies;
}

}  // namespace lambcast::cuda
