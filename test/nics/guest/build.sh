#!/usr/bin/env bash
# Makes kernel and initrd of a Linux guest that lives in this host's own files, which it reads and never changes, and prints the folder:
# vmlinux, initrd.img, and modules with the drivers of NICs. Its packages are in test/needs.json.
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../guests/image.sh"

begin_image nic "$here"/build.sh "$here"/init
mkdir -p "$root"/{bin,dev,host,new,over,proc,sys}
cp /bin/busybox "$root/bin/busybox"
for applet in sh insmod mkdir mount switch_root; do ln -s busybox "$root/bin/$applet"; done
add_modules virtio_pci virtio_console 9pnet_virtio 9p overlay
install "$here/init" "$root/init"
finish_image
