// SPDX-License-Identifier: Apache-2.0
//
// Reading and writing the annotation kubectl.kubernetes.io/last-applied-configuration.
#include "apiserver/patch/last_applied.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "apiserver/codec/codec.h"
#include "apiserver/object/meta.h"
#include "apiserver/patch/compare.h"
#include "apiserver/patch/typed_value.h"

namespace jogak::patch {
namespace {

constexpr std::string_view kAnnotation = "kubectl.kubernetes.io/last-applied-configuration";
constexpr std::size_t kAnnotationBytesMax = 256 * 1024;  // of all annotations of an object

// Members by name, as Go writes maps.
void sort_members(Doc& value) {
  if (value.is_object()) {
    std::ranges::sort(value.members(), {}, &Doc::Member::key);
    for (auto& [key, inner] : value.members()) sort_members(inner);
  } else if (value.is_array()) {
    for (Doc& item : value.items()) sort_members(item);
  }
}

std::string go_json(Doc value) {
  sort_members(value);
  std::string json;
  value.append_json(json);
  std::string escaped;
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&') {
      escaped += fmt::format("\\u00{:02x}", static_cast<unsigned>(c));
    } else {
      escaped += c;
    }
  }
  return escaped + "\n";
}

std::size_t annotation_bytes(const Doc& annotations) {
  std::size_t bytes = 0;
  for (const auto& [key, value] : annotations.members()) {
    bytes += key.size() + value.as_string().size();
  }
  return bytes;
}

}  // namespace

std::optional<FieldSet> last_applied_fields(const Doc& live, std::string_view api_version,
                                            const ObjectType& type) {
  const std::string& text = api::meta(live)["annotations"][kAnnotation].as_string();
  if (text.empty()) return std::nullopt;
  const auto parsed = codec::parse_json(text);
  if (!parsed) return std::nullopt;
  const Doc& applied = parsed->doc;
  if (applied["apiVersion"].as_string() != api_version) return std::nullopt;
  const TypeView view = TypeView::of(type);
  if (!type_problem(applied, view).empty()) return std::nullopt;
  const Comparison difference = compare(applied, live, view);
  return subtract(subtract(named_fields(applied, view), difference.changed), difference.removed);
}

void update_last_applied(Doc& object, const Doc& intent) {
  Doc* metadata = object.find("metadata");
  Doc* annotations = metadata == nullptr ? nullptr : metadata->find("annotations");
  if (annotations == nullptr || annotations->get(kAnnotation).as_string().empty()) return;
  Doc applied = intent;
  if (Doc* inner = applied.find("metadata"); inner != nullptr) {
    if (Doc* own = inner->find("annotations")) own->erase(kAnnotation);
  }
  annotations->set(kAnnotation, go_json(std::move(applied)));
  if (annotation_bytes(*annotations) > kAnnotationBytesMax) annotations->erase(kAnnotation);
}

}  // namespace jogak::patch
