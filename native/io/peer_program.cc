#include "io/peer_program.h"

#include <linux/ethtool.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

#include "io/kernel_socket.h"

namespace weir {
namespace {

template <class Structure>
std::span<uint8_t> bytes_of(Structure& structure) {
  return {reinterpret_cast<uint8_t*>(&structure), sizeof structure};
}

// The place of a feature in the kernel's bit maps, which is another one in each version.
std::optional<uint32_t> place_of(int socket, const std::string& interface, std::string_view feature) {
  struct {  // ethtool_gstrings
    uint32_t command = ETHTOOL_GSTRINGS;
    uint32_t set = ETH_SS_FEATURES;
    uint32_t count = 0;
    char names[(kEthtoolBytes - 12) / ETH_GSTRING_LEN][ETH_GSTRING_LEN] = {};
  } strings;
  struct {  // ethtool_sset_info
    uint32_t command = ETHTOOL_GSSET_INFO;
    uint32_t reserved = 0;
    uint64_t sets = uint64_t{1} << ETH_SS_FEATURES;
    uint32_t strings = 0;
  } count;
  if (!ask_ethtool(socket, interface, bytes_of(count)) || count.strings > std::size(strings.names)) return std::nullopt;
  strings.count = count.strings;
  if (!ask_ethtool(socket, interface, bytes_of(strings))) return std::nullopt;
  for (uint32_t i = 0; i < count.strings; ++i) {
    if (feature == std::string_view(strings.names[i], ::strnlen(strings.names[i], ETH_GSTRING_LEN))) return i;
  }
  return std::nullopt;
}

bool is_veth(int socket, const std::string& interface) {
  ethtool_drvinfo driver{};
  driver.cmd = ETHTOOL_GDRVINFO;
  return ask_ethtool(socket, interface, bytes_of(driver)) && std::strcmp(driver.driver, "veth") == 0;
}

}  // namespace

bool peer_runs_xdp(int socket, const std::string& interface) {
  if (!is_veth(socket, interface)) return false;
  static const std::optional<uint32_t> kPlace = place_of(socket, interface, "tx-tcp-segmentation");
  constexpr uint32_t kBlocks = 4;
  struct {  // ethtool_gfeatures
    uint32_t command = ETHTOOL_GFEATURES;
    uint32_t size = kBlocks;
    ethtool_get_features_block blocks[kBlocks] = {};
  } features;
  if (!kPlace || *kPlace >= 32 * kBlocks || !ask_ethtool(socket, interface, bytes_of(features))) return false;
  return (features.blocks[*kPlace / 32].available >> (*kPlace % 32) & 1) == 0;
}

}  // namespace weir
