// SPDX-License-Identifier: Apache-2.0
//
// What all requests of a CurlClient share: its options, checked once, and how they are told to
// libcurl. For curl_client.cc alone.
#pragma once

// tidy: layering: only curl_client.cc and curl_setup.cc include this header
#include <curl/curl.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "net/curl_client.h"
#include "net/freed.h"

namespace jogak::net {

using CurlEasy = std::unique_ptr<CURL, Freed<curl_easy_cleanup>>;
using CurlMulti = std::unique_ptr<CURLM, Freed<curl_multi_cleanup>>;
using CurlList = std::unique_ptr<curl_slist, Freed<curl_slist_free_all>>;

struct CurlSetup {
  CurlOptions options;
  std::string url_prefix;   // what a target is put behind
  std::string host_header;  // "": as the URL has it
  std::string server;       // "10.0.0.1:6443", for messages
  std::string proxy_name;   // the same of a proxy that is not the environment's, else ""
  std::string proxy_url;
  bool is_this_machine = false;
  CurlList connect_to;

  static Result<CurlSetup> make(CurlOptions options);
  // Sets what no request changes. Points into this object, which outlives the handle.
  void apply(CURL* easy) const;
};

}  // namespace jogak::net
