// SPDX-License-Identifier: Apache-2.0
//
// A Doc as the protobuf message of its type.
#pragma once

#include "apiserver/codec/wire.h"
#include "apiserver/schema/schema.h"
#include "base/doc.h"

namespace jogak::codec {

// `object` is what schema::decode() or encode() gave; what it lacks is written as zero.
void write_message(WireWriter& out, const Doc& object, const schema::Struct& type);

}  // namespace jogak::codec
