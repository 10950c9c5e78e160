// SPDX-License-Identifier: Apache-2.0
//
// Files are small and local, so they are read on the loop; programs run beside it.
#include "kube/credentials.h"

#include <algorithm>
#include <cctype>
#include <ctime>
#include <optional>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/file.h"
#include "kube/exec_credential.h"
#include "net/pem.h"
#include "net/tls.h"

namespace jogak::kube {
namespace {

constexpr std::int64_t kFileBytesMaxHere = std::int64_t{1} << 20;
// A token is good for a minute, and looked for anew a little earlier.
constexpr TimeUs kTokenPeriod = 60 * kSecondInUs, kTokenLeeway = 10 * kSecondInUs;
constexpr TimeUs kCertificatePeriod = 300 * kSecondInUs;
constexpr TimeUs kFileRetry = 10 * kSecondInUs;  // after a read that failed
constexpr TimeUs kRefusedRetry = 1 * kSecondInUs;
constexpr TimeUs kBackoffFirst = 1 * kSecondInUs, kBackoffMax = 60 * kSecondInUs;
constexpr std::size_t kErrorTextMax = 400;

std::string trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(kSpace) - first + 1));
}

// What a program wrote, on one line and not too long.
std::string one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool is_space = static_cast<unsigned char>(c) <= ' ' || c == 0x7f;
    if (is_space && (line.empty() || line.back() == ' ')) continue;
    line += is_space ? ' ' : c;
    if (line.size() >= kErrorTextMax) return line + "...";
  }
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

TimeUs backoff(int failures) {
  return std::min(kBackoffMax, kBackoffFirst << std::min(failures - 1, 10));
}

std::string time_text(TimeUs time) {
  const std::time_t seconds = time / kSecondInUs;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::string text(32, '\0');
  text.resize(std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts));
  return text;
}

// When a token that is a JWT ends; nullopt for any other.
std::optional<TimeUs> token_expiry(std::string_view authorization) {
  constexpr std::string_view kBearer = "Bearer ";
  if (!authorization.starts_with(kBearer)) return std::nullopt;
  const std::string_view token = authorization.substr(kBearer.size());
  const std::size_t first = token.find('.');
  const std::size_t second = first == std::string_view::npos ? first : token.find('.', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const auto payload = base64_decode(token.substr(first + 1, second - first - 1));
  if (!payload) return std::nullopt;
  const auto json = nlohmann::json::parse(*payload, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("exp") || !json["exp"].is_number_integer()) {
    return std::nullopt;
  }
  const auto seconds = json["exp"].get<std::int64_t>();
  if (seconds < 0 || seconds > std::int64_t{1} << 40) return std::nullopt;
  return seconds * kSecondInUs;
}

Result<void> check_pair(const std::string& certificate, const std::string& key) {
  auto context = net::TlsContext::make({.certificate_pem = certificate, .key_pem = key});
  if (!context) return in_context("client certificate", std::move(context).error());
  return {};
}

}  // namespace

struct Credentials::Impl : std::enable_shared_from_this<Impl> {
  Impl(Loop& own_loop, const Access& own_access, CredentialsOptions own_options)
      : loop(own_loop), access(own_access), options(std::move(own_options)) {}

  // A token or a password beside a program wins, as in kubectl.
  bool uses_program() const {
    return access.exec.has_value() && access.token.empty() && access.token_file.empty() &&
           access.username.empty();
  }
  bool is_current() const {
    return current != nullptr && !is_refused && (!expiry || loop.now() < *expiry);
  }

  void set(std::string authorization, std::string certificate, std::string key);
  Result<void> read_token();
  Result<void> read_certificate();
  void get(Ready ready);
  void run();
  void end_run(Result<ChildOutcome> outcome);
  Result<void> take(Result<ChildOutcome> outcome);
  void fail_all(Error error);
  void serve();

  Loop& loop;
  Access access;
  CredentialsOptions options;
  std::shared_ptr<const Credential> current;

  TimeUs token_read_at = 0, certificate_read_at = 0;  // when to read again
  std::string certificate, key;

  // of a program
  std::optional<TimeUs> expiry;
  bool is_refused = false;
  int failures = 0, refusals = 0;  // in a row
  TimeUs retry_at = 0;
  std::optional<Error> last_error;
  std::vector<Ready> waiting;
  bool is_running = false;
  std::shared_ptr<void> child;
};

// Keeps the numbers where nothing is new.
void Credentials::Impl::set(std::string authorization, std::string certificate_pem,
                            std::string key_pem) {
  Credential next{.number = 1,
                  .authorization = std::move(authorization),
                  .certificate_number = 1,
                  .client_certificate_pem = std::move(certificate_pem),
                  .client_key_pem = std::move(key_pem)};
  if (current != nullptr) {
    const bool is_other_certificate =
        next.client_certificate_pem != current->client_certificate_pem ||
        next.client_key_pem != current->client_key_pem;
    if (!is_other_certificate && next.authorization == current->authorization) return;
    next.number = current->number + 1;
    next.certificate_number = current->certificate_number + (is_other_certificate ? 1 : 0);
  }
  current = std::make_shared<const Credential>(std::move(next));
}

// The last good token stays when the file cannot be read.
Result<void> Credentials::Impl::read_token() {
  if (access.token_file.empty() || loop.now() < token_read_at) return {};
  auto text = read_file(access.token_file, kFileBytesMaxHere);
  if (text) *text = trimmed(*text);
  if (text && text->empty()) text = invalid("{} is empty", access.token_file);
  if (!text) {
    token_read_at = loop.now() + kFileRetry;
    if (current != nullptr && !current->authorization.empty()) return {};
    return in_context("bearer token", std::move(text).error());
  }
  token_read_at = loop.now() + kTokenPeriod - kTokenLeeway;
  set("Bearer " + *text, certificate, key);
  return {};
}

// So does the last good pair, also while one of its files is new already and the other is not.
Result<void> Credentials::Impl::read_certificate() {
  const bool is_certificate_data = !access.client_certificate_pem.empty();
  const bool is_key_data = !access.client_key_pem.empty();
  if (access.client_certificate_file.empty() && !is_certificate_data) return {};
  if (loop.now() < certificate_read_at) return {};
  const auto read = [&]() -> Result<void> {
    std::string next_certificate = access.client_certificate_pem, next_key = access.client_key_pem;
    if (!is_certificate_data) {
      JOGAK_TRY(next_certificate, read_file(access.client_certificate_file, kFileBytesMaxHere));
    }
    if (!is_key_data) {
      JOGAK_TRY(next_key, read_file(access.client_key_file, kFileBytesMaxHere));
    }
    if (next_certificate == certificate && next_key == key) return {};
    JOGAK_TRY_VOID(check_pair(next_certificate, next_key));
    certificate = std::move(next_certificate);
    key = std::move(next_key);
    return {};
  };
  Result<void> done = read();
  certificate_read_at = loop.now() + (done ? kCertificatePeriod : kFileRetry);
  if (!done && certificate.empty())
    return in_context("client-certificate", std::move(done).error());
  if (current != nullptr && !uses_program()) set(current->authorization, certificate, key);
  return {};
}

void Credentials::Impl::get(Ready ready) {
  if (Result<void> read = read_certificate(); !read) {
    return ready(std::unexpected(std::move(read).error()));
  }
  if (!uses_program()) {
    if (Result<void> read = read_token(); !read) {
      return ready(std::unexpected(std::move(read).error()));
    }
    return ready(current);
  }
  if (is_current()) return ready(current);
  waiting.push_back(std::move(ready));
  run();
}

// Hands the current credential to all who wait.
void Credentials::Impl::serve() {
  const auto self = shared_from_this();
  for (const Ready& ready : std::exchange(waiting, {})) ready(current);
}

void Credentials::Impl::fail_all(Error error) {
  const auto self = shared_from_this();
  for (const Ready& ready : std::exchange(waiting, {})) ready(std::unexpected(error));
}

void Credentials::Impl::run() {
  if (is_running) return;
  const TimeUs now = loop.now();
  if (now < retry_at) {
    // A refused one may still be used, and the server says again that it refuses it.
    if (current != nullptr && (!expiry || now < *expiry)) return serve();
    Error error = last_error.value_or(Error{Errc::Unavailable, "no credential"});
    error.what += fmt::format("; asked again in {} s", (retry_at - now) / kSecondInUs + 1);
    return fail_all(std::move(error));
  }
  const ExecConfig& exec = *access.exec;
  is_running = true;
  const bool is_interactive =
      options.has_terminal && exec.interactive != ExecConfig::Interactive::Never;
  if (exec.interactive == ExecConfig::Interactive::Always && !options.has_terminal) {
    return end_run(
        invalid("interactiveMode is Always, and there is no terminal; use another kind of login"));
  }
  std::string ca = access.ca_pem;
  if (ca.empty() && !access.ca_file.empty()) {
    ca = read_file(access.ca_file, kFileBytesMaxHere).value_or("");
  }
  ChildOptions child_options{.command = exec.command,
                             .args = exec.args,
                             .environment = options.environment,
                             .keeps_stdin = is_interactive,
                             .time_limit = options.program_limit};
  // The last one counts where a name is there twice, so the old ones go.
  const auto put = [&child_options](const std::string& name, const std::string& value) {
    std::erase_if(child_options.environment, [&](const std::string& each) {
      return each.starts_with(name) && each.size() > name.size() && each[name.size()] == '=';
    });
    child_options.environment.push_back(name + "=" + value);
  };
  for (const auto& [name, value] : exec.env) put(name, value);
  put("KUBERNETES_EXEC_INFO", exec_info(access, is_interactive, ca));
  child = options.run(std::move(child_options),
                      [self = weak_from_this()](Result<ChildOutcome> outcome) {
                        if (const auto impl = self.lock()) impl->end_run(std::move(outcome));
                      });
}

Result<void> Credentials::Impl::take(Result<ChildOutcome> outcome) {
  const ExecConfig& exec = *access.exec;
  if (!outcome && outcome.error().code == Errc::NotFound) {
    return fail(Errc::NotFound, "no such program{}{}", exec.install_hint.empty() ? "" : ": ",
                one_line(exec.install_hint));
  }
  if (!outcome) return std::unexpected(std::move(outcome).error());
  const std::string errors = one_line(outcome->errors);
  const std::string said = errors.empty() ? "" : ": " + errors;
  if (outcome->is_timed_out) {
    return invalid("not done after {} s{}", options.program_limit / kSecondInUs, said);
  }
  if (outcome->is_output_too_long) return invalid("its output is too long");
  if (outcome->exit_code != 0) return invalid("exit code {}{}", outcome->exit_code, said);
  JOGAK_TRY(ExecCredential credential, parse_exec_credential(outcome->output, exec.api_version));
  const bool has_pair = !credential.client_certificate_pem.empty();
  if (has_pair) {
    JOGAK_TRY_VOID(check_pair(credential.client_certificate_pem, credential.client_key_pem));
  }
  expiry = credential.expiry;
  set(credential.token.empty() ? "" : "Bearer " + credential.token,
      has_pair ? credential.client_certificate_pem : certificate,
      has_pair ? credential.client_key_pem : key);
  return {};
}

void Credentials::Impl::end_run(Result<ChildOutcome> outcome) {
  is_running = false;
  child.reset();
  Result<void> taken = take(std::move(outcome));
  if (taken) {
    is_refused = false;
    failures = 0;
    retry_at = 0;
    last_error.reset();
    return serve();
  }
  ++failures;
  retry_at = loop.now() + backoff(failures);
  last_error = Error{Errc::Unavailable, fmt::format("credential program {}: {}",
                                                    access.exec->command, taken.error().what)};
  fail_all(*last_error);
}

Result<std::unique_ptr<Credentials>> Credentials::make(Loop& loop, const Access& access,
                                                       CredentialsOptions options) {
  auto impl = std::make_shared<Impl>(loop, access, std::move(options));
  JOGAK_TRY_VOID(impl->read_certificate());
  if (!impl->uses_program()) {
    std::string authorization;
    if (!access.token.empty()) {
      authorization = "Bearer " + access.token;
    } else if (!access.username.empty() || !access.password.empty()) {
      authorization = "Basic " + base64_encode(access.username + ":" + access.password);
    }
    impl->set(std::move(authorization), impl->certificate, impl->key);
    JOGAK_TRY_VOID(impl->read_token());
  }
  return std::unique_ptr<Credentials>(new Credentials(std::move(impl)));
}

Credentials::Credentials(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Credentials::~Credentials() {
  impl_->waiting.clear();
  impl_->child.reset();
}

void Credentials::get(Ready ready) {
  const std::shared_ptr<Impl> impl = impl_;
  impl->get(std::move(ready));
}

void Credentials::refused(const Credential& credential) {
  Impl& impl = *impl_;
  if (impl.current == nullptr || impl.current->number != credential.number) return;
  impl.token_read_at = std::min(impl.token_read_at, impl.loop.now() + kRefusedRetry);
  if (!impl.uses_program() || impl.is_refused) return;
  impl.is_refused = true;
  // A new one that is refused as well: the program is not run in a circle.
  if (++impl.refusals > 1) impl.retry_at = impl.loop.now() + backoff(impl.refusals - 1);
}

void Credentials::accepted(const Credential& credential) {
  if (impl_->current != nullptr && impl_->current->number == credential.number) {
    impl_->refusals = 0;
  }
}

std::string Credentials::describe(const Credential& credential) const {
  const Access& access = impl_->access;
  std::string text;
  std::optional<TimeUs> end;
  if (credential.authorization.starts_with("Bearer ")) {
    text = impl_->uses_program()       ? "bearer token of the program " + access.exec->command
           : access.token_file.empty() ? "bearer token of " + access.source
                                       : "bearer token of " + access.token_file;
    end = token_expiry(credential.authorization);
  } else if (!credential.authorization.empty()) {
    text = "user name and password of " + access.source;
  } else if (!credential.client_certificate_pem.empty()) {
    text = impl_->uses_program() ? "client certificate of the program " + access.exec->command
           : access.client_certificate_file.empty() || !access.client_certificate_pem.empty()
               ? "client certificate of " + access.source
               : "client certificate of " + access.client_certificate_file;
    if (auto expiry = net::certificate_expiry(credential.client_certificate_pem); expiry) {
      end = *expiry;
    }
  } else {
    return "no credential in " + access.source;
  }
  if (end) {
    text += fmt::format(", {} {}", *end <= impl_->loop.now() ? "expired at" : "valid until",
                        time_text(*end));
  }
  return text;
}

RunProgram program_runner(net::EpollLoop& loop) {
  return [&loop](ChildOptions options,
                 std::function<void(Result<ChildOutcome>)> done) -> std::shared_ptr<void> {
    auto child = ChildProcess::start(loop, std::move(options),
                                     [done](ChildOutcome outcome) { done(std::move(outcome)); });
    if (child) return std::shared_ptr<ChildProcess>(*std::move(child));
    // An end is never told within the call.
    auto alive = std::make_shared<int>(0);
    loop.post([done = std::move(done), error = std::move(child).error(),
               weak = std::weak_ptr<int>(alive)]() mutable {
      if (!weak.expired()) done(std::unexpected(std::move(error)));
    });
    return alive;
  };
}

net::Headers impersonation_headers(const Access& access) {
  net::Headers headers;
  if (access.impersonate_user.empty()) return headers;
  headers.emplace_back("Impersonate-User", access.impersonate_user);
  if (!access.impersonate_uid.empty()) {
    headers.emplace_back("Impersonate-Uid", access.impersonate_uid);
  }
  for (const std::string& group : access.impersonate_groups) {
    headers.emplace_back("Impersonate-Group", group);
  }
  for (const auto& [key, values] : access.impersonate_extra) {
    std::string name = "Impersonate-Extra-";
    for (const char c : key) {
      const auto byte = static_cast<unsigned char>(c);
      const bool is_plain = std::isalnum(byte) != 0 ||
                            std::string_view("!#$&'*+-.^_`|~").find(c) != std::string_view::npos;
      if (is_plain && byte < 0x80) {
        name += static_cast<char>(std::tolower(byte));
      } else {
        name += fmt::format("%{:02X}", byte);
      }
    }
    for (const std::string& value : values) headers.emplace_back(name, value);
  }
  return headers;
}

}  // namespace jogak::kube
