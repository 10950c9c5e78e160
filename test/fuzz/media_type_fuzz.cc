// SPDX-License-Identifier: Apache-2.0
//
// Any text as an Accept or a Content-Type header.
#include <cstdint>
#include <string_view>

#include "apiserver/codec/codec.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace jogak::codec;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const bool allow : {false, true}) {
    const auto found = negotiate(text, allow, allow);
    if (!found) continue;
    // What is answered is a form that a client may send.
    JOGAK_CHECK(form_of(found->content_type) == found->form);
    if (found->as == Negotiated::As::Table) JOGAK_CHECK(allow && found->form != Form::Protobuf);
    if (found->form == Form::Protobuf) JOGAK_CHECK(allow || found->as == Negotiated::As::Partial);
  }
  for (const MediaType& type : parse_media_types(text)) {
    JOGAK_CHECK(type.type.find('/') != std::string_view::npos);
  }
  const auto type = media_type_of(text);
  if (form_of(text) && !text.empty()) JOGAK_CHECK(type.has_value());
  return 0;
}
