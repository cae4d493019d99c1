#!/bin/sh
# Gives a CI job two hosts with RDMA devices, h1 and h2, in namespaces: no root, no kernel module, no hardware.
#
#     setup.sh [SCENARIO.yaml]          default: two-hosts.yaml beside this script
#
# It takes `weir` from the PATH, or installs the archive that $WEIR_PACKAGE names (npm run package:npm) below $HOME/.weir. A second
# call finds the lab up, and leaves it. `weir lab down ci` ends it; so does the end of a container.
set -eu

here=$(dirname "$(readlink -f "$0")")
scenario=${1:-$here/two-hosts.yaml}
prefix=$HOME/.weir

fail() {
  echo "weir: $1" >&2
  echo "  $2" >&2
  exit 1
}

PATH=$PATH:$prefix/bin
for program in ip unshare nsenter node; do
  command -v "$program" > /dev/null || fail "there is no $program here" "apt-get install iproute2 util-linux nodejs   (Node.js 20.17 or later)"
done
if ! command -v weir > /dev/null; then
  [ -n "${WEIR_PACKAGE:-}" ] || fail "weir is not on the PATH" "WEIR_PACKAGE=weir-0.1.0.tgz $0, or npm install -g it before"
  npm install --global --prefix "$prefix" --no-audit --no-fund --omit=optional "$WEIR_PACKAGE" >&2
fi
# Later steps of GitHub's jobs have what is in this file.
[ -z "${GITHUB_PATH:-}" ] || echo "$prefix/bin" >> "$GITHUB_PATH"

restricted=/proc/sys/kernel/apparmor_restrict_unprivileged_userns
if ! unshare --user --map-root-user --net true 2> /dev/null; then
  # Ubuntu 24.04 lets only programs that have a profile make them; runners have sudo.
  if [ "$(cat "$restricted" 2> /dev/null)" = 1 ] && command -v sudo > /dev/null; then
    sudo -n sysctl -q -w kernel.apparmor_restrict_unprivileged_userns=0 || true
  fi
  unshare --user --map-root-user --net true 2> /dev/null ||
    fail "this job may make no namespaces" "as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0; in a container: --security-opt seccomp=unconfined --security-opt apparmor=unconfined"
fi

if weir lab ps ci > /dev/null 2>&1; then
  echo "weir: ci is up already"
else
  weir lab up --name ci "$scenario"
fi
echo "A program on a host: weir lab exec h1 -- ibv_devinfo"
