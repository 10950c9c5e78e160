// SPDX-License-Identifier: Apache-2.0
//
// Finding libnvidia-ml.so.1 and its functions. The library is never closed: threads of a driver may
// outlive any call, and a reload brings the same file back.
#include "nvml/library.h"

#include <dlfcn.h>

#include <fmt/format.h>

namespace jogak::nvml {

namespace {

constexpr std::string_view kSoname = "libnvidia-ml.so.1";
constexpr std::string_view kFolders[] = {
    "usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu",
    "lib64",     "lib/x86_64-linux-gnu",     "lib/aarch64-linux-gnu"};

std::vector<std::string> candidates(const std::string& path,
                                    const std::vector<std::string>& driver_roots) {
  if (!path.empty()) return {path};
  std::vector<std::string> paths;
  for (const std::string& root : driver_roots) {
    for (const std::string_view folder : kFolders) {
      paths.push_back(
          fmt::format("{}{}{}/{}", root, root.ends_with('/') ? "" : "/", folder, kSoname));
    }
  }
  paths.emplace_back(kSoname);
  return paths;
}

}  // namespace

Result<std::unique_ptr<Library>> Library::open(const std::string& path,
                                               const std::vector<std::string>& driver_roots) {
  std::string why;
  for (const std::string& candidate : candidates(path, driver_roots)) {
    void* const handle = ::dlopen(candidate.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* const error = ::dlerror();  // NOLINT(concurrency-mt-unsafe): of this thread
      why = error == nullptr ? candidate : error;
      continue;
    }
    std::unique_ptr<Library> library(new Library);
    library->handle_ = handle;
    library->name_ = candidate;
    library->resolve([&](const char* name) { return ::dlsym(handle, name); });
    if (library->functions_.init == nullptr || library->functions_.count == nullptr) {
      return fail(Errc::Unavailable, "{}: is not NVML: it has no nvmlInit", candidate);
    }
    return library;
  }
  return fail(Errc::Unavailable, "no NVML: {}", why);
}

std::unique_ptr<Library> Library::from_lookup(const Lookup& lookup, std::string name) {
  std::unique_ptr<Library> library(new Library);
  library->name_ = std::move(name);
  library->resolve(lookup);
  return library;
}

Library::~Library() = default;

void Library::resolve(const Lookup& lookup) {
  const auto find = [&]<class Function>(Function& function, const char* newest, const char* older) {
    void* address = lookup(newest);
    if (address == nullptr && *older != '\0') address = lookup(older);
    function = reinterpret_cast<Function>(address);
  };
#define F(member, newest, older, parameters) find(functions_.member, newest, older);
  JOGAK_NVML_API(F)
#undef F
  find(functions_.error_string, "nvmlErrorString", "");
}

std::string Library::error_text(abi::Return result) const {
  const auto code = static_cast<int>(result);
  if (functions_.error_string == nullptr) return fmt::format("NVML error {}", code);
  const char* const text = functions_.error_string(result);
  return fmt::format("{} ({})", text == nullptr ? "NVML error" : text, code);
}

}  // namespace jogak::nvml
