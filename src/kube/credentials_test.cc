// SPDX-License-Identifier: Apache-2.0
//
// Credentials under virtual time: files in a temporary folder, and a credential program that the
// test plays.
#include "kube/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include <fmt/core.h>

#include "base/base64.h"
#include "base/doc.h"
#include "base/file.h"
#include "base/sim_loop.h"
#include "base/testing/temp_folder.h"
#include "net/tls.h"

namespace jogak::kube {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;
using testing::StartsWith;

class CredentialsTest : public testing::Test {
 protected:
  CredentialsTest() {
    access_.source = "the test";
    access_.server = "https://s";
  }

  void use_program() {
    access_.exec = ExecConfig{};
    access_.exec->command = "login";
    access_.exec->api_version = "client.authentication.k8s.io/v1";
  }
  Result<void> make() {
    auto made =
        Credentials::make(loop_, access_,
                          {.run = [this](ChildOptions options, auto done) -> std::shared_ptr<void> {
                             runs_.push_back(std::move(options));
                             done_ = std::move(done);
                             return std::make_shared<int>(0);
                           },
                           .environment = {"PATH=/bin", "A=old"},
                           .has_terminal = has_terminal_});
    if (!made) return std::unexpected(std::move(made).error());
    credentials_ = std::move(*made);
    return {};
  }
  // The program ends.
  void answer(const std::string& status) {
    end(ChildOutcome{.exit_code = 0,
                     .output = fmt::format(R"({{"kind": "ExecCredential", "apiVersion":
                                   "client.authentication.k8s.io/v1", "status": {}}})",
                                           status)});
  }
  void end(Result<ChildOutcome> outcome) {
    ASSERT_TRUE(done_ != nullptr);
    std::exchange(done_, nullptr)(std::move(outcome));
  }
  void get() {
    credentials_->get([this](Result<std::shared_ptr<const Credential>> got) {
      ++answers_;
      last_ = std::move(got);
    });
  }
  std::string authorization() {
    get();
    return last_.has_value() ? (*last_)->authorization : "error: " + last_.error().what;
  }
  void write(const std::string& name, std::string_view text) {
    ASSERT_TRUE(write_file(folder_.path(name), text).has_value());
  }

  SimLoop loop_;
  TempFolder folder_;
  Access access_;
  bool has_terminal_ = false;
  std::unique_ptr<Credentials> credentials_;
  std::vector<ChildOptions> runs_;
  std::function<void(Result<ChildOutcome>)> done_;
  int answers_ = 0;
  Result<std::shared_ptr<const Credential>> last_ = nullptr;
};

// ---------------------------------------------------------------------------------- fixed and
// files

TEST_F(CredentialsTest, FixedOnes) {
  ASSERT_TRUE(make().has_value());
  EXPECT_EQ(authorization(), "");
  EXPECT_EQ(credentials_->describe(**last_), "no credential in the test");
  access_.token = "abc";
  ASSERT_TRUE(make().has_value());
  EXPECT_EQ(authorization(), "Bearer abc");
  access_.token = "";
  access_.username = "Aladdin";
  access_.password = "open sesame";
  ASSERT_TRUE(make().has_value());
  EXPECT_EQ(authorization(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
}

TEST_F(CredentialsTest, ATokenFileIsReadAgainWithinAMinute) {
  write("token", " one\n");
  access_.token_file = folder_.path("token");
  access_.token = "the file wins";
  ASSERT_TRUE(make().has_value());
  EXPECT_EQ(authorization(), "Bearer one");
  const auto number = (*last_)->number;
  write("token", "two");
  loop_.run_for(49 * kSecondInUs);
  EXPECT_EQ(authorization(), "Bearer one");
  loop_.run_for(1 * kSecondInUs);
  EXPECT_EQ(authorization(), "Bearer two");
  EXPECT_NE((*last_)->number, number);
  EXPECT_EQ((*last_)->certificate_number, 1U) << "no new connections for that";
}

TEST_F(CredentialsTest, TheLastGoodTokenIsKept) {
  write("token", "one");
  access_.token_file = folder_.path("token");
  ASSERT_TRUE(make().has_value());
  std::filesystem::remove(folder_.path("token"));
  loop_.run_for(60 * kSecondInUs);
  EXPECT_EQ(authorization(), "Bearer one");
  write("token", "\n");
  loop_.run_for(60 * kSecondInUs);
  EXPECT_EQ(authorization(), "Bearer one");
  write("token", "two");
  loop_.run_for(10 * kSecondInUs);
  EXPECT_EQ(authorization(), "Bearer two");
}

TEST_F(CredentialsTest, ATokenFileThatNeverWas) {
  access_.token_file = folder_.path("token");
  EXPECT_THAT(make().error().what, AllOf(HasSubstr("bearer token"), HasSubstr(access_.token_file)));
  // the token beside it serves
  access_.token = "spare";
  ASSERT_TRUE(make().has_value());
  EXPECT_EQ(authorization(), "Bearer spare");
}

TEST_F(CredentialsTest, ARefusedTokenIsReadAgainSoon) {
  write("token", "one");
  access_.token_file = folder_.path("token");
  ASSERT_TRUE(make().has_value());
  get();
  write("token", "two");
  credentials_->refused(**last_);
  loop_.run_for(kSecondInUs);
  EXPECT_EQ(authorization(), "Bearer two");
}

TEST_F(CredentialsTest, CertificateFilesAreReadAgainEveryFiveMinutes) {
  const auto one = net::make_self_signed({"one"}).value();
  const auto two = net::make_self_signed({"two"}).value();
  write("c", one.certificate_pem);
  write("k", one.key_pem);
  access_.client_certificate_file = folder_.path("c");
  access_.client_key_file = folder_.path("k");
  ASSERT_TRUE(make().has_value());
  get();
  EXPECT_EQ((*last_)->client_certificate_pem, one.certificate_pem);
  const auto number = (*last_)->certificate_number;

  write("c", two.certificate_pem);  // the key follows later
  loop_.run_for(300 * kSecondInUs);
  get();
  EXPECT_EQ((*last_)->client_certificate_pem, one.certificate_pem) << "half of a pair is none";
  write("k", two.key_pem);
  loop_.run_for(10 * kSecondInUs);
  get();
  EXPECT_EQ((*last_)->client_certificate_pem, two.certificate_pem);
  EXPECT_EQ((*last_)->client_key_pem, two.key_pem);
  EXPECT_NE((*last_)->certificate_number, number);
}

TEST_F(CredentialsTest, CertificatesThatCannotBe) {
  access_.client_certificate_file = folder_.path("c");
  access_.client_key_file = folder_.path("k");
  EXPECT_THAT(make().error().what, HasSubstr(folder_.path("c")));
  write("c", net::make_self_signed({"one"})->certificate_pem);
  write("k", net::make_self_signed({"two"})->key_pem);
  EXPECT_THAT(make().error().what, HasSubstr("does not belong"));
}

TEST_F(CredentialsTest, DescribesWhenATokenEnds) {
  const std::string payload =
      base64_encode(fmt::format(R"({{"exp": {}}})", loop_.now() / kSecondInUs + 10));
  access_.token = "e30." + payload + ".sig";
  ASSERT_TRUE(make().has_value());
  get();
  EXPECT_EQ(credentials_->describe(**last_),
            "bearer token of the test, valid until 2023-11-14T22:13:30Z");
  loop_.run_for(10 * kSecondInUs);
  EXPECT_EQ(credentials_->describe(**last_),
            "bearer token of the test, expired at 2023-11-14T22:13:30Z");
}

// ------------------------------------------------------------------------------------------
// program

TEST_F(CredentialsTest, OneRunServesAllWhoWait) {
  use_program();
  access_.exec->args = {"get"};
  access_.exec->env = {{"A", "new"}, {"B", "b"}};
  ASSERT_TRUE(make().has_value());
  EXPECT_TRUE(runs_.empty()) << "not before it is needed";
  get();
  get();
  EXPECT_EQ(answers_, 0);
  ASSERT_EQ(runs_.size(), 1U);
  EXPECT_EQ(runs_[0].command, "login");
  EXPECT_THAT(runs_[0].args, ElementsAre("get"));
  EXPECT_THAT(runs_[0].environment,
              ElementsAre("PATH=/bin", "A=new", "B=b", StartsWith("KUBERNETES_EXEC_INFO={")));
  EXPECT_FALSE(runs_[0].keeps_stdin);
  answer(R"({"token": "t"})");
  EXPECT_EQ(answers_, 2);
  EXPECT_EQ(authorization(), "Bearer t");
  loop_.run_for(100'000 * kSecondInUs);
  EXPECT_EQ(authorization(), "Bearer t") << "without an expiry it is good until refused";
  EXPECT_EQ(runs_.size(), 1U);
}

TEST_F(CredentialsTest, RunsAgainOnceExpired) {
  use_program();
  ASSERT_TRUE(make().has_value());
  get();
  answer(R"({"token": "one", "expirationTimestamp": "2023-11-14T22:14:00Z"})");  // in 40 s
  loop_.run_for(39 * kSecondInUs);
  EXPECT_EQ(authorization(), "Bearer one");
  loop_.run_for(1 * kSecondInUs);
  get();
  EXPECT_EQ(runs_.size(), 2U);
  answer(R"({"token": "two"})");
  EXPECT_EQ((*last_)->authorization, "Bearer two");
}

TEST_F(CredentialsTest, RunsOnceMoreWhenRefused) {
  use_program();
  ASSERT_TRUE(make().has_value());
  get();
  answer(R"({"token": "one"})");
  const auto first = *last_;
  credentials_->refused(*first);
  credentials_->refused(*first);
  get();
  EXPECT_EQ(runs_.size(), 2U);
  answer(R"({"token": "two"})");
  credentials_->refused(*first);  // a late answer to a request of before
  EXPECT_EQ(authorization(), "Bearer two");
  EXPECT_EQ(runs_.size(), 2U);
  // The new one is refused too: not at once again.
  credentials_->refused(**last_);
  EXPECT_EQ(authorization(), "Bearer two");
  EXPECT_EQ(runs_.size(), 2U);
  loop_.run_for(1 * kSecondInUs);
  get();
  EXPECT_EQ(runs_.size(), 3U);
  answer(R"({"token": "three"})");
  credentials_->accepted(**last_);
  credentials_->refused(**last_);
  get();
  EXPECT_EQ(runs_.size(), 4U) << "it had been good";
}

TEST_F(CredentialsTest, FailuresShowCodeAndErrorsAndAreNotRepeatedInACircle) {
  use_program();
  ASSERT_TRUE(make().has_value());
  get();
  end(ChildOutcome{.exit_code = 3, .output = "s3cret", .errors = "no\n  luck \x1b[31m\n"});
  EXPECT_EQ(last_.error().code, Errc::Unavailable);
  EXPECT_EQ(last_.error().what, "credential program login: exit code 3: no luck [31m");
  for (int i = 0; i < 10; ++i) get();
  EXPECT_EQ(runs_.size(), 1U);
  EXPECT_THAT(last_.error().what, HasSubstr("asked again in "));
  for (const int seconds : {1, 2, 4, 8, 16, 32, 60, 60}) {
    loop_.run_for(seconds * kSecondInUs - 1);
    get();
    ASSERT_TRUE(done_ == nullptr);
    loop_.run_for(1);
    get();
    end(ChildOutcome{.exit_code = 1});
  }
  EXPECT_EQ(runs_.size(), 9U);
  loop_.run_for(60 * kSecondInUs);
  get();
  answer(R"({"token": "t"})");
  EXPECT_EQ((*last_)->authorization, "Bearer t");
}

TEST_F(CredentialsTest, OtherWaysToFail) {
  use_program();
  access_.exec->install_hint = "install it\nfrom there";
  const auto error_after = [this](Result<ChildOutcome> outcome) {
    EXPECT_TRUE(make().has_value());
    get();
    end(std::move(outcome));
    return last_.error().what;
  };
  EXPECT_EQ(error_after(fail(Errc::NotFound, "x")),
            "credential program login: no such program: install it from there");
  EXPECT_EQ(error_after(invalid("cannot run")), "credential program login: cannot run");
  EXPECT_EQ(error_after(ChildOutcome{.is_timed_out = true, .errors = "waiting"}),
            "credential program login: not done after 60 s: waiting");
  EXPECT_THAT(error_after(ChildOutcome{.is_output_too_long = true}), HasSubstr("too long"));
  EXPECT_THAT(error_after(ChildOutcome{.output = "s3cret"}),
              AllOf(HasSubstr("not a JSON object"), Not(HasSubstr("s3cret"))));
  EXPECT_THAT(error_after(ChildOutcome{.output = R"({"kind": "ExecCredential", "apiVersion":
                  "client.authentication.k8s.io/v1", "status": {"clientCertificateData": "a",
                  "clientKeyData": "b"}})"}),
              HasSubstr("client certificate"));
}

TEST_F(CredentialsTest, AProgramMayGiveACertificate) {
  const auto pair = net::make_self_signed({"me"}).value();
  use_program();
  ASSERT_TRUE(make().has_value());
  get();
  answer(fmt::format(R"({{"clientCertificateData": {}, "clientKeyData": {}}})",
                     Doc(pair.certificate_pem).json(JsonWriter::Style::Compact),
                     Doc(pair.key_pem).json(JsonWriter::Style::Compact)));
  ASSERT_TRUE(last_.has_value()) << last_.error().what;
  EXPECT_EQ((*last_)->client_certificate_pem, pair.certificate_pem);
  EXPECT_EQ((*last_)->authorization, "");
  EXPECT_THAT(credentials_->describe(**last_),
              AllOf(StartsWith("client certificate of the program login"), HasSubstr("valid")));
}

TEST_F(CredentialsTest, TheTerminalIsForThoseThatMayAsk) {
  using Interactive = ExecConfig::Interactive;
  for (const auto mode : {Interactive::Never, Interactive::IfAvailable, Interactive::Always}) {
    for (const bool has_terminal : {false, true}) {
      use_program();
      access_.exec->interactive = mode;
      has_terminal_ = has_terminal;
      runs_.clear();
      ASSERT_TRUE(make().has_value());
      get();
      if (mode == Interactive::Always && !has_terminal) {
        EXPECT_TRUE(runs_.empty());
        EXPECT_THAT(last_.error().what, HasSubstr("no terminal"));
        continue;
      }
      ASSERT_EQ(runs_.size(), 1U);
      const bool may_ask = has_terminal && mode != Interactive::Never;
      EXPECT_EQ(runs_[0].keeps_stdin, may_ask);
      EXPECT_THAT(runs_[0].environment.back(),
                  HasSubstr(may_ask ? "\"interactive\":true" : "\"interactive\":false"));
    }
  }
}

TEST_F(CredentialsTest, ATokenBesideAProgramWins) {
  use_program();
  access_.token = "t";
  ASSERT_TRUE(make().has_value());
  EXPECT_EQ(authorization(), "Bearer t");
  EXPECT_TRUE(runs_.empty());
}

TEST_F(CredentialsTest, NobodyIsCalledOnceItIsGone) {
  use_program();
  ASSERT_TRUE(make().has_value());
  get();
  credentials_.reset();
  answer(R"({"token": "t"})");
  EXPECT_EQ(answers_, 0);
}

TEST_F(CredentialsTest, MayGoWhileItTells) {
  use_program();
  ASSERT_TRUE(make().has_value());
  credentials_->get([this](const auto&) { credentials_.reset(); });
  get();
  answer(R"({"token": "t"})");
  EXPECT_EQ(credentials_, nullptr);
}

TEST(ImpersonationTest, Headers) {
  Access access;
  EXPECT_THAT(impersonation_headers(access), testing::IsEmpty());
  access.impersonate_user = "jane";
  access.impersonate_uid = "7";
  access.impersonate_groups = {"a", "b"};
  access.impersonate_extra = {{"example.org/Reason", {"x", "y"}}};
  EXPECT_THAT(impersonation_headers(access),
              ElementsAre(Pair("Impersonate-User", "jane"), Pair("Impersonate-Uid", "7"),
                          Pair("Impersonate-Group", "a"), Pair("Impersonate-Group", "b"),
                          Pair("Impersonate-Extra-example.org%2Freason", "x"),
                          Pair("Impersonate-Extra-example.org%2Freason", "y")));
}

}  // namespace
}  // namespace jogak::kube
