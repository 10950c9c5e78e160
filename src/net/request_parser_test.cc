// SPDX-License-Identifier: Apache-2.0
//
// Requests in pieces, their limits, and what is refused.
#include "net/request_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace jogak::net {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

using State = RequestParser::State;

constexpr RequestParser::Limits kLimits{.head_bytes = 1000, .body_bytes = 100};

// Feeds all of it in pieces of that size; stops at the end of the request.
std::size_t feed(RequestParser& parser, std::string_view bytes, std::size_t piece = SIZE_MAX) {
  std::size_t used = 0;
  while (used < bytes.size() && parser.state() != State::Done && parser.state() != State::Failed) {
    used += parser.feed(bytes.substr(used, piece));
  }
  return used;
}

std::optional<HttpRequest> parse(std::string_view bytes) {
  RequestParser parser(kLimits);
  feed(parser, bytes);
  if (parser.state() != State::Done) return std::nullopt;
  return parser.take();
}

int status_of(std::string_view bytes) {
  RequestParser parser(kLimits);
  feed(parser, bytes);
  return parser.state() == State::Failed ? parser.error_status() : 0;
}

constexpr std::string_view kPost =
    "POST /api/v1/pods?dryRun=All HTTP/1.1\r\nHost: x:1\r\nContent-Type:  application/json \r\n"
    "Content-Length: 7\r\nX-Empty:\r\n\r\n{\"a\":1}";

TEST(RequestParserTest, ReadsAWholeRequest) {
  const auto request = parse(kPost);
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->method, "POST");
  EXPECT_EQ(request->target, "/api/v1/pods?dryRun=All");
  EXPECT_EQ(request->body, "{\"a\":1}");
  EXPECT_THAT(request->headers,
              ElementsAre(Pair("Host", "x:1"), Pair("Content-Type", "application/json"),
                          Pair("Content-Length", "7"), Pair("X-Empty", "")));
}

TEST(RequestParserTest, PiecesOfAnySizeReadTheSame) {
  const auto whole = parse(kPost);
  for (std::size_t piece = 1; piece < kPost.size(); ++piece) {
    RequestParser parser(kLimits);
    EXPECT_EQ(feed(parser, kPost, piece), kPost.size());
    ASSERT_EQ(parser.state(), State::Done) << piece;
    const HttpRequest request = parser.take();
    EXPECT_EQ(request.headers, whole->headers) << piece;
    EXPECT_EQ(request.body, whole->body);
    EXPECT_EQ(request.target, whole->target);
  }
}

TEST(RequestParserTest, LeavesWhatBelongsToTheNextRequest) {
  RequestParser parser(kLimits);
  const std::string two = std::string(kPost) + "GET /next HTTP/1.1\r\nHost: y\r\n\r\n";
  EXPECT_EQ(parser.feed(two), kPost.size());
  EXPECT_EQ(parser.feed("more"), 0U);  // until it is taken
  parser.take();
  EXPECT_EQ(parser.state(), State::Idle);
  EXPECT_EQ(parser.feed(std::string_view(two).substr(kPost.size())), two.size() - kPost.size());
  EXPECT_EQ(parser.take().target, "/next");
}

TEST(RequestParserTest, GoesThroughItsStates) {
  RequestParser parser(kLimits);
  EXPECT_EQ(parser.state(), State::Idle);
  parser.feed("\r\n");  // allowed between requests
  EXPECT_EQ(parser.state(), State::Idle);
  parser.feed("P");
  EXPECT_EQ(parser.state(), State::Head);
  parser.feed("OST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(parser.state(), State::Body);
  parser.feed("a");
  EXPECT_EQ(parser.state(), State::Body);
  parser.feed("b");
  EXPECT_EQ(parser.state(), State::Done);
}

TEST(RequestParserTest, ChunksMakeABody) {
  const auto request = parse(
      "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n0A;name=value\r\n0123456789\r\n0\r\nTrailer: ignored\r\n\r\n");
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->body, "abc0123456789");
  EXPECT_EQ(header(request->headers, "trailer"), "");
}

TEST(RequestParserTest, HeadersCompareWithoutCase) {
  const auto request = parse("GET / HTTP/1.1\r\nhOST: x\r\nACCEPT: a\r\nAccept: b\r\n\r\n");
  EXPECT_EQ(header(request->headers, "Accept"), "a");
}

TEST(RequestParserTest, LimitsOfTheHead) {
  const std::string start = "GET / HTTP/1.1\r\nHost: x\r\nX: ";
  const std::string fits = start + std::string(1000 - start.size() - 4, 'a') + "\r\n\r\n";
  ASSERT_EQ(fits.size(), 1000U);
  EXPECT_TRUE(parse(fits).has_value());
  EXPECT_EQ(status_of(start + std::string(1000, 'a')), 431);
  EXPECT_EQ(status_of("GET /" + std::string(5000, 'u')), 431);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n" + std::string(5000, 'h')), 431);
}

TEST(RequestParserTest, TheHeadsLimitDoesNotCountTheBody) {
  RequestParser parser({.head_bytes = 60, .body_bytes = 5000});
  const std::string request =
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4000\r\n\r\n" + std::string(4000, 'b');
  feed(parser, request);
  EXPECT_EQ(parser.state(), State::Done);
}

TEST(RequestParserTest, LimitsOfTheBody) {
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\n";
  EXPECT_TRUE(parse(head + "Content-Length: 100\r\n\r\n" + std::string(100, 'b')).has_value());
  EXPECT_EQ(status_of(head + "Content-Length: 101\r\n\r\n"), 413);
  EXPECT_EQ(status_of(head + "Content-Length: 99999999999999999999999\r\n\r\n"), 400);
  EXPECT_EQ(status_of(head + "Transfer-Encoding: chunked\r\n\r\n32\r\n" + std::string(50, 'a') +
                      "\r\n33\r\n" + std::string(51, 'a')),
            413);
}

TEST(RequestParserTest, WhatIsNotHttpIsRefused) {
  EXPECT_EQ(status_of("hello\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost x\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: x\r\nA b: c\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: x\r\nA: \x01\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: x\r\nContent-Length : 3\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET /a\tb HTTP/1.1\r\nHost: x\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400);  // no Host
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"), 400);
  EXPECT_EQ(status_of("GET / HTTP/2.0\r\nHost: x\r\n\r\n"), 505);
  EXPECT_EQ(status_of("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 400);
  EXPECT_EQ(status_of(std::string("\x16\x03\x01\x02\x00\x01\x00", 7)), 400);  // TLS
}

// Two readings of where a request ends are how requests are smuggled past a proxy.
TEST(RequestParserTest, TwoLengthsAreRefused) {
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\n";
  EXPECT_EQ(status_of(head + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"), 400);
  EXPECT_EQ(status_of(head + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            400);
  EXPECT_EQ(status_of(head + "Transfer-Encoding: chunked, gzip\r\n\r\n"), 400);
  EXPECT_EQ(status_of(head + "Content-Length: +3\r\n\r\nabc"), 400);
  EXPECT_EQ(status_of(head + "Content-Length: 3 3\r\n\r\nabc"), 400);
}

TEST(RequestParserTest, AFailureIsForGood) {
  RequestParser parser(kLimits);
  parser.feed("nonsense\r\n\r\n");
  EXPECT_EQ(parser.state(), State::Failed);
  EXPECT_EQ(parser.feed(kPost), 0U);
  EXPECT_FALSE(parser.error().empty());
}

TEST(RequestParserTest, OldHttpNeedsNoHost) {
  RequestParser parser(kLimits);
  parser.feed("GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(parser.state(), State::Done);
  EXPECT_TRUE(parser.is_http_1_0());
  EXPECT_FALSE(parser.keeps_alive());
}

TEST(RequestParserTest, KeepsAliveAsAsked) {
  const auto keeps = [](std::string_view bytes) {
    RequestParser parser(kLimits);
    parser.feed(bytes);
    EXPECT_EQ(parser.state(), State::Done);
    return parser.keeps_alive();
  };
  EXPECT_TRUE(keeps("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  EXPECT_TRUE(keeps("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
}

TEST(RequestParserTest, AnUpgradeIsAnOrdinaryRequestOnAConnectionThatEnds) {
  RequestParser parser(kLimits);
  const std::string request =
      "GET /exec HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
  EXPECT_EQ(parser.feed(request + "\x81\x05"), request.size());
  EXPECT_EQ(parser.state(), State::Done);
  EXPECT_FALSE(parser.keeps_alive());
  EXPECT_EQ(header(parser.take().headers, "upgrade"), "websocket");
}

TEST(RequestParserTest, ExpectationsAreKnownOrRefused) {
  RequestParser parser(kLimits);
  parser.feed("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\n");
  EXPECT_TRUE(parser.wants_continue());
  parser.feed("abc");
  EXPECT_FALSE(parser.wants_continue());
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: x\r\nExpect: magic\r\n\r\n"), 417);
  // Too large a body is refused before it is asked for.
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
                      "Content-Length: 101\r\n\r\n"),
            413);
}

TEST(RequestParserTest, AnAbsoluteTargetIsItsPath) {
  EXPECT_EQ(parse("GET http://x:1/a?b HTTP/1.1\r\nHost: x\r\n\r\n")->target, "/a?b");
  EXPECT_EQ(parse("GET http://x?b HTTP/1.1\r\nHost: x\r\n\r\n")->target, "/?b");
  EXPECT_EQ(parse("GET http://x HTTP/1.1\r\nHost: x\r\n\r\n")->target, "/");
  EXPECT_EQ(parse("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n")->target, "*");
}

}  // namespace
}  // namespace jogak::net
