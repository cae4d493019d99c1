# Read (`.`) by the scripts beside it: switches with FRR in the namespaces of their kernels, links between them, and hosts.
#
# A script sets $prefix (of the names of namespaces), $folder (of files and sockets) and $rate (of links), and has describe(), made
# of router(), link() and host(); switch_yaml ROUTER, more lines of a switch's file; settle(), which ends when routes are there. Then
# main "$@". FRR is told BGP, or OSPF where ROUTING=ospf.
weir=${WEIR:-weir}
routing=${ROUTING:-bgp}
case $routing in bgp | ospf) ;; *) echo "ROUTING is bgp or ospf, not $routing" >&2 && exit 2 ;; esac

begin() {
  if [ -e "$folder" ]; then echo "$folder is there: is it up? $0 down $folder ends it" >&2 && exit 1; fi
  mkdir "$folder"
  : > "$folder/namespaces"
  namespace wires
}

namespace() {
  ip netns add "$prefix$1"
  echo "$prefix$1" >> "$folder/namespaces"
}

colons() { echo "${1%.*}:${1#*.}"; }

# NAME MAC AS NUMBER: a switch that routes, whose BGP is that AS and whose router ID 10.255.0.NUMBER.
router() {
  mkdir "$folder/$1"
  namespace "$1"
  ip -n "$prefix$1" link set lo up
  echo "$3" > "$folder/$1/as"
  echo "10.255.0.$4" > "$folder/$1/id"
  printf 'router:\n  mac: "%s"\n  kernel: { namespace: /run/netns/%s }\n  interfaces:\n' "$2" "$prefix$1" > "$folder/$1/router.yaml"
  : > "$folder/$1/ports.yaml"
  : > "$folder/$1/peers"
  : > "$folder/$1/interfaces"
  : > "$folder/$1/hosts"
}

# ROUTER PORT INTERFACE NET END: its port on a link whose subnets are 10.NET and fd00:NET, of which it has the addresses that end so.
port() {
  printf '  - { name: %s, interface: %s, namespace: /run/netns/%swires, rate: %s }\n' "$2" "$3" "$prefix" "$rate" >> "$folder/$1/ports.yaml"
  printf '    - { port: %s, address: [10.%s.%s/24, "fd00:%s::%s/64"] }\n' "$2" "$4" "$5" "$(colons "$4")" "$5" >> "$folder/$1/router.yaml"
  ip -n "${prefix}wires" link set "$3" up
}

# ROUTER ROUTER NET END: whom the first one has a session with.
peer() {
  echo "10.$3.$4 $2" >> "$folder/$1/peers"
  echo "fd00:$(colons "$3")::$4 $2" >> "$folder/$1/peers"
  echo "$2" >> "$folder/$1/interfaces"
}

# ROUTER ROUTER NET: NET is the middle of 10.NET.0/24 and fd00:NET::/64, such as 9.11.
link() {
  ip link add "$1-$2" netns "${prefix}wires" type veth peer name "$2-$1" netns "${prefix}wires"
  port "$1" "$2" "$1-$2" "$3" 1
  port "$2" "$1" "$2-$1" "$3" 2
  peer "$1" "$2" "$3" 2
  peer "$2" "$1" "$3" 1
}

# NAME ROUTER NET: it has the address 10.NET.2, and the router 10.NET.1.
host() {
  namespace "$1"
  ip link add "$1" netns "${prefix}wires" type veth peer name eth0 netns "$prefix$1"
  port "$2" "$1" "$1" "$3" 1
  echo "$1" >> "$folder/$2/hosts"
  ip -n "$prefix$1" link set lo up
  ip -n "$prefix$1" link set eth0 up
  ip -n "$prefix$1" address add "10.$3.2/24" dev eth0
  ip -n "$prefix$1" address add "fd00:$(colons "$3")::2/64" dev eth0 nodad
  ip -n "$prefix$1" route add default via "10.$3.1"
  ip -n "$prefix$1" -6 route add default via "fd00:$(colons "$3")::1"
}

# Else, of a link that comes back, FRR 8 leaves the way out of the kernel's nexthop group.
zebra_conf() { echo 'no zebra nexthop kernel enable'; }

bgpd_conf() {
  echo "router bgp $(cat "$folder/$1/as")"
  echo " bgp router-id $(cat "$folder/$1/id")"
  echo ' no bgp ebgp-requires-policy'
  echo ' bgp bestpath as-path multipath-relax'
  echo ' timers bgp 1 3'
  while read -r address peer; do
    echo " neighbor $address remote-as $(cat "$folder/$peer/as")"
    echo " neighbor $address advertisement-interval 0"
    echo " neighbor $address timers connect 1"
    echo " neighbor $address bfd"
  done < "$folder/$1/peers"
  for version in ipv4 ipv6; do
    echo " address-family $version unicast"
    echo '  redistribute connected'
    while read -r address _; do case $version$address in ipv6*:*) echo "  neighbor $address activate" ;; esac; done < "$folder/$1/peers"
    echo ' exit-address-family'
  done
}

# With the defaults: three lost in a row, 300 ms apart, and the link is down, whatever its carrier says.
bfdd_conf() { :; }

# ROUTER "ip ospf" ospf: OSPF of IPv4; so of IPv6. Subnets of hosts are links of the area without neighbors, and not redistributed:
# what is, FRR looks at a second after all else. A change is told at once, also of a link that has just changed.
ospf_conf() {
  while read -r interface; do
    echo "interface $interface"
    for setting in 'area 0' 'network point-to-point' 'hello-interval 1' 'dead-interval 3' bfd; do echo " $2 $setting"; done
  done < "$folder/$1/interfaces"
  while read -r interface; do printf 'interface %s\n %s area 0\n %s passive\n' "$interface" "$2" "$2"; done < "$folder/$1/hosts"
  printf 'router %s\n %s router-id %s\n timers throttle spf 10 50 500\n timers lsa min-arrival 50\n' "$3" "$3" "$(cat "$folder/$1/id")"
}

ospfd_conf() {
  ospf_conf "$1" 'ip ospf' ospf
  echo ' timers throttle lsa all 50'
}
ospf6d_conf() { ospf_conf "$1" 'ipv6 ospf6' ospf6; }

routers() { for path in "$folder"/*/router.yaml; do basename "$(dirname "$path")"; done; }

# Older bfdd have a control socket, of which each needs its own.
bfdctl() { ! /usr/lib/frr/bfdd --help | grep -q -e --bfdctl || echo "--bfdctl $1/bfdd.sock"; }

# PROGRAM ROUTER: a daemon of FRR there, which keeps its sessions while others want the CPUs.
frr() {
  nice -n -10 ip netns exec "$prefix$2" "/usr/lib/frr/$1" -d -P 0 -f "$folder/$2/$1.conf" -i "$folder/$2/$1.pid" -z "$folder/$2/zserv.api" \
    --vty_socket "$folder/$2" $([ "$1" != bfdd ] || bfdctl "$folder/$2") >> "$folder/$2/frr.log" 2>&1
}

# Starts what was described.
start() {
  for name in $(routers); do
    {
      printf 'name: %s\nmetrics: false\ncontrol: %s/%s.sock\n' "$name" "$folder" "$name"
      switch_yaml "$name"
      echo 'ports:'
      cat "$folder/$name/ports.yaml" "$folder/$name/router.yaml"
    } > "$folder/$name.yaml"
    "$weir" switch -c "$folder/$name.yaml" < /dev/null > "$folder/$name.log" 2>&1 &
    echo $! > "$folder/$name.pid"
  done
  # Its twins have their addresses then. Of a twin that is made beside it, zebra of FRR 8 may lose the addresses for good (FRR's issue 13288).
  for name in $(routers); do
    until grep -q '"msg":"started"' "$folder/$name.log"; do
      if ! kill -0 "$(cat "$folder/$name.pid")" 2> /dev/null; then cat "$folder/$name.log" >&2 && exit 1; fi
      sleep 0.2
    done
  done
  case $routing in bgp) programs="zebra bfdd bgpd" ;; ospf) programs="zebra bfdd ospfd ospf6d" ;; esac
  for name in $(routers); do
    for program in $programs; do "${program}_conf" "$name" > "$folder/$name/$program.conf"; done
    chown -R frr:frr "$folder/$name"
    for program in $programs; do frr "$program" "$name"; done
  done
}

# ROUTER NET: until it has two ways to the host there, by IPv4 and by IPv6. After two minutes it says what there is instead.
await_ways() {
  until [ "$(ip -n "$prefix$1" route show "10.$2.0/24" | grep -c nexthop)" -ge 2 ] &&
    [ "$(ip -n "$prefix$1" -6 route show "fd00:$(colons "$2")::/64" | grep -c nexthop)" -ge 2 ]; do
    if [ $(($(date +%s) - began)) -ge 120 ]; then tell_state "$1" "$2" >&2 && exit 1; fi
    sleep 0.1
  done
}

# ROUTER NET: why it may not have two ways to the host there.
tell_state() {
  echo "$1 has no two ways to 10.$2.0/24 and fd00:$(colons "$2")::/64. It has:"
  ip -n "$prefix$1" -brief address
  for version in -4 -6; do ip -n "$prefix$1" "$version" route; done
  vtysh --vty_socket "$folder/$1" -c 'show ip route' -c 'show ipv6 route' || true
  case $routing in bgp) asked='show bgp summary' ;; ospf) asked='show ip ospf neighbor' ;; esac
  for name in $(routers); do
    echo "== $name"
    cat "$folder/$name.log" "$folder/$name/frr.log"
    vtysh --vty_socket "$folder/$name" -c "$asked" -c 'show bfd peers brief' || true
  done
}

down() {
  if [ ! -e "$folder" ]; then return; fi
  for file in "$folder"/*.pid "$folder"/*/*.pid; do
    if [ -e "$file" ]; then kill "$(cat "$file")" 2> /dev/null || true; fi
  done
  sleep 2
  while read -r name; do ip netns del "$name" 2> /dev/null || true; done < "$folder/namespaces"
  rm -rf "$folder"
}

main() {
  case ${1:-} in
    up)
      begin
      describe
      start
      began=$(date +%s)
      settle
      echo "routes are there $(($(date +%s) - began)) s after FRR has started"
      ;;
    down) down ;;
    *)
      echo "usage: $0 up|down [FOLDER]" >&2
      exit 2
      ;;
  esac
}
