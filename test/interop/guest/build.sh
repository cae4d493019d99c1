#!/usr/bin/env bash
# Makes kernel and initrd of a small Linux guest with the kernel's Soft-RoCE (rdma_rxe), rdma-core's examples and perftest, out of
# Debian's packages alone, and prints the folder: vmlinux and initrd.img. Earlier ones, made by the same files, are used as they
# are. Its packages are in test/needs.json.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../guests/image.sh"

programs=(ip rdma ss tcpdump ibv_devinfo ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_srq_pingpong rping ucmatose udaddy
  rstream cmtime rcopy mckey ib_send_bw ib_send_lat ib_write_bw ib_write_lat ib_read_bw ib_read_lat ib_atomic_bw)
modules=(virtio_pci virtio_console virtio_net crc32_generic rdma_ucm rdma_rxe)
libraries=/usr/lib/x86_64-linux-gnu

begin_image rxe "$here"/build.sh "$here"/init "$here"/opcodes.c "$here"/../../guests/serve.sh
mkdir -p "$root"/{bin,dev,etc/libibverbs.d,lib64,proc,root,run,sys,tmp,usr/bin,usr/lib}
ln -s usr/lib "$root/lib"

add_libraries() {  # that the program or library $1 is linked to
  ldd "$1" | grep -o '/[^ ]*' | while read -r library; do
    target=$root$libraries/${library##*/}
    if [[ $library == */ld-linux* ]]; then target=$root/lib64/${library##*/}; fi
    [ -e "$target" ] || install -D "$library" "$target"
  done
}
cp /bin/busybox "$root/bin/busybox"
for applet in $(busybox --list); do [ "$applet" = busybox ] || ln -s busybox "$root/bin/$applet"; done
# Busybox's shell takes its own applets for programs of the same names: dash runs the commands.
rm "$root/bin/sh"
ln -s dash "$root/bin/sh"
install /bin/dash "$root/bin/dash"
add_libraries /bin/dash
for program in "${programs[@]}"; do
  path=$(PATH=/usr/bin:/usr/sbin:/bin:/sbin command -v "$program") || fail "$program is in none of the packages"
  rm -f "$root/bin/$program"
  install "$path" "$root/usr/bin/$program"
  add_libraries "$path"
done
gcc -O1 -Wall -o "$root/usr/bin/opcodes" "$here/opcodes.c" -libverbs
add_libraries "$root/usr/bin/opcodes"
for provider in "$libraries"/libibverbs/librxe-rdmav*.so; do
  install -D "$provider" "$root$provider"
  add_libraries "$provider"
done
echo "driver rxe" >"$root/etc/libibverbs.d/rxe.driver"
# pthread_exit, which rping calls, loads it.
cp -L "$libraries/libgcc_s.so.1" "$root$libraries/" 2>/dev/null || cp -L "/lib${libraries#/usr/lib}/libgcc_s.so.1" "$root$libraries/"
echo "root:x:0:0:root:/root:/bin/sh" >"$root/etc/passwd"
echo "127.0.0.1 localhost" >"$root/etc/hosts"

add_modules "${modules[@]}"
install "$here/init" "$root/init"
install -m 644 "$here/../../guests/serve.sh" "$root/serve.sh"
finish_image
