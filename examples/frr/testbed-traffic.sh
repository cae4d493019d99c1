#!/bin/sh
# RoCEv2 on the testbed that `RATE=10Mbps testbed.sh up` has made, whose links are 4000 times slower than the paper's: each host
# of a figure gets a weir nic, and the receivers' counters say what each flow had over 20 s, after 10 s. Where packets were lost
# meanwhile, which PFC forbids, the machine was too busy for it: a pause has 18 ms of headroom.
#
#   testbed-traffic.sh parking none          figure 3: h11, h21, h31 and h42 send to h41
#   testbed-traffic.sh parking dcqcn         figure 8
#   testbed-traffic.sh victim none           figure 4: h11 to h14 send to h41, h15 to h21
#   testbed-traffic.sh disturbed none        the same, and h31 and h32 send to h41, too
#   testbed-traffic.sh victim dcqcn          figure 9
#
# FIRST_QPN=17 numbers queue pairs, and so picks UDP source ports: with others ECMP spreads the flows otherwise.
set -eu
folder=${FOLDER:-/tmp/weir-testbed}
weir=${WEIR:-weir}
case ${1:-} in
  parking) flows="h11:h41 h21:h41 h31:h41 h42:h41" ;;
  victim) flows="h11:h41 h12:h41 h13:h41 h14:h41 h15:h21" ;;
  disturbed) flows="h11:h41 h12:h41 h13:h41 h14:h41 h31:h41 h32:h41 h15:h21" ;;
  *) flows= ;;
esac
case $flows:${2:-} in
  :*) echo "usage: $0 parking|victim|disturbed none|dcqcn" >&2 && exit 2 ;;
  *:none) congestion='{ algorithm: none }' ;;
  # Times are 4000 times the paper's, rates a 4000th, bytes as they are: what a lab's `scale: 4000` does.
  *:dcqcn)
    congestion='{ algorithm: dcqcn, profile: paper-sigcomm15, parameters: { rpg_time_reset: 220ms, dce_tcp_rtt: 220ms,
  min_time_between_cnps: 200ms, rpg_ai_rate: 10kbps, rpg_hai_rate: 50kbps, rpg_min_rate: 2500bps } }'
    ;;
  *) echo "congestion control is none or dcqcn, not ${2:-}" >&2 && exit 2 ;;
esac
mkdir "$folder/nics"
trap 'for pid in "$folder"/nics/*.pid; do kill "$(cat "$pid")" 2> /dev/null || true; done; wait; rm -rf "$folder/nics"' EXIT
trap 'exit 1' INT TERM

# Beside the kernel's address 10.T.N.2 of a host, its NIC has 10.T.N.3.
address() { echo "10.$(echo "$1" | cut -c2).$(echo "$1" | cut -c3).3"; }

number=${FIRST_QPN:-17}
for flow in $flows; do
  from=${flow%:*} to=${flow#*:}
  echo "  - { name: to-$to, peer: $(address "$to"), qpn: $number, send: { start: 5s } }" >> "$folder/nics/$from.pairs"
  echo "  - { name: $from, peer: $(address "$from"), qpn: $number }" >> "$folder/nics/$to.pairs"
  number=$((number + 1))
done
for pairs in "$folder"/nics/*.pairs; do
  host=$(basename "$pairs" .pairs)
  {
    printf 'name: %s\ninterface: eth0\naddress: %s\nrate: 10Mbps\nmetrics: false\n' "$host" "$(address "$host")"
    printf 'control: %s/nics/%s.sock\ncongestion: %s\n' "$folder" "$host" "$congestion"
    printf 'gateway: { address: %s, prefix: 24 }\nqueue_pairs:\n' "$(address "$host" | sed 's/3$/1/')"
    cat "$pairs"
  } > "$folder/nics/$host.yaml"
  ip netns exec "wt-$host" "$weir" nic -c "$folder/nics/$host.yaml" < /dev/null > "$folder/nics/$host.log" 2>&1 &
  echo $! > "$folder/nics/$host.pid"
done

# Of each queue pair that receives: its number, ns, bytes and packets lost so far.
look() {
  for to in $(for flow in $flows; do echo "${flow#*:}"; done | sort -u); do
    now=$(date +%s%N)
    "$weir" show rdma statistic qp --json --socket "$folder/nics/$to.sock" |
      awk -F '[:,]' -v now="$now" '/"cntn"/ { pair = $2 } /"rx_bytes"/ { bytes = $2 } /"lost"/ { print pair, now, bytes, $2 }'
  done
}
sleep 15
look > "$folder/nics/before"
sleep 20
look > "$folder/nics/after"
awk -v flows="$flows" -v number="${FIRST_QPN:-17}" '
  BEGIN { count = split(flows, names, " ") }
  NR == FNR { time[$1] = $2; bytes[$1] = $3; lost[$1] = $4; next }
  { rate[$1] = ($3 - bytes[$1]) * 8000 / ($2 - time[$1]); gone[$1] = $4 - lost[$1] }
  END { for (i = 1; i <= count; i++) printf "%s  %5.2f Mb/s  %d lost\n", names[i], rate[number + i - 1], gone[number + i - 1] }
' "$folder/nics/before" "$folder/nics/after"
