// SPDX-License-Identifier: Apache-2.0
//
// Names of images by what tag they mean.
#include "apiserver/kinds/pod_image.h"

#include <gtest/gtest.h>

#include <string>

namespace jogak::api {
namespace {

TEST(PodImage, LatestWhenNothingElseIsSaid) {
  EXPECT_TRUE(is_latest_image("busybox"));
  EXPECT_TRUE(is_latest_image("busybox:latest"));
  EXPECT_TRUE(is_latest_image("reg.example/a/b"));
  EXPECT_TRUE(is_latest_image("reg.example:5000/a"));
  EXPECT_TRUE(is_latest_image("localhost/a"));
  EXPECT_TRUE(is_latest_image("Reg/a"));  // capitals make the first part a registry
}

TEST(PodImage, TagsAndDigests) {
  const std::string digest = "@sha256:" + std::string(64, 'a');
  EXPECT_FALSE(is_latest_image("busybox:1"));
  EXPECT_FALSE(is_latest_image("reg.example:5000/a:v1"));
  EXPECT_FALSE(is_latest_image("busybox" + digest));
  EXPECT_TRUE(is_latest_image("busybox:latest" + digest));
}

TEST(PodImage, WhatIsNoNameIsNotLatest) {
  EXPECT_FALSE(is_latest_image(""));
  EXPECT_FALSE(is_latest_image("a//b"));
  EXPECT_FALSE(is_latest_image("a/Big"));
  EXPECT_FALSE(is_latest_image("a_:latest"));
  EXPECT_FALSE(is_latest_image("a...b"));
  EXPECT_FALSE(is_latest_image("a:"));
  EXPECT_FALSE(is_latest_image("a@sha256:short"));
  EXPECT_FALSE(is_latest_image(std::string(64, 'b')));  // an identifier, no name
}

}  // namespace
}  // namespace jogak::api
