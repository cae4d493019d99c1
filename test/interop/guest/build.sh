#!/usr/bin/env bash
# Makes kernel and initrd of a small Linux guest with the kernel's Soft-RoCE (rdma_rxe), rdma-core's examples and perftest, out of
# Debian's packages alone, and prints the folder: vmlinux and initrd.img in ~/.cache/weir-rxe-guest. Earlier ones,
# made by the same files, are used as they are. Debian 12 or later, x86-64. Its packages are in test/needs.json.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/weir-rxe-guest
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export DEBIAN_FRONTEND=noninteractive LC_ALL=C

programs=(ip rdma ss tcpdump ibv_devinfo ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_srq_pingpong rping ucmatose udaddy
  rstream cmtime rcopy mckey ib_send_bw ib_send_lat ib_write_bw ib_write_lat ib_read_bw ib_read_lat ib_atomic_bw)
modules=(virtio_pci virtio_console virtio_net crc32_generic rdma_ucm rdma_rxe)
libraries=/usr/lib/x86_64-linux-gnu

say() { echo "rxe guest: $*" >&2; }
fail() { say "$*"; exit 1; }

# The folder is this user's only: root boots the files in it.
mkdir -p -m 700 "$cache"
[ -O "$cache" ] || fail "$cache belongs to somebody else"
exec 9>"$cache/lock"
flock 9

stamp=$(sha256sum "$here"/build.sh "$here"/init "$here"/opcodes.c | sha256sum)
if [ "$(cat "$cache/stamp" 2>/dev/null)" = "$stamp" ] && command -v qemu-system-x86_64 >/dev/null; then
  echo "$cache"
  exit
fi
rm -f "$cache/stamp"

# ---- packages: the programs from those of this host, the kernel unpacked and not installed
# The package that linux-image-amd64 stands for.
kernel_package() { apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1; }
if [ -z "$(kernel_package)" ]; then
  ((EUID == 0)) || fail "run apt-get update"
  apt-get -q -o DPkg::Lock::Timeout=120 update >"$cache/apt.log" 2>&1 || fail "$(tail -n 5 "$cache/apt.log")"
fi
kernel=$(kernel_package)
[ -n "$kernel" ] || fail "apt knows no linux-image-amd64"
unpacked=$cache/$kernel
if [ ! -d "$unpacked" ]; then
  say "unpack $kernel"
  rm -rf "$cache/download"
  mkdir "$cache/download"
  (cd "$cache/download" && apt-get -q -o APT::Sandbox::User=root download "$kernel" >/dev/null)
  dpkg -x "$cache/download/"*.deb "$cache/download/root"
  mv "$cache/download/root" "$unpacked"
  rm -rf "$cache/download"
fi
release=$(ls "$unpacked/lib/modules")
depmod -b "$unpacked" "$release"

# ---- kernel: as an uncompressed ELF file, because QEMU then starts it at once, and unpacks nothing in emulation
python3 - "$unpacked/boot/vmlinuz-$release" "$cache/vmlinux" <<'EOF_PYTHON'
import lzma, struct, subprocess, sys
image = open(sys.argv[1], "rb").read()
# Linux's x86 boot protocol: number of sectors of set-up code, offset and length of the payload behind it.
setup = (image[0x1F1] or 4) + 1
offset, length = struct.unpack_from("<II", image, 0x248)
payload = image[setup * 512 + offset:][:length]
if payload[:6] == b"\xfd7zXZ\0":
    kernel = lzma.LZMADecompressor().decompress(payload)
else:  # the last four bytes are its length
    kernel = subprocess.run(["zstd", "-dc"], input=payload[:-4], stdout=subprocess.PIPE, check=True).stdout
assert kernel[:4] == b"\x7fELF"
open(sys.argv[2], "wb").write(kernel)
EOF_PYTHON

# ---- root file system
root=$cache/root
rm -rf "$root"
mkdir -p "$root"/{bin,dev,etc/libibverbs.d,lib64,modules,proc,root,run,sys,tmp,usr/bin,usr/lib}
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

# Modules in the order in which they load.
for module in "${modules[@]}"; do
  modprobe -d "$unpacked" -S "$release" --show-depends "$module" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
done | awk '!seen[$0]++' | while read -r module; do
  name=${module##*/}
  name=${name%%.ko*}.ko
  case $module in
    *.xz) xz -dc "$module" ;;
    *.zst) zstd -qdc "$module" ;;
    *) cat "$module" ;;
  esac >"$root/modules/$name"
  echo "$name" >>"$root/modules/order"
done

install "$here/init" "$root/init"
(cd "$root" && find . -print0 | cpio --null -o -H newc --quiet -R 0:0) >"$cache/initrd.img"
rm -rf "$root"
echo "$stamp" >"$cache/stamp"
say "$cache: Linux $release, initrd of $(du -h "$cache/initrd.img" | cut -f 1)"
echo "$cache"
