#include "device/device.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "device/class_model.h"
#include "device/families.h"

namespace quartet {
namespace {

TEST(Device, HostIsConsistent) {
  const CpuModel host = host_cpu();
  EXPECT_GE(host.cores, 1);
  EXPECT_EQ(host.fma, host.isa != Isa::sse2);
  EXPECT_EQ(host.vector_bytes, host.isa == Isa::sse2 ? 16 : host.isa == Isa::avx2 ? 32 : 64);
  EXPECT_TRUE(std::is_sorted(host.features.begin(), host.features.end()));
  EXPECT_EQ(std::adjacent_find(host.features.begin(), host.features.end()), host.features.end());
  ASSERT_GE(host.levels.size(), 3u);
  EXPECT_EQ(host.levels.front().name, "L1");
  EXPECT_EQ(host.levels.back().name, "DRAM");
  EXPECT_EQ(host.levels.back().capacity, 0);
  for (size_t i = 0; i + 2 < host.levels.size(); ++i) {
    EXPECT_LT(host.levels[i].capacity, host.levels[i + 1].capacity);
    EXPECT_GE(host.levels[i].bandwidth, host.levels[i + 1].bandwidth);
  }
  EXPECT_EQ(host.digest(), host_cpu().digest());
}

#if defined(__x86_64__)
TEST(Device, HostAgreesWithTheCompilersProbe) {
  const CpuModel host = host_cpu();
  EXPECT_EQ(host.isa >= Isa::avx512, __builtin_cpu_supports("x86-64-v4") != 0);
  EXPECT_EQ(host.isa >= Isa::avx2, __builtin_cpu_supports("x86-64-v3") != 0);
  const auto has = [&](const char* name) {
    return std::find(host.features.begin(), host.features.end(), name) != host.features.end();
  };
  EXPECT_EQ(has("+sse4.1"), __builtin_cpu_supports("sse4.1") != 0);
  EXPECT_EQ(has("+popcnt"), __builtin_cpu_supports("popcnt") != 0);
  EXPECT_EQ(has("+avx512vnni"), __builtin_cpu_supports("avx512vnni") != 0);
}
#endif

TEST(Device, LimitLowersTheClassOnly) {
  for (const Isa limit : {Isa::sse2, Isa::avx2, Isa::avx512}) {
    const CpuModel model = host_cpu(limit);
    EXPECT_LE(model.isa, limit);
    EXPECT_EQ(model.isa, std::min(limit, host_cpu().isa));
    for (const std::string& feature : model.features) {
      if (model.isa < Isa::avx512) {
        EXPECT_EQ(feature.find("avx512"), std::string::npos) << feature;
      }
      if (model.isa < Isa::avx2) {
        EXPECT_EQ(feature.find("avx"), std::string::npos) << feature;
      }
    }
  }
}

TEST(Device, NamedModels) {
  for (const char* name : {"sse2", "avx2", "avx512"}) {
    const auto model = named_cpu(name);
    ASSERT_TRUE(model.ok());
    EXPECT_STREQ(isa_name(model->isa), name);
    EXPECT_EQ(model->target_text().rfind(std::string("x86_64 ") + name, 0), 0u);
  }
  EXPECT_EQ(named_cpu("avx512")->vector_registers, 32);
  EXPECT_EQ(named_cpu("avx2")->vector_registers, 16);
  EXPECT_EQ(named_cpu("avx2")->lanes(4), 8);
  const auto none = named_cpu("sparc");
  EXPECT_EQ(none.status().code(), Code::not_found);
  EXPECT_NE(none.status().message().find("sparc"), std::string::npos);
}

TEST(Device, TargetTextIgnoresRatesButDigestDoesNot) {
  CpuModel a = *named_cpu("avx2"), b = a;
  b.clock_hz *= 2;
  EXPECT_EQ(a.target_text(), b.target_text());
  EXPECT_NE(a.digest(), b.digest());
  b = a;
  b.features.push_back("+gfni");
  EXPECT_NE(a.target_text(), b.target_text());
}

TEST(Device, BytesRoundTrip) {
  for (const CpuModel& model : {host_cpu(), *named_cpu("sse2")}) {
    ByteWriter out;
    write(out, model);
    ByteReader in(out.data(), "model");
    const CpuModel back = read_cpu_model(in);
    ASSERT_TRUE(in.finish().ok()) << in.finish().message();
    EXPECT_EQ(back.digest(), model.digest());
  }
}

TEST(Device, ReaderRefusesEveryTruncationAndBadNumbers) {
  ByteWriter out;
  write(out, *named_cpu("avx512"));
  const Bytes whole = out.data();
  for (size_t size = 0; size < whole.size(); ++size) {
    ByteReader in(std::span(whole).first(size), "model");
    read_cpu_model(in);
    EXPECT_FALSE(in.ok()) << size;
  }
  CpuModel broken = *named_cpu("avx2");
  broken.vector_bytes = 0;
  ByteWriter bad;
  write(bad, broken);
  ByteReader in(bad.data(), "model");
  read_cpu_model(in);
  EXPECT_FALSE(in.ok());
  for (size_t at = 0; at < whole.size(); ++at) {  // no flipped bit may crash or allocate without bound
    Bytes flipped = whole;
    flipped[at] ^= 0xff;
    ByteReader reader(flipped, "model");
    const CpuModel model = read_cpu_model(reader);
    if (reader.ok()) {
      EXPECT_GT(model.vector_bytes, 0);
    }
  }
}

TEST(Device, FamilyTable) {
  using Vendor = CpuIdentity::Vendor;
  const auto name = [](Vendor vendor, int family, int model, bool amx = false) {
    return family_rates({vendor, family, model, amx}).name;
  };
  EXPECT_EQ(name(Vendor::amd, 0x19, 0x11), "zen4");
  EXPECT_EQ(name(Vendor::amd, 0x19, 0x21), "zen3");
  EXPECT_EQ(name(Vendor::amd, 0x1a, 0x24), "zen5-mobile");
  EXPECT_EQ(name(Vendor::amd, 0x1a, 0x44), "zen5");
  EXPECT_EQ(name(Vendor::intel, 6, 0x8f), "sapphirerapids");
  EXPECT_EQ(name(Vendor::intel, 6, 0xa7), "icelake");
  EXPECT_EQ(name(Vendor::intel, 6, 0xa7, true), "sapphirerapids");  // the features say more than the name
  EXPECT_EQ(name(Vendor::other, 6, 0xa7), "generic");
  // A double-pumped AVX-512 gives no more than AVX2, a full one twice as much.
  const auto peak = [](Vendor vendor, int family, int model, Isa isa) {
    return class_model(isa, family_rates({vendor, family, model, false})).peak_flops_f32();
  };
  EXPECT_EQ(peak(Vendor::amd, 0x19, 0x11, Isa::avx512), peak(Vendor::amd, 0x19, 0x11, Isa::avx2));
  EXPECT_EQ(peak(Vendor::intel, 6, 0x8f, Isa::avx512), 2 * peak(Vendor::intel, 6, 0x8f, Isa::avx2));
}

}  // namespace
}  // namespace quartet
