# The guest's process 1 in the host's file system: loads the driver of its NICs, which are eth1, eth2 ... then, and runs the commands
# that the host sends. The kernel's command line: nic.driver=<module>
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C
mount -t tmpfs shm /dev/shm
mount -t devpts pts /dev/pts
mount -t bpf bpf /sys/fs/bpf
for word in $(cat /proc/cmdline); do
  case $word in
    nic.driver=*) driver=${word#*=} ;;
    nic.start=*) folder=${word#*=} ;;
  esac
done
folder=${folder%/*}
ulimit -l unlimited
# No neighbour discovery of the kernel's gets between the frames that tests count.
for scope in all default; do echo 1 >/proc/sys/net/ipv6/conf/$scope/disable_ipv6; done
ip link set lo up
modprobe "$driver" || echo "guest: modprobe $driver failed"
sh "$folder/rename.sh" || echo "guest: the names of NICs failed"

shell=/bin/sh
. "$folder/../../guests/serve.sh"
serve_all
