// SPDX-License-Identifier: Apache-2.0
//
// Stands in for libFuzzer in ordinary builds: gives LLVMFuzzerTestOneInput every file of a corpus
// folder, then seeded changes of them until a limit of runs or time. Prints the seed and the
// command that repeats it; on an abort it writes the input at fault to a file before it exits
// with 1.
//   usage: X_fuzz [CORPUS_DIR | FILE]...
//   environment: JOGAK_FUZZ_SEED (default 1), JOGAK_FUZZ_RUNS (20000), JOGAK_FUZZ_MS (2000)
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;

constexpr std::size_t kInputBytesMax = 4096;

// What the signal handler may look at: the input under test and the text to print about it.
const Input* current_input = nullptr;
std::string crash_path;
std::string crash_text;

void write_all(int fd, const void* data, std::size_t size) {
  const char* at = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t n = ::write(fd, at, size);
    if (n <= 0) return;
    at += n;
    size -= static_cast<std::size_t>(n);
  }
}

extern "C" void on_crash(int) {
  if (current_input != nullptr) {
    const int fd = ::open(crash_path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
    if (fd >= 0) write_all(fd, current_input->data(), current_input->size());
  }
  write_all(STDERR_FILENO, crash_text.data(), crash_text.size());
  ::_exit(1);
}

std::uint64_t number_from_env(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

Input read_input(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return Input(std::istreambuf_iterator<char>(in), {});
}

// Every regular file named or found in a named folder, in name order.
std::vector<Input> read_corpus(int argc, char** argv) {
  std::vector<std::filesystem::path> paths;
  for (int i = 1; i < argc; ++i) {
    if (std::filesystem::is_directory(argv[i])) {
      for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
        if (entry.is_regular_file()) paths.push_back(entry.path());
      }
    } else if (std::filesystem::exists(argv[i])) {
      paths.emplace_back(argv[i]);
    }
  }
  std::ranges::sort(paths);
  std::vector<Input> corpus;
  for (const auto& path : paths) corpus.push_back(read_input(path));
  return corpus;
}

void run_one(const Input& input) {
  current_input = &input;
  LLVMFuzzerTestOneInput(input.data(), input.size());
  current_input = nullptr;
}

std::uint8_t interesting_byte(jogak::Rng& rng) {
  static constexpr std::string_view kBytes = "0123456789-+.eE{}[]\",:/ \n\r\t\\aKMGi=#&*|>'%";
  if (rng.below(4) == 0) return static_cast<std::uint8_t>(rng.below(256));
  return static_cast<std::uint8_t>(kBytes[rng.below(kBytes.size())]);
}

// One to eight small changes: a byte changed, put in, taken out, a piece repeated or cut, or a
// piece of another input spliced in.
Input mutate(Input input, const std::vector<Input>& corpus, jogak::Rng& rng) {
  const std::uint64_t changes = 1 + rng.below(8);
  for (std::uint64_t i = 0; i < changes; ++i) {
    const std::uint64_t kind = rng.below(6);
    const std::size_t at = rng.below(input.size() + 1);
    const auto where = input.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t room = input.size() - at;
    if (kind == 0 && room > 0) {
      *where = interesting_byte(rng);
    } else if (kind == 1 && room > 0) {
      *where = static_cast<std::uint8_t>(*where ^ (1U << rng.below(8)));
    } else if (kind == 2 && room > 0) {
      const std::size_t n = 1 + rng.below(std::min<std::size_t>(room, 16));
      input.erase(where, where + static_cast<std::ptrdiff_t>(n));
    } else if (kind == 3 && room > 0) {
      const std::size_t n = 1 + rng.below(std::min<std::size_t>(room, 64));
      const Input piece(where, where + static_cast<std::ptrdiff_t>(n));
      input.insert(where, piece.begin(), piece.end());
    } else if (kind == 4 && !corpus.empty()) {
      const Input& other = corpus[rng.below(corpus.size())];
      const std::size_t from = rng.below(other.size() + 1);
      const std::size_t n = rng.below(std::min<std::size_t>(other.size() - from, 64) + 1);
      const auto first = other.begin() + static_cast<std::ptrdiff_t>(from);
      input.insert(where, first, first + static_cast<std::ptrdiff_t>(n));
    } else {
      input.insert(where, interesting_byte(rng));
    }
  }
  if (input.size() > kInputBytesMax) input.resize(kInputBytesMax);
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t seed = number_from_env("JOGAK_FUZZ_SEED", 1);
  const std::uint64_t runs_max = number_from_env("JOGAK_FUZZ_RUNS", 20000);
  const std::chrono::milliseconds time_max(number_from_env("JOGAK_FUZZ_MS", 2000));

  const std::string program = std::filesystem::path(argv[0]).filename();
  crash_path = program + ".crash";
  crash_text = program + ": crashed; the input is in " + crash_path + "\nrepeat it: " + argv[0] +
               " " + crash_path + "\nor the run: JOGAK_FUZZ_SEED=" + std::to_string(seed) + " " +
               argv[0];
  for (int i = 1; i < argc; ++i) crash_text.append(" ").append(argv[i]);
  crash_text += "\n";
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS}) {
    std::signal(signal, on_crash);
  }

  const std::vector<Input> corpus = read_corpus(argc, argv);
  for (const Input& input : corpus) run_one(input);

  jogak::Rng rng(seed, "fuzz");
  const auto deadline = std::chrono::steady_clock::now() + time_max;
  std::uint64_t runs = 0;
  for (; runs < runs_max && std::chrono::steady_clock::now() < deadline; ++runs) {
    const bool from_scratch = corpus.empty() || rng.below(16) == 0;
    Input input = from_scratch ? Input() : corpus[rng.below(corpus.size())];
    run_one(mutate(std::move(input), corpus, rng));
  }
  std::printf("%s: %zu inputs of the corpus and %llu changes, seed %llu\n", program.c_str(),
              corpus.size(), static_cast<unsigned long long>(runs),
              static_cast<unsigned long long>(seed));
  return 0;
}
