# Parts of the scripts that make guests' kernels and initrds out of Debian's packages alone; sourced, by bash. Images are in
# ~/.cache/weir-guests/NAME: vmlinux, initrd.img, and modules, a link to the folder with all of the kernel's. Debian 12 or later, x86-64.
set -euo pipefail
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
cache=${XDG_CACHE_HOME:-$HOME/.cache}/weir-guests

say() { echo "guest: $*" >&2; }
fail() { say "$*"; exit 1; }

# The package that linux-image-amd64 stands for.
kernel_package() { apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1; }

# Unpacks the kernel, and does not install it. Sets release, and unpacked, the root of its files.
unpack_kernel() {
  if [ -z "$(kernel_package)" ]; then
    ((EUID == 0)) || fail "run apt-get update"
    apt-get -q -o DPkg::Lock::Timeout=120 update >"$cache/apt.log" 2>&1 || fail "$(tail -n 5 "$cache/apt.log")"
  fi
  local kernel
  kernel=$(kernel_package)
  [ -n "$kernel" ] || fail "apt knows no linux-image-amd64"
  unpacked=$cache/$kernel
  if [ ! -d "$unpacked" ]; then
    say "unpack $kernel"
    rm -rf "$cache/download"
    mkdir "$cache/download"
    (cd "$cache/download" && apt-get -q -o APT::Sandbox::User=root download "$kernel" >/dev/null)
    dpkg -x "$cache/download/"*.deb "$cache/download/root"
    depmod -b "$cache/download/root" "$(ls "$cache/download/root/lib/modules")"
    mv "$cache/download/root" "$unpacked"
    rm -rf "$cache/download"
  fi
  release=$(ls "$unpacked/lib/modules")
}

# Writes the kernel as an uncompressed ELF file, because QEMU then starts it at once, and unpacks nothing in emulation.
write_vmlinux() {
  python3 - "$unpacked/boot/vmlinuz-$release" "$image/vmlinux" <<'EOF_PYTHON'
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
}

# begin_image NAME FILE...: sets image and root, the empty root file system of the initrd. If there is an image that was made of the
# same files, its folder is printed instead, and the script ends.
begin_image() {
  image=$cache/$1
  shift
  # The folder is this user's only: root boots the files in it.
  mkdir -p -m 700 "$cache"
  [ -O "$cache" ] || fail "$cache belongs to somebody else"
  exec 9>"$cache/lock"
  flock 9
  stamp=$(sha256sum "${BASH_SOURCE[0]}" "$@" | sha256sum)
  if [ "$(cat "$image/stamp" 2>/dev/null)" = "$stamp" ] && command -v qemu-system-x86_64 >/dev/null; then
    echo "$image"
    exit
  fi
  root=$image/root
  rm -rf "$image"
  mkdir -p "$root"
  unpack_kernel
  write_vmlinux
  ln -s "$unpacked/lib/modules" "$image/modules"
}

# add_modules MODULE...: in the order in which they load, which is that of /modules/order.
add_modules() {
  local module
  mkdir -p "$root/modules"
  for module in "$@"; do
    modprobe -d "$unpacked" -S "$release" --show-depends "$module" | sed -n 's/^insmod \([^ ]*\).*/\1/p'
  done | awk '!seen[$0]++' | while read -r module; do
    local name=${module##*/}
    name=${name%%.ko*}.ko
    case $module in
      *.xz) xz -dc "$module" ;;
      *.zst) zstd -qdc "$module" ;;
      *) cat "$module" ;;
    esac >"$root/modules/$name"
    echo "$name" >>"$root/modules/order"
  done
}

# Packs the initrd and prints the image's folder.
finish_image() {
  (cd "$root" && find . -print0 | cpio --null -o -H newc --quiet -R 0:0) >"$image/initrd.img"
  rm -rf "$root"
  echo "$stamp" >"$image/stamp"
  say "$image: Linux $release, initrd of $(du -h "$image/initrd.img" | cut -f 1)"
  echo "$image"
}
