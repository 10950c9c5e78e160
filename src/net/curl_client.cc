// SPDX-License-Identifier: Apache-2.0
//
// One libcurl multi handle, whose sockets and timer the loop watches. libcurl must not be called
// from its own callbacks, so what events ask for there (send, cancel, drop the client) waits until
// libcurl has returned: enter() is the one way in, and settle() does what waits.
//
// Easy handles are kept with all that never changes set once; a request sets its URL, method,
// headers and body. Limits of time are the loop's timers, since they count the wait for a turn too.
#include "net/curl_client.h"

#include <curl/curl.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/check.h"
#include "base/file.h"
#include "net/curl_outcome.h"
#include "net/curl_setup.h"
#include "net/http_text.h"

namespace jogak::net {
namespace {

constexpr std::size_t kHeadBytesMax = std::size_t{1} << 20;

bool is_token(std::string_view text) {
  const auto is_good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  };
  return !text.empty() && std::ranges::all_of(text, is_good);
}

bool is_one_line(std::string_view text) {
  return std::ranges::none_of(text, [](char c) { return c == '\r' || c == '\n' || c == '\0'; });
}

Result<void> check(const ClientRequest& request) {
  if (!is_token(request.method)) return invalid("request: \"{}\" is not a method", request.method);
  const auto is_visible = [](char c) { return c > ' ' && c != 0x7f && c != '#'; };
  if (!request.target.starts_with('/') || !std::ranges::all_of(request.target, is_visible)) {
    return invalid("request: the target must start with / and be escaped");
  }
  for (const auto& [name, value] : request.headers) {
    if (!is_token(name)) return invalid("request: \"{}\" is not the name of a header", name);
    // not the value: it may be a secret
    if (!is_one_line(value)) return invalid("request: the header {} holds a line break", name);
  }
  return {};
}

}  // namespace

// One exchange, from send() to its end.
struct CurlClient::Transfer {
  std::uint64_t id = 0;
  ClientRequest request;
  ClientEvents events;
  TimeUs deadline = 0;   // 0: none
  TimeUs last_byte = 0;  // when something arrived; counts from send()
  TimerId timer = 0;
  Slot* slot = nullptr;  // null: it waits for its turn, or is over

  // As libcurl reads them, for as long as it works: the header list points into its text.
  std::string header_text;
  std::vector<curl_slist> header_list;

  int status = 0;
  Headers head;
  std::size_t head_bytes = 0;
  bool is_head_done = false;
  bool is_sent = false;
  bool is_cancelled = false;
};

// An easy handle and what libcurl's callbacks are given.
struct CurlClient::Slot {
  Impl* impl = nullptr;
  CurlEasy easy;
  Transfer* transfer = nullptr;
  std::array<char, CURL_ERROR_SIZE> error{};
};

struct CurlClient::Impl : std::enable_shared_from_this<Impl> {
  Impl(EpollLoop& own_loop, CurlSetup own_setup)
      : loop(own_loop), setup(std::move(own_setup)), multi(curl_multi_init()) {
    JOGAK_CHECK(multi != nullptr, "no memory for an HTTP client");
    CURLM* m = multi.get();
    const auto most = static_cast<long>(setup.options.connections_max);
    curl_multi_setopt(m, CURLMOPT_SOCKETFUNCTION, &Impl::on_socket);
    curl_multi_setopt(m, CURLMOPT_SOCKETDATA, this);
    curl_multi_setopt(m, CURLMOPT_TIMERFUNCTION, &Impl::on_timer);
    curl_multi_setopt(m, CURLMOPT_TIMERDATA, this);
    curl_multi_setopt(m, CURLMOPT_MAXCONNECTS, most);
    curl_multi_setopt(m, CURLMOPT_PIPELINING, setup.options.http2 ? CURLPIPE_MULTIPLEX : 0L);
  }

  std::shared_ptr<void> send(ClientRequest request, ClientEvents events);
  void cancel(std::uint64_t id);
  void shut();

  // -- towards libcurl
  void enter(curl_socket_t fd, int events);
  void settle();
  void start_waiting();
  void start(Transfer& transfer);
  Slot* take_slot();
  void leave_slot(Transfer& transfer);
  void fill(Slot& slot, Transfer& transfer);

  // -- ends
  void arm(Transfer& transfer);
  void expire(std::uint64_t id);
  void finish(Transfer& transfer, Result<void> outcome);
  void end_done(Slot& slot, CURLcode code);
  Error late(const Transfer& transfer) const;

  // -- callbacks of libcurl
  static int on_socket(CURL*, curl_socket_t fd, int what, void* self, void*);
  static int on_timer(CURLM*, long wait_ms, void* self);
  static std::size_t on_header(char* data, std::size_t, std::size_t size, void* slot);
  static std::size_t on_body(char* data, std::size_t, std::size_t size, void* slot);
  static int on_ready(void* slot, char*, char*, int, int);
  bool take_header_line(Transfer& transfer, std::string_view line);

  EpollLoop& loop;
  CurlSetup setup;
  CurlMulti multi;
  TimerId timer = 0;
  std::unordered_set<int> watched;

  std::uint64_t last_id = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<Transfer>> transfers;
  std::deque<std::uint64_t> waiting;  // ids; those cancelled meanwhile are skipped
  std::size_t active = 0;
  std::vector<std::unique_ptr<Slot>> slots;
  std::vector<Slot*> idle_slots;

  bool is_inside = false;                // libcurl is on the stack
  bool is_shut = false;                  // nothing but tidying up happens any more
  std::vector<std::uint64_t> cancelled;  // while inside
};

class CurlClient::Handle {
 public:
  Handle(std::weak_ptr<Impl> impl, std::uint64_t id) : impl_(std::move(impl)), id_(id) {}
  ~Handle() {
    if (const auto impl = impl_.lock(); impl != nullptr) impl->cancel(id_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

 private:
  std::weak_ptr<Impl> impl_;
  std::uint64_t id_;
};

// ---------------------------------------------------------------------------------- send, cancel

std::shared_ptr<void> CurlClient::Impl::send(ClientRequest request, ClientEvents events) {
  auto made = std::make_unique<Transfer>();
  Transfer& transfer = *made;
  transfer.id = ++last_id;
  transfer.request = std::move(request);
  transfer.events = std::move(events);
  transfer.last_byte = loop.now();
  if (transfer.request.time_limit > 0) {
    transfer.deadline = transfer.last_byte + transfer.request.time_limit;
  }
  transfers.emplace(transfer.id, std::move(made));
  auto handle = std::make_shared<Handle>(weak_from_this(), transfer.id);
  if (Result<void> checked = check(transfer.request); !checked) {
    transfer.timer = loop.after(0, [self = weak_from_this(), id = transfer.id,
                                    error = std::move(checked).error()]() mutable {
      const auto impl = self.lock();
      if (impl == nullptr) return;
      const auto it = impl->transfers.find(id);
      if (it != impl->transfers.end()) {
        it->second->timer = 0;
        impl->finish(*it->second, std::unexpected(std::move(error)));
      }
    });
    return handle;
  }
  arm(transfer);
  waiting.push_back(transfer.id);
  if (!is_inside) start_waiting();
  return handle;
}

void CurlClient::Impl::cancel(std::uint64_t id) {
  const auto it = transfers.find(id);
  if (it == transfers.end()) return;
  Transfer& transfer = *it->second;
  if (std::exchange(transfer.is_cancelled, true)) return;
  loop.cancel(std::exchange(transfer.timer, 0));
  if (is_inside) {
    cancelled.push_back(id);  // one of its own events may be running
    return;
  }
  leave_slot(transfer);
  const std::unique_ptr<Transfer> gone = std::move(it->second);
  transfers.erase(it);
  if (!is_shut) start_waiting();
}

// The client goes. Inside of libcurl the rest follows once it has returned.
void CurlClient::Impl::shut() {
  is_shut = true;
  std::vector<std::uint64_t> ids;
  ids.reserve(transfers.size());
  for (const auto& [id, transfer] : transfers) ids.push_back(id);
  std::ranges::sort(ids);
  for (const std::uint64_t id : ids) cancel(id);
  if (is_inside) return;
  waiting.clear();
  loop.cancel(std::exchange(timer, 0));
  idle_slots.clear();
  slots.clear();
  multi.reset();  // closes the connections, which forgets their descriptors
  for (const int fd : watched) loop.remove_fd(fd);
  watched.clear();
  loop.cancel(std::exchange(timer, 0));
}

// ------------------------------------------------------------------------------- towards libcurl

void CurlClient::Impl::enter(curl_socket_t fd, int events) {
  const auto self = shared_from_this();
  int running = 0;
  is_inside = true;
  curl_multi_socket_action(multi.get(), fd, events, &running);
  is_inside = false;
  settle();
}

void CurlClient::Impl::settle() {
  for (const std::uint64_t id : std::exchange(cancelled, {})) {
    const auto it = transfers.find(id);
    if (it == transfers.end()) continue;
    leave_slot(*it->second);
    const std::unique_ptr<Transfer> gone = std::move(it->second);
    transfers.erase(it);
  }
  if (is_shut && multi != nullptr) shut();
  // Events of an end may do anything, this client's end included.
  while (!is_shut) {
    int left = 0;
    const CURLMsg* message = curl_multi_info_read(multi.get(), &left);
    if (message == nullptr) break;
    if (message->msg != CURLMSG_DONE) continue;
    Slot* slot = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &slot);
    end_done(*slot, message->data.result);
  }
  if (!is_shut) start_waiting();
}

void CurlClient::Impl::start_waiting() {
  while (!waiting.empty() && active < setup.options.connections_max) {
    const auto it = transfers.find(waiting.front());
    waiting.pop_front();
    if (it != transfers.end() && !it->second->is_cancelled) start(*it->second);
  }
}

void CurlClient::Impl::start(Transfer& transfer) {
  Slot* slot = take_slot();
  slot->transfer = &transfer;
  transfer.slot = slot;
  ++active;
  fill(*slot, transfer);
  const CURLMcode code = curl_multi_add_handle(multi.get(), slot->easy.get());
  JOGAK_CHECK(code == CURLM_OK, "{}", curl_multi_strerror(code));
}

CurlClient::Slot* CurlClient::Impl::take_slot() {
  if (!idle_slots.empty()) {
    Slot* slot = idle_slots.back();
    idle_slots.pop_back();
    return slot;
  }
  auto made = std::make_unique<Slot>();
  made->impl = this;
  made->easy.reset(curl_easy_init());
  JOGAK_CHECK(made->easy != nullptr, "no memory for an HTTP request");
  CURL* easy = made->easy.get();
  setup.apply(easy);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, made.get());
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, made->error.data());
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &Impl::on_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, made.get());
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &Impl::on_header);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, made.get());
  curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, &Impl::on_ready);
  curl_easy_setopt(easy, CURLOPT_PREREQDATA, made.get());
  slots.push_back(std::move(made));
  return slots.back().get();
}

void CurlClient::Impl::leave_slot(Transfer& transfer) {
  if (transfer.slot == nullptr) return;
  Slot* slot = std::exchange(transfer.slot, nullptr);
  curl_multi_remove_handle(multi.get(), slot->easy.get());
  slot->transfer = nullptr;
  idle_slots.push_back(slot);
  --active;
}

void CurlClient::Impl::fill(Slot& slot, Transfer& transfer) {
  CURL* easy = slot.easy.get();
  const ClientRequest& request = transfer.request;
  slot.error[0] = '\0';
  curl_easy_setopt(easy, CURLOPT_URL, (setup.url_prefix + request.target).c_str());

  const bool has_body = !request.body.empty() || request.method == "POST" ||
                        request.method == "PUT" || request.method == "PATCH";
  curl_easy_setopt(easy, CURLOPT_NOBODY, 0L);
  if (has_body) {
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, request.body.c_str());
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
  } else {
    curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    if (request.method == "HEAD") curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
  }
  curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, request.method.c_str());

  // Nodes of our own: libcurl only reads the list.
  std::string& text = transfer.header_text;
  std::vector<std::size_t> starts;
  const auto add = [&](std::string_view name, std::string_view value) {
    starts.push_back(text.size());
    text.append(name).append(value.empty() ? ";" : ": ").append(value).push_back('\0');
  };
  for (const auto& [name, value] : request.headers) add(name, value);
  const auto add_line = [&](std::string_view line) {
    starts.push_back(text.size());
    text.append(line).push_back('\0');
  };
  // What libcurl would add by itself: form data, and a round trip before a large body.
  if (has_body && header(request.headers, "content-type").empty()) add_line("Content-Type:");
  if (has_body) add_line("Expect:");
  if (!setup.host_header.empty()) add("Host", setup.host_header);
  transfer.header_list.resize(starts.size());
  for (std::size_t i = 0; i < starts.size(); ++i) {
    curl_slist& node = transfer.header_list[i];
    node.data = text.data() + starts[i];
    node.next = i + 1 < starts.size() ? &node + 1 : nullptr;
  }
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER,
                   starts.empty() ? nullptr : transfer.header_list.data());
}

// ------------------------------------------------------------------------------------------ ends

// One timer for both limits: it looks again when bytes have arrived meanwhile.
void CurlClient::Impl::arm(Transfer& transfer) {
  TimeUs when = transfer.deadline;
  if (transfer.request.silence_limit > 0) {
    const TimeUs silent = transfer.last_byte + transfer.request.silence_limit;
    when = when == 0 ? silent : std::min(when, silent);
  }
  if (when == 0) return;
  transfer.timer = loop.at(when, [self = weak_from_this(), id = transfer.id] {
    if (const auto impl = self.lock(); impl != nullptr) impl->expire(id);
  });
}

void CurlClient::Impl::expire(std::uint64_t id) {
  const auto it = transfers.find(id);
  if (it == transfers.end()) return;
  Transfer& transfer = *it->second;
  transfer.timer = 0;
  const TimeUs now = loop.now();
  const TimeUs silence = transfer.request.silence_limit;
  const bool is_late = transfer.deadline > 0 && now >= transfer.deadline;
  const bool is_silent = silence > 0 && now >= transfer.last_byte + silence;
  if (!is_late && !is_silent) return arm(transfer);
  finish(transfer, std::unexpected(late(transfer)));
}

Error CurlClient::Impl::late(const Transfer& transfer) const {
  const ClientRequest& request = transfer.request;
  const bool is_late = transfer.deadline > 0 && loop.now() >= transfer.deadline;
  const std::string after = duration_text(is_late ? request.time_limit : request.silence_limit);
  if (transfer.slot == nullptr) {
    return {.code = Errc::Unavailable,
            .what = fmt::format("no connection to {} was free within {} (all {} are in use)",
                                setup.server, after, setup.options.connections_max)};
  }
  if (!transfer.is_sent) {
    return {.code = Errc::Unavailable,
            .what = fmt::format("cannot connect to {} within {}", setup.server, after)};
  }
  if (!is_late) {
    return {.code = Errc::Timeout,
            .what = fmt::format("nothing came from {} for {}", setup.server, after)};
  }
  return {.code = Errc::Timeout,
          .what = transfer.is_head_done
                      ? fmt::format("the answer of {} to the {} request was not whole within {}",
                                    setup.server, request.method, after)
                      : fmt::format("{} did not answer the {} request within {}", setup.server,
                                    request.method, after)};
}

// Outside of libcurl. The transfer is gone afterwards.
void CurlClient::Impl::finish(Transfer& transfer, Result<void> outcome) {
  const auto self = shared_from_this();
  loop.cancel(std::exchange(transfer.timer, 0));
  leave_slot(transfer);
  const auto it = transfers.find(transfer.id);
  const std::unique_ptr<Transfer> done = std::move(it->second);
  transfers.erase(it);
  if (done->is_cancelled) return;
  if (!is_shut) start_waiting();
  if (done->events.on_end) done->events.on_end(std::move(outcome));
}

void CurlClient::Impl::end_done(Slot& slot, CURLcode code) {
  Transfer& transfer = *slot.transfer;
  if (code == CURLE_OK && !transfer.is_head_done) code = CURLE_GOT_NOTHING;
  if (code == CURLE_OK) return finish(transfer, {});
  long os_errno = 0;
  curl_easy_getinfo(slot.easy.get(), CURLINFO_OS_ERRNO, &os_errno);
  Error error = error_of(CurlFailure{
      .code = code,
      .os_errno = static_cast<int>(os_errno),
      .text = slot.error.data(),
      .server = setup.server,
      .proxy = setup.proxy_name,
      .method = transfer.request.method,
      .is_sent = transfer.is_sent,
      .is_answered = transfer.is_head_done,
      .has_client_certificate = !setup.options.client_certificate_pem.empty(),
  });
  finish(transfer, std::unexpected(std::move(error)));
}

// -------------------------------------------------------------------------- callbacks of libcurl

int CurlClient::Impl::on_socket(CURL*, curl_socket_t fd, int what, void* self, void*) {
  Impl& impl = *static_cast<Impl*>(self);
  if (what == CURL_POLL_REMOVE) {
    if (impl.watched.erase(fd) > 0) impl.loop.remove_fd(fd);
    return 0;
  }
  const std::uint32_t events =
      ((what & CURL_POLL_IN) != 0 ? EPOLLIN : 0U) | ((what & CURL_POLL_OUT) != 0 ? EPOLLOUT : 0U);
  if (!impl.watched.insert(fd).second) {
    impl.loop.change_fd(fd, events);
    return 0;
  }
  impl.loop.add_fd(fd, events, [&impl, fd](std::uint32_t ready) {
    int mask = 0;
    if ((ready & (EPOLLIN | EPOLLHUP)) != 0) mask |= CURL_CSELECT_IN;
    if ((ready & EPOLLOUT) != 0) mask |= CURL_CSELECT_OUT;
    if ((ready & EPOLLERR) != 0) mask |= CURL_CSELECT_ERR;
    impl.enter(fd, mask);
  });
  return 0;
}

int CurlClient::Impl::on_timer(CURLM*, long wait_ms, void* self) {
  Impl& impl = *static_cast<Impl*>(self);
  impl.loop.cancel(std::exchange(impl.timer, 0));
  if (wait_ms < 0) return 0;
  impl.timer = impl.loop.after(wait_ms * kMsInUs, [&impl] {
    impl.timer = 0;
    impl.enter(CURL_SOCKET_TIMEOUT, 0);
  });
  return 0;
}

// A connection is ready and the request goes out now. libcurl comes here a second time when it
// sends the request again because a kept connection turned out to be closed; what must not be done
// twice is not sent twice.
int CurlClient::Impl::on_ready(void* slot, char*, char*, int, int) {
  Transfer& transfer = *static_cast<Slot*>(slot)->transfer;
  const bool is_repeat = std::exchange(transfer.is_sent, true);
  const std::string& method = transfer.request.method;
  const bool may_repeat = method == "GET" || method == "HEAD" || method == "OPTIONS";
  return is_repeat && !may_repeat ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

std::size_t CurlClient::Impl::on_header(char* data, std::size_t, std::size_t size, void* slot) {
  Slot& own = *static_cast<Slot*>(slot);
  Transfer& transfer = *own.transfer;
  if (transfer.is_cancelled) return 0;
  std::string_view line(data, size);
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  return own.impl->take_header_line(transfer, line) ? size : 0;
}

bool CurlClient::Impl::take_header_line(Transfer& transfer, std::string_view line) {
  if (transfer.request.silence_limit > 0) transfer.last_byte = loop.now();
  if (transfer.is_head_done) return true;  // trailers
  transfer.head_bytes += line.size();
  if (transfer.head_bytes > kHeadBytesMax) return false;
  if (line.starts_with("HTTP/")) {
    transfer.head.clear();
    const std::size_t space = std::min(line.find(' '), line.size() - 1);
    std::from_chars(line.data() + space + 1, line.data() + line.size(), transfer.status);
    return true;
  }
  if (!line.empty()) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return true;
    std::string_view value = line.substr(colon + 1);
    value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
    transfer.head.emplace_back(line.substr(0, colon), value);
    return true;
  }
  if (transfer.status < 200) return true;  // the real answer follows
  transfer.is_head_done = true;
  if (setup.options.compression && !header(transfer.head, "content-encoding").empty()) {
    // The body is handed on unpacked, and these would not be true of it.
    std::erase_if(transfer.head, [](const auto& each) {
      return is_same_name(each.first, "content-encoding") ||
             is_same_name(each.first, "content-length");
    });
  }
  if (transfer.events.on_head) transfer.events.on_head(transfer.status, transfer.head);
  return !transfer.is_cancelled;
}

std::size_t CurlClient::Impl::on_body(char* data, std::size_t, std::size_t size, void* slot) {
  Slot& own = *static_cast<Slot*>(slot);
  Transfer& transfer = *own.transfer;
  if (transfer.is_cancelled) return 0;
  if (transfer.request.silence_limit > 0) transfer.last_byte = own.impl->loop.now();
  if (transfer.events.on_body) transfer.events.on_body({data, size});
  return transfer.is_cancelled ? 0 : size;
}

// ------------------------------------------------------------------------------------ CurlClient

Result<std::unique_ptr<CurlClient>> CurlClient::make(EpollLoop& loop, CurlOptions options) {
  JOGAK_TRY(CurlSetup setup, CurlSetup::make(std::move(options)));
  return std::unique_ptr<CurlClient>(
      new CurlClient(std::make_shared<Impl>(loop, std::move(setup))));
}

CurlClient::CurlClient(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
CurlClient::~CurlClient() { impl_->shut(); }

Loop& CurlClient::loop() { return impl_->loop; }

std::shared_ptr<void> CurlClient::send(ClientRequest request, ClientEvents events) {
  return impl_->send(std::move(request), std::move(events));
}

CurlClient::Counts CurlClient::counts() const {
  return {.active = impl_->active, .waiting = impl_->transfers.size() - impl_->active};
}

const std::string& CurlClient::server() const { return impl_->setup.server; }

}  // namespace jogak::net
