// SPDX-License-Identifier: Apache-2.0
// Where the cluster of a command comes from: files that hold what kubectl prints, or a live cluster
// that is listed once and never written to.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/args.h"
#include "base/result.h"
#include "core/model/cluster.h"
#include "import/import.h"
#include "kube/snapshot.h"

namespace jogak::cli {

// As kubectl has them.
inline constexpr Flag kKubeconfigFlag = {
    .name = "kubeconfig",
    .metavar = "FILE",
    .help =
        "how to reach the live cluster; else $KUBECONFIG, ~/.kube/config, or the account of "
        "the pod that this runs in"};
inline constexpr Flag kContextFlag = {
    .name = "context", .metavar = "NAME", .help = "context of the kubeconfig, instead of its own"};

struct ClusterSource {
  std::vector<std::string> files;  // "-": standard input; none: the live cluster
  std::string kubeconfig = {};
  std::string context = {};
};
// `files`: name of the Repeated flag. Error Invalid: files and a live cluster.
Result<ClusterSource> cluster_source(const ParsedArgs& args, std::string_view files);

// What the cluster said beside its nodes and pods.
struct ClusterInput {
  importer::ImportReport report;
  std::string ns = "default";         // of the context
  std::string priority_classes = {};  // objects of that kind, one after another
  std::string default_storage_class = {};
};

// Pods come to the cluster by age, so that the order of their ids is that of their creation; those
// that do not say when they were made count as the youngest, in the order of the input.
Result<ClusterInput> read_cluster(const ClusterSource& source, core::Cluster& cluster);

// ---- of its parts, for tests ----

struct ClusterText {
  std::string_view kind;  // of the items of a list that does not say; "" if unknown
  std::string text;
  std::string name;  // for messages
};
Result<ClusterInput> read_texts(const std::vector<ClusterText>& texts, core::Cluster& cluster);

// The live cluster as texts, and the namespace of its context. Runs a loop until all is read.
struct LiveTexts {
  std::vector<ClusterText> texts;
  std::string ns;
};
Result<LiveTexts> read_live(const ClusterSource& source);

}  // namespace jogak::cli
