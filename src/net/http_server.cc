// SPDX-License-Identifier: Apache-2.0
//
// A Peer is one accepted socket. Whatever happens to it (bytes came, its connection has something
// to say, the socket takes bytes again) puts it on a list; at the end of the turn all on the list
// are served: read on, write, change what epoll waits for, close.
#include "net/http_server.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "base/check.h"
#include "net/listen_socket.h"
#include "net/stream.h"

namespace jogak::net {
namespace {

constexpr std::size_t kReadBytes = 64 * 1024;    // one read
constexpr std::size_t kReadBudget = 256 * 1024;  // of a peer in one turn
constexpr std::size_t kWriteBudget = 1024 * 1024;
constexpr std::size_t kRefusedMax = 64;  // told so at a time; more are only closed
constexpr int kAcceptsPerTurn = 64;
// How long a closed connection may still send what nobody reads, so that it gets its answer and not
// a reset.
constexpr TimeUs kLingerTime = kSecondInUs;
constexpr TimeUs kSweepTime = 250 * kMsInUs;    // between looks at the deadlines, at least
constexpr TimeUs kAcceptPause = 100 * kMsInUs;  // when there are no descriptors left

struct Peer {
  int fd = -1;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<HttpConnection> connection;
  std::uint32_t events = 0;  // what epoll waits for
  bool is_listed = false;    // to be served at the end of the turn
  bool may_read = false;     // there may be input
  bool is_write_blocked = false;
  bool is_lingering = false;
  TimeUs linger_end = 0;
};

}  // namespace

struct HttpServer::Impl {
  Impl(EpollLoop& of_loop, HttpServerOptions with, HttpHandler handler)
      : loop(of_loop),
        options(std::move(with)),
        context{loop, options.limits, std::move(handler), options.error_answer} {}
  ~Impl();

  void start(int fd);
  void accept_some();
  void add(int fd);
  void on_events(Peer& peer, std::uint32_t events);
  void list(Peer& peer);
  void serve_listed();
  void go_on(Peer& peer);
  void read_some(Peer& peer);
  void write_some(Peer& peer);
  void update_events(Peer& peer);
  void drop(Peer& peer);
  void sweep();
  void sweep_by(TimeUs when);
  TimeUs shortest_limit() const;
  void stop_accepting();
  void check_done();

  EpollLoop& loop;
  HttpServerOptions options;
  HttpConnection::Context context;
  int listen_fd = -1;
  std::uint16_t port = 0;
  std::unordered_map<int, std::unique_ptr<Peer>> peers;
  std::vector<int> listed;
  bool is_serve_posted = false;
  std::array<char, kReadBytes> buffer{};
  TimeUs sweep_at = 0;
  TimerId sweep_timer = 0, accept_timer = 0, close_timer = 0;
  std::function<void()> on_closed;
  Counts counts;
  // Tasks in the loop's queue outlive the server.
  std::shared_ptr<Impl*> self = std::make_shared<Impl*>(this);
};

HttpServer::Impl::~Impl() {
  *self = nullptr;
  loop.cancel(sweep_timer);
  loop.cancel(accept_timer);
  loop.cancel(close_timer);
  stop_accepting();
  on_closed = nullptr;
  while (!peers.empty()) drop(*peers.begin()->second);
}

void HttpServer::Impl::start(int fd) {
  listen_fd = fd;
  port = port_of(fd);
  loop.add_fd(fd, EPOLLIN, [this](std::uint32_t) { accept_some(); });
}

void HttpServer::Impl::stop_accepting() {
  if (listen_fd < 0) return;
  loop.remove_fd(listen_fd);
  ::close(std::exchange(listen_fd, -1));
}

void HttpServer::Impl::accept_some() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    const int fd = ::accept4(listen_fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      add(fd);
      continue;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      // The caller stays in the queue; asking again at once would only burn time.
      loop.change_fd(listen_fd, 0);
      accept_timer = loop.after(kAcceptPause, [this] {
        if (listen_fd >= 0) loop.change_fd(listen_fd, EPOLLIN);
      });
    }
    return;
  }
}

void HttpServer::Impl::add(int fd) {
  ++counts.accepted;
  const bool is_too_many = peers.size() >= options.connections_max;
  if (is_too_many) ++counts.refused;
  if (peers.size() >= options.connections_max + kRefusedMax) {
    ::close(fd);
    return;
  }
  prepare_connection(fd);
  auto made = std::make_unique<Peer>();
  Peer& peer = *made;
  peer.fd = fd;
  peer.stream = options.tls == nullptr ? plain_stream(fd) : options.tls->accept(fd);
  peer.connection = std::make_unique<HttpConnection>(context, [this, &peer] { list(peer); });
  peers.emplace(fd, std::move(made));
  sweep_by(loop.now() + shortest_limit());
  peer.events = EPOLLIN | EPOLLRDHUP;
  loop.add_fd(fd, peer.events, [this, &peer](std::uint32_t events) { on_events(peer, events); });
  if (is_too_many) peer.connection->refuse(503, "too many connections");
}

void HttpServer::Impl::on_events(Peer& peer, std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) peer.is_write_blocked = false;
  peer.may_read = true;
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
    read_some(peer);  // what came before the end
    peer.connection->lose();
  } else if ((events & EPOLLRDHUP) != 0 && !peer.connection->wants_input()) {
    peer.connection->receive_end();
  } else {
    read_some(peer);
  }
  list(peer);
}

void HttpServer::Impl::list(Peer& peer) {
  if (std::exchange(peer.is_listed, true)) return;
  listed.push_back(peer.fd);
  if (std::exchange(is_serve_posted, true)) return;
  loop.post([weak = self] {
    if (*weak != nullptr) (*weak)->serve_listed();
  });
}

void HttpServer::Impl::read_some(Peer& peer) {
  std::size_t got = 0;
  while (peer.may_read && peer.connection->wants_input() && got < kReadBudget) {
    const Stream::Moved moved = peer.stream->read(buffer);
    switch (moved.outcome) {
      case Stream::Outcome::Done:
        got += moved.bytes;
        // A short read emptied the socket: epoll tells when more is there.
        peer.may_read = moved.bytes == kReadBytes || peer.stream->has_buffered();
        peer.connection->receive({buffer.data(), moved.bytes});
        break;
      case Stream::Outcome::Blocked:
        peer.may_read = false;
        break;
      case Stream::Outcome::End:
        peer.may_read = false;
        peer.connection->receive_end();
        break;
      case Stream::Outcome::Lost:
        peer.may_read = false;
        peer.connection->lose();
        break;
    }
  }
}

void HttpServer::Impl::write_some(Peer& peer) {
  HttpConnection& connection = *peer.connection;
  std::size_t written = 0;
  while (!connection.output().empty() && !peer.is_write_blocked && written < kWriteBudget) {
    const Stream::Moved moved = peer.stream->write(connection.output());
    if (moved.outcome == Stream::Outcome::Done) {
      written += moved.bytes;
      connection.sent(moved.bytes);
    } else if (moved.outcome == Stream::Outcome::Blocked) {
      peer.is_write_blocked = true;
    } else {
      connection.lose();
    }
  }
}

// First everything is written, then input is looked at: what its requests change must not leave
// before the next `before_write`.
void HttpServer::Impl::serve_listed() {
  is_serve_posted = false;
  std::vector<Peer*> now;
  bool has_output = false;
  for (const int fd : std::exchange(listed, {})) {
    const auto it = peers.find(fd);
    // The descriptor may be another's by now, who may be on the list himself.
    if (it == peers.end() || !std::exchange(it->second->is_listed, false)) continue;
    now.push_back(it->second.get());
    has_output = has_output || !it->second->connection->output().empty();
  }
  const bool may_write = !has_output || !options.before_write || options.before_write();
  for (Peer* peer : now) {
    if (may_write) {
      write_some(*peer);
    } else if (!peer->connection->output().empty()) {
      peer->connection->lose();
    }
  }
  for (Peer* peer : now) go_on(*peer);
  check_done();
}

void HttpServer::Impl::go_on(Peer& peer) {
  HttpConnection& connection = *peer.connection;
  connection.resume();
  // Not for input that epoll tells of anyway: for what TLS or a pause of this side held back.
  if (peer.may_read && connection.wants_input()) read_some(peer);
  const bool is_over = connection.is_closing() && connection.output().empty();
  if (connection.is_dead() || (is_over && connection.is_input_over())) return drop(peer);
  if (is_over && !peer.is_lingering) {
    peer.is_lingering = true;
    peer.linger_end = loop.now() + kLingerTime;
    sweep_by(peer.linger_end);
    peer.stream->end_writing();
  }
  update_events(peer);
}

void HttpServer::Impl::update_events(Peer& peer) {
  const bool wants_input = peer.connection->wants_input();
  std::uint32_t events = 0;
  if (wants_input) events |= EPOLLIN | EPOLLRDHUP;
  if (peer.is_write_blocked || peer.stream->is_read_blocked_on_write()) events |= EPOLLOUT;
  if (events != peer.events) {
    peer.events = events;
    loop.change_fd(peer.fd, events);
  }
  const bool has_more = (!peer.connection->output().empty() && !peer.is_write_blocked) ||
                        (peer.may_read && wants_input);
  if (has_more) list(peer);
}

void HttpServer::Impl::drop(Peer& peer) {
  const int fd = peer.fd;
  peer.is_listed = true;  // what its end calls must not list it again
  peer.connection->lose();
  loop.remove_fd(fd);
  const auto it = peers.find(fd);
  const std::unique_ptr<Peer> last = std::move(it->second);
  peers.erase(it);
  ::close(fd);
}

// Deadlines are looked at a few times a second at most: exact timers for thousands of connections
// would cost more than they are worth. A deadline that begins after a look is at least the shortest
// limit away, so the next look need not be sooner than that; without connections there is none.
void HttpServer::Impl::sweep() {
  sweep_timer = 0;
  const TimeUs now = loop.now();
  TimeUs next = now + shortest_limit();
  for (const auto& [fd, peer] : peers) {
    const TimeUs deadline = peer->is_lingering ? peer->linger_end : peer->connection->deadline();
    if (now < deadline) {
      next = std::min(next, deadline);
    } else if (peer->is_lingering) {
      peer->connection->lose();
    } else {
      ++counts.timed_out;
      peer->connection->expire();
    }
  }
  if (!peers.empty()) sweep_by(next);
}

TimeUs HttpServer::Impl::shortest_limit() const {
  const HttpLimits& limits = options.limits;
  return std::min({limits.head_time, limits.body_time, limits.idle_time, limits.write_time});
}

void HttpServer::Impl::sweep_by(TimeUs when) {
  when = std::max(when, loop.now() + kSweepTime);
  if (sweep_timer != 0 && sweep_at <= when) return;
  loop.cancel(sweep_timer);
  sweep_at = when;
  sweep_timer = loop.at(when, [this] { sweep(); });
}

void HttpServer::Impl::check_done() {
  if (on_closed && peers.empty()) {
    loop.cancel(std::exchange(close_timer, 0));
    std::exchange(on_closed, nullptr)();
  }
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::listen(EpollLoop& loop, HttpServerOptions options,
                                                       HttpHandler handler) {
  JOGAK_TRY(const int fd, listen_on(options.address, options.port));
  auto impl = std::make_unique<Impl>(loop, std::move(options), std::move(handler));
  impl->start(fd);
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

std::uint16_t HttpServer::port() const { return impl_->port; }

std::string HttpServer::url() const {
  const HttpServerOptions& options = impl_->options;
  const bool is_v6 = options.address.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", options.tls == nullptr ? "http" : "https", is_v6 ? "[" : "",
                     options.address, is_v6 ? "]" : "", impl_->port);
}

HttpServer::Counts HttpServer::counts() const {
  Counts counts = impl_->counts;
  counts.connections = impl_->peers.size();
  return counts;
}

void HttpServer::close(TimeUs grace, std::function<void()> done) {
  Impl& impl = *impl_;
  impl.stop_accepting();
  impl.on_closed = std::move(done);
  for (const auto& [fd, peer] : impl.peers) peer->connection->finish();
  impl.close_timer = impl.loop.after(grace, [this] {
    for (const auto& [fd, peer] : impl_->peers) peer->connection->lose();
  });
  impl.loop.post([weak = impl.self] {
    if (*weak != nullptr) (*weak)->check_done();
  });
}

}  // namespace jogak::net
