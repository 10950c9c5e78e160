// SPDX-License-Identifier: Apache-2.0
//
// Whether a cron line is one, and a time zone.
#include "apiserver/kinds/batch.h"
#include "apiserver/schema/cron_line.h"
#include "apiserver/schema/zone_file.h"

namespace jogak::api {

Result<void> check_cron_schedule(std::string_view text) {
  JOGAK_TRY(const schema::ZonedCron parts, schema::split_cron_zone(text));
  if (!parts.zone.empty() && !is_time_zone(parts.zone)) {
    return invalid("provided bad location {}", parts.zone);
  }
  JOGAK_TRY_VOID(schema::read_cron_line(parts.line));
  return {};
}

bool is_time_zone(std::string_view name) {
  if (name == "UTC") return true;
  return schema::is_zone_form(name) &&
         (schema::read_zone_file(name).has_value() || !schema::has_zone_files());
}

}  // namespace jogak::api
