// SPDX-License-Identifier: Apache-2.0
//
// A connection without a socket, under virtual time: framing, order, limits, slow peers.
#include "net/http_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/sim_loop.h"

namespace jogak::net {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

class HttpConnectionTest : public testing::Test {
 protected:
  void start() {
    context_.handler = [this](HttpRequest request, std::shared_ptr<ResponseWriter> writer) {
      requests_.push_back(std::move(request));
      writers_.push_back(std::move(writer));
      if (answers_at_once_) respond("ok");
    };
    connection_ = std::make_unique<HttpConnection>(context_, [this] { ++wakes_; });
  }
  void SetUp() override { start(); }

  void respond(std::string body) { writers_.back()->respond(200, {{"X", "y"}}, std::move(body)); }
  void receive(std::string_view bytes) { connection_->receive(bytes); }
  void get(std::string_view target, std::string_view more = "") {
    receive("GET " + std::string(target) + " HTTP/1.1\r\nHost: x\r\n" + std::string(more) + "\r\n");
  }
  // Takes at most that many bytes as the peer does.
  std::string take(std::size_t limit = SIZE_MAX) {
    std::string text;
    while (!connection_->output().empty() && text.size() < limit) {
      std::array<std::string_view, 4> pieces;
      const std::size_t count = connection_->output().peek(pieces);
      EXPECT_GT(count, 0U);
      const std::string piece(pieces[0].substr(0, limit - text.size()));
      text += piece;
      connection_->sent(piece.size());
    }
    return text;
  }
  // The output without its Date lines.
  std::string take_text() {
    std::string text = take();
    for (std::size_t at; (at = text.find("Date: ")) != std::string::npos;) {
      text.erase(at, text.find("\r\n", at) + 2 - at);
    }
    return text;
  }
  std::function<void()> note(std::string word) {
    return [this, word] { notes_.push_back(word); };
  }

  SimLoop loop_;
  HttpConnection::Context context_{loop_, {}, {}};
  bool answers_at_once_ = false;
  std::vector<HttpRequest> requests_;
  std::vector<std::shared_ptr<ResponseWriter>> writers_;
  std::vector<std::string> notes_;
  int wakes_ = 0;
  std::unique_ptr<HttpConnection> connection_;  // goes first, and tells the others
};

TEST_F(HttpConnectionTest, AWholeAnswer) {
  get("/a");
  ASSERT_EQ(requests_.size(), 1U);
  EXPECT_EQ(requests_[0].target, "/a");
  respond("hello");
  EXPECT_GT(wakes_, 0);
  EXPECT_EQ(take_text(), "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_FALSE(connection_->is_closing());
}

TEST_F(HttpConnectionTest, TheDateIsTheLoops) {
  get("/a");
  respond("");
  EXPECT_THAT(take(), HasSubstr("Date: Tue, 14 Nov 2023 22:13:20 GMT\r\n"));
}

TEST_F(HttpConnectionTest, AnAnswerInPieces) {
  get("/a");
  writers_[0]->begin(200, {{"Content-Type", "text/plain"}});
  EXPECT_EQ(take_text(),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n");
  writers_[0]->write("hello, world, again");
  EXPECT_EQ(take_text(), "13\r\nhello, world, again\r\n");
  writers_[0]->write("");  // would end the stream
  EXPECT_EQ(take_text(), "");
  writers_[0]->write_shared(std::make_shared<const std::string>(2000, 's'));
  EXPECT_EQ(take_text(), "7d0\r\n" + std::string(2000, 's') + "\r\n");
  EXPECT_TRUE(writers_[0]->is_open());
  writers_[0]->end();
  EXPECT_EQ(take_text(), "0\r\n\r\n");
  EXPECT_FALSE(writers_[0]->is_open());
}

TEST_F(HttpConnectionTest, StatusesWithoutABody) {
  answers_at_once_ = false;
  for (const int status : {204, 304}) {
    get("/a");
    writers_.back()->respond(status, {}, "never sent");
    const std::string text = take_text();
    EXPECT_THAT(text, EndsWith("\r\n\r\n"));
    EXPECT_THAT(text, Not(HasSubstr("Content-Length")));
  }
}

TEST_F(HttpConnectionTest, HeadOfAStreamHasNoChunks) {
  receive("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n");
  writers_[0]->begin(200, {});
  writers_[0]->write("text");
  writers_[0]->end();
  EXPECT_EQ(take_text(), "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
}

TEST_F(HttpConnectionTest, OldClientsGetNoChunks) {
  receive("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  respond("x");
  EXPECT_THAT(take_text(), HasSubstr("Connection: keep-alive\r\n"));
  receive("GET /b HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  writers_[1]->begin(200, {});
  writers_[1]->write("text");
  writers_[1]->end();
  EXPECT_EQ(take_text(), "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ntext");
  EXPECT_TRUE(connection_->is_closing());
}

TEST_F(HttpConnectionTest, HandlersCannotBreakTheFraming) {
  get("/a");
  writers_[0]->respond(200, {{"Content-Length", "99"}, {"X", "a\r\nEvil: b"}}, "abc");
  const std::string text = take_text();
  EXPECT_THAT(text, HasSubstr("Content-Length: 3\r\n"));
  EXPECT_THAT(text, Not(HasSubstr("99")));
  EXPECT_THAT(text, HasSubstr("X: a  Evil: b\r\n"));
}

TEST_F(HttpConnectionTest, AHandlerMayEndTheConnection) {
  get("/a");
  writers_[0]->respond(200, {{"Connection", "close"}}, "");
  EXPECT_THAT(take_text(), HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(connection_->is_closing());
}

TEST_F(HttpConnectionTest, TheClientMayEndTheConnection) {
  get("/a", "Connection: close\r\n");
  get("/b");
  respond("last");
  EXPECT_THAT(take_text(), HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(connection_->is_closing());
  connection_->resume();
  EXPECT_EQ(requests_.size(), 1U);
}

TEST_F(HttpConnectionTest, TheNextRequestWaitsForTheAnswer) {
  get("/a");
  get("/b");
  get("/c");
  EXPECT_EQ(requests_.size(), 1U);
  respond("1");
  EXPECT_EQ(requests_.size(), 1U);  // not inside respond()
  connection_->resume();
  ASSERT_EQ(requests_.size(), 2U);
  EXPECT_EQ(requests_[1].target, "/b");
  respond("2");
  connection_->resume();
  EXPECT_EQ(requests_[2].target, "/c");
}

TEST_F(HttpConnectionTest, ManyAtOnceAreHandledInOneGo) {
  answers_at_once_ = true;
  std::string all;
  for (int i = 0; i < 10; ++i) all += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n";
  receive(all);
  EXPECT_EQ(requests_.size(), 10U);
}

// The next request is not begun while more than 256 KiB wait.
TEST_F(HttpConnectionTest, APeerThatAsksButDoesNotReadWaits) {
  get("/big");
  respond(std::string(300 * 1024, 'x'));
  get("/next");
  connection_->resume();
  EXPECT_EQ(requests_.size(), 1U);
  take();
  connection_->resume();
  EXPECT_EQ(requests_.size(), 2U);
}

TEST_F(HttpConnectionTest, InputThatWaitsIsLimited) {
  get("/a");
  EXPECT_TRUE(connection_->wants_input());
  receive(std::string(64 * 1024, 'G'));
  EXPECT_FALSE(connection_->wants_input());
}

TEST_F(HttpConnectionTest, ContinueIsSaidOnce) {
  receive("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(take_text(), "HTTP/1.1 100 Continue\r\n\r\n");
  receive("ab");
  receive("cd");
  EXPECT_EQ(requests_[0].body, "abcd");
  respond("x");
  EXPECT_THAT(take_text(), StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(HttpConnectionTest, ErrorsHaveTheOwnersWords) {
  context_.error_answer = [](int status, const std::string& why) {
    return HttpAnswer{status, {{"Content-Type", "application/json"}}, "{\"why\":\"" + why + "\"}"};
  };
  receive("nonsense\r\n\r\n");
  const std::string text = take_text();
  EXPECT_THAT(text, StartsWith("HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"));
  EXPECT_THAT(text, HasSubstr("Connection: close"));
  EXPECT_TRUE(connection_->is_closing());
  EXPECT_THAT(requests_, IsEmpty());
}

TEST_F(HttpConnectionTest, TooLargeABodyIsRefusedAndTheRestDiscarded) {
  context_.limits.body_bytes = 10;
  start();
  receive("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_THAT(take_text(), StartsWith("HTTP/1.1 413 "));
  EXPECT_TRUE(connection_->wants_input());
  receive(std::string(100'000, 'b'));
  EXPECT_TRUE(connection_->output().empty());
}

TEST_F(HttpConnectionTest, OnCloseComesOnceWithTheLastByte) {
  get("/a");
  writers_[0]->on_close(note("closed"));
  respond("text");
  EXPECT_THAT(notes_, IsEmpty());
  take(20);
  EXPECT_THAT(notes_, IsEmpty());
  take();
  EXPECT_THAT(notes_, ElementsAre("closed"));
  connection_->lose();
  EXPECT_EQ(notes_.size(), 1U);
}

TEST_F(HttpConnectionTest, OnCloseComesWhenThePeerGoes) {
  get("/a");
  writers_[0]->begin(200, {});
  writers_[0]->on_close(note("closed"));
  connection_->lose();
  EXPECT_THAT(notes_, ElementsAre("closed"));
  EXPECT_FALSE(writers_[0]->is_open());
  EXPECT_EQ(writers_[0]->pending(), 0U);
  writers_[0]->write("late");  // nothing happens
  writers_[0]->end();
  writers_[0]->abort();
  EXPECT_TRUE(connection_->output().empty());
}

TEST_F(HttpConnectionTest, CallbacksLetGoOfWhatTheyHold) {
  get("/a");
  std::weak_ptr<ResponseWriter> weak = writers_[0];
  writers_[0]->begin(200, {});
  writers_[0]->on_close([held = writers_[0]] {});
  writers_[0]->on_drain([held = writers_[0]] {});
  writers_.clear();
  EXPECT_FALSE(weak.expired());
  connection_->lose();
  EXPECT_TRUE(weak.expired());
}

TEST_F(HttpConnectionTest, OnDrainComesEachTimeAllIsTaken) {
  get("/a");
  writers_[0]->begin(200, {});
  writers_[0]->on_drain(note("drained"));
  writers_[0]->write("1");
  EXPECT_GT(writers_[0]->pending(), 0U);
  take(5);
  EXPECT_THAT(notes_, IsEmpty());
  take();
  EXPECT_THAT(notes_, ElementsAre("drained"));
  EXPECT_EQ(writers_[0]->pending(), 0U);
  writers_[0]->write("2");
  take();
  EXPECT_EQ(notes_.size(), 2U);
  writers_[0]->write("3");
  writers_[0]->end();
  take();
  EXPECT_EQ(notes_.size(), 2U);  // nothing more is wanted
}

TEST_F(HttpConnectionTest, ALongAnswerGrowsAsItIsTaken) {
  get("/a");
  int left = 1000;
  writers_[0]->begin(200, {});
  writers_[0]->on_drain([&] {
    if (left-- > 0) {
      writers_[0]->write(std::string(1000, 'x'));
    } else {
      writers_[0]->end();
    }
  });
  EXPECT_GT(take().size(), 1'000'000U);
  EXPECT_FALSE(writers_[0]->is_open());
}

TEST_F(HttpConnectionTest, TooSlowAReaderIsDropped) {
  context_.limits.pending_bytes = 10'000;
  start();
  get("/a");
  writers_[0]->begin(200, {});
  writers_[0]->on_close(note("closed"));
  writers_[0]->write(std::string(50'000, 'x'));  // one may be as large as it likes
  EXPECT_FALSE(connection_->is_dead());
  take(45'000);
  writers_[0]->write("fine");
  EXPECT_FALSE(connection_->is_dead());
  writers_[0]->write(std::string(9'000, 'x'));
  writers_[0]->write("too much");
  EXPECT_TRUE(connection_->is_dead());
  EXPECT_THAT(notes_, ElementsAre("closed"));
}

TEST_F(HttpConnectionTest, AHandlerMayAbort) {
  get("/a");
  writers_[0]->on_close(note("closed"));
  writers_[0]->abort();
  EXPECT_TRUE(connection_->is_dead());
  EXPECT_THAT(notes_, ElementsAre("closed"));
}

TEST_F(HttpConnectionTest, TheEndOfInputEndsAStream) {
  get("/a");
  writers_[0]->begin(200, {});
  writers_[0]->on_close(note("closed"));
  connection_->receive_end();
  EXPECT_TRUE(connection_->is_dead());
  EXPECT_THAT(notes_, ElementsAre("closed"));
}

TEST_F(HttpConnectionTest, TheEndOfInputStillGetsItsAnswers) {
  get("/a");
  get("/b");
  connection_->receive_end();
  EXPECT_FALSE(connection_->wants_input());
  respond("1");
  EXPECT_FALSE(connection_->is_closing());
  connection_->resume();
  ASSERT_EQ(requests_.size(), 2U);
  respond("2");
  EXPECT_TRUE(connection_->is_closing());
  EXPECT_THAT(take(), EndsWith("2"));
}

TEST_F(HttpConnectionTest, TheEndOfInputOfAnIdleOneIsItsEnd) {
  connection_->receive_end();
  EXPECT_TRUE(connection_->is_dead());
}

TEST_F(HttpConnectionTest, TheEndInTheMiddleOfARequestIsTheEnd) {
  receive("GET /a HTT");
  connection_->receive_end();
  EXPECT_TRUE(connection_->is_dead());
}

TEST_F(HttpConnectionTest, ASlowHeadIsRefused) {
  receive("G");
  const TimeUs start = loop_.now();
  EXPECT_EQ(connection_->deadline(), start + context_.limits.head_time);
  // A byte now and then does not help.
  loop_.run_for(20 * kSecondInUs);
  receive("ET ");
  EXPECT_EQ(connection_->deadline(), start + context_.limits.head_time);
  loop_.run_for(20 * kSecondInUs);
  connection_->expire();
  EXPECT_THAT(take_text(), StartsWith("HTTP/1.1 408 "));
  EXPECT_TRUE(connection_->is_closing());
}

TEST_F(HttpConnectionTest, ASlowBodyIsRefused) {
  receive("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n");
  const TimeUs start = loop_.now();
  loop_.run_for(50 * kSecondInUs);
  receive("a");
  EXPECT_EQ(connection_->deadline(), start + context_.limits.body_time);
  connection_->expire();
  EXPECT_THAT(take_text(), StartsWith("HTTP/1.1 408 "));
}

TEST_F(HttpConnectionTest, IdleOnesGoWithoutAWord) {
  EXPECT_EQ(connection_->deadline(), loop_.now() + context_.limits.head_time);  // never spoke
  answers_at_once_ = true;
  get("/a");
  take();
  loop_.run_for(1);
  EXPECT_EQ(connection_->deadline(), loop_.now() - 1 + context_.limits.idle_time);
  connection_->expire();
  EXPECT_TRUE(connection_->is_dead());
  EXPECT_TRUE(connection_->output().empty());
}

TEST_F(HttpConnectionTest, AQuietStreamHasNoDeadline) {
  get("/a");
  writers_[0]->begin(200, {});
  take();
  EXPECT_EQ(connection_->deadline(), HttpConnection::kNever);
}

TEST_F(HttpConnectionTest, APeerThatTakesNothingHasADeadline) {
  get("/a");
  writers_[0]->begin(200, {});
  const TimeUs start = loop_.now();
  loop_.run_for(10 * kSecondInUs);
  writers_[0]->write("more");
  EXPECT_EQ(connection_->deadline(), start + context_.limits.write_time);
  take(3);  // progress
  EXPECT_EQ(connection_->deadline(), loop_.now() + context_.limits.write_time);
  connection_->expire();
  EXPECT_TRUE(connection_->is_dead());
}

TEST_F(HttpConnectionTest, FinishingLetsTheAnswerUnderWayOut) {
  get("/a");
  connection_->finish();
  EXPECT_FALSE(connection_->is_closing());
  respond("x");
  EXPECT_THAT(take_text(), HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(connection_->is_closing());
}

TEST_F(HttpConnectionTest, FinishingAnIdleOneClosesIt) {
  connection_->finish();
  EXPECT_TRUE(connection_->is_closing());
}

TEST_F(HttpConnectionTest, AnswersGivenTwiceCountOnce) {
  get("/a");
  respond("first");
  respond("second");
  writers_[0]->begin(200, {});
  writers_[0]->write("third");
  writers_[0]->end();
  EXPECT_EQ(take_text(), "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 5\r\n\r\nfirst");
}

TEST_F(HttpConnectionTest, WritersOutliveTheirConnection) {
  get("/a");
  writers_[0]->on_close(note("closed"));
  connection_.reset();
  EXPECT_THAT(notes_, ElementsAre("closed"));
  respond("late");
  EXPECT_FALSE(writers_[0]->is_open());
}

TEST(OutputQueueTest, KeepsTheOrderOfCopiesAndShares) {
  OutputQueue queue;
  const auto shared = std::make_shared<const std::string>(2000, 's');
  queue.add(std::string_view("a"));
  queue.add(std::string_view("b"));
  queue.add(shared);
  queue.add(std::string(3000, 'o'));
  queue.add(std::string_view("c"));
  EXPECT_EQ(queue.size(), 5003U);
  std::array<std::string_view, 8> pieces;
  ASSERT_EQ(queue.peek(pieces), 3U);  // what is copied goes behind what it fits
  EXPECT_EQ(pieces[0], "ab");
  EXPECT_EQ(pieces[1].data(), shared->data());
  queue.consume(3);
  ASSERT_EQ(queue.peek(pieces), 2U);
  EXPECT_EQ(pieces[0].size(), 1999U);
  queue.consume(1999 + 3000);
  ASSERT_EQ(queue.peek(pieces), 1U);
  EXPECT_EQ(pieces[0], "c");
  EXPECT_EQ(queue.consumed(), 5002U);
  queue.clear();
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.peek(pieces), 0U);
  EXPECT_EQ(shared.use_count(), 1);
}

}  // namespace
}  // namespace jogak::net
