// SPDX-License-Identifier: Apache-2.0
//
// One state, shared by the guard and by what it gave away. All but PasswordThread's work happens on
// the loop's thread.
#include "agent/exporter/web_guard.h"

#include <crypt.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "agent/exporter/watched_file.h"
#include "agent/exporter/web_config.h"
#include "base/base64.h"
#include "base/file.h"
#include "net/stream.h"

namespace jogak::agent {

namespace {

constexpr std::int64_t kFileBytesMax = std::int64_t{1} << 20;
constexpr std::size_t kChecksMax = 32;  // waiting for the thread

// In a time that does not tell where they differ.
bool is_equal(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned differs = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    differs |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return differs == 0;
}

bool is_password(const std::string& password, const std::string& hash) {
  if (password.find('\0') != std::string::npos) return false;
  const auto data = std::make_unique<crypt_data>();
  const char* const made = crypt_r(password.c_str(), hash.c_str(), data.get());
  return made != nullptr && is_equal(made, hash);
}

// Checks passwords one after the other; answers come on the loop.
class PasswordThread {
 public:
  explicit PasswordThread(Loop& loop) : loop_(loop), thread_([this] { work(); }) {}
  ~PasswordThread() {
    {
      const std::scoped_lock lock(mutex_);
      is_ending_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  PasswordThread(const PasswordThread&) = delete;
  PasswordThread& operator=(const PasswordThread&) = delete;

  // False: too many wait already.
  bool check(std::string password, std::string hash, std::function<void(bool)> done) {
    {
      const std::scoped_lock lock(mutex_);
      if (checks_.size() >= kChecksMax) return false;
      checks_.push_back({std::move(password), std::move(hash), std::move(done)});
    }
    wake_.notify_one();
    return true;
  }

 private:
  struct Check {
    std::string password, hash;
    std::function<void(bool)> done;
  };

  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return is_ending_ || !checks_.empty(); });
      if (is_ending_) return;
      Check check = std::move(checks_.front());
      checks_.pop_front();
      lock.unlock();
      const bool is_right = is_password(check.password, check.hash);
      loop_.post([done = std::move(check.done), is_right] { done(is_right); });
      lock.lock();
    }
  }

  Loop& loop_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Check> checks_;
  bool is_ending_ = false;
  std::thread thread_;  // last: it uses the rest
};

struct Login {
  std::string name, password;
};

// Of an Authorization header; nothing: none that is Basic.
std::optional<Login> login_of(std::string_view header) {
  constexpr std::string_view kBasic = "basic ";
  if (header.size() < kBasic.size()) return std::nullopt;
  for (std::size_t i = 0; i < kBasic.size(); ++i) {
    const char c = header[i];
    if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c) != kBasic[i]) {
      return std::nullopt;
    }
  }
  const auto text = base64_decode(header.substr(kBasic.size()));
  if (!text) return std::nullopt;
  const std::size_t colon = text->find(':');
  if (colon == std::string::npos) return std::nullopt;
  return Login{.name = text->substr(0, colon), .password = text->substr(colon + 1)};
}

void refuse(net::ResponseWriter& writer) {
  writer.respond(401,
                 {{"Content-Type", "text/plain; charset=utf-8"},
                  {"WWW-Authenticate", "Basic realm=\"metrics\", charset=\"UTF-8\""},
                  {"Cache-Control", "no-store"}},
                 "a name and a password are needed\n");
}

// Adds the headers of the file to an answer.
class HeaderWriter : public net::ResponseWriter {
 public:
  HeaderWriter(std::shared_ptr<net::ResponseWriter> to, net::Headers more)
      : to_(std::move(to)), more_(std::move(more)) {}
  void respond(int status, net::Headers headers, std::string body) override {
    to_->respond(status, with_more(std::move(headers)), std::move(body));
  }
  void begin(int status, net::Headers headers) override {
    to_->begin(status, with_more(std::move(headers)));
  }
  void write(std::string_view bytes) override { to_->write(bytes); }
  void write_shared(std::shared_ptr<const std::string> bytes) override {
    to_->write_shared(std::move(bytes));
  }
  void end() override { to_->end(); }
  bool is_open() const override { return to_->is_open(); }
  std::size_t pending() const override { return to_->pending(); }
  void on_close(std::function<void()> callback) override { to_->on_close(std::move(callback)); }
  void on_drain(std::function<void()> callback) override { to_->on_drain(std::move(callback)); }
  void abort() override { to_->abort(); }

 private:
  net::Headers with_more(net::Headers headers) const {
    for (const auto& [name, value] : more_) {
      if (net::header(headers, name).empty()) headers.emplace_back(name, value);
    }
    return headers;
  }
  std::shared_ptr<net::ResponseWriter> to_;
  net::Headers more_;
};

}  // namespace

struct WebGuard::State : std::enable_shared_from_this<WebGuard::State> {
  State(Loop& to, std::string path, OnProblem tell, TimeUs every)
      : loop(to), file(std::move(path)), on_problem(std::move(tell)), look_every(every) {}

  Loop& loop;
  const std::string file;
  OnProblem on_problem;
  const TimeUs look_every;
  bool is_over = false;  // the guard is gone
  WebConfig config;
  std::shared_ptr<net::TlsContext> tls;  // null: plain
  std::vector<std::string> seen;         // fingerprints of the files that were loaded last
  TimeUs looked_at = 0;
  std::string problem;
  std::map<std::string, std::pair<std::string, std::string>, std::less<>> known;  // hash, password
  std::unique_ptr<PasswordThread> passwords;

  static std::vector<std::string> fingerprints(const std::string& file, const WebConfig& of) {
    return {file_fingerprint(file), file_fingerprint(of.cert_file), file_fingerprint(of.key_file),
            file_fingerprint(of.client_ca_file)};
  }

  static Result<std::string> text_of(const std::string& path, const std::string& text) {
    if (path.empty()) return text;
    return read_file(path, kFileBytesMax);
  }

  Result<void> load() {
    JOGAK_TRY(const std::string text, read_file(file, kFileBytesMax));
    JOGAK_TRY(WebConfig read, parse_web_config(file, text));
    // Looked at before they are read: a file that changes in between is read again.
    std::vector<std::string> prints = fingerprints(file, read);
    std::shared_ptr<net::TlsContext> context;
    if (read.has_tls) {
      net::TlsIdentity identity;
      JOGAK_TRY(identity.certificate_pem, text_of(read.cert_file, read.cert_text));
      JOGAK_TRY(identity.key_pem, text_of(read.key_file, read.key_text));
      std::string authority;
      if (read.requires_client_cert) {
        JOGAK_TRY(authority, text_of(read.client_ca_file, read.client_ca_text));
        if (authority.empty()) return invalid("{}: client_ca_file is empty", file);
      }
      auto made = net::TlsContext::make(identity, authority, read.only_tls13);
      if (!made) return in_context(file + ": tls_server_config", std::move(made).error());
      context = *std::move(made);
    }
    config = std::move(read);
    tls = std::move(context);
    seen = std::move(prints);
    if (!config.users.empty() && passwords == nullptr) {
      passwords = std::make_unique<PasswordThread>(loop);
    }
    return {};
  }

  void look() {
    if (is_over) return;
    const TimeUs now = loop.now();
    if (now - looked_at < look_every) return;
    looked_at = now;
    if (problem.empty() && fingerprints(file, config) == seen) return;
    const Result<void> loaded = load();
    const std::string found = loaded ? "" : loaded.error().what;
    if (found == problem) return;
    problem = found;
    if (on_problem) on_problem(problem);
  }

  void admit(net::HttpRequest request, const std::shared_ptr<net::ResponseWriter>& to,
             const net::HttpHandler& inner) {
    look();
    if (is_over) return to->abort();
    const auto writer = config.headers.empty()
                            ? to
                            : std::make_shared<HeaderWriter>(to, net::Headers(config.headers));
    if (config.users.empty()) return inner(std::move(request), writer);
    auto login = login_of(net::header(request.headers, "authorization"));
    if (!login) return refuse(*writer);
    const auto user = config.users.find(login->name);
    const bool is_user = user != config.users.end();
    // A name that is not there takes as long to refuse as a wrong password.
    const std::string hash = is_user ? user->second : config.users.begin()->second;
    const auto before = known.find(login->name);
    if (is_user && before != known.end() && before->second.first == hash &&
        is_equal(before->second.second, login->password)) {
      return inner(std::move(request), writer);
    }
    std::string password = login->password;
    auto done = [state = shared_from_this(), is_user, hash, login = *std::move(login), writer,
                 inner, request = std::move(request)](bool is_right) mutable {
      if (state->is_over) return writer->abort();
      if (!is_user || !is_right) return refuse(*writer);
      state->known[login.name] = {hash, login.password};
      inner(std::move(request), writer);
    };
    if (!passwords->check(std::move(password), hash, std::move(done))) {
      writer->respond(503, {{"Content-Type", "text/plain; charset=utf-8"}, {"Retry-After", "1"}},
                      "too many passwords wait to be checked\n");
    }
  }
};

namespace {

// What a server holds for good; the context behind it changes with the files.
template <class State>
class Front : public net::TlsContext {
 public:
  explicit Front(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::unique_ptr<net::Stream> accept(int fd) override {
    state_->look();
    return state_->tls == nullptr ? net::plain_stream(fd) : state_->tls->accept(fd);
  }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace

Result<std::unique_ptr<WebGuard>> WebGuard::open(Loop& loop, std::string file, OnProblem on_problem,
                                                 TimeUs look_every) {
  auto state = std::make_shared<State>(loop, std::move(file), std::move(on_problem), look_every);
  JOGAK_TRY_VOID(state->load());
  state->looked_at = loop.now();
  return std::unique_ptr<WebGuard>(new WebGuard(std::move(state)));
}

WebGuard::~WebGuard() {
  state_->is_over = true;
  state_->on_problem = nullptr;
  state_->passwords = nullptr;
}

std::shared_ptr<net::TlsContext> WebGuard::tls() { return std::make_shared<Front<State>>(state_); }

bool WebGuard::has_tls() const { return state_->tls != nullptr; }

net::HttpHandler WebGuard::guard(net::HttpHandler inner) {
  return [state = state_, inner = std::move(inner)](net::HttpRequest request,
                                                    std::shared_ptr<net::ResponseWriter> writer) {
    state->admit(std::move(request), writer, inner);
  };
}

}  // namespace jogak::agent
