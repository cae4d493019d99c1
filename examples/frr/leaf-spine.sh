#!/bin/sh
# Two leaves and two spines, each a weir switch with FRR in the namespace of its kernel; a host at each leaf. As root, with
# Debian's package frr:
#
#   leaf-spine.sh up [FOLDER]      default: /tmp/weir-frr
#   ip netns exec wf-h1 ping 10.2.0.2
#   weir show routes --socket FOLDER/leaf1.sock
#   vtysh --vty_socket FOLDER/leaf1 -c 'show bgp summary'
#   leaf-spine.sh down [FOLDER]
set -eu
folder=${2:-/tmp/weir-frr}
weir=${WEIR:-weir}
namespaces="wf-leaf1 wf-leaf2 wf-spine1 wf-spine2 wf-h1 wf-h2 wf-wires"

down() {
  for file in "$folder"/*.pid "$folder"/*/*.pid; do
    if [ -e "$file" ]; then kill "$(cat "$file")" 2>/dev/null || true; fi
  done
  sleep 2
  for name in $namespaces; do ip netns del "$name" 2>/dev/null || true; done
  rm -rf "$folder"
}

# SWITCH MAC "PORT INTERFACE"...
switch() {
  name=$1 mac=$2
  shift 2
  {
    printf 'name: %s\nmetrics: false\ncontrol: %s/%s.sock\nports:\n' "$name" "$folder" "$name"
    for port; do printf '  - { name: %s, interface: %s, namespace: /run/netns/wf-wires, rate: 1Gbps }\n' "${port% *}" "${port#* }"; done
    printf 'router:\n  mac: "%s"\n  kernel: { namespace: /run/netns/wf-%s }\n  interfaces:\n' "$mac" "$name"
  } > "$folder/$name.yaml"
}

# SWITCH PORT ADDRESS IPV6-ADDRESS
interface() {
  printf '    - { port: %s, address: [%s, "%s"] }\n' "$2" "$3" "$4" >> "$folder/$1.yaml"
}

# SWITCH AS "ADDRESS AS"...
bgp() {
  name=$1 as=$2
  shift 2
  {
    printf 'router bgp %s\n bgp router-id 10.255.0.%s\n no bgp ebgp-requires-policy\n' "$as" "$((as - 65000))"
    printf ' bgp bestpath as-path multipath-relax\n timers bgp 1 3\n'
    for peer; do printf ' neighbor %s remote-as %s\n neighbor %s advertisement-interval 0\n' "${peer% *}" "${peer#* }" "${peer% *}"; done
    printf ' address-family ipv4 unicast\n  redistribute connected\n exit-address-family\n address-family ipv6 unicast\n'
    for peer; do case $peer in *:*) printf '  neighbor %s activate\n' "${peer% *}" ;; esac; done
    printf '  redistribute connected\n exit-address-family\n'
  } > "$folder/$name/bgpd.conf"
  echo 'no zebra nexthop kernel enable' > "$folder/$name/zebra.conf"
  chown -R frr:frr "$folder/$name"
  for program in zebra bgpd; do
    ip netns exec "wf-$name" "/usr/lib/frr/$program" -d -P 0 -f "$folder/$name/$program.conf" -i "$folder/$name/$program.pid" \
      -z "$folder/$name/zserv.api" --vty_socket "$folder/$name"
  done
}

up() {
  mkdir "$folder"
  for name in $namespaces; do ip netns add "$name"; done
  for leaf in 1 2; do
    ip link add "h$leaf" netns wf-wires type veth peer name eth0 netns "wf-h$leaf"
    ip -n wf-wires link set "h$leaf" up
    for spine in 1 2; do
      ip link add "l$leaf-s$spine" netns wf-wires type veth peer name "s$spine-l$leaf" netns wf-wires
      ip -n wf-wires link set "l$leaf-s$spine" up
      ip -n wf-wires link set "s$spine-l$leaf" up
    done
    ip -n "wf-h$leaf" link set eth0 up
    ip -n "wf-h$leaf" address add "10.$leaf.0.2/24" dev eth0
    ip -n "wf-h$leaf" address add "fd00:$leaf::2/64" dev eth0 nodad
    ip -n "wf-h$leaf" route add default via "10.$leaf.0.1"
    ip -n "wf-h$leaf" -6 route add default via "fd00:$leaf::1"
  done
  for n in 1 2; do
    switch "leaf$n" "02:57:52:00:00:0$n" "h$n h$n" "spine1 l$n-s1" "spine2 l$n-s2"
    interface "leaf$n" "h$n" "10.$n.0.1/24" "fd00:$n::1/64"
    for s in 1 2; do interface "leaf$n" "spine$s" "10.9.$n$s.1/30" "fd00:9:$n$s::1/64"; done
    switch "spine$n" "02:57:52:00:00:1$n" "leaf1 s$n-l1" "leaf2 s$n-l2"
    for l in 1 2; do interface "spine$n" "leaf$l" "10.9.$l$n.2/30" "fd00:9:$l$n::2/64"; done
  done
  for name in leaf1 leaf2 spine1 spine2; do
    mkdir "$folder/$name"
    ip -n "wf-$name" link set lo up
    "$weir" switch -c "$folder/$name.yaml" < /dev/null > "$folder/$name.log" 2>&1 &
    echo $! > "$folder/$name.pid"
  done
  # Its control socket is there before the twins are; FRR waits for interfaces that come later, too.
  for name in leaf1 leaf2 spine1 spine2; do
    while [ ! -S "$folder/$name.sock" ]; do sleep 0.2; done
  done
  for n in 1 2; do
    bgp "leaf$n" "6500$n" "10.9.${n}1.2 65011" "10.9.${n}2.2 65012" "fd00:9:${n}1::2 65011" "fd00:9:${n}2::2 65012"
    bgp "spine$n" "6501$n" "10.9.1$n.1 65001" "10.9.2$n.1 65002" "fd00:9:1$n::1 65001" "fd00:9:2$n::1 65002"
  done
}

case ${1:-} in
  up) up ;;
  down) down ;;
  *)
    echo "usage: $0 up|down [FOLDER]" >&2
    exit 2
    ;;
esac
