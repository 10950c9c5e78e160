// SPDX-License-Identifier: Apache-2.0
//
// The grammar is http-parser's; what it leaves to its user is here: sizes, names and values that
// come in pieces, what a request must and must not say.
#include "net/request_parser.h"

#include <http_parser.h>

#include <algorithm>

#include "base/check.h"
#include "net/http_text.h"

namespace jogak::net {
namespace {

// A body that announces its length gets its room at once, up to so much: the rest only as it comes.
constexpr std::size_t kReserveBytesMax = 1 << 20;

// "http://host/path" as a proxy gets it means "/path" here.
void strip_authority(std::string& target) {
  if (target.empty() || target.front() == '/' || target == "*") return;
  const std::size_t scheme = target.find("://");
  if (scheme == std::string::npos) return;
  const std::size_t path = target.find_first_of("/?#", scheme + 3);
  std::string rest = path == std::string::npos ? "" : target.substr(path);
  if (!rest.starts_with('/')) rest.insert(0, 1, '/');
  target = std::move(rest);
}

// http-parser lets more pass than RFC 9110 does, "Name : value" among it, which others read in
// their own way.
bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    const bool is_word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return is_word || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool is_value(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return c == '\t' || (byte >= 0x20 && byte != 0x7f);
  });
}

}  // namespace

struct RequestParser::Impl {
  explicit Impl(const Limits& with) : limits(with) { restart(); }

  void restart() {
    http_parser_init(&parser, HTTP_REQUEST);
    parser.data = this;
    request = {};
    state = State::Idle;
    head_bytes = 0;
    is_in_value = false;
    wants_continue = false;
    keeps_alive = false;
  }
  // For callbacks: a value other than 0 stops the parser.
  int fail(int status, std::string why) {
    state = State::Failed;
    error_status = status;
    error = std::move(why);
    return -1;
  }

  int on_header_field(std::string_view text);
  int on_header_value(std::string_view text);
  int on_head();
  int on_body(std::string_view bytes);
  static Impl& of(http_parser* parser) { return *static_cast<Impl*>(parser->data); }
  static http_parser_settings make_settings();

  Limits limits;
  http_parser parser{};
  HttpRequest request;
  State state = State::Idle;
  std::size_t head_bytes = 0;  // and of the trailer behind a chunked body
  bool is_in_value = false;    // the last piece was of a header's value
  bool wants_continue = false;
  bool keeps_alive = false;
  int error_status = 0;
  std::string error;
};

int RequestParser::Impl::on_header_field(std::string_view text) {
  if (state != State::Head) return 0;  // of a trailer: nobody here asks for one
  if (request.headers.empty() || is_in_value) request.headers.emplace_back();
  is_in_value = false;
  request.headers.back().first += text;
  return 0;
}

int RequestParser::Impl::on_header_value(std::string_view text) {
  if (state != State::Head) return 0;
  is_in_value = true;
  request.headers.back().second += text;
  return 0;
}

int RequestParser::Impl::on_head() {
  if (parser.http_major != 1) return fail(505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
  const auto hosts = std::ranges::count_if(
      request.headers, [](const auto& each) { return is_same_name(each.first, "host"); });
  if (hosts > 1 || (hosts == 0 && parser.http_minor > 0)) {
    return fail(400, hosts == 0 ? "missing required Host header" : "too many Host headers");
  }
  for (auto& [name, value] : request.headers) {
    while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.pop_back();
    if (!is_name(name) || !is_value(value)) return fail(400, "malformed header");
  }
  const bool is_target = std::ranges::all_of(request.target, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > 0x20 && byte != 0x7f;
  });
  if (!is_target) return fail(400, "malformed request target");
  request.method = http_method_str(static_cast<http_method>(parser.method));
  if (request.method != "CONNECT") strip_authority(request.target);
  const bool has_length = (parser.flags & F_CONTENTLENGTH) != 0;
  const bool is_chunked = (parser.flags & F_CHUNKED) != 0;
  if (has_length && parser.content_length > limits.body_bytes) {
    return fail(413, "request body too large");
  }
  // An upgrade is refused by an ordinary answer, after which the client may say anything.
  keeps_alive = http_should_keep_alive(&parser) != 0 && parser.upgrade == 0;
  const std::string_view expect = header(request.headers, "expect");
  if (!expect.empty() && parser.http_minor > 0) {
    if (!is_same_name(expect, "100-continue")) return fail(417, "unknown expectation");
    wants_continue = is_chunked || (has_length && parser.content_length > 0);
  }
  if (has_length) {
    request.body.reserve(std::min<std::size_t>(parser.content_length, kReserveBytesMax));
  }
  state = State::Body;
  return 0;
}

int RequestParser::Impl::on_body(std::string_view bytes) {
  if (bytes.size() > limits.body_bytes - request.body.size()) {
    return fail(413, "request body too large");
  }
  request.body += bytes;
  return 0;
}

http_parser_settings RequestParser::Impl::make_settings() {
  http_parser_settings settings;
  http_parser_settings_init(&settings);
  settings.on_message_begin = [](http_parser* parser) {
    of(parser).state = State::Head;
    return 0;
  };
  settings.on_url = [](http_parser* parser, const char* at, std::size_t length) {
    of(parser).request.target.append(at, length);
    return 0;
  };
  settings.on_header_field = [](http_parser* parser, const char* at, std::size_t length) {
    return of(parser).on_header_field({at, length});
  };
  settings.on_header_value = [](http_parser* parser, const char* at, std::size_t length) {
    return of(parser).on_header_value({at, length});
  };
  settings.on_headers_complete = [](http_parser* parser) { return of(parser).on_head(); };
  settings.on_body = [](http_parser* parser, const char* at, std::size_t length) {
    return of(parser).on_body({at, length});
  };
  settings.on_message_complete = [](http_parser* parser) {
    of(parser).state = State::Done;
    http_parser_pause(parser, 1);
    return 0;
  };
  return settings;
}

RequestParser::RequestParser(const Limits& limits) : impl_(std::make_unique<Impl>(limits)) {}
RequestParser::~RequestParser() = default;

std::size_t RequestParser::feed(std::string_view bytes) {
  static const http_parser_settings settings = Impl::make_settings();
  Impl& impl = *impl_;
  if (impl.state == State::Done || impl.state == State::Failed || bytes.empty()) return 0;
  const State before = impl.state;
  const bool was_head = before != State::Body;
  // No more of a head than the limit allows reaches the parser.
  std::string_view part = bytes;
  if (was_head) part = part.substr(0, impl.limits.head_bytes - impl.head_bytes + 1);
  const std::size_t used = http_parser_execute(&impl.parser, &settings, part.data(), part.size());
  if (impl.state == State::Failed) return used;
  if (impl.state == State::Done) return used;
  const auto error = static_cast<http_errno>(impl.parser.http_errno);
  if (error == HPE_HEADER_OVERFLOW) {
    impl.fail(431, "request header fields too large");
  } else if (error != HPE_OK) {
    impl.fail(error == HPE_INVALID_VERSION ? 505 : 400, http_errno_description(error));
  } else if (impl.state != State::Body) {
    impl.head_bytes += used;
    if (impl.head_bytes > impl.limits.head_bytes) {
      impl.fail(431, "request header fields too large");
    }
  }
  return used;
}

RequestParser::State RequestParser::state() const { return impl_->state; }
bool RequestParser::wants_continue() const {
  return impl_->state == State::Body && impl_->wants_continue;
}
bool RequestParser::is_http_1_0() const {
  return impl_->parser.http_major == 1 && impl_->parser.http_minor == 0;
}
bool RequestParser::keeps_alive() const { return impl_->keeps_alive; }
int RequestParser::error_status() const { return impl_->error_status; }
const std::string& RequestParser::error() const { return impl_->error; }

HttpRequest RequestParser::take() {
  HttpRequest request = std::move(impl_->request);
  if (impl_->state == State::Done) {
    impl_->restart();
  } else {
    impl_->request = {};
  }
  return request;
}

}  // namespace jogak::net
