#!/bin/sh
# Two leaves and two spines, each a weir switch with FRR in the namespace of its kernel; a host at each leaf. As root, with
# Debian's package frr:
#
#   leaf-spine.sh up [FOLDER]      default: /tmp/weir-frr
#   ip netns exec wf-h1 ping 10.2.0.2
#   weir show routes --socket FOLDER/leaf1.sock
#   vtysh --vty_socket FOLDER/leaf1 -c 'show bgp summary'
#   leaf-spine.sh down [FOLDER]
#
# ROUTING=ospf has OSPF instead of BGP.
set -eu
folder=${2:-/tmp/weir-frr}
prefix=wf-
rate=1Gbps
. "$(dirname "$0")/fabric.sh"

switch_yaml() { :; }

describe() {
  for n in 1 2; do
    router "leaf$n" "02:57:52:00:00:0$n" "6500$n" "$n"
    router "spine$n" "02:57:52:00:00:1$n" "6501$n" "1$n"
    host "h$n" "leaf$n" "$n.0"
  done
  for leaf in 1 2; do
    for spine in 1 2; do link "leaf$leaf" "spine$spine" "9.$leaf$spine"; done
  done
}

settle() {
  await_ways leaf1 2.0
  await_ways leaf2 1.0
}

main "$@"
