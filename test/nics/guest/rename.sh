# Names the NICs that have the kernel's names by the last octet of their MAC address: eth1, eth2 ...
for path in /sys/class/net/*/device; do
  folder=${path%/device}
  name=${folder##*/}
  read -r mac <"$folder/address"
  number=$((0x${mac##*:}))
  [ "$name" = "eth$number" ] || ip link set "$name" name "nic$number"
done
for path in /sys/class/net/nic*; do
  name=${path##*/}
  [ ! -e "$path" ] || ip link set "$name" name "eth${name#nic}"
done
