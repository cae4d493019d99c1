#!/bin/sh
# The testbed of the DCQCN paper (SIGCOMM 2015, figure 2): four ToRs, four leaves and two spines, each a weir switch with FRR in
# the namespace of its kernel, and five hosts at each ToR. As root, with Debian's package frr:
#
#          s1          s2                 spines, each linked to all leaves
#        /    \      /    \
#      l1      l2  l3      l4             leaves
#     t1, t2 on both   t3, t4 on both     ToRs, with h11 to h15, h21 to h25, h31 to h35, h41 to h45
#
#   testbed.sh up [FOLDER]         default: /tmp/weir-testbed
#   ip netns exec wt-h11 ping 10.4.1.2
#   weir show routes --socket FOLDER/t1.sock
#   vtysh --vty_socket FOLDER/t1 -c 'show bgp summary'
#   testbed.sh down [FOLDER]
#
# ROUTING=ospf has OSPF instead of BGP, RATE=100Mbps links of another rate.
set -eu
folder=${2:-/tmp/weir-testbed}
prefix=wt-
rate=${RATE:-1Gbps}
. "$(dirname "$0")/fabric.sh"

# Section 4: Kmin 5 KB, Kmax 200 KB, Pmax 1%, headroom of 22.4 KB for each port and priority, beta 8. Each switch has its ports'
# share of the paper's 12 MB for 32 ports: 375 KB each.
switch_yaml() {
  case $1 in t*) total=2.625MB ;; *) total=1.5MB ;; esac
  echo 'trust: dscp'
  echo 'dscp_map: nvidia'
  echo 'pfc: { priorities: [3] }'
  echo 'ecn: { kmin: 5KB, kmax: 200KB, pmax: 1%, priorities: [3] }'
  echo "buffer: { total: $total, headroom: 22.4KB, beta: 8 }"
}

# AS numbers as RFC 7938 has them: one for the spines, one for the leaves of a pod, one for each ToR.
describe() {
  for n in 1 2 3 4; do
    router "t$n" "02:57:52:00:00:0$n" "6500$n" "$n"
    router "l$n" "02:57:52:00:00:1$n" "6510$(((n + 1) / 2))" "1$n"
  done
  for n in 1 2; do router "s$n" "02:57:52:00:00:2$n" 65000 "2$n"; done
  for pod in "1 2" "3 4"; do
    for leaf in $pod; do
      for tor in $pod; do link "t$tor" "l$leaf" "9.$tor$leaf"; done
      for spine in 1 2; do link "l$leaf" "s$spine" "8.$leaf$spine"; done
    done
  done
  for tor in 1 2 3 4; do
    for n in 1 2 3 4 5; do host "h$tor$n" "t$tor" "$tor.$n"; done
  done
}

settle() {
  for tor in 1 2 3 4; do
    for other in 1 2 3 4; do
      if [ $other != $tor ]; then await_ways "t$tor" "$other.1"; fi
    done
  done
}

main "$@"
