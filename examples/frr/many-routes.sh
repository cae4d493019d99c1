#!/bin/sh
# A switch whose FRR is told 10,000 routes at once by BGP, while packets pass it: how long it takes until it has them, and what
# is lost meanwhile. As root, with Debian's package frr; takes half a minute, and leaves nothing behind:
#
#   many-routes.sh [ROUTES]
#
# h1 pings h2, and 172.31.0.1, which h2 and h3 announce: h2 at first alone, then h3, which is nearer, with the others. Times are
# from the kernel's first news of those routes: to the last of them, which FRR has installed then, and to the first answer to
# pings from behind each of several, which the switch has had then.
set -eu
routes=${1:-10000}
folder=${FOLDER:-/tmp/weir-routes}
prefix=wm-
rate=1Gbps
. "$(dirname "$0")/fabric.sh"

switch_yaml() { :; }

# NUMBER: that route's first three bytes.
net() { echo "10.$((64 + $1 / 256)).$(($1 % 256))"; }

describe() {
  router s 02:57:52:00:00:01 65000 1
  for n in 1 2 3; do host "h$n" s "$n.0"; done
  for n in 2 3; do
    mkdir "$folder/h$n"
    ip -n "${prefix}h$n" route add local 172.31.0.0/24 dev lo
  done
  ip -n "${prefix}h3" route add local 10.64.0.0/10 dev lo
}

bgpd_conf() {
  case $1 in
    s)
      printf 'router bgp 65000\n no bgp ebgp-requires-policy\n'
      for n in 2 3; do
        printf ' neighbor 10.%s.0.2 remote-as 6500%s\n neighbor 10.%s.0.2 advertisement-interval 0\n' $n $n $n
        printf ' neighbor 10.%s.0.2 timers connect 1\n neighbor 10.%s.0.2 route-map none out\n' $n $n
      done
      echo 'route-map none deny 1'
      ;;
    h2)
      printf 'router bgp 65002\n no bgp ebgp-requires-policy\n no bgp network import-check\n'
      printf ' neighbor 10.2.0.1 remote-as 65000\n neighbor 10.2.0.1 advertisement-interval 0\n neighbor 10.2.0.1 timers connect 1\n neighbor 10.2.0.1 route-map far out\n'
      printf ' network 172.31.0.0/24\nroute-map far permit 1\n set as-path prepend 65002 65002\n'
      ;;
    h3)
      printf 'router bgp 65003\n no bgp ebgp-requires-policy\n no bgp network import-check\n'
      printf ' neighbor 10.3.0.1 remote-as 65000\n neighbor 10.3.0.1 advertisement-interval 0\n neighbor 10.3.0.1 timers connect 1\n neighbor 10.3.0.1 shutdown\n'
      echo ' network 172.31.0.0/24'
      for i in $(seq 0 $((routes - 1))); do echo " network $(net "$i").0/24"; done
      ;;
  esac
}

settle() {
  for n in 2 3; do
    for program in zebra bgpd; do "${program}_conf" "h$n" > "$folder/h$n/$program.conf"; done
    chown -R frr:frr "$folder/h$n"
    for program in zebra bgpd; do frr "$program" "h$n"; done
  done
  until ip -n "${prefix}s" route show 172.31.0.0/24 | grep -q 10.2.0.2; do sleep 0.1; done
  until ip netns exec "${prefix}h1" ping -q -c 1 -W 1 172.31.0.1 > "$folder/first"; do :; done
}

trap down EXIT
trap 'exit 1' INT TERM
main up
probes="$(net 0) $(net 1) $(net $((routes / 2))) $(net $((routes - 1)))"
ip -n "${prefix}s" -4 -ts monitor route > "$folder/news" &
echo $! > "$folder/monitor.pid"
for to in 10.2.0.2 172.31.0.1; do
  ip netns exec "${prefix}h1" ping -q -n -c 5000 -i 0.001 "$to" > "$folder/ping-$to" &
  pings="${pings:-} $!"
done
for probe in $probes; do
  ip netns exec "${prefix}h1" ping -D -n -i 0.005 "$probe.1" > "$folder/answers-$probe" &
  echo $! > "$folder/answers-$probe.pid"
done
sleep 1
vtysh --vty_socket "$folder/h3" -c 'configure terminal' -c 'router bgp 65003' -c 'no neighbor 10.3.0.1 shutdown' 2> /dev/null
for probe in $probes; do
  until grep -q 'bytes from' "$folder/answers-$probe"; do sleep 0.1; done
done
for ping in $pings; do wait "$ping" || true; done

# Seconds, of all lines of a file of ip -ts that are of those routes.
told() { grep 'proto bgp' "$folder/news" | grep -o '^\[.*\] *10\.' | tr -d '[]' | sed 's/ *10\.$//' | date -f - +%s.%N; }
answered() { for probe in $probes; do grep -m 1 'bytes from' "$folder/answers-$probe"; done | tr -d '[]' | cut -d ' ' -f 1; }
told | awk -v routes="$routes" -v had="$(answered | sort -n | tail -1)" 'NR == 1 { from = $1 } { last = $1 } END {
  printf "%d routes: FRR had them installed after %.2f s, %d of them; the switch had them after %.2f s\n", routes, last - from, NR, had - from }'
"$weir" show routes --socket "$folder/s.sock" | awk '/kernel/ && /10\.3\.0\.2/ { count++ } END { print count " routes by h3 in the switch" }'
for to in 10.2.0.2 172.31.0.1; do echo "$to: $(grep transmitted "$folder/ping-$to")"; done
