// SPDX-License-Identifier: Apache-2.0
//
// What the API server's store costs at 50,000 pods on 5,000 nodes: writes with 20 watches behind
// them, reads, lists of the present and of the past, and the journal. One core, one table printed.
//
//   build/bench/bench/store_bench [--journal FOLDER]
#include <malloc.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "apiserver/store/sqlite_journal.h"
#include "apiserver/store/store.h"
#include "base/check.h"
#include "base/mono_clock.h"
#include "base/rng.h"
#include "base/sim_loop.h"

namespace jogak::bench {
namespace {

using store::Object;
using store::ObjectPtr;
using store::Store;
using store::TableId;

constexpr int kPods = 50'000, kNodes = 5'000, kNamespaces = 50, kWatches = 20;
constexpr std::size_t kPodBytes = 3500, kNodeBytes = 5000;

class Bench {
 public:
  void run(const std::string& journal_folder) {
    fill();
    measure("write, 20 watches", 60'000, [this](int) { write(); });
    measure("get", 200'000, [this](int i) {
      JOGAK_CHECK(store_.get(pods_, ns(i % kPods), name(i % kPods)) != nullptr);
    });
    measure("list of one namespace (1,000)", 300, [this](int i) {
      JOGAK_CHECK(store_.list(pods_, {.ns = ns(i)}).objects.size() == kPods / kNamespaces);
    });
    measure("list of all (50,000)", 20,
            [this](int) { JOGAK_CHECK(store_.list(pods_, {}).objects.size() == kPods); });
    const store::Revision past = store_.revision() - 15'000;
    measure("list of all, 15,000 changes ago", 10,
            [&](int) { JOGAK_CHECK(store_.list_at(pods_, {}, past)->objects.size() == kPods); });
    pages(past);
    measure("watch from 15,000 changes ago", 20, [&](int) {
      std::size_t events = 0;
      const auto watch = store_.watch(pods_, past, [&](const store::EventPtr&) { ++events; });
      store_.unwatch(*watch);
      JOGAK_CHECK(events == 15'000);
    });
    journal(journal_folder);
  }

 private:
  static std::string ns(int i) { return fmt::format("team-{:03}", i % kNamespaces); }
  static std::string name(int i) { return fmt::format("worker-{:06}-abcde", i); }

  template <class F>
  static void measure(std::string_view what, int times, const F& function) {
    const std::int64_t start = mono_now_ns();
    for (int i = 0; i < times; ++i) function(i);
    const double each = static_cast<double>(mono_now_ns() - start) / times / 1000;
    fmt::print("{:<36}{:>12.2f} us\n", what, each);
  }

  Object object(std::string of_ns, std::string of_name, std::size_t bytes) {
    Object made;
    made.ns = std::move(of_ns);
    made.name = std::move(of_name);
    made.uid = "00000000-0000-4000-8000-000000000000";
    made.revision = store_.next_revision();
    made.json.assign(bytes, 'j');
    made.labels = {{"app", "worker"}, {"pod-template-hash", "abcdef"}};
    made.fields = {{"metadata.name", made.name}, {"spec.nodeName", "node-1"}};
    return made;
  }

  void fill() {
    const std::size_t before = mallinfo2().uordblks;
    const std::int64_t start = mono_now_ns();
    for (int i = 0; i < kNodes; ++i) {
      store_.put(nodes_, object("", fmt::format("node-{:05}", i), kNodeBytes));
    }
    for (int i = 0; i < kPods; ++i) store_.put(pods_, object(ns(i), name(i), kPodBytes));
    const double each = static_cast<double>(mono_now_ns() - start) / (kPods + kNodes) / 1000;
    fmt::print("{:<36}{:>12.2f} us\n", "first write of an object", each);
    fmt::print("{:<36}{:>12} MiB (objects {} MiB)\n", "memory",
               (mallinfo2().uordblks - before) >> 20,
               (kPods * kPodBytes + kNodes * kNodeBytes) >> 20);
    for (int i = 0; i < kWatches; ++i) {
      const auto watch = store_.watch(pods_, store_.revision(), [this](const store::EventPtr& e) {
        seen_ += e->object->json.size();
      });
      JOGAK_CHECK(watch.has_value());
    }
  }

  // As 3,000 writes a second come: one every 333 us of the loop's clock.
  void write() {
    const int i = static_cast<int>(rng_.below(kPods));
    store_.put(pods_, object(ns(i), name(i), kPodBytes));
    loop_.run_for(333);
  }

  // A client that pages through the past while it changes.
  void pages(store::Revision at) {
    const std::int64_t start = mono_now_ns();
    std::string after_ns, after_name;
    int count = 0;
    for (bool has_more = true; has_more; ++count) {
      const Store::Range range{.after_ns = after_ns, .after_name = after_name, .limit = 500};
      const auto page = store_.list_at(pods_, range, at);
      JOGAK_CHECK(page.has_value());
      has_more = page->has_more;
      after_ns = page->objects.back()->ns;
      after_name = page->objects.back()->name;
    }
    const double each = static_cast<double>(mono_now_ns() - start) / count / 1000;
    fmt::print("{:<36}{:>12.2f} us\n", "page of 500, 15,000 changes ago", each);
  }

  void journal(const std::string& folder) {
    std::filesystem::remove_all(folder);
    auto opened = store::SqliteJournal::open(folder);
    JOGAK_CHECK(opened.has_value(), "{}", opened.error().what);
    store::SqliteJournal& kept = **opened;
    for (const int batch : {1, 8, 64}) {
      std::int64_t worst = 0;
      measure(fmt::format("journal: {} writes and a flush", batch), 3000 / batch, [&](int) {
        const std::int64_t start = mono_now_ns();
        for (int i = 0; i < batch; ++i) {
          const int pod = static_cast<int>(rng_.below(kPods));
          kept.put("pods", object(ns(pod), name(pod), kPodBytes));
        }
        JOGAK_CHECK(kept.flush().has_value());
        worst = std::max(worst, mono_now_ns() - start);
      });
      fmt::print("{:<36}{:>12.2f} us\n", "  the slowest", static_cast<double>(worst) / 1000);
    }
    for (const ObjectPtr& pod : store_.list(pods_, {}).objects) kept.put("pods", *pod);
    kept.put("pods", object("last", "last", 1));
    JOGAK_CHECK(kept.flush().has_value());
    opened->reset();
    measure("journal: open and restore 50,001", 1, [&](int) {
      const auto again = store::SqliteJournal::open(folder);
      JOGAK_CHECK(again.has_value(), "{}", again.error().what);
      std::size_t count = 0;
      const auto read = (*again)->restore([&](std::string_view, Object) -> Result<void> {
        ++count;
        return {};
      });
      JOGAK_CHECK(read.has_value() && count == kPods + 1);
    });
    std::filesystem::remove_all(folder);
  }

  SimLoop loop_;
  Rng rng_{1, "store_bench"};
  Store store_{loop_};
  TableId pods_ = store_.table("pods"), nodes_ = store_.table("nodes");
  std::uint64_t seen_ = 0;
};

}  // namespace
}  // namespace jogak::bench

int main(int argc, char** argv) {
  const bool has_folder = argc == 3 && std::string_view(argv[1]) == "--journal";
  const std::string folder =
      has_folder ? argv[2]
                 : (std::filesystem::temp_directory_path() / "jogak-store-bench").string();
  jogak::bench::Bench().run(folder);
  return 0;
}
